//! A compromised brokerd says that the owner said yes: nothing runs on its word alone, and what does run on a lie of
//! its own has that lie in the log before it.

use boxmaker_tests::binaries::skipped_without_root;
use proto::broker::{Record, RecordEntry};
use proto::{
    Answer, Approval, ApprovalEvent, ApprovalId, CallId, DecisionRecord, Entry, ErrorCode, Hash32,
    Message, Timestamp, ToolName,
};
use sha2::{Digest, Sha256};

use crate::calls::{Broker, Standing, commit, decide, grant, session};

const HELLO: &str = r#"{"text":"hello"}"#;

fn approved(id: &str) -> DecisionRecord {
    DecisionRecord::Approved {
        grant: grant(id),
        approver: "bxctl".to_owned(),
        post: None,
    }
}

fn refused(broker: &mut Broker, message: Message, words: &str) {
    let before = broker.home.lines().len();
    let (code, detail) = broker.relay.refused(message);
    assert_eq!(code, ErrorCode::BadMessage, "{detail}");
    assert!(detail.contains(words), "{detail:?} does not say {words:?}");
    assert_eq!(broker.home.lines().len(), before, "{detail}");
}

fn event(name: &str, of: (&str, CallId), event: ApprovalEvent) -> RecordEntry {
    RecordEntry::Approval(Approval {
        approval: ApprovalId::new(name).unwrap(),
        session: session(of.0),
        call: of.1,
        event,
    })
}

fn asked(name: &str, of: (&str, CallId), tool: &str, under: &str, arguments: &str) -> RecordEntry {
    let asked = ApprovalEvent::Asked {
        tool: ToolName::new(tool).unwrap(),
        grant: grant(under),
        arguments: Hash32::new(Sha256::digest(arguments).into()),
        expires: Timestamp::MAX,
    };
    event(name, of, asked)
}

fn answered(name: &str, of: (&str, CallId), answer: Answer, by: &str) -> RecordEntry {
    let answered = ApprovalEvent::Answered {
        answer,
        by: by.to_owned(),
        post: None,
    };
    event(name, of, answered)
}

/// Writes that somebody asked and the owner said yes.
fn lie(broker: &mut Broker, name: &str, of: (&str, CallId), arguments: &str) {
    broker.record(asked(name, of, "asked", "asked", arguments));
    broker.record(answered(name, of, Answer::Approved, "bxctl"));
}

fn no_answer(broker: &mut Broker, standing: &Standing) {
    let message = decide(standing.ticket, approved("asked"));
    refused(broker, message, "no answer in the log");
}

#[test]
fn an_approved_decision_needs_an_answer_to_this_call_in_the_log() {
    if skipped_without_root("an_approved_decision_needs_an_answer_to_this_call_in_the_log") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("asked", "asked", HELLO);
    let own = ("s", standing.call);
    let ticket = standing.ticket;
    let unasked = commit(ticket, &grant("asked"));
    refused(&mut broker, unasked, "grant asked asks");
    no_answer(&mut broker, &standing);

    // Answers to another call, another session, other arguments.
    lie(&mut broker, "b1", ("s", CallId(own.1.0 + 1)), HELLO);
    lie(&mut broker, "b2", ("other", own.1), HELLO);
    lie(&mut broker, "b3", own, r#"{"text":"hello "}"#);
    no_answer(&mut broker, &standing);
    // A question without an answer, and one that was answered with no.
    broker.record(asked("b4", own, "asked", "asked", HELLO));
    no_answer(&mut broker, &standing);
    broker.record(answered("b4", own, Answer::Refused, "bxctl"));
    no_answer(&mut broker, &standing);
    assert_eq!(broker.home.decisions(), []);

    // The twin: an answer to this very call. It is a lie too, and it is in the log.
    lie(&mut broker, "b5", own, HELLO);
    let somebody = DecisionRecord::Approved {
        grant: grant("asked"),
        approver: "somebody".to_owned(),
        post: None,
    };
    refused(
        &mut broker,
        decide(ticket, somebody),
        "no answer in the log",
    );
    let answer = broker.relay.ask(decide(ticket, approved("asked")));
    assert!(
        matches!(answer.envelope.msg, Message::Committed(_)),
        "{answer:?}"
    );
    assert_eq!(standing.output().0, HELLO);
    broker.exited(ticket);
    let entries: Vec<Entry> = broker
        .home
        .lines()
        .into_iter()
        .map(|line| line.entry)
        .collect();
    let place = |wanted: &dyn Fn(&Entry) -> bool| entries.iter().position(wanted).unwrap();
    let lied = place(&|entry| {
        matches!(entry, Entry::Approval(Approval { approval, event: ApprovalEvent::Answered { .. }, .. })
            if approval.as_str() == "b5")
    });
    assert!(lied < place(&|entry| matches!(entry, Entry::Decision(_))));

    // It was for one run.
    let mut again = broker.request("asked", "asked", HELLO);
    again.call = own.1;
    let standing = broker.try_prepare(again).unwrap();
    no_answer(&mut broker, &standing);
    broker.abort(standing.ticket);
    broker.home.sound();
}

#[test]
fn a_grant_that_does_not_ask_takes_no_approved_decision() {
    if skipped_without_root("a_grant_that_does_not_ask_takes_no_approved_decision") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("echo", "echo", HELLO);
    let message = decide(standing.ticket, approved("echo"));
    refused(&mut broker, message, "grant echo does not ask");
    broker.run(standing);
    assert_eq!(broker.home.decisions().len(), 1);
}

#[test]
fn questions_are_recorded_as_they_can_have_been() {
    if skipped_without_root("questions_are_recorded_as_they_can_have_been") {
        return;
    }
    let mut broker = Broker::up();
    let own = ("s", CallId(9));
    let say = |entry| Message::Record(Record { entry });
    let yes = |by: &str| answered("b1", own, Answer::Approved, by);
    for (entry, words) in [
        (
            asked("b1", own, "echo", "echo", HELLO),
            "is no grant of echo that asks",
        ),
        (
            asked("b1", own, "echo", "asked", HELLO),
            "is no grant of echo that asks",
        ),
        (yes("bxctl"), "is not open"),
        (event("b1", own, ApprovalEvent::Expired {}), "is not open"),
    ] {
        refused(&mut broker, say(entry), words);
    }
    broker.record(asked("b1", own, "asked", "asked", HELLO));
    for (entry, words) in [
        (
            asked("b1", own, "asked", "asked", HELLO),
            "was asked already",
        ),
        (yes("gatewayd"), "is no peer that can answer"),
        (
            answered("b1", ("s", CallId(8)), Answer::Approved, "bxctl"),
            "is not open",
        ),
    ] {
        refused(&mut broker, say(entry), words);
    }
    broker.record(yes("bxctl"));
    refused(&mut broker, say(yes("bxctl")), "is not open");

    // What an earlier brokerd asked, the next one cannot answer.
    broker.record(asked("b2", own, "asked", "asked", HELLO));
    broker.system.brokerd(&broker.home).kill();
    broker.relay.ended();
    broker.again();
    let late = answered("b2", own, Answer::Approved, "bxctl");
    refused(&mut broker, say(late), "is not open");
    broker.record(event("b2", own, ApprovalEvent::Expired {}));
    // And what was approved then is good for nothing now.
    let mut prepare = broker.request("asked", "asked", HELLO);
    prepare.call = own.1;
    let standing = broker.try_prepare(prepare).unwrap();
    no_answer(&mut broker, &standing);
    broker.abort(standing.ticket);
    broker.home.sound();
}
