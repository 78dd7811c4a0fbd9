//! From the sets, which are data, to one program of classic BPF for each way to join them. Runs while this crate is
//! built (`build.rs`) and in tests, never in a process of boxmaker; the tests prove what comes out equal to what
//! seccompiler makes of the same sets.

mod assemble;
mod decision;
mod numbers;
mod sets;

use std::collections::BTreeMap;

use super::instruction;
pub(super) use super::instruction::Instruction;

use assemble::{Assembler, Range};
use decision::{Decisions, Level};
pub(super) use sets::Joined;

/// Why the sets make no programs.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompileError {
    /// A set that cannot be read.
    #[error("system call set {name:?} cannot be read")]
    Data {
        name: &'static str,
        source: serde_json::Error,
    },
    /// A call without a number.
    #[error("no system call is called {0:?}")]
    UnknownCall(String),
    /// A program that the kernel would not take.
    #[error("the filter of {0:?} has {1} instructions")]
    TooLong(Vec<&'static str>, usize),
}

/// Instructions that the kernel takes in one filter, `BPF_MAXINSNS` of `linux/bpf_common.h`.
const MOST: usize = 4096;

/// Names of sets, in the order of [`names`], and the program of what they are together.
pub(super) type Compiled = (Vec<&'static str>, Vec<Instruction>);

/// Every set that a profile may name.
pub(super) fn names() -> Vec<&'static str> {
    sets::SETS.iter().map(|(name, _)| *name).collect()
}

/// Every way to narrow them, by the names of the sets that do.
pub(super) fn narrowed() -> [&'static [&'static str]; 5] {
    sets::NARROWED
}

/// Every call that a set may name, with its number.
#[cfg(test)]
pub(super) fn known_calls() -> BTreeMap<&'static str, u32> {
    numbers::read()
}

/// The program of each way to join sets and to narrow what comes of it, with what is always closed.
///
/// # Errors
/// [`CompileError`], each a mistake in the sets.
pub(super) fn compile_all() -> Result<Vec<Compiled>, CompileError> {
    let names = names();
    let joined = (1..1_usize << names.len()).map(|choice| {
        let chosen = names.iter().enumerate();
        let chosen = chosen.filter(|(at, _)| choice & (1 << at) != 0);
        chosen.map(|(_, name)| *name).collect::<Vec<_>>()
    });
    joined
        .flat_map(|sets| narrowed().map(|more| [&sets, more].concat()))
        .map(|sets| {
            let program = compile(&Joined::read(&sets)?, &Answers::default())?;
            match program.len() {
                length if length > MOST => Err(CompileError::TooLong(sets, length)),
                _ => Ok((sets, program)),
            }
        })
        .collect()
}

/// What calls are answered. The tests that prove that every refusal is tried make filters with other answers.
#[derive(Clone, Copy)]
pub(super) struct Answers {
    /// To a closed call of this name.
    pub(super) closed: fn(&str) -> u32,
    /// To a call that no set allows.
    pub(super) unlisted: u32,
    /// To a call of x32.
    pub(super) x32: u32,
}

impl Default for Answers {
    /// Closed is EPERM; anything that no set allows is ENOSYS, so that libraries fall back to older calls.
    fn default() -> Self {
        let errno = |errno: u16| instruction::RETURN_ERRNO | u32::from(errno);
        Self {
            closed: |_| instruction::RETURN_ERRNO | u32::from(instruction::EPERM),
            unlisted: errno(instruction::ENOSYS),
            x32: instruction::RETURN_KILL_PROCESS,
        }
    }
}

/// What stands for a call: closed, whatever allows it; allowed, which passes; or neither. The numbers of x32 stand by
/// themselves; beyond them, with the sign bit, are no calls.
///
/// # Errors
/// [`CompileError::UnknownCall`].
pub(super) fn compile(
    joined: &Joined,
    answers_to: &Answers,
) -> Result<Vec<Instruction>, CompileError> {
    let numbers = numbers::read();
    let unknown = answers_to.unlisted;
    let mut decisions = Decisions::default();
    let mut answers = BTreeMap::new();
    for call in joined.calls() {
        let number = numbers.get(call).copied();
        let number = number.ok_or_else(|| CompileError::UnknownCall(call.to_owned()))?;
        let level = |alternatives, answer| Level {
            alternatives,
            answer,
        };
        let levels = vec![
            level(joined.refused(call), (answers_to.closed)(call)),
            level(joined.allowed(call), instruction::RETURN_ALLOW),
        ];
        answers.insert(number, decisions.decide(levels, unknown));
    }
    let unknown = decisions.answer(unknown);
    let mut ranges = Vec::new();
    let mut next = 0;
    for (number, decision) in answers {
        if number > next {
            ranges.push(Range::new(next, unknown));
        }
        ranges.push(Range::new(number, decision));
        next = number + 1;
    }
    ranges.push(Range::new(next, unknown));
    let x32 = decisions.answer(answers_to.x32);
    ranges.push(Range::new(instruction::X32_BIT, x32));
    ranges.push(Range::new(instruction::X32_BIT << 1, unknown));
    ranges.dedup_by_key(|range| range.decision);
    Ok(Assembler::new(&decisions).assemble(&ranges))
}

#[cfg(test)]
mod tests;
