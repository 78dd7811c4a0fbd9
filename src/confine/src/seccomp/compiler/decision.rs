//! What is asked of the arguments of a call, as a graph of questions in which equal parts are one.

use std::collections::{BTreeSet, HashMap};

/// A question about the lower 32 bits of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Test {
    /// One of these bits is set.
    AnyBit(u32),
    /// It is this.
    Equal(u32),
}

/// A question about one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Atom {
    pub(super) argument: u8,
    pub(super) test: Test,
}

/// Answers to questions that must all be so.
pub(super) type Clause = BTreeSet<(Atom, bool)>;
/// Clauses of which one is enough.
pub(super) type Alternatives = BTreeSet<Clause>;

/// What a call is answered when one of the alternatives holds, and the levels before it do not.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) alternatives: Alternatives,
    pub(super) answer: u32,
}

/// Names one decision; equal names are equal decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id(usize);

/// An answer, or a question whose answer leads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Decision {
    Answer(u32),
    Ask { atom: Atom, yes: Id, no: Id },
}

/// Every decision made so far, each once.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    known: Vec<Decision>,
    ids: HashMap<Decision, Id>,
}

impl Decisions {
    pub(super) fn get(&self, id: Id) -> Decision {
        self.known[id.0]
    }

    /// The decision that asks nothing.
    pub(super) fn answer(&mut self, answer: u32) -> Id {
        self.intern(Decision::Answer(answer))
    }

    /// The decision that gives the answer of the first level that holds, or `otherwise`.
    pub(super) fn decide(&mut self, mut levels: Vec<Level>, otherwise: u32) -> Id {
        for level in &mut levels {
            absorb(&mut level.alternatives);
        }
        levels.retain(|level| !level.alternatives.is_empty());
        let Some(first) = levels.first() else {
            return self.answer(otherwise);
        };
        // After absorption the clause that asks nothing is alone.
        let Some((atom, _)) = first.alternatives.iter().flatten().next().copied() else {
            return self.answer(first.answer);
        };
        let yes = self.decide(assume(&levels, atom, true), otherwise);
        let no = self.decide(assume(&levels, atom, false), otherwise);
        self.ask(atom, yes, no)
    }

    fn ask(&mut self, atom: Atom, yes: Id, no: Id) -> Id {
        if yes == no {
            return yes;
        }
        // Two bits that lead to the same are one question.
        if let (Test::AnyBit(bits), Decision::Ask { atom: next, .. }) = (atom.test, self.get(no))
            && let (Test::AnyBit(more), true) = (next.test, next.argument == atom.argument)
            && let Decision::Ask { yes: same, no, .. } = self.get(no)
            && same == yes
        {
            let test = Test::AnyBit(bits | more);
            return self.ask(Atom { test, ..atom }, yes, no);
        }
        self.intern(Decision::Ask { atom, yes, no })
    }

    fn intern(&mut self, decision: Decision) -> Id {
        let next = Id(self.known.len());
        let id = *self.ids.entry(decision).or_insert(next);
        if id == next {
            self.known.push(decision);
        }
        id
    }
}

/// Drops each clause that asks for more than another one does.
fn absorb(alternatives: &mut Alternatives) {
    let all = alternatives.clone();
    let wider = |clause: &Clause, other: &Clause| other != clause && other.is_subset(clause);
    alternatives.retain(|clause| !all.iter().any(|other| wider(clause, other)));
}

/// What is left of the levels once a question is answered.
fn assume(levels: &[Level], atom: Atom, holds: bool) -> Vec<Level> {
    let rest = |clause: &Clause| -> Option<Clause> {
        let mut rest = Clause::new();
        for (other, wanted) in clause {
            match follows(*other, atom, holds) {
                None => _ = rest.insert((*other, *wanted)),
                Some(known) if known == *wanted => {}
                Some(_) => return None,
            }
        }
        Some(rest)
    };
    levels
        .iter()
        .map(|level| Level {
            alternatives: level.alternatives.iter().filter_map(rest).collect(),
            answer: level.answer,
        })
        .collect()
}

/// The answer to `question` if the one to `atom` settles it.
fn follows(question: Atom, atom: Atom, holds: bool) -> Option<bool> {
    if question == atom {
        return Some(holds);
    }
    match atom.test {
        Test::Equal(value) if holds && question.argument == atom.argument => {
            Some(match question.test {
                Test::AnyBit(bits) => value & bits != 0,
                Test::Equal(other) => value == other,
            })
        }
        _ => None,
    }
}
