//! Classic BPF as seccomp(2) runs it: a checker and an interpreter for the few instructions that our programs use.
//! Proves what no act on this machine can, such as the fate of x32 calls on a kernel that is built without them.

use seccompiler::sock_filter;

/// `struct seccomp_data` without the instruction pointer, which no program of ours reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) arch: u32,
    pub(super) nr: u32,
    pub(super) args: [u64; 6],
}

/// The instructions, as `linux/bpf_common.h` puts them together.
const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// What a program may return (`linux/seccomp.h`); errnos stand in the lower half of [`RETURN_ERRNO`].
pub(super) const RETURN_KILL_PROCESS: u32 = 0x8000_0000;
pub(super) const RETURN_ERRNO: u32 = 0x0005_0000;
pub(super) const RETURN_ALLOW: u32 = 0x7fff_0000;
const ACTION: u32 = 0xffff_0000;

/// The instruction that loads the number of the call, its architecture, and one that compares or returns.
pub(super) const fn load_nr() -> sock_filter {
    instruction(LOAD_WORD, 0, 0, 0)
}

pub(super) const fn load_arch() -> sock_filter {
    instruction(LOAD_WORD, 4, 0, 0)
}

pub(super) const fn jump_equal(value: u32, then: u8, otherwise: u8) -> sock_filter {
    instruction(JUMP_EQUAL, value, then, otherwise)
}

pub(super) const fn jump_at_least(value: u32, then: u8, otherwise: u8) -> sock_filter {
    instruction(JUMP_GREATER_EQUAL, value, then, otherwise)
}

pub(super) const fn give(action: u32) -> sock_filter {
    instruction(RETURN, action, 0, 0)
}

const fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Whether a program consists of instructions that [`run`] knows, stays inside itself and returns nothing but allow,
/// errno and kill. The kernel checks the first two as well when it is installed.
///
/// # Errors
/// Where and what, in words.
pub(super) fn check(program: &[sock_filter]) -> Result<(), String> {
    for (at, step) in program.iter().enumerate() {
        let farthest = match step.code {
            LOAD_WORD if step.k.is_multiple_of(4) && step.k < 64 => 0,
            AND => 0,
            JUMP => u64::from(step.k),
            JUMP_EQUAL | JUMP_GREATER | JUMP_GREATER_EQUAL | JUMP_ANY_BIT => {
                u64::from(step.jt.max(step.jf))
            }
            RETURN if step.k == RETURN_ALLOW || step.k == RETURN_KILL_PROCESS => continue,
            RETURN if step.k & ACTION == RETURN_ERRNO => continue,
            code => {
                return Err(format!(
                    "instruction {at}: {code:#x} {:#x} is not used here",
                    step.k
                ));
            }
        };
        if at as u64 + 1 + farthest >= program.len() as u64 {
            return Err(format!("instruction {at}: leaves the program"));
        }
    }
    if program.is_empty() {
        return Err("no instruction".to_owned());
    }
    Ok(())
}

/// What a program returns for a call; a program that [`check`] refuses kills.
pub(super) fn run(program: &[sock_filter], call: &Call) -> u32 {
    let mut accumulator = 0;
    let mut at = 0;
    while let Some(step) = program.get(at) {
        at += 1;
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
            RETURN => return step.k,
            JUMP_EQUAL => accumulator == step.k,
            JUMP_GREATER => accumulator > step.k,
            JUMP_GREATER_EQUAL => accumulator >= step.k,
            JUMP_ANY_BIT => accumulator & step.k != 0,
            _ => break,
        };
        at += usize::from(if taken { step.jt } else { step.jf });
    }
    RETURN_KILL_PROCESS
}

/// The 32 bits at a byte offset of `struct seccomp_data`, little endian.
fn word(call: &Call, offset: u32) -> u32 {
    match offset {
        0 => call.nr,
        4 => call.arch,
        16..64 => {
            let value = call.args[(offset as usize - 16) / 8];
            (if offset.is_multiple_of(8) {
                value
            } else {
                value >> 32
            }) as u32
        }
        _ => 0,
    }
}

