//! A compromised brokerd writes records: what `record` takes, and what it does not.

use boxmaker_tests::binaries::skipped_without_root;
use proto::audit::{Decision, OutcomeStatus, SessionEvent};
use proto::broker::{Abort, HistoryEntry, Record, RecordEntry};
use proto::{
    Arguments, CallId, DataClass, DecisionRecord, DenyReason, Entry, ErrorCode, Hash32, Message,
    Ticket, Timestamp,
};

use crate::calls::{Broker, SECRET, at, finish, grant, session};

fn denial() -> RecordEntry {
    RecordEntry::Decision {
        session: session("s"),
        call: CallId(7),
        tool: "echo".to_owned(),
        arguments: Arguments::Text("{}".to_owned()),
        session_taint: DataClass::Private,
        decision: DecisionRecord::Denied {
            reason: DenyReason::NoGrant,
            grant: None,
        },
        detail: "no".to_owned(),
        generation: 1,
        ticket: None,
    }
}

/// Has an entry refused; the line goes on, and nothing was appended.
fn refused(broker: &mut Broker, entry: RecordEntry, words: &str) {
    let before = broker.home.lines().len();
    let (code, detail) = broker.relay.refused(Message::Record(Record { entry }));
    assert_eq!(code, ErrorCode::BadMessage, "{detail}");
    assert!(detail.contains(words), "{detail:?} does not say {words:?}");
    assert_eq!(broker.home.lines().len(), before, "{detail}");
}

fn last(broker: &Broker) -> (u64, Entry) {
    let line = broker.home.lines().pop().unwrap();
    (line.seq, line.entry)
}

#[test]
fn a_decision_that_lets_a_call_run_is_not_recorded_by_record() {
    if skipped_without_root("a_decision_that_lets_a_call_run_is_not_recorded_by_record") {
        return;
    }
    let mut broker = Broker::up();
    let with = |other: DecisionRecord| {
        let mut entry = denial();
        if let RecordEntry::Decision { decision, .. } = &mut entry {
            *decision = other;
        }
        entry
    };
    let allowed = with(DecisionRecord::Allowed {
        grant: grant("echo"),
    });
    refused(&mut broker, allowed, "record takes denials only");
    let approved = with(DecisionRecord::Approved {
        grant: grant("echo"),
        approver: "owner".to_owned(),
        post: None,
    });
    refused(&mut broker, approved, "record takes denials only");
    let seq = broker.record(denial());
    let (number, entry) = last(&broker);
    assert_eq!(number, seq);
    let Entry::Decision(decision) = entry else {
        panic!("{entry:?}");
    };
    // What a denial has not, nobody can write into it.
    assert_eq!((decision.labels, decision.confinement), (None, None));
    broker.home.sound();
}

#[test]
fn a_denial_is_bounded_and_about_this_generation() {
    if skipped_without_root("a_denial_is_bounded_and_about_this_generation") {
        return;
    }
    let mut broker = Broker::up();
    let changed = |change: &dyn Fn(&mut String, &mut u64, &mut Arguments)| {
        let mut entry = denial();
        if let RecordEntry::Decision {
            tool,
            generation,
            arguments,
            ..
        } = &mut entry
        {
            change(tool, generation, arguments);
        }
        entry
    };
    refused(
        &mut broker,
        changed(&|tool, _, _| *tool = "x".repeat(65)),
        "tool name",
    );
    refused(
        &mut broker,
        changed(&|tool, _, _| tool.clear()),
        "tool name",
    );
    refused(
        &mut broker,
        changed(&|_, generation, _| *generation = 2),
        "generation 2",
    );
    let same = |_: &mut String, _: &mut u64, arguments: &mut Arguments| {
        *arguments = Arguments::SameAs { same_as: 0 };
    };
    refused(&mut broker, changed(&same), "arguments in a record are");
    broker.record(changed(&|tool, _, _| *tool = "x".repeat(64)));
    broker.record(changed(&|_, _, arguments| {
        *arguments = Arguments::Digest {
            length: 1 << 20,
            sha256: Hash32::ZERO,
        };
    }));
    broker.home.sound();
}

