//! What a program can answer to any call of a whole range, found without trying each: every way through it that a
//! number and an architecture of the range can take, whatever the arguments are.

use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;

use super::instruction::{
    ARCH, Instruction, JUMP, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL, LOAD_WORD, NR, RETURN,
    RETURN_ALLOW,
};

/// The first and the last value that a word may have.
type Bounds = (u32, u32);

/// A point on a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Point {
    at: usize,
    /// What is loaded, by its offset; nothing is known of words but the two below.
    loaded: Option<u32>,
    arch: Bounds,
    nr: Bounds,
}

/// Every answer to calls whose architecture and number lie in these ranges. It may name answers that no call gets, and
/// leaves none out: instructions that are not ours, and a way out of the program, count as letting the call pass.
pub(super) fn answers(
    program: &[Instruction],
    arch: RangeInclusive<u32>,
    nr: RangeInclusive<u32>,
) -> BTreeSet<u32> {
    let bounds = |range: RangeInclusive<u32>| (*range.start(), *range.end());
    let mut open = vec![Point {
        at: 0,
        loaded: None,
        arch: bounds(arch),
        nr: bounds(nr),
    }];
    let mut seen = HashSet::new();
    let mut answers = BTreeSet::new();
    while let Some(point) = open.pop() {
        if !seen.insert(point) {
            continue;
        }
        let Some(step) = program.get(point.at) else {
            answers.insert(RETURN_ALLOW);
            continue;
        };
        let after = |skipped: u32| Point {
            at: point.at + 1 + skipped as usize,
            ..point
        };
        match step.code {
            RETURN => _ = answers.insert(step.k),
            JUMP => open.push(after(step.k)),
            LOAD_WORD => open.push(Point {
                loaded: Some(step.k),
                ..after(0)
            }),
            JUMP_EQUAL | JUMP_GREATER_EQUAL | JUMP_ANY_BIT => {
                for (taken, next) in [
                    (true, after(u32::from(step.jt))),
                    (false, after(u32::from(step.jf))),
                ] {
                    match point.loaded {
                        Some(ARCH) => open.extend(
                            narrow(point.arch, step, taken)
                                .into_iter()
                                .map(|arch| Point { arch, ..next }),
                        ),
                        Some(NR) => open.extend(
                            narrow(point.nr, step, taken)
                                .into_iter()
                                .map(|nr| Point { nr, ..next }),
                        ),
                        _ => open.push(next),
                    }
                }
            }
            _ => _ = answers.insert(RETURN_ALLOW),
        }
    }
    answers
}

/// The parts of a range for which a comparison holds, or does not; where that is not a range, more than that.
fn narrow((first, last): Bounds, step: &Instruction, holds: bool) -> Vec<Bounds> {
    let k = step.k;
    let below = k.checked_sub(1).map(|end| (first, last.min(end)));
    let above = k.checked_add(1).map(|start| (first.max(start), last));
    let parts = match (step.code, holds) {
        (JUMP_EQUAL, true) => vec![Some((first.max(k), last.min(k)))],
        (JUMP_EQUAL, false) => vec![below, above],
        (JUMP_GREATER_EQUAL, true) => vec![Some((first.max(k), last))],
        (JUMP_GREATER_EQUAL, false) => vec![below],
        _ => vec![Some((first, last))],
    };
    let parts = parts.into_iter().flatten();
    parts.filter(|(first, last)| first <= last).collect()
}

#[cfg(test)]
mod tests {
    use super::super::instruction::{ARCH_X86_64, ARGUMENTS, RETURN_KILL_PROCESS};
    use super::*;

    const OTHER: u32 = 0x0005_0001;

    /// Loads a word, compares, and answers with kill if it holds and with another answer if not.
    fn compare(word: u32, code: u16, k: u32) -> [Instruction; 4] {
        [
            Instruction::new(LOAD_WORD, 0, 0, word),
            Instruction::new(code, 0, 1, k),
            Instruction::new(RETURN, 0, 0, RETURN_KILL_PROCESS),
            Instruction::new(RETURN, 0, 0, OTHER),
        ]
    }

    #[test]
    fn a_range_takes_the_ways_that_one_of_its_values_takes() {
        for word in [NR, ARCH] {
            for (code, k, range, kills, passes) in [
                (JUMP_EQUAL, 5, 5..=5, true, false),
                (JUMP_EQUAL, 5, 4..=5, true, true),
                (JUMP_EQUAL, 5, 5..=6, true, true),
                (JUMP_EQUAL, 5, 6..=u32::MAX, false, true),
                (JUMP_EQUAL, 0, 0..=0, true, false),
                (JUMP_EQUAL, u32::MAX, 0..=u32::MAX, true, true),
                (JUMP_GREATER_EQUAL, 5, 5..=9, true, false),
                (JUMP_GREATER_EQUAL, 5, 4..=9, true, true),
                (JUMP_GREATER_EQUAL, 5, 0..=4, false, true),
                (JUMP_GREATER_EQUAL, 0, 0..=u32::MAX, true, false),
                (JUMP_ANY_BIT, 1, 1..=1, true, true),
            ] {
                let program = compare(word, code, k);
                let (arch, nr) = match word {
                    NR => (1..=1, range.clone()),
                    _ => (range.clone(), 1..=1),
                };
                let mut expected = BTreeSet::new();
                expected.extend(kills.then_some(RETURN_KILL_PROCESS));
                expected.extend(passes.then_some(OTHER));
                let found = answers(&program, arch, nr);
                assert_eq!(found, expected, "{word} {code:#x} {k} {range:?}");
            }
        }
    }

    #[test]
    fn an_argument_may_be_anything() {
        let program = compare(ARGUMENTS, JUMP_EQUAL, 5);
        let any = || 0..=u32::MAX;
        assert_eq!(answers(&program, any(), any()).len(), 2);
    }

    #[test]
    fn what_is_not_understood_lets_calls_pass() {
        let arch = || ARCH_X86_64..=ARCH_X86_64;
        let unknown = [Instruction::new(0x54, 0, 0, 1)];
        let jump = [Instruction::new(JUMP, 0, 0, 7)];
        for program in [&unknown[..], &jump, &[]] {
            let found = answers(program, arch(), 0..=1);
            assert!(found.contains(&RETURN_ALLOW), "{program:?}");
        }
    }
}
