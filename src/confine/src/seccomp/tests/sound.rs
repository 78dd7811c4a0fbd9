//! The programs, the compiler's and seccompiler's, consist of what the interpreter knows.

use super::super::FILTERS;
use super::super::instruction::{
    ARCH, Instruction, JUMP, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL, LOAD_WORD, NR, RETURN,
    RETURN_ALLOW, RETURN_ERRNO, RETURN_KILL_PROCESS,
};
use super::super::interpret::Call;
use super::super::reference::Stacked;

const AND: u16 = 0x54;
const JUMP_GREATER: u16 = 0x25;

/// Whether a program consists of known instructions, stays inside itself and returns nothing but allow, errno and kill.
///
/// # Errors
/// Where and what, in words.
fn check(program: &[Instruction]) -> Result<(), String> {
    for (at, step) in program.iter().enumerate() {
        let farthest = match step.code {
            LOAD_WORD if step.k.is_multiple_of(4) && step.k < 64 => 0,
            AND => 0,
            JUMP => u64::from(step.k),
            JUMP_EQUAL | JUMP_GREATER | JUMP_GREATER_EQUAL | JUMP_ANY_BIT => {
                u64::from(step.jt.max(step.jf))
            }
            RETURN if step.k == RETURN_ALLOW || step.k == RETURN_KILL_PROCESS => continue,
            RETURN if step.k & 0xffff_0000 == RETURN_ERRNO => continue,
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

const fn give(answer: u32) -> Instruction {
    Instruction::new(RETURN, 0, 0, answer)
}

#[test]
fn every_program_is_sound() {
    for filter in &FILTERS {
        check(filter.program).unwrap();
        for program in Stacked::of(filter.sets).0 {
            check(&program).unwrap();
        }
    }
}

#[test]
fn programs_that_leave_themselves_or_return_anything_else_are_unsound() {
    let load = |offset| Instruction::new(LOAD_WORD, 0, 0, offset);
    let jump_equal = |jt, jf| Instruction::new(JUMP_EQUAL, jt, jf, 0);
    assert!(check(&[]).is_err());
    assert!(check(&[load(NR)]).is_err());
    assert!(check(&[jump_equal(0, 1), give(RETURN_ALLOW)]).is_err());
    assert!(check(&[jump_equal(0, 0), give(RETURN_ALLOW)]).is_ok());
    assert!(check(&[load(64), give(RETURN_ALLOW)]).is_err());
    assert!(check(&[load(ARCH), give(RETURN_ALLOW)]).is_ok());
    let trace = 0x7ff0_0000;
    assert!(check(&[give(trace)]).is_err());
}

#[test]
fn of_stacked_programs_the_stricter_answer_wins_and_among_equals_the_last() {
    let errno = |n| vec![give(RETURN_ERRNO | n)];
    let kill = || vec![give(RETURN_KILL_PROCESS)];
    let allow = || vec![give(RETURN_ALLOW)];
    let call = Call {
        arch: 0,
        nr: 0,
        args: [0; 6],
    };
    let stacked = |programs| Stacked(programs).run(&call);
    assert_eq!(stacked([allow(), allow(), allow()]), (RETURN_ALLOW, 3));
    assert_eq!(stacked([errno(1), allow(), allow()]).0, RETURN_ERRNO | 1);
    assert_eq!(stacked([errno(38), errno(1), allow()]).0, RETURN_ERRNO | 1);
    assert_eq!(stacked([errno(1), errno(38), allow()]).0, RETURN_ERRNO | 38);
    assert_eq!(stacked([kill(), errno(38), allow()]).0, RETURN_KILL_PROCESS);
}
