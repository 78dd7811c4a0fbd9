//! What the owner's listener takes, and what becomes of a peer that does something else.

use proto::broker::{Record, RecordEntry};
use proto::client::{AuditStatus, StatusReply};
use proto::role::Empty;
use proto::{Envelope, ErrorCode, Message, Timestamp};

use crate::supervisor::{NOTE, Supervisor};

/// The twin of every refusal here: another connection is served as before.
fn still_serves(supervisor: &Supervisor) {
    let mut client = supervisor.client();
    client.ask(Message::SessionList(Empty {}));
    assert!(matches!(client.answer(), Message::SessionListReply(_)));
}

fn frame(body: &str) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length, body.as_bytes()].concat()
}

#[test]
fn bytes_that_are_no_message_are_answered_and_the_connection_closes() {
    let supervisor = Supervisor::ready();
    let status = r#"{"v":2,"id":4,"final":true,"msg":{"kind":"status","body":{}}}"#;
    let extra = r#"{"v":1,"id":4,"final":true,"msg":{"kind":"status","body":{"x":1}}}"#;
    for (bytes, code) in [
        (frame("oops"), ErrorCode::BadMessage),
        (frame("{}"), ErrorCode::BadMessage),
        (frame(extra), ErrorCode::BadMessage),
        (frame(status), ErrorCode::BadVersion),
        (vec![0; 4], ErrorCode::BadFrame),
        // One byte more than a frame holds, announced and then sent.
        (frame(&"x".repeat(1_048_577)), ErrorCode::BadFrame),
        (vec![0xff; 4], ErrorCode::BadFrame),
    ] {
        let client = supervisor.client();
        client.raw(&bytes);
        assert_eq!(client.error().code, code, "{:?}", &bytes[..4]);
        still_serves(&supervisor);
    }
}

#[test]
fn a_frame_that_ends_early_closes_only_its_own_connection() {
    let supervisor = Supervisor::ready();
    let client = supervisor.client();
    client.raw(b"\0\0\x10\0half");
    still_serves(&supervisor);
    drop(client);
    still_serves(&supervisor);
}

#[test]
fn kinds_of_other_listeners_are_bad_messages() {
    let supervisor = Supervisor::ready();
    for message in [
        Message::Ping(Empty {}),
        Message::Stop(Empty {}),
        Message::Ready(Empty {}),
        Message::Ok(Empty {}),
        Message::Record(Record {
            entry: RecordEntry::Unknown { of: 1 },
        }),
        Message::StatusReply(status()),
    ] {
        let mut client = supervisor.client();
        client.ask(message);
        let error = client.error();
        assert_eq!(error.code, ErrorCode::BadMessage);
        assert!(error.detail.contains("session_open"), "{}", error.detail);
    }
    still_serves(&supervisor);
}

#[test]
fn a_request_of_several_frames_is_a_bad_message() {
    let supervisor = Supervisor::ready();
    let client = supervisor.client();
    let partial = Envelope::partial(1, Message::SessionList(Empty {}));
    client.connection.send(&partial).unwrap();
    assert_eq!(client.error().code, ErrorCode::BadMessage);
    still_serves(&supervisor);
}

#[test]
fn one_connection_asks_many_times() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.client();
    for _ in 0..20 {
        client.ask(Message::ToolsList(Empty {}));
        let Message::ToolsListReply(list) = client.answer() else {
            panic!("no list");
        };
        assert_eq!(list.tools.len(), 1);
        let show = &list.tools[0];
        assert_eq!((show.name.as_str(), show.side_effect), ("show", false));
        let schema: serde_json::Value = serde_json::from_str(&show.arguments).unwrap();
        assert_eq!(schema["properties"]["path"]["type"], "string");
    }
}

fn status() -> StatusReply {
    let now = Timestamp::from_millis(1000);
    StatusReply {
        since: now,
        generation: 1,
        roles: vec![],
        changed: vec![],
        questions: 0,
        sandboxes: 0,
        audit: AuditStatus {
            next: 4,
            last: Some(now),
            anchored: 4,
            bytes: 1200,
            max_bytes: 8 << 30,
            full: false,
            closed: Some("no space left".into()),
        },
    }
}

#[test]
fn status_is_the_supervisors_word() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.client();
    client.ask(Message::Status(Empty {}));
    let asked = supervisor.next();
    assert_eq!(asked.msg, Message::Status(Empty {}));
    supervisor.say(asked.id, Message::StatusReply(status()));
    assert_eq!(client.answer(), Message::StatusReply(status()));
}

#[test]
fn answers_find_who_asked_whatever_their_order() {
    let supervisor = Supervisor::ready();
    let mut one = supervisor.session("one");
    let mut two = supervisor.session("two");
    one.call("one", "show", NOTE);
    let (first, prepare) = supervisor.prepare();
    assert_eq!(prepare.session.as_str(), "one");
    two.call("two", "show", NOTE);
    let (second, _) = supervisor.prepare();
    let _two = supervisor.prepared(second, 8);
    assert_eq!(supervisor.commit().1.ticket.0, 8);
    let _one = supervisor.prepared(first, 7);
    assert_eq!(supervisor.commit().1.ticket.0, 7);
}

#[test]
fn silent_connections_take_places_and_the_one_too_many_is_told() {
    let supervisor = Supervisor::ready();
    let held: Vec<_> = (0..64)
        .map(|_| {
            let mut client = supervisor.client();
            client.ask(Message::SessionList(Empty {}));
            client.answer();
            client
        })
        .collect();
    let error = supervisor.client().error();
    assert_eq!(error.code, ErrorCode::Internal);
    assert!(error.detail.contains("64 connections"), "{}", error.detail);

    drop(held);
    // A place is free once the thread has seen its peer leave.
    let by = std::time::Instant::now() + crate::supervisor::PATIENCE;
    loop {
        let mut client = supervisor.client();
        // A refused connection may be closed by now.
        let list = Envelope::new(1, Message::SessionList(Empty {}));
        let _ = client.connection.send(&list);
        let answer = client.connection.receive();
        if matches!(answer, Ok(Some(received)) if matches!(received.envelope.msg, Message::SessionListReply(_)))
        {
            client.ask(Message::SessionList(Empty {}));
            break;
        }
        assert!(std::time::Instant::now() < by, "no place became free");
        std::thread::yield_now();
    }
}

#[test]
fn a_peer_that_never_reads_holds_nobody_else() {
    let supervisor = Supervisor::ready();
    let deaf = supervisor.client();
    let soon = std::time::Duration::from_millis(300);
    deaf.connection
        .stream()
        .set_write_timeout(Some(soon))
        .unwrap();
    // Until both directions are full: brokerd waits for this peer to read.
    let ask = Envelope::new(1, Message::ToolsList(Empty {}));
    while deaf.connection.send(&ask).is_ok() {}
    still_serves(&supervisor);
}

#[test]
fn a_ping_is_answered_while_calls_are_running() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.session("s");
    client.call("s", "show", NOTE);
    let sandbox = supervisor.run_call(7, 2);
    supervisor.heard();
    supervisor.end_call(sandbox);
    client.response();
}