#[test]
fn the_record_of_a_refused_prepare_holds_what_the_supervisor_saw() {
    if skipped_without_root("the_record_of_a_refused_prepare_holds_what_the_supervisor_saw") {
        return;
    }
    let mut broker = Broker::up();
    let outside = at(&broker.home.path("vault/code.txt"));
    let prepare = broker.request("fs_read", "notes", &outside);
    let refusal = broker.try_prepare(prepare.clone()).unwrap_err();
    let ticket = refusal.ticket.unwrap();
    let about = |call: CallId, tool: &str, ticket: Ticket| RecordEntry::Decision {
        session: session("s"),
        call,
        tool: tool.to_owned(),
        arguments: Arguments::Text("{\"path\":\"/harmless\"}".to_owned()),
        session_taint: DataClass::Private,
        decision: DecisionRecord::Denied {
            reason: DenyReason::NoGrant,
            grant: None,
        },
        detail: String::new(),
        generation: 1,
        ticket: Some(ticket),
    };
    let names = "names no refused sandbox of this call";
    refused(
        &mut broker,
        about(CallId(prepare.call.0 + 1), "fs_read", ticket),
        names,
    );
    refused(&mut broker, about(prepare.call, "echo", ticket), names);
    refused(
        &mut broker,
        about(prepare.call, "fs_read", Ticket(ticket.0 + 1)),
        names,
    );
    // One that stands is no refused one.
    let standing = broker.prepare("echo", "echo", r#"{"text":"x"}"#);
    refused(
        &mut broker,
        about(standing.call, "echo", standing.ticket),
        names,
    );
    broker.abort(standing.ticket);

    broker.record(about(prepare.call, "fs_read", ticket));
    let (_, entry) = last(&broker);
    let Entry::Decision(decision) = entry else {
        panic!("{entry:?}");
    };
    let Decision {
        arguments,
        confinement,
        ..
    } = *decision;
    assert_eq!(arguments, Arguments::Text(outside));
    assert_eq!(confinement, None);
    refused(&mut broker, about(prepare.call, "fs_read", ticket), names);
}

#[test]
fn only_the_end_of_an_earlier_run_is_unknown() {
    if skipped_without_root("only_the_end_of_an_earlier_run_is_unknown") {
        return;
    }
    let mut broker = Broker::up();
    let unknown = |of: u64| RecordEntry::Unknown { of };
    let waits = "is no decision of an earlier run that waits for its outcome";

    let done = broker.call("echo", "echo", r#"{"text":"x"}"#);
    let standing = broker.prepare("act", "act", r#"{"acts":["sleep"]}"#);
    let live = broker.commit(&standing);
    let denied = broker.record(denial());
    for of in [
        live,
        done.seq,
        denied,
        0,
        1,
        broker.home.lines().len() as u64,
        u64::MAX,
    ] {
        refused(&mut broker, unknown(of), waits);
    }
    broker.relay.say(Message::Abort(Abort {
        ticket: standing.ticket,
    }));
    broker.exited(standing.ticket);
    // Its end was seen and is not recorded yet: still not unknown.
    refused(&mut broker, unknown(live), waits);
    assert_eq!(broker.home.outcomes().len(), 1);

    // brokerd ends, and so the next one may close what that one left, with the labels of the record.
    broker.system.brokerd(&broker.home).kill();
    broker.relay.ended();
    broker.again();
    let replayed = broker.relay.history.iter().any(|entry| {
        matches!(entry, HistoryEntry::Decision { seq, labels, .. } if *seq == live && *labels == Some(SECRET))
    });
    assert!(replayed, "{:?}", broker.relay.history);
    refused(&mut broker, unknown(done.seq), waits);
    refused(&mut broker, unknown(denied), waits);
    broker.record(unknown(live));
    refused(&mut broker, unknown(live), waits);
    let outcomes = broker.home.outcomes();
    let closed = outcomes.last().unwrap();
    assert_eq!((closed.of, closed.status), (live, OutcomeStatus::Unknown));
    assert_eq!(
        (closed.class, closed.untrusted),
        (SECRET.class, SECRET.untrusted)
    );
    assert_eq!(
        (closed.exit, closed.cause, closed.usage),
        (None, None, None)
    );
    // A ticket of the earlier life is nobody's.
    let (code, _) = broker
        .relay
        .refused(finish(standing.ticket, OutcomeStatus::Failed));
    assert_eq!(code, ErrorCode::BadMessage);
    broker.home.sound();
}

#[test]
fn sessions_and_counts_are_recorded_as_they_can_have_been() {
    if skipped_without_root("sessions_and_counts_are_recorded_as_they_can_have_been") {
        return;
    }
    let mut broker = Broker::up();
    let opened = |by: &str| RecordEntry::Session {
        session: session("other"),
        event: SessionEvent::Opened,
        by: by.to_owned(),
    };
    for by in ["gatewayd", "supervisor", "", "bxctl "] {
        refused(
            &mut broker,
            opened(by),
            "is no peer that can open or end a session",
        );
    }
    broker.record(opened("bxctl"));
    let late = Timestamp::MAX;
    let early = Timestamp::from_millis(0);
    let denials = |count: u64, first: Timestamp, last: Timestamp| RecordEntry::Denials {
        session: session("other"),
        tool: "echo".to_owned(),
        reason: DenyReason::NoGrant,
        count,
        first,
        last,
    };
    refused(&mut broker, denials(0, early, early), "counts at least one");
    refused(
        &mut broker,
        denials(1, late, early),
        "its first is not after its last",
    );
    broker.record(denials(3, early, late));
    let line = broker.home.lines().pop().unwrap();
    // Nothing that is recorded happened after it was.
    let Entry::Denials { last, .. } = line.entry else {
        panic!("{line:?}");
    };
    assert!(last <= line.time, "{last} {}", line.time);
}
