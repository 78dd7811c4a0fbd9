//! Which records of the sample log the filters choose.

use super::*;
use crate::audit::sample;

fn chosen(words: &ShowWords) -> Vec<(u64, Option<u64>)> {
    let mut selection = Selection::new(Filter::new(words, Timestamp::MAX).unwrap());
    sample::lines()
        .into_iter()
        .for_each(|line| selection.take(line));
    let rows = selection.finish().into_iter();
    rows.map(|row| (row.line.seq, row.end.map(|end| end.seq)))
        .collect()
}

fn firsts(words: &ShowWords) -> Vec<u64> {
    chosen(words).into_iter().map(|(seq, _)| seq).collect()
}

#[test]
fn without_a_filter_every_record_is_there_and_ends_stand_with_their_calls() {
    let all = chosen(&ShowWords::default());
    assert_eq!(all.len(), 10);
    assert!(all.contains(&(3, Some(4))) && all.contains(&(7, Some(9))) && all.contains(&(8, None)));
}

#[test]
fn a_session_and_a_tool_choose_their_own_records_only() {
    let session = Some("s-1".parse().unwrap());
    assert_eq!(
        firsts(&ShowWords {
            session,
            ..ShowWords::default()
        }),
        [2, 3, 5]
    );
    let tool = Some("fs_read".to_owned());
    assert_eq!(
        firsts(&ShowWords {
            tool,
            ..ShowWords::default()
        }),
        [3, 5, 10]
    );
}

#[test]
fn an_outcome_chooses_by_decision_or_by_end() {
    for (outcome, seqs) in [
        (OutcomeWord::Allowed, &[3, 7, 8][..]),
        (OutcomeWord::Denied, &[5, 10]),
        (OutcomeWord::Result, &[3]),
        (OutcomeWord::Failed, &[7]),
        (OutcomeWord::Unknown, &[]),
    ] {
        let words = ShowWords {
            outcome: Some(outcome),
            ..ShowWords::default()
        };
        assert_eq!(firsts(&words), seqs, "{outcome:?}");
    }
}

#[test]
fn since_includes_its_moment_and_until_does_not() {
    let words = ShowWords {
        since: Some("2026-09-17T08:05".to_owned()),
        until: Some("2026-09-17T08:08".to_owned()),
        ..ShowWords::default()
    };
    assert_eq!(chosen(&words), [(5, None), (6, None), (7, Some(9))]);
    let words = ShowWords {
        since: Some("soon".to_owned()),
        ..ShowWords::default()
    };
    assert!(Filter::new(&words, Timestamp::MAX).is_err());
}

#[test]
fn a_limit_keeps_the_last_ones_of_those_that_match() {
    let words = ShowWords {
        limit: Some(2),
        ..ShowWords::default()
    };
    assert_eq!(firsts(&words), [10, 11]);
    let outcome = Some(OutcomeWord::Allowed);
    let words = ShowWords {
        limit: Some(2),
        outcome,
        ..ShowWords::default()
    };
    assert_eq!(chosen(&words), [(7, Some(9)), (8, None)]);
}
