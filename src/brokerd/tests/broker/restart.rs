//! The start: what brokerd must be given, what it rebuilds from the log, and its end with the supervisor.

use std::io::Write as _;

use brokerd::{ReadEnd, RunError, StartError};
use proto::audit::SessionEvent;
use proto::broker::{HistoryEntry, RecordEntry};
use proto::client::{SessionOpen, ToolResponse};
use proto::role::Empty;
use proto::{
    CallId, DataClass, DecisionRecord, DenyReason, ErrorCode, GrantId, Labels, Message, Timestamp,
    WireError,
};

use crate::supervisor::{KEY, NOTE, Supervisor, files, session};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn opened(name: &str) -> HistoryEntry {
    HistoryEntry::Session {
        time: at(1),
        session: session(name),
        event: SessionEvent::Opened,
    }
}

/// An allowed call of a session whose result is secret.
fn secret(name: &str, seq: u64) -> HistoryEntry {
    HistoryEntry::Decision {
        seq,
        time: at(seq),
        session: session(name),
        call: CallId(4),
        tool: "show".into(),
        session_taint: DataClass::Private,
        decision: DecisionRecord::Allowed {
            grant: GrantId::new("keys").unwrap(),
        },
        labels: Some(Labels {
            class: DataClass::Secret,
            untrusted: true,
        }),
    }
}

fn outcome(name: &str, of: u64) -> HistoryEntry {
    HistoryEntry::Outcome {
        of,
        time: at(of + 1),
        session: session(name),
        labels: Labels {
            class: DataClass::Secret,
            untrusted: true,
        },
    }
}

fn note_is_refused_as_tainted(supervisor: &Supervisor, name: &str) {
    let mut client = supervisor.client();
    client.call(name, "show", NOTE);
    let (id, entry) = supervisor.record();
    let RecordEntry::Decision {
        session_taint,
        call,
        ..
    } = entry
    else {
        panic!("{entry:?}");
    };
    assert_eq!((session_taint, call), (DataClass::Secret, CallId(5)));
    supervisor.recorded(id, 50);
    assert!(matches!(
        client.response(),
        ToolResponse::Denied {
            reason: DenyReason::TaintTooHigh,
            ..
        }
    ));
}

fn note_is_prepared(supervisor: &Supervisor, name: &str) {
    let mut client = supervisor.client();
    client.call(name, "show", NOTE);
    let (_, prepare) = supervisor.prepare();
    assert_eq!(prepare.session, session(name));
}

#[test]
fn a_secret_call_in_flight_is_closed_as_unknown_and_leaves_its_session_secret() {
    let history = [opened("s"), opened("t"), secret("s", 2)];
    let supervisor = Supervisor::start(&["bxctl"], &files(), &history);
    let (id, entry) = supervisor.record();
    assert_eq!(entry, RecordEntry::Unknown { of: 2 });
    assert!(supervisor.silent(), "ready comes after it is closed");
    supervisor.recorded(id, 3);
    assert_eq!(supervisor.next().msg, Message::Ready(Empty {}));

    // Both sessions are still open; only the one is tainted.
    note_is_refused_as_tainted(&supervisor, "s");
    note_is_prepared(&supervisor, "t");
}

#[test]
fn after_a_second_restart_nothing_is_left_to_close_and_the_session_is_still_secret() {
    let history = [opened("s"), opened("t"), secret("s", 2), outcome("s", 2)];
    let supervisor = Supervisor::start(&["bxctl"], &files(), &history);
    assert_eq!(supervisor.next().msg, Message::Ready(Empty {}));
    note_is_refused_as_tainted(&supervisor, "s");
    note_is_prepared(&supervisor, "t");
}

#[test]
fn a_log_that_takes_no_record_keeps_brokerd_from_nothing_but_the_record() {
    let history = [opened("s"), secret("s", 2)];
    let supervisor = Supervisor::start(&["bxctl"], &files(), &history);
    let (id, _) = supervisor.record();
    let error = WireError {
        code: ErrorCode::Internal,
        detail: "no space left".into(),
    };
    supervisor.say(id, Message::Error(error));
    assert_eq!(supervisor.next().msg, Message::Ready(Empty {}));
    note_is_refused_as_tainted(&supervisor, "s");
}

