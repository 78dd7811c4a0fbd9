//! Programs longer than any set makes, in which jumps are out of reach of their targets.

use super::super::interpret::{self, Call};
use super::super::{FILTERS, X32_BIT};
use super::assemble::{Assembler, Range};
use super::decision::{Alternatives, Atom, Clause, Decision, Decisions, Id, Level, Test};
use super::instruction::{ARCH_X86_64, JUMP, RETURN};
use super::*;

const OTHERWISE: u32 = 0x0005_0026;

fn atom(argument: u8, test: Test) -> Atom {
    Atom { argument, test }
}

fn level(clauses: &[&[(Atom, bool)]], answer: u32) -> Level {
    let clause = |all: &&[(Atom, bool)]| all.iter().copied().collect::<Clause>();
    Level {
        alternatives: clauses.iter().map(clause).collect::<Alternatives>(),
        answer,
    }
}

fn answer(program: &[Instruction], nr: u32, args: [u64; 6]) -> u32 {
    let arch = ARCH_X86_64;
    interpret::run(program, &Call { arch, nr, args }).0
}

#[test]
fn what_was_built_is_what_the_sets_say_now() {
    let compiled = compile_all().unwrap();
    assert_eq!(compiled.len(), FILTERS.len());
    for ((sets, program), built) in compiled.iter().zip(&FILTERS) {
        assert_eq!(sets, built.sets);
        assert_eq!(program, built.program);
    }
    assert_eq!(names(), super::super::names());
}

#[test]
fn a_call_without_a_number_is_an_error() {
    let joined = Joined::read(&["base"]).unwrap().with_allowed("raed");
    let error = compile(&joined, &Answers::default()).unwrap_err();
    assert_eq!(error.to_string(), "no system call is called \"raed\"");
}

#[test]
fn a_search_finds_every_number_however_far_its_answer_is() {
    let mut decisions = Decisions::default();
    let answers: Vec<Id> = (0..1500).map(|n| decisions.answer(n)).collect();
    for different in [2, 3, 700, 1500] {
        let of = |nr: usize| answers[nr * 7 % different];
        let mut ranges: Vec<_> = (0..1500)
            .map(|nr| Range::new(nr, of(nr as usize)))
            .collect();
        ranges.dedup_by_key(|range| range.decision);
        let program = Assembler::new(&decisions).assemble(&ranges);
        for nr in 0..1500 {
            assert_eq!(answer(&program, nr, [0; 6]), nr * 7 % different as u32);
        }
        assert_eq!(
            answer(&program, X32_BIT, [0; 6]),
            1499 * 7 % different as u32
        );
    }
}

#[test]
fn questions_out_of_reach_are_reached_by_a_jump() {
    let mut decisions = Decisions::default();
    let asks = decisions.decide(
        vec![level(&[&[(atom(3, Test::Equal(9)), true)]], 7)],
        OTHERWISE,
    );
    let mut ranges = Vec::new();
    for nr in 0..1200 {
        let decision = match nr % 3 {
            0 => asks,
            _ => decisions.answer(nr),
        };
        ranges.push(Range::new(nr, decision));
    }
    let program = Assembler::new(&decisions).assemble(&ranges);
    assert!(program.iter().any(|step| step.code == JUMP));
    for nr in 0..1200 {
        let with = |value| answer(&program, nr, [0, 0, 0, value, 0, 0]);
        let expected = if nr % 3 == 0 {
            (7, OTHERWISE)
        } else {
            (nr, nr)
        };
        assert_eq!((with(9), with(8)), expected, "{nr}");
        assert_eq!(with(9 | 1 << 32), expected.0, "{nr}");
    }
}

#[test]
fn one_range_is_a_program() {
    let mut decisions = Decisions::default();
    let only = decisions.answer(OTHERWISE);
    let program = Assembler::new(&decisions).assemble(&[Range::new(0, only)]);
    assert_eq!(answer(&program, 0, [0; 6]), OTHERWISE);
    assert_eq!(answer(&program, u32::MAX, [0; 6]), OTHERWISE);
    assert_eq!(program.iter().filter(|step| step.code == RETURN).count(), 2);
}

