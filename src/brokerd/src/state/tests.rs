use proptest::prelude::*;
use proto::{DenyReason, GrantId};

use super::*;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn labels(class: DataClass, untrusted: bool) -> Labels {
    Labels { class, untrusted }
}

fn opened(session: &str) -> HistoryEntry {
    HistoryEntry::Session {
        time: at(1),
        session: id(session),
        event: SessionEvent::Opened,
    }
}

fn allowed(session: &str, seq: u64, of: Option<Labels>) -> HistoryEntry {
    HistoryEntry::Decision {
        seq,
        time: at(seq),
        session: id(session),
        call: CallId(seq),
        tool: "t".into(),
        session_taint: DataClass::Private,
        decision: DecisionRecord::Allowed {
            grant: GrantId::new("g").unwrap(),
        },
        labels: of,
    }
}

fn outcome(session: &str, of: u64, labels: Labels) -> HistoryEntry {
    HistoryEntry::Outcome {
        of,
        time: at(of + 1),
        session: id(session),
        labels,
    }
}

fn rebuilt(entries: &[HistoryEntry]) -> (Sessions, Vec<u64>) {
    let mut sessions = Sessions::default();
    entries.iter().for_each(|entry| sessions.replay(entry));
    let unknown = sessions.close_unknown();
    (sessions, unknown)
}

#[test]
fn a_new_session_is_private_and_trusted() {
    let (sessions, unknown) = rebuilt(&[opened("a")]);
    let session = sessions.open(&id("a")).unwrap();
    assert_eq!(
        (session.taint, session.untrusted),
        (DataClass::Private, false)
    );
    assert_eq!(unknown, Vec::<u64>::new());
}

#[test]
fn a_public_result_does_not_lower_the_taint_and_a_secret_one_stays() {
    let secret = labels(DataClass::Secret, false);
    let public = labels(DataClass::Public, false);
    let (sessions, _) = rebuilt(&[
        opened("a"),
        allowed("a", 5, Some(secret)),
        outcome("a", 5, secret),
        allowed("a", 7, Some(public)),
        outcome("a", 7, public),
        opened("b"),
        allowed("b", 9, Some(public)),
        outcome("b", 9, public),
    ]);
    assert_eq!(sessions.get(&id("a")).unwrap().taint, DataClass::Secret);
    assert_eq!(sessions.get(&id("b")).unwrap().taint, DataClass::Private);
}

#[test]
fn an_allowed_decision_without_an_outcome_counts_as_delivered_and_is_named() {
    let secret = labels(DataClass::Secret, true);
    let entries = [opened("a"), allowed("a", 5, Some(secret))];
    let (sessions, unknown) = rebuilt(&entries);
    let session = sessions.get(&id("a")).unwrap();
    assert_eq!(
        (session.taint, session.untrusted),
        (DataClass::Secret, true)
    );
    assert_eq!(unknown, vec![5]);

    let mut closed = entries.to_vec();
    closed.push(outcome("a", 5, secret));
    let (again, unknown) = rebuilt(&closed);
    assert_eq!(again.get(&id("a")).unwrap().taint, DataClass::Secret);
    assert_eq!(unknown, Vec::<u64>::new());
}

#[test]
fn an_allowed_decision_whose_labels_are_missing_counts_as_the_worst() {
    let (sessions, unknown) = rebuilt(&[opened("a"), allowed("a", 5, None)]);
    let session = sessions.get(&id("a")).unwrap();
    assert_eq!(
        (session.taint, session.untrusted),
        (DataClass::Secret, true)
    );
    assert_eq!(unknown, vec![5]);
}

#[test]
fn a_denial_raises_no_label_and_uses_its_call_number() {
    let (mut sessions, _) = rebuilt(&[
        opened("a"),
        HistoryEntry::Decision {
            seq: 3,
            time: at(3),
            session: id("a"),
            call: CallId(4),
            tool: "t".into(),
            session_taint: DataClass::Private,
            decision: DecisionRecord::Denied {
                reason: DenyReason::NoGrant,
                grant: None,
            },
            labels: None,
        },
        HistoryEntry::Denials {
            time: at(9),
            session: id("a"),
            count: 90,
        },
    ]);
    let summary = &sessions.list()[0];
    assert_eq!((summary.calls, summary.denied), (91, 91));
    assert_eq!((summary.taint, summary.last), (DataClass::Private, at(9)));
    assert_eq!(sessions.allot(&id("a")), Some(CallId(5)));
    assert_eq!(sessions.allot(&id("a")), Some(CallId(6)));
}

