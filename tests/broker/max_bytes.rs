//! `[audit] max_bytes`: at that size nothing begins, what has begun is recorded to its end, and a larger number brings it
//! all back.

use std::fs;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::{Brokerd, Home};
use proto::audit::{OutcomeStatus, SessionEvent};
use proto::broker::{Record, RecordEntry};
use proto::client::{SessionOpen, ToolRequest, ToolResponse};
use proto::role::Empty;
use proto::{Arguments, CallId, DataClass, DecisionRecord, DenyReason, Entry, ErrorCode, Message};

use crate::calls::{Broker, ask, commit, finish, session, sessions, touched};
use crate::homes::home;

const MOST: u64 = 1 << 20;

/// Arguments of 200 KiB that no record holds yet.
fn long(number: u64) -> String {
    format!(
        "{{\"acts\":[],\"token\":\"{number}{}\"}}",
        "x".repeat(200 << 10)
    )
}

fn limited(brokerd: Brokerd) -> Home {
    let home = home(brokerd);
    limit(&home, MOST);
    home
}

fn limit(home: &Home, most: u64) {
    let place = home.home().with_file_name("config/config.toml");
    let text = fs::read_to_string(place).unwrap();
    let (others, _) = text.split_once("[audit]").unwrap_or((&text, ""));
    home.configure(
        "config.toml",
        &format!("{others}[audit]\nmax_bytes = {most}\n"),
    );
}

fn denied(call: u64) -> Message {
    let entry = RecordEntry::Decision {
        session: session("s"),
        call: CallId(call),
        tool: "touch".to_owned(),
        arguments: Arguments::Text(long(call)),
        session_taint: DataClass::Public,
        decision: DecisionRecord::Denied {
            reason: DenyReason::NoGrant,
            grant: None,
        },
        detail: String::new(),
        generation: 1,
        ticket: None,
    };
    Message::Record(Record { entry })
}

fn of_session(name: &str, event: SessionEvent) -> Message {
    let entry = RecordEntry::Session {
        session: session(name),
        event,
        by: "bxctl".to_owned(),
    };
    Message::Record(Record { entry })
}

#[test]
fn at_its_greatest_size_the_log_takes_the_ends_of_what_has_begun_and_nothing_that_begins() {
    if skipped_without_root("at_its_greatest_size_the_log_takes_the_ends") {
        return;
    }
    let mut broker = Broker::up_in(limited(Brokerd::Relay));
    let running = broker.prepare("echo", "echo", r#"{"text":"begun"}"#);
    let begun = broker.commit(&running);
    broker.exited(running.ticket);
    let standing = broker.prepare("touch", "touch", &long(0));
    assert!(!broker.status().audit.full);

    let mut records = 0;
    let said = loop {
        let message = broker.relay.ask(denied(100 + records)).envelope.msg;
        match message {
            Message::Recorded(_) => records += 1,
            other => break other,
        }
        assert!(records < 6, "it has no end");
    };
    let Message::Error(error) = said else {
        panic!("{said:?}");
    };
    assert_eq!(error.code, ErrorCode::Internal);
    assert!(
        error.detail.contains("the 1048576 of [audit] max_bytes"),
        "{}",
        error.detail
    );
    assert!(records > 3, "{records}");

    // What stands is not started, what is new is not built, and also a short record begins nothing any more.
    let (code, detail) = broker
        .relay
        .refused(commit(standing.ticket, &standing.grant));
    assert_eq!(code, ErrorCode::Internal);
    assert!(detail.contains("max_bytes"), "{detail}");
    let request = broker.request("echo", "echo", r#"{"text":"later"}"#);
    let refused = broker.try_prepare(request).unwrap_err();
    assert!(refused.detail.contains("max_bytes"), "{refused:?}");
    let (code, _) = broker
        .relay
        .refused(of_session("other", SessionEvent::Opened));
    assert_eq!(code, ErrorCode::Internal);
    broker.wait_empty();
    assert!(!touched(&broker.home));

    for end in [
        finish(running.ticket, OutcomeStatus::Result),
        of_session("s", SessionEvent::Ended),
    ] {
        let answer = broker.relay.ask(end).envelope.msg;
        assert!(matches!(answer, Message::Recorded(_)), "{answer:?}");
    }
    let audit = broker.status().audit;
    assert!(audit.full);
    assert_eq!((audit.max_bytes, audit.closed), (MOST, None));
    assert!(audit.bytes <= MOST, "{}", audit.bytes);
    let (_, home) = broker.stop();
    home.sound();
    let lines = home.lines();
    let is_end = |entry: &Entry| matches!(entry, Entry::Outcome(outcome) if outcome.of == begun);
    assert_eq!(lines.iter().filter(|line| is_end(&line.entry)).count(), 1);

    limit(&home, 2 * MOST);
    let mut broker = Broker::up_in(home);
    let audit = broker.status().audit;
    assert!(!audit.full && audit.bytes > MOST / 2, "{audit:?}");
    broker.call("touch", "touch", &long(0));
    assert!(touched(&broker.home));
    broker.home.sound();
}

#[test]
fn a_caller_is_told_that_the_log_is_full_while_everything_can_still_be_looked_at() {
    if skipped_without_root("a_caller_is_told_that_the_log_is_full") {
        return;
    }
    let home = limited(Brokerd::Real);
    let mut system = home.start();
    system.wait_up(&home, 0);
    let owner = home.connect().unwrap();
    let open = |name: &str| {
        Message::SessionOpen(SessionOpen {
            session: Some(session(name)),
        })
    };
    assert!(matches!(ask(&owner, open("s")), Message::SessionOpened(_)));
    let mut results = 0;
    let refused = loop {
        let request = Message::ToolRequest(ToolRequest {
            session: session("s"),
            call: CallId(0),
            tool: "act".to_owned(),
            arguments: long(results),
        });
        match ask(&owner, request) {
            Message::ToolResponse(ToolResponse::Result { .. }) => results += 1,
            other => break other,
        }
        assert!(results < 6, "it has no end");
    };
    let Message::ToolResponse(ToolResponse::Denied { reason, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(reason, DenyReason::AuditUnavailable);
    assert!(results > 3, "{results}");
    let Message::Error(error) = ask(&owner, open("other")) else {
        panic!("a session began");
    };
    assert!(error.detail.contains("max_bytes"), "{}", error.detail);

    // An error ends its connection.
    let owner = home.connect().unwrap();
    let Message::StatusReply(status) = ask(&owner, Message::Status(Empty {})) else {
        panic!("no status");
    };
    assert!(status.audit.full);
    assert_eq!(sessions(&home).len(), 1);
    let answer = ask(&owner, Message::ToolsList(Empty {}));
    assert!(matches!(answer, Message::ToolsListReply(_)), "{answer:?}");
    home.sound();
    assert!(system.stop().success());
    home.sound();
}