/// The verdict of programs that are stacked in this order: all run, the most restrictive action wins, and among equal
/// ones that of the program installed last (seccomp(2); the kernel asks the newest first and replaces its answer only
/// by a stricter one).
pub(super) fn run_stacked<'a>(
    programs: impl DoubleEndedIterator<Item = &'a [sock_filter]>,
    call: &Call,
) -> u32 {
    let mut answer = RETURN_ALLOW;
    for program in programs.rev() {
        let next = run(program, call);
        if strictness(next) < strictness(answer) {
            answer = next;
        }
    }
    answer
}

/// Lower is stricter: the action as a signed number, as the kernel compares it, so that killing the process is least.
const fn strictness(answer: u32) -> i32 {
    (answer & ACTION).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call {
        arch: 7,
        nr: 9,
        args: [0x1_0000_0002, 0, 0, 0, 0, 0x3_0000_0004],
    };

    fn returning(load: u32, wanted: u32) -> u32 {
        let program = [
            instruction(LOAD_WORD, load, 0, 0),
            jump_equal(wanted, 0, 1),
            give(RETURN_ALLOW),
            give(RETURN_KILL_PROCESS),
        ];
        check(&program).unwrap();
        run(&program, &CALL)
    }

    #[test]
    fn loads_read_the_fields_of_seccomp_data() {
        for (offset, value) in [(0, 9), (4, 7), (16, 2), (20, 1), (56, 4), (60, 3)] {
            assert_eq!(returning(offset, value), RETURN_ALLOW, "{offset}");
            assert_eq!(
                returning(offset, value + 1),
                RETURN_KILL_PROCESS,
                "{offset}"
            );
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
                let program = [
                    load_nr(),
                    instruction(code, k, 1, 0),
                    give(RETURN_KILL_PROCESS),
                    give(RETURN_ALLOW),
                ];
                assert_eq!(
                    run(&program, &CALL) == RETURN_ALLOW,
                    expected,
                    "{code:#x} {k}"
                );
            }
        }
        let any_bit = |k| {
            let jump = instruction(JUMP_ANY_BIT, k, 1, 0);
            run(
                &[
                    load_nr(),
                    jump,
                    give(RETURN_KILL_PROCESS),
                    give(RETURN_ALLOW),
                ],
                &CALL,
            )
        };
        assert_eq!(any_bit(0b1000), RETURN_ALLOW);
        assert_eq!(any_bit(0b0110), RETURN_KILL_PROCESS);
    }

    #[test]
    fn the_stricter_answer_wins_and_among_equals_the_last() {
        let errno = |n| [give(RETURN_ERRNO | n)];
        let (kill, allow) = ([give(RETURN_KILL_PROCESS)], [give(RETURN_ALLOW)]);
        let stacked = |programs: &[&[sock_filter]]| run_stacked(programs.iter().copied(), &CALL);
        assert_eq!(stacked(&[&allow, &allow]), RETURN_ALLOW);
        assert_eq!(stacked(&[&errno(1), &allow]), RETURN_ERRNO | 1);
        assert_eq!(stacked(&[&errno(38), &errno(1)]), RETURN_ERRNO | 1);
        assert_eq!(stacked(&[&errno(1), &errno(38)]), RETURN_ERRNO | 38);
        assert_eq!(stacked(&[&kill, &errno(38), &allow]), RETURN_KILL_PROCESS);
    }

    #[test]
    fn programs_that_leave_themselves_or_return_anything_else_are_refused() {
        assert!(check(&[]).is_err());
        assert!(check(&[load_nr()]).is_err());
        assert!(check(&[jump_equal(0, 0, 1), give(RETURN_ALLOW)]).is_err());
        assert!(check(&[jump_equal(0, 0, 0), give(RETURN_ALLOW)]).is_ok());
        assert!(check(&[instruction(LOAD_WORD, 64, 0, 0), give(RETURN_ALLOW)]).is_err());
        let trace = 0x7ff0_0000;
        assert!(check(&[give(trace)]).is_err());
        assert_eq!(run(&[load_nr()], &CALL), RETURN_KILL_PROCESS);
    }
}
