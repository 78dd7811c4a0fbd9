//! The compiler's programs answer every call as seccompiler's do.
//!
//! A program of either kind learns of a call only by comparing words of it, so its answer is a function of how those
//! comparisons come out. Both programs are walked for every comparison that they can come to; then one call is tried
//! for each way in which these can come out together. What is equal for those is equal for all calls.

use std::collections::{BTreeMap, BTreeSet};

use super::super::instruction::{
    ARCH, ARGUMENTS, Instruction, JUMP, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL, LOAD_WORD,
    NR, RETURN, RETURN_ALLOW, RETURN_ERRNO, RETURN_KILL_PROCESS,
};
use super::super::interpret::{self, Call};
use super::super::reference::{self, Stacked};
use super::super::{FILTERS, Filter, compiler};
use super::*;

/// Offsets of the words that a program may compare.
const WORDS: [u32; 14] = [0, 4, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60];
const AND: u16 = 0x54;
const JUMP_GREATER: u16 = 0x25;

/// Fills for words that no program looks at.
const FILLS: [u32; 3] = [0, 0xdead_beef, u32::MAX];

/// What is compared with one word: whole values, or bits of it.
#[derive(Debug, Clone, Default)]
struct Questions {
    values: BTreeSet<u32>,
    bits: u32,
}

impl Questions {
    /// Values of the word for which the comparisons come out in every way that they can. For whole values that is each
    /// of them and its neighbours; for bits, every choice of them, with all others clear and with all others set.
    fn representatives(&self) -> Vec<u32> {
        assert!(
            self.bits == 0 || self.values.is_empty(),
            "values and bits of one word are more than these representatives cover: {self:x?}"
        );
        if self.bits == 0 {
            let around = |value: &u32| [value.wrapping_sub(1), *value, value.wrapping_add(1)];
            let found: BTreeSet<u32> = self.values.iter().flat_map(around).collect();
            return found.into_iter().collect();
        }
        let mut found = Vec::new();
        let mut chosen = self.bits;
        loop {
            found.extend([chosen, chosen | !self.bits]);
            if chosen == 0 {
                return found;
            }
            chosen = (chosen - 1) & self.bits;
        }
    }
}

/// Every comparison that a program can come to, by word. Where architecture and number are given, comparisons with them
/// are not questions but lead on.
fn questions(
    program: &[Instruction],
    known: Option<(u32, u32)>,
    found: &mut BTreeMap<u32, Questions>,
) {
    let mut open = vec![(0, None)];
    let mut seen = BTreeSet::new();
    while let Some((at, loaded)) = open.pop() {
        if !seen.insert((at, loaded)) {
            continue;
        }
        let step = &program[at];
        let next = at + 1;
        let (yes, no) = (next + usize::from(step.jt), next + usize::from(step.jf));
        match (step.code, loaded) {
            (RETURN, _) => {}
            (JUMP, _) => open.push((next + step.k as usize, loaded)),
            (LOAD_WORD, _) => open.push((next, Some((step.k, u32::MAX)))),
            (AND, Some((word, mask))) => open.push((next, Some((word, mask & step.k)))),
            (_, Some((word, u32::MAX))) if known.is_some() && word < ARGUMENTS => {
                let (arch, nr) = known.unwrap();
                let mut one = vec![Instruction::new(LOAD_WORD, 0, 0, word)];
                one.push(Instruction::new(step.code, 0, 1, step.k));
                one.extend([1, 0].map(|answer| Instruction::new(RETURN, 0, 0, answer)));
                let args = [0; 6];
                let holds = interpret::run(&one, &Call { arch, nr, args }).0 == 1;
                open.push((if holds { yes } else { no }, loaded));
            }
            (code, Some((word, mask))) => {
                let asked = found.entry(word).or_default();
                match code {
                    JUMP_ANY_BIT => asked.bits |= mask & step.k,
                    JUMP_EQUAL if mask != u32::MAX => asked.bits |= mask,
                    // Above a value is from the next one on, which the neighbours cover.
                    JUMP_EQUAL | JUMP_GREATER | JUMP_GREATER_EQUAL if mask == u32::MAX => {
                        asked.values.insert(step.k);
                    }
                    _ => panic!("{at}: {step:x?} of {word} & {mask:x}"),
                }
                open.extend([(yes, loaded), (no, loaded)]);
            }
            (_, None) => panic!("{at}: {step:x?} of nothing"),
        }
    }
}

/// Every word that was asked for with each of its representatives, and the others filled.
fn calls(arch: u32, nr: u32, asked: &BTreeMap<u32, Questions>) -> Vec<Call> {
    let mut choices: Vec<BTreeMap<u32, u32>> = FILLS
        .iter()
        .map(|fill| WORDS.iter().map(|word| (*word, *fill)).collect())
        .collect();
    for (word, questions) in asked {
        assert!(*word >= ARGUMENTS && WORDS.contains(word), "{word}");
        let values = questions.representatives();
        let with = |choice: &BTreeMap<u32, u32>, value| {
            let mut choice = choice.clone();
            choice.insert(*word, value);
            choice
        };
        choices = choices
            .iter()
            .flat_map(|choice| values.iter().map(move |value| with(choice, *value)))
            .collect();
    }
    let call = |words: BTreeMap<u32, u32>| {
        let args = [0, 1, 2, 3, 4, 5].map(|argument| {
            let low = ARGUMENTS + 8 * argument;
            u64::from(words[&low]) | u64::from(words[&(low + 4)]) << 32
        });
        Call { arch, nr, args }
    };
    choices.into_iter().map(call).collect()
}