/// Every answer beside what the levels say when they are read as they stand.
#[test]
fn decisions_answer_as_the_levels_say() {
    let bit = |argument, bit: u32| atom(argument, Test::AnyBit(1 << bit));
    let is = |argument, value| atom(argument, Test::Equal(value));
    let cases: &[&[Level]] = &[
        &[],
        &[level(&[&[]], 1)],
        &[level(&[], 1), level(&[&[]], 2)],
        &[level(&[&[(bit(0, 0), true)], &[(bit(0, 1), true)]], 1)],
        &[level(&[&[(bit(0, 0), true), (bit(0, 1), true)]], 1)],
        &[level(&[&[(is(0, 2), false)]], 1), level(&[&[]], 2)],
        &[
            level(&[&[(is(0, 1), true), (bit(1, 0), true)]], 1),
            level(&[&[(bit(1, 0), true)], &[(is(0, 2), true)]], 2),
        ],
        &[
            level(&[&[(is(0, 1), true)], &[(is(0, 2), true)]], 1),
            level(&[&[(bit(0, 0), true)]], 2),
            level(&[&[(is(1, 3), false), (bit(0, 1), false)]], 3),
        ],
        &[level(
            &[
                &[(bit(0, 0), true), (bit(1, 0), true)],
                &[(bit(0, 0), true), (bit(1, 1), true)],
                &[(bit(0, 1), true), (bit(1, 0), true)],
                &[(bit(0, 1), true), (bit(1, 1), true)],
            ],
            1,
        )],
    ];
    for levels in cases {
        let mut decisions = Decisions::default();
        let decision = decisions.decide(levels.to_vec(), OTHERWISE);
        let program = Assembler::new(&decisions).assemble(&[Range::new(0, decision)]);
        for (first, second) in (0..4).flat_map(|first| (0..4).map(move |second| (first, second))) {
            let holds = |(atom, wanted): &(Atom, bool)| {
                let value = [first, second][usize::from(atom.argument)];
                let holds = match atom.test {
                    Test::AnyBit(bits) => value & bits != 0,
                    Test::Equal(other) => value == other,
                };
                holds == *wanted
            };
            let matches = |level: &&Level| {
                let mut clauses = level.alternatives.iter();
                clauses.any(|clause| clause.iter().all(holds))
            };
            let expected = levels.iter().find(matches);
            let expected = expected.map_or(OTHERWISE, |level| level.answer);
            let args = [u64::from(first), u64::from(second), 0, 0, 0, 0];
            assert_eq!(answer(&program, 1, args), expected, "{levels:?} {args:?}");
        }
    }
}

#[test]
fn bits_that_lead_to_the_same_are_asked_for_at_once() {
    // The four about set-id bits, which also ask for the mode.
    let mut open = Joined::read(&["base"]).unwrap().refused("open");
    open.retain(|all| all.iter().any(|(atom, _)| atom.argument == 2));
    assert_eq!(open.len(), 4);
    let levels = vec![Level {
        alternatives: open,
        answer: 1,
    }];
    let mut decisions = Decisions::default();
    let decision = decisions.decide(levels, OTHERWISE);
    let Decision::Ask {
        atom: makes,
        yes,
        no,
    } = decisions.get(decision)
    else {
        panic!("nothing is asked");
    };
    assert_eq!(makes, atom(1, Test::AnyBit(0o20_000_100)));
    assert_eq!(decisions.get(no), Decision::Answer(OTHERWISE));
    let Decision::Ask { atom: mode, .. } = decisions.get(yes) else {
        panic!("the mode is not asked for");
    };
    assert_eq!(mode, atom(2, Test::AnyBit(0o6000)));
}
