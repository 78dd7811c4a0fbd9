//! The account: tokens in the file, decisions and outcomes in the log, and what callers heard, one against the other.

use std::collections::{BTreeMap, BTreeSet};

use boxmaker_tests::system::Home;
use proto::Arguments;
use proto::audit::{Outcome, OutcomeStatus};

use crate::caller::{Heard, token};
use crate::crowd::Told;
use crate::home::marks;

/// How many tokens there are of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    /// Calls with the outcome `result`.
    pub(crate) results: usize,
    /// Calls whose end nobody saw.
    pub(crate) unknown: usize,
    /// Of those, how many have left their token.
    pub(crate) left: usize,
    /// Calls of which the caller was told nothing.
    pub(crate) nothing: usize,
    /// Calls that had no answer, and of which `bxctl` found out that they ran.
    pub(crate) ran: usize,
}

/// Checks that every token is accounted for.
pub(crate) fn account(home: &Home, told: &Told) -> Account {
    home.sound();
    let marks = marks(home);
    let left: BTreeSet<&String> = marks.iter().collect();
    assert_eq!(left.len(), marks.len(), "a token is there twice");

    let (allowed, denied) = decisions(home);
    let outcomes = outcomes(home);
    for mark in &left {
        assert!(allowed.contains_key(*mark), "{mark} ran without a record");
    }
    let mut sums = Account {
        results: 0,
        unknown: 0,
        left: 0,
        nothing: 0,
        ran: 0,
    };
    for (text, seq) in &allowed {
        let outcome = outcomes.get(seq).expect("every call has an outcome");
        match outcome.status {
            OutcomeStatus::Result => {
                assert!(left.contains(text), "{text} has a result and did nothing");
                sums.results += 1;
            }
            OutcomeStatus::Unknown => {
                sums.unknown += 1;
                sums.left += usize::from(left.contains(text));
            }
            OutcomeStatus::Failed => panic!("{text} failed: {outcome:?}"),
        }
        assert!(!denied.contains(text), "{text} was decided twice");
    }
    assert_eq!(left.len(), sums.results + sums.left);

    for (name, heard) in told {
        let text = token(name).to_string();
        let seq = allowed.get(&text);
        match heard {
            Heard::Result { content, .. } => {
                assert_eq!(*content, text, "another call's result");
                let outcome = outcomes.get(seq.expect("a result has a record")).unwrap();
                assert_eq!(outcome.status, OutcomeStatus::Result, "{text}");
            }
            Heard::Denied(reason) => assert!(seq.is_none(), "{text}: {reason}"),
            Heard::NotRun => assert!(seq.is_none(), "{text} was said not to have run"),
            Heard::Ran => {
                assert!(seq.is_some(), "{text} was said to have run");
                sums.ran += 1;
            }
            Heard::Nothing => sums.nothing += 1,
        }
    }
    let asked: BTreeSet<String> = told.keys().map(|name| token(name).to_string()).collect();
    for text in allowed.keys().chain(&denied) {
        assert!(asked.contains(text), "nobody asked for {text}");
    }
    sums
}

/// The calls of `token` by their arguments: those that were allowed with the number of the decision, and the others.
fn decisions(home: &Home) -> (BTreeMap<String, u64>, BTreeSet<String>) {
    let (mut allowed, mut denied) = (BTreeMap::new(), BTreeSet::new());
    for (seq, decision) in home.decisions() {
        if decision.tool != "token" {
            continue;
        }
        let Arguments::Text(text) = decision.arguments else {
            panic!("{decision:?}");
        };
        if decision.decision.granted().is_none() {
            denied.insert(text);
        } else {
            let before = allowed.insert(text.clone(), seq);
            assert_eq!(before, None, "{text} was allowed twice");
        }
    }
    (allowed, denied)
}

/// Outcomes by the number of their decision.
fn outcomes(home: &Home) -> BTreeMap<u64, Outcome> {
    let mut all = BTreeMap::new();
    for outcome in home.outcomes() {
        let of = outcome.of;
        let before = all.insert(of, outcome);
        assert_eq!(before, None, "two outcomes of {of}");
    }
    all
}