/// One call for each way in which the comparisons of these programs can come out together, and besides every number
/// below 1024 by itself, native, x32 and i386.
fn representatives(programs: &[&[Instruction]]) -> Vec<Call> {
    let mut whole = BTreeMap::new();
    for program in programs {
        questions(program, None, &mut whole);
    }
    let mut numbers: BTreeSet<u32> = whole[&NR].representatives().into_iter().collect();
    numbers.extend((0..1024).flat_map(|nr| [nr, nr | X32_BIT]));
    numbers.extend([i32::MAX as u32, 1 << 31, u32::MAX]);
    let mut architectures: BTreeSet<u32> = whole[&ARCH].representatives().into_iter().collect();
    let aarch64 = 0xc000_00b7;
    architectures.extend([0, ARCH_I386, ARCH_X86_64, aarch64, u32::MAX]);
    let mut found = Vec::new();
    for arch in architectures {
        for nr in &numbers {
            let mut asked = BTreeMap::new();
            for program in programs {
                questions(program, Some((arch, *nr)), &mut asked);
            }
            found.extend(calls(arch, *nr, &asked));
        }
    }
    found
}

fn agree(filter: &Filter, reference: &Stacked) -> Vec<Call> {
    let mut programs = vec![filter.program];
    programs.extend(reference.0.iter().map(Vec::as_slice));
    let calls = representatives(&programs);
    for call in &calls {
        assert_eq!(
            interpret::run(filter.program, call).0,
            reference.run(call).0,
            "{:?}: {call:x?}",
            filter.sets
        );
    }
    calls
}

#[test]
fn every_filter_answers_every_call_as_seccompilers_programs_do() {
    let compare = |filter: &Filter| {
        let calls = agree(filter, &Stacked::of(filter.sets));
        // All that there is to tell apart was there: the flags of clone, in all their combinations.
        let clones = |call: &&Call| (call.arch, call.nr) == (ARCH_X86_64, 56);
        assert!(calls.iter().filter(clones).count() >= 256 * 2);
    };
    std::thread::scope(|scope| {
        for filter in &FILTERS {
            scope.spawn(move || compare(filter));
        }
    });
}

/// The comparison of all calls would notice any instruction that is not as it should be.
#[test]
fn a_filter_with_one_instruction_changed_answers_some_call_differently() {
    let reference = Stacked::of(&["base"]);
    let filter = base();
    let expected: Vec<_> = agree(filter, &reference)
        .into_iter()
        .map(|call| (call, reference.run(&call).0))
        .collect();
    for at in 0..filter.program.len() {
        for changes in mutants(filter.program[at]) {
            let noticed = changes.iter().any(|changed| {
                let mut program = filter.program.to_vec();
                program[at] = *changed;
                let differs =
                    |(call, answer): &(Call, u32)| interpret::run(&program, call).0 != *answer;
                expected.iter().any(differs)
            });
            assert!(noticed, "{at}: {:x?} {changes:x?}", filter.program[at]);
        }
    }
}

/// Ways to get an instruction wrong, each by itself. Only of the two that move a constant one may change nothing: where a
/// search splits between two numbers, one of them can be decided alike on both sides.
fn mutants(step: Instruction) -> Vec<Vec<Instruction>> {
    let constant = |k| Instruction { k, ..step };
    match step.code {
        RETURN => [
            RETURN_ALLOW,
            RETURN_KILL_PROCESS,
            RETURN_ERRNO | 1,
            RETURN_ERRNO | 38,
        ]
        .into_iter()
        .filter(|answer| *answer != step.k)
        .map(|answer| vec![constant(answer)])
        .collect(),
        JUMP => vec![vec![constant(step.k + 1)]],
        LOAD_WORD => vec![vec![constant(step.k + 4)], vec![constant(step.k + 8)]],
        _ => {
            let exchanged = Instruction {
                jt: step.jf,
                jf: step.jt,
                ..step
            };
            let moved = [step.k.wrapping_add(1), step.k.wrapping_sub(1)].map(constant);
            vec![vec![exchanged], moved.to_vec()]
        }
    }
}

/// `numbers.txt` names a few hundred calls; sets may come to use any of them.
#[test]
fn every_number_is_the_one_that_seccompiler_knows() {
    let known = compiler::known_calls();
    assert!(known.len() > 370);
    for (name, number) in known {
        let rule = serde_json::json!({ "only": {
            "mismatch_action": "kill_process", "match_action": "allow", "filter": [{ "syscall": name }],
        }});
        let program = reference::compile(&rule, "only");
        let mut asked = BTreeMap::new();
        questions(&program, None, &mut asked);
        assert_eq!(asked[&NR].values, [number].into(), "{name}");
    }
}

proptest! {
    #[test]
    fn a_filter_answers_any_call_as_seccompilers_programs_do(
        arch in prop::sample::select(vec![ARCH_X86_64, ARCH_I386]),
        nr in prop_oneof![0_u32..600, any::<u32>()],
        args in prop::array::uniform6(any::<u64>()),
    ) {
        static REFERENCE: LazyLock<Stacked> = LazyLock::new(|| Stacked::of(&["base"]));
        let call = Call { arch, nr, args };
        prop_assert_eq!(interpret::run(base().program, &call).0, REFERENCE.run(&call).0);
    }
}
