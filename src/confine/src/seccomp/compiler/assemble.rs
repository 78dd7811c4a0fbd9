//! Decisions as instructions: a binary search over the numbers of calls, then the questions about arguments. Equal ends
//! are shared where a jump reaches them.
//!
//! Everything is put down from the last instruction to the first, so that the target of a jump is always known.

use std::collections::{HashMap, HashSet};

use super::decision::{Decision, Decisions, Id, Test};
use super::instruction::{
    ARCH, ARCH_X86_64, ARGUMENTS, Instruction, JUMP, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL,
    LOAD_WORD, NR, RETURN, RETURN_KILL_PROCESS,
};

/// The numbers from `first` up to the next range, which are all decided alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    first: u32,
    pub(super) decision: Id,
}

impl Range {
    pub(super) const fn new(first: u32, decision: Id) -> Self {
        Self { first, decision }
    }
}

/// How much nearer to the top of the search a call stands whose arguments are looked at. Since Linux 5.11 the kernel
/// remembers which numbers pass whatever the arguments are, and runs no program for them.
const WEIGHT_OF_QUESTIONS: usize = 16;

/// Where an instruction stands, counted from the last one.
type Place = usize;

pub(super) struct Assembler<'a> {
    decisions: &'a Decisions,
    /// From the last instruction to the first.
    backwards: Vec<Instruction>,
    /// The nearest instruction that returns this.
    returns: HashMap<u32, Place>,
    /// Questions that are put down.
    asked: HashMap<Id, Place>,
    /// The same, with the instruction before them that loads their argument.
    loaded: HashMap<Id, Place>,
    /// Questions that are reached with something else loaded.
    to_load: HashSet<Id>,
}

impl<'a> Assembler<'a> {
    pub(super) fn new(decisions: &'a Decisions) -> Self {
        Self {
            decisions,
            backwards: Vec::new(),
            returns: HashMap::new(),
            asked: HashMap::new(),
            loaded: HashMap::new(),
            to_load: HashSet::new(),
        }
    }

    /// The program that kills calls of foreign architectures and decides the others by these ranges, the first of which
    /// begins at 0.
    pub(super) fn assemble(mut self, ranges: &[Range]) -> Vec<Instruction> {
        for range in ranges {
            self.note_loads(range.decision, None);
        }
        let search = self.search(ranges);
        if search + 1 < self.backwards.len() {
            self.nearer(search);
        }
        let native = self.put(LOAD_WORD, NR);
        let kill = self.put(RETURN, RETURN_KILL_PROCESS);
        self.compare(JUMP_EQUAL, ARCH_X86_64, native, kill);
        self.put(LOAD_WORD, ARCH);
        self.backwards.reverse();
        self.backwards
    }

    fn note_loads(&mut self, id: Id, loaded: Option<u8>) {
        let Decision::Ask { atom, yes, no } = self.decisions.get(id) else {
            return;
        };
        if loaded != Some(atom.argument) {
            self.to_load.insert(id);
        }
        self.note_loads(yes, Some(atom.argument));
        self.note_loads(no, Some(atom.argument));
    }

    /// A search for the range that the loaded number is in, which splits by weight. Numbers that stand alone between
    /// others of one kind take one comparison and not two.
    fn search(&mut self, ranges: &[Range]) -> Place {
        match ranges {
            [only] => self.decision(only.decision, None),
            [around, alone, after]
                if around.decision == after.decision && alone.first + 1 == after.first =>
            {
                let otherwise = self.decision(around.decision, None);
                let equal = self.decision(alone.decision, None);
                self.compare(JUMP_EQUAL, alone.first, equal, otherwise)
            }
            _ => {
                let (below, from) = ranges.split_at(self.middle(ranges));
                let first = from.first().map_or(0, |range| range.first);
                let from = self.search(from);
                let below = self.search(below);
                self.compare(JUMP_GREATER_EQUAL, first, from, below)
            }
        }
    }

    /// How many of the ranges go to the lower side, at least one and not all.
    fn middle(&self, ranges: &[Range]) -> usize {
        let weight = |range: &Range| match self.decisions.get(range.decision) {
            Decision::Ask { .. } => WEIGHT_OF_QUESTIONS,
            Decision::Answer(_) => 1,
        };
        let total: usize = ranges.iter().map(weight).sum();
        let uneven = |lower: &usize| {
            let below: usize = ranges.iter().take(*lower).map(weight).sum();
            total.abs_diff(2 * below)
        };
        (1..ranges.len()).min_by_key(uneven).unwrap_or(1)
    }

    /// Puts down a decision, or finds it; `loaded` is the argument that is loaded where it is needed.
    fn decision(&mut self, id: Id, loaded: Option<u8>) -> Place {
        let (atom, yes, no) = match self.decisions.get(id) {
            Decision::Answer(answer) => {
                let known = self.returns.get(&answer).copied();
                return known.unwrap_or_else(|| self.put(RETURN, answer));
            }
            Decision::Ask { atom, yes, no } => (atom, yes, no),
        };
        let known = if loaded == Some(atom.argument) {
            self.asked.get(&id)
        } else {
            self.loaded.get(&id)
        };
        if let Some(place) = known {
            return *place;
        }
        let no = self.decision(no, Some(atom.argument));
        let yes = self.decision(yes, Some(atom.argument));
        let (code, k) = match atom.test {
            Test::AnyBit(bits) => (JUMP_ANY_BIT, bits),
            Test::Equal(value) => (JUMP_EQUAL, value),
        };
        let asked = self.compare(code, k, yes, no);
        self.asked.insert(id, asked);
        if !self.to_load.contains(&id) {
            return asked;
        }
        let load = self.put(LOAD_WORD, ARGUMENTS + 8 * u32::from(atom.argument));
        self.loaded.insert(id, load);
        if loaded == Some(atom.argument) {
            asked
        } else {
            load
        }
    }

    /// A comparison with its two targets, which are brought nearer if they are out of reach.
    fn compare(&mut self, code: u16, k: u32, yes: Place, no: Place) -> Place {
        let (mut yes, mut no) = (yes, no);
        loop {
            let skipped = |target: Place| self.backwards.len() - target - 1;
            match (u8::try_from(skipped(yes)), u8::try_from(skipped(no))) {
                (Ok(jt), Ok(jf)) => return self.push(Instruction::new(code, jt, jf, k)),
                (Err(_), _) => yes = self.nearer(yes),
                (_, Err(_)) => no = self.nearer(no),
            }
        }
    }

    /// Another way to an instruction: the same again if it returns, else a jump to it.
    fn nearer(&mut self, target: Place) -> Place {
        match self.backwards[target] {
            Instruction {
                code: RETURN, k, ..
            } => self.put(RETURN, k),
            _ => self.put(JUMP, (self.backwards.len() - target - 1) as u32),
        }
    }

    fn put(&mut self, code: u16, k: u32) -> Place {
        self.push(Instruction::new(code, 0, 0, k))
    }

    fn push(&mut self, instruction: Instruction) -> Place {
        let place = self.backwards.len();
        if instruction.code == RETURN {
            self.returns.insert(instruction.k, place);
        }
        self.backwards.push(instruction);
        place
    }
}
