//! Classic BPF as seccomp(2) runs it: an interpreter for the instructions that our programs use, and those that
//! seccompiler's use besides. Proves what no act on this machine can, such as the fate of x32 calls on a kernel that is
//! built without them.

use super::instruction::{
    ARCH, ARGUMENTS, Instruction, JUMP, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL, LOAD_WORD,
    NR, RETURN, RETURN_KILL_PROCESS,
};

/// `struct seccomp_data` without the instruction pointer, which no program of ours reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) arch: u32,
    pub(super) nr: u32,
    pub(super) args: [u64; 6],
}

/// Instructions that only seccompiler's programs have.
const AND: u16 = 0x54;
const JUMP_GREATER: u16 = 0x25;

/// What a program returns for a call, and after how many instructions. One that leaves itself, or holds an instruction
/// that is unknown here, kills.
pub(super) fn run(program: &[Instruction], call: &Call) -> (u32, usize) {
    let mut accumulator = 0;
    let mut at = 0;
    let mut steps = 0;
    while let Some(step) = program.get(at) {
        at += 1;
        steps += 1;
        let taken = match step.code {
            LOAD_WORD => {
                accumulator = word(call, step.k);
                continue;
            }
            AND => {
                accumulator &= step.k;
                continue;
            }
            JUMP => {
                at += step.k as usize;
                continue;
            }
            RETURN => return (step.k, steps),
            JUMP_EQUAL => accumulator == step.k,
            JUMP_GREATER => accumulator > step.k,
            JUMP_GREATER_EQUAL => accumulator >= step.k,
            JUMP_ANY_BIT => accumulator & step.k != 0,
            _ => break,
        };
        at += usize::from(if taken { step.jt } else { step.jf });
    }
    (RETURN_KILL_PROCESS, steps)
}

/// The 32 bits at a byte offset of `struct seccomp_data`, little endian.
fn word(call: &Call, offset: u32) -> u32 {
    match offset {
        NR => call.nr,
        ARCH => call.arch,
        ARGUMENTS..64 => {
            let value = call.args[(offset - ARGUMENTS) as usize / 8];
            (if offset.is_multiple_of(8) {
                value
            } else {
                value >> 32
            }) as u32
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::instruction::RETURN_ALLOW;
    use super::*;

    const CALL: Call = Call {
        arch: 7,
        nr: 9,
        args: [0x1_0000_0002, 0, 0, 0, 0, 0x3_0000_0004],
    };

    const fn load(offset: u32) -> Instruction {
        Instruction::new(LOAD_WORD, 0, 0, offset)
    }

    const fn give(answer: u32) -> Instruction {
        Instruction::new(RETURN, 0, 0, answer)
    }

    /// Whether a comparison that stands after other instructions holds.
    fn holds(before: &[Instruction], code: u16, k: u32) -> bool {
        let compare = Instruction::new(code, 1, 0, k);
        let mut program = before.to_vec();
        program.extend([compare, give(RETURN_KILL_PROCESS), give(RETURN_ALLOW)]);
        let (answer, steps) = run(&program, &CALL);
        assert_eq!(steps, before.len() + 2);
        answer == RETURN_ALLOW
    }

    #[test]
    fn loads_read_the_fields_of_seccomp_data() {
        for (offset, value) in [(0, 9), (4, 7), (16, 2), (20, 1), (56, 4), (60, 3)] {
            assert!(holds(&[load(offset)], JUMP_EQUAL, value), "{offset}");
            assert!(!holds(&[load(offset)], JUMP_EQUAL, value + 1), "{offset}");
        }
    }

    #[test]
    fn jumps_compare_as_their_names_say() {
        for (code, below, equal, above) in [
            (JUMP_EQUAL, false, true, false),
            (JUMP_GREATER, true, false, false),
            (JUMP_GREATER_EQUAL, true, true, false),
        ] {
            for (k, expected) in [(8, below), (9, equal), (10, above)] {
                assert_eq!(holds(&[load(NR)], code, k), expected, "{code:#x} {k}");
            }
        }
        assert!(holds(&[load(NR)], JUMP_ANY_BIT, 0b1100));
        assert!(!holds(&[load(NR)], JUMP_ANY_BIT, 0b0110));
        let masked = [load(NR), Instruction::new(AND, 0, 0, 0b1100)];
        assert!(holds(&masked, JUMP_EQUAL, 0b1000));
        assert!(!holds(&masked, JUMP_EQUAL, 9));
    }

    #[test]
    fn a_jump_skips_and_what_is_unknown_or_beyond_the_end_kills() {
        let jump = |by| {
            let program = [Instruction::new(JUMP, 0, 0, by), give(1), give(2)];
            run(&program, &CALL)
        };
        assert_eq!(jump(0), (1, 2));
        assert_eq!(jump(1), (2, 2));
        assert_eq!(jump(2), (RETURN_KILL_PROCESS, 1));
        assert_eq!(run(&[], &CALL), (RETURN_KILL_PROCESS, 0));
        let unknown = [Instruction::new(0x61, 0, 0, 0), give(1)];
        assert_eq!(run(&unknown, &CALL), (RETURN_KILL_PROCESS, 1));
    }
}