#[test]
fn an_ended_session_takes_no_calls_until_it_is_resumed_and_keeps_its_taint() {
    let secret = labels(DataClass::Secret, true);
    let (mut sessions, _) = rebuilt(&[opened("a"), allowed("a", 5, Some(secret))]);
    sessions.session(&id("a"), SessionEvent::Ended, at(8));
    assert_eq!(sessions.allot(&id("a")), None);
    assert_eq!(sessions.opening(&id("a")), SessionEvent::Resumed);
    sessions.session(&id("a"), SessionEvent::Resumed, at(9));
    assert_eq!(sessions.allot(&id("a")), Some(CallId(6)));
    assert_eq!(sessions.open(&id("a")).unwrap().taint, DataClass::Secret);
}

#[test]
fn an_unknown_session_is_not_open_and_would_be_opened() {
    let mut sessions = Sessions::default();
    assert_eq!(sessions.open(&id("a")), None);
    assert_eq!(sessions.allot(&id("a")), None);
    assert_eq!(sessions.opening(&id("a")), SessionEvent::Opened);
}

#[test]
fn fresh_names_say_the_time_and_are_never_given_twice() {
    let mut sessions = Sessions::default();
    let now: Timestamp = "2026-09-17T08:05:00.120Z".parse().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let name = sessions.fresh(now).unwrap();
        sessions.session(&name, SessionEvent::Opened, now);
        assert!(seen.insert(name));
    }
    assert!(seen.contains(&id("20260917-080500-120")));
    assert!(seen.contains(&id("20260917-080500-120-2")));
}

#[test]
fn the_time_of_decisions_never_goes_back() {
    let (mut sessions, _) = rebuilt(&[allowed("a", 50, None)]);
    assert_eq!(sessions.now(at(40)), at(50));
    assert_eq!(sessions.now(at(60)), at(60));
    assert_eq!(sessions.now(at(55)), at(60));
}

#[test]
fn the_list_has_the_latest_first_and_at_most_a_thousand() {
    let mut sessions = Sessions::default();
    for number in 0..1005 {
        let name = id(&format!("s{number}"));
        sessions.session(&name, SessionEvent::Opened, at(number));
    }
    let list = sessions.list();
    assert_eq!(list.len(), 1000);
    assert_eq!(list[0].session, id("s1004"));
    assert_eq!(list[999].session, id("s5"));
}

fn class() -> impl Strategy<Value = DataClass> {
    prop_oneof![
        Just(DataClass::Public),
        Just(DataClass::Private),
        Just(DataClass::Secret)
    ]
}

proptest! {
    /// Losing any outcomes, as a crash does, never leaves a session below what it was.
    #[test]
    fn a_log_that_lost_outcomes_rebuilds_to_the_same_labels(
        calls in proptest::collection::vec((class(), any::<bool>(), any::<bool>()), 0..20)
    ) {
        let mut whole = vec![opened("a")];
        let mut lossy = whole.clone();
        let mut lost = Vec::new();
        for (number, (class, untrusted, keep)) in calls.into_iter().enumerate() {
            let seq = 10 * (number as u64 + 1);
            let of = labels(class, untrusted);
            let (start, end) = (allowed("a", seq, Some(of)), outcome("a", seq, of));
            whole.extend([start.clone(), end.clone()]);
            lossy.push(start);
            if keep { lossy.push(end) } else { lost.push(seq) }
        }
        let (whole, none) = rebuilt(&whole);
        let (lossy, unknown) = rebuilt(&lossy);
        prop_assert_eq!(none, Vec::<u64>::new());
        prop_assert_eq!(unknown, lost);
        let (whole, lossy) = (whole.get(&id("a")).unwrap(), lossy.get(&id("a")).unwrap());
        prop_assert_eq!((whole.taint, whole.untrusted), (lossy.taint, lossy.untrusted));
    }
}