#[test]
fn an_ended_session_stays_ended_until_it_is_resumed_with_its_calls_counted() {
    let ended = HistoryEntry::Session {
        time: at(9),
        session: session("s"),
        event: SessionEvent::Ended,
    };
    let history = [opened("s"), secret("s", 2), outcome("s", 2), ended];
    let supervisor = Supervisor::start(&["bxctl"], &files(), &history);
    supervisor.next();
    let mut client = supervisor.client();
    client.call("s", "show", KEY);
    assert_eq!(client.error().code, ErrorCode::UnknownSession);

    let mut client = supervisor.client();
    let session = Some(session("s"));
    client.ask(Message::SessionOpen(SessionOpen { session }));
    let (id, entry) = supervisor.record();
    let resumed = crate::supervisor::opened("s", SessionEvent::Resumed);
    assert_eq!(entry, resumed);
    supervisor.recorded(id, 10);
    let Message::SessionOpened(answer) = client.answer() else {
        panic!("not opened");
    };
    assert_eq!(answer.last_call, CallId(4));
    note_is_refused_as_tainted(&supervisor, "s");
}

#[test]
fn brokerd_does_not_start_without_its_listener_or_with_another() {
    let none = Supervisor::start(&[], &files(), &[]);
    let error = none.ended().unwrap_err();
    assert!(
        matches!(error, RunError::Start(StartError::NoListener)),
        "{error}"
    );

    let more = Supervisor::start(&["bxctl", "gateway"], &files(), &[]);
    let error = more.ended().unwrap_err();
    let RunError::Start(StartError::UnexpectedSockets(names)) = error else {
        panic!("{error}");
    };
    assert_eq!(names, ["gateway"]);
}

#[test]
fn brokerd_does_not_start_on_a_bad_policy_and_names_the_place() {
    let mut bad = files();
    let grant = b"tool = \"show\"\nmode = \"auto\"\nmax_taint = \"high\"\n";
    bad.0.insert("grants/bad.toml".into(), grant.to_vec());
    let supervisor = Supervisor::start(&["bxctl"], &bad, &[]);
    let error = supervisor.ended().unwrap_err();
    assert!(
        matches!(error, RunError::Start(StartError::Policy(_))),
        "{error}"
    );
    assert!(error.to_string().contains("grants/bad.toml:3"), "{error}");
}

#[test]
fn a_policy_that_cannot_be_used_leaves_the_old_one() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.session("s");
    let mut bad = files();
    bad.0.insert("grants/bad.toml".into(), b"?".to_vec());
    supervisor.policy(&bad, 2);
    supervisor.heard();
    client.call("s", "show", NOTE);
    let (id, prepare) = supervisor.prepare();
    assert_eq!(prepare.generation, 1);
    supervisor.prepared(id, 7);

    supervisor.commit();
    supervisor.policy(&files(), 3);
    supervisor.heard();
    let mut other = supervisor.session("t");
    other.call("t", "show", NOTE);
    assert_eq!(supervisor.prepare().1.generation, 3);
}

#[test]
fn brokerd_ends_when_the_supervisor_is_gone_and_tells_waiting_callers() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.session("s");
    let mut waiting = supervisor.session("t");
    client.call("s", "show", NOTE);
    let _sandbox = supervisor.run_call(7, 2);
    waiting.call("t", "show", NOTE);
    supervisor.prepare();
    let stream = supervisor.control.stream();
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    let error = supervisor.ended().unwrap_err();
    assert!(matches!(error, RunError::Line(ReadEnd::Closed)), "{error}");
    assert_eq!(client.error().code, ErrorCode::Internal);
    assert_eq!(waiting.error().code, ErrorCode::Internal);
}

#[test]
fn a_message_that_has_no_place_ends_brokerd() {
    let supervisor = Supervisor::ready();
    supervisor.say(9, Message::SessionList(Empty {}));
    let error = supervisor.ended().unwrap_err();
    assert!(
        matches!(error, RunError::Line(ReadEnd::Unexpected("session_list"))),
        "{error}"
    );
}

#[test]
fn what_is_no_message_on_the_line_ends_brokerd_and_says_what_it_was() {
    let frame = |body: &[u8]| [&u32::try_from(body.len()).unwrap().to_be_bytes(), body].concat();
    let version = br#"{"v":2,"id":4,"final":true,"msg":{"kind":"stop","body":{}}}"#;
    let cases: [(Vec<u8>, &str); 5] = [
        (vec![0; 4], "frame with an empty body"),
        (vec![0xff; 4], "frame of 4294967295 bytes, at most 1048576"),
        (frame(b"\xff\xfe{}"), "not a message"),
        (frame(b"{}"), "not a message: missing field"),
        (frame(version), "protocol version 2, this build speaks 1"),
    ];
    for (bytes, words) in cases {
        let supervisor = Supervisor::ready();
        supervisor.control.stream().write_all(&bytes).unwrap();
        let error = supervisor.ended().unwrap_err();
        assert!(
            matches!(error, RunError::Line(ReadEnd::Receive(_))),
            "{error}"
        );
        let said = error.to_string();
        assert!(said.contains(words), "{said}");
    }
}
