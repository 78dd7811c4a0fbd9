//! What `record` takes and what it refuses.

use proto::audit::OutcomeStatus;
use proto::{Confinement, DataClass, DenyReason, GrantId, Hash32, Labels, Level, ToolName};

use super::*;
use crate::books::OpenDecision;
use crate::broker::call::Call;

const NOW: Timestamp = Timestamp::from_millis(1000);

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

fn denied() -> DecisionRecord {
    DecisionRecord::Denied {
        reason: DenyReason::NoGrant,
        grant: None,
    }
}

fn text(text: &str) -> Arguments {
    Arguments::Text(text.to_owned())
}

fn decision(decision: DecisionRecord, arguments: Arguments, ticket: Option<Ticket>) -> RecordEntry {
    RecordEntry::Decision {
        session: session(),
        call: CallId(1),
        tool: "fs_read".to_owned(),
        arguments,
        session_taint: DataClass::Private,
        decision,
        detail: "why".to_owned(),
        generation: 1,
        ticket,
    }
}

fn judge_with(entry: RecordEntry, books: &mut Books) -> Result<Admitted, RecordError> {
    judge_refused(entry, books, r#"{"path":"/real"}"#)
}

fn judge_refused(
    entry: RecordEntry,
    books: &mut Books,
    prepared: &str,
) -> Result<Admitted, RecordError> {
    let asks =
        b"tool = \"touch\"\nmode = \"ask\"\nmax_taint = \"private\"\nafter_untrusted = \"allow\"\n";
    let tool =
        b"description = \"d\"\nkind = \"stdio\"\ncommand = [\"/t\"]\nprofile = \"tools/base\"\n\
                 arguments.type = \"object\"\n";
    let files = [
        ("tools/touch.toml".to_owned(), tool.to_vec()),
        ("grants/asks.toml".to_owned(), asks.to_vec()),
    ];
    let bench = Bench {
        generation: 1,
        now: NOW,
        books,
        approvals: &Mutex::default(),
        policy: &Policy::load(&files.into(), 1).unwrap(),
    };
    admit(entry, bench, |ticket, session, call, tool| {
        if ticket != Ticket(9) {
            return Err(TicketError::NotRefused(ticket));
        }
        let confinement = Confinement {
            level: Level::Partial,
            layers: Vec::new(),
            asserted: Vec::new(),
            gaps: Vec::new(),
            waived: Vec::new(),
            landlock_abi: 2,
            plan: Hash32::ZERO,
        };
        Ok(RefusedCall {
            call: Call {
                session: session.clone(),
                call,
                tool: ToolName::new(tool).unwrap(),
                grant: GrantId::new("notes").unwrap(),
                generation: 1,
                arguments: prepared.to_owned(),
            },
            confinement: Some(confinement),
        })
    })
}

fn judge(entry: RecordEntry) -> Result<Admitted, RecordError> {
    judge_with(entry, &mut Books::default())
}

fn stored_decision(admitted: Admitted) -> Decision {
    match admitted.entry {
        Entry::Decision(decision) => *decision,
        other => panic!("not a decision: {other:?}"),
    }
}

#[test]
fn a_denial_is_recorded_and_a_decision_that_lets_a_call_run_is_not() {
    let admitted = judge(decision(denied(), text("{}"), None)).unwrap();
    assert!(admitted.durable);
    let stored = stored_decision(admitted);
    assert_eq!((stored.confinement, stored.labels), (None, None));
    let grant = GrantId::new("notes").unwrap();
    let allowed = DecisionRecord::Allowed {
        grant: grant.clone(),
    };
    let approved = DecisionRecord::Approved {
        grant,
        approver: "owner".to_owned(),
        post: None,
    };
    for record in [allowed, approved] {
        assert_eq!(
            judge(decision(record, text("{}"), None)),
            Err(RecordError::NotDenied)
        );
    }
}

#[test]
fn the_record_of_a_refused_prepare_carries_its_measurement_and_its_arguments() {
    let admitted = judge(decision(denied(), text("{}"), Some(Ticket(9)))).unwrap();
    let stored = stored_decision(admitted);
    assert_eq!(stored.confinement.unwrap().level, Level::Partial);
    assert_eq!(stored.arguments, text(r#"{"path":"/real"}"#));
    assert_eq!(
        judge(decision(denied(), text("{}"), Some(Ticket(8)))),
        Err(RecordError::Ticket(TicketError::NotRefused(Ticket(8))))
    );
}

#[test]
fn hostile_arguments_of_a_refused_prepare_are_stored_as_their_digest() {
    let entry = decision(denied(), text("{}"), Some(Ticket(9)));
    let admitted = judge_refused(entry, &mut Books::default(), "no json").unwrap();
    let stored = stored_decision(admitted).arguments;
    assert!(matches!(stored, Arguments::Digest { length: 7, .. }));
}

#[test]
fn arguments_are_an_acceptable_object_or_a_digest_and_never_a_reference() {
    assert!(judge(decision(denied(), text(r#"{"a":1}"#), None)).is_ok());
    let digest = Arguments::Digest {
        length: 9,
        sha256: Hash32::ZERO,
    };
    assert!(judge(decision(denied(), digest, None)).is_ok());
    for hostile in [
        text("no json"),
        text(r#"{"a":1,"a":2}"#),
        Arguments::SameAs { same_as: 0 },
    ] {
        assert!(matches!(
            judge(decision(denied(), hostile, None)),
            Err(RecordError::Arguments(_))
        ));
    }
}

#[test]
fn arguments_that_return_within_a_session_are_named_by_their_record() {
    let mut books = Books::default();
    let first = judge_with(decision(denied(), text("{}"), None), &mut books).unwrap();
    assert_eq!(first.text, Some((session(), "{}".to_owned())));
    books.remember(&session(), "{}", 5);
    let second = judge_with(decision(denied(), text("{}"), None), &mut books).unwrap();
    assert_eq!(second.text, None);
    assert_eq!(
        stored_decision(second).arguments,
        Arguments::SameAs { same_as: 5 }
    );
}

#[test]
fn a_tool_name_of_64_characters_is_taken_and_one_more_is_not() {
    let named = |length| {
        let mut entry = decision(denied(), text("{}"), None);
        if let RecordEntry::Decision { tool, .. } = &mut entry {
            *tool = "é".repeat(length);
        }
        judge(entry)
    };
    assert!(named(64).is_ok());
    assert_eq!(named(65), Err(RecordError::ToolName));
    assert_eq!(named(0), Err(RecordError::ToolName));
}

#[test]
fn a_record_of_another_generation_is_refused() {
    let mut entry = decision(denied(), text("{}"), None);
    if let RecordEntry::Decision { generation, .. } = &mut entry {
        *generation = 2;
    }
    let error = RecordError::Generation { said: 2, own: 1 };
    assert_eq!(judge(entry), Err(error));
}

#[test]
fn a_long_detail_is_cut_at_a_character() {
    assert_eq!(cut("short".to_owned()), "short");
    let long = format!("a{}", "é".repeat(MOST_DETAIL));
    let kept = cut(long.clone());
    assert!(kept.len() <= MOST_DETAIL + '…'.len_utf8());
    assert!(long.starts_with(kept.trim_end_matches('…')));
}

#[test]
fn a_session_is_opened_by_a_peer_that_exists_and_its_end_waits_for_nothing() {
    let entry = |event, by: &str| RecordEntry::Session {
        session: session(),
        event,
        by: by.to_owned(),
    };
    assert!(judge(entry(SessionEvent::Opened, "bxctl")).unwrap().durable);
    assert!(
        judge(entry(SessionEvent::Resumed, "bxctl"))
            .unwrap()
            .durable
    );
    assert!(!judge(entry(SessionEvent::Ended, "bxctl")).unwrap().durable);
    assert_eq!(
        judge(entry(SessionEvent::Opened, "loopd")),
        Err(RecordError::Peer("loopd".to_owned()))
    );
}

#[test]
fn denials_are_counted_and_none_of_them_lies_in_the_future() {
    let entry = |count, first, last| RecordEntry::Denials {
        session: session(),
        tool: "fs_read".to_owned(),
        reason: DenyReason::NoGrant,
        count,
        first: Timestamp::from_millis(first),
        last: Timestamp::from_millis(last),
    };
    match judge(entry(3, 10, 5000)).unwrap().entry {
        Entry::Denials { first, last, .. } => {
            assert_eq!((first, last), (Timestamp::from_millis(10), NOW));
        }
        other => panic!("not denials: {other:?}"),
    }
    assert_eq!(judge(entry(0, 10, 20)), Err(RecordError::Denials));
    assert_eq!(judge(entry(1, 20, 10)), Err(RecordError::Denials));
}

#[test]
fn an_unknown_end_takes_session_and_labels_from_its_decision_and_is_recorded_once() {
    let mut books = Books::default();
    let labels = Labels {
        class: DataClass::Secret,
        untrusted: true,
    };
    let open = OpenDecision {
        session: session(),
        labels,
    };
    books.committed(4, open);
    let unknown = || RecordEntry::Unknown { of: 4 };
    assert_eq!(
        judge_with(unknown(), &mut books),
        Err(RecordError::NotOpen(4))
    );
    books.nothing_is_live();
    match judge_with(unknown(), &mut books).unwrap().entry {
        Entry::Outcome(outcome) => {
            assert_eq!(outcome.status, OutcomeStatus::Unknown);
            assert_eq!(outcome.class, DataClass::Secret);
            assert!(outcome.untrusted && outcome.session == session());
        }
        other => panic!("not an outcome: {other:?}"),
    }
    assert_eq!(
        judge_with(unknown(), &mut books),
        Err(RecordError::NotOpen(4))
    );
}

#[test]
fn a_question_is_recorded_only_under_a_grant_that_asks() {
    let asked = |grant: &str, tool: &str| {
        RecordEntry::Approval(proto::Approval {
            approval: proto::ApprovalId::new("a1").unwrap(),
            session: session(),
            call: CallId(1),
            event: proto::ApprovalEvent::Asked {
                tool: ToolName::new(tool).unwrap(),
                grant: GrantId::new(grant).unwrap(),
                arguments: Hash32::ZERO,
                expires: Timestamp::MAX,
            },
        })
    };
    let admitted = judge(asked("asks", "touch")).unwrap();
    assert!(admitted.durable && matches!(admitted.entry, Entry::Approval(_)));
    for (grant, tool) in [("asks", "fs_read"), ("notes", "touch")] {
        assert!(matches!(
            judge(asked(grant, tool)),
            Err(RecordError::Approval(ApprovalError::NoAsk { .. }))
        ));
    }
}
