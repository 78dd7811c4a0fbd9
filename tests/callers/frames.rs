//! What is no message on the owner's socket: an error that names it, the rule and the way out, the end of that one
//! connection, and nothing else.

use std::io::{Read, Write};

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::Home;
use boxmaker_tests::system::processes::until;
use proto::{ErrorCode, Message, WireError};

use crate::home::{Peer, home, sessions, status, up};

fn frame(body: &str) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length, body.as_bytes()].concat()
}

fn message(version: u32, kind: &str, body: &str) -> Vec<u8> {
    frame(&format!(
        r#"{{"v":{version},"id":7,"final":true,"msg":{{"kind":"{kind}","body":{body}}}}}"#
    ))
}

/// Sends bytes over a connection of their own; what is told, after which the connection ends.
fn told(home: &Home, bytes: &[u8]) -> (u64, WireError) {
    let connection = home.connect().unwrap();
    // brokerd may have closed before the last of it.
    let _ = connection.stream().write_all(bytes);
    let envelope = connection.receive().unwrap().unwrap().envelope;
    let mut rest = Vec::new();
    // What brokerd did not read is told by a reset.
    let _ = connection.stream().read_to_end(&mut rest);
    assert_eq!(rest, b"");
    match envelope.msg {
        Message::Error(error) => (envelope.id, error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_message_is_told_with_the_rule_and_the_way_out_while_others_are_served() {
    if skipped_without_root("what_is_no_message_is_told_with_the_rule_and_the_way_out") {
        return;
    }
    let home = home(1000);
    let system = up(&home);
    let other = Peer::new(&home, "other");
    let running = Peer::new(&home, "running");
    running.call("stays", r#"{"acts":["ignore_term"]}"#);
    until("its tool runs", || system.process.tools().len() == 1);

    let long = "x".repeat(1_048_577);
    let utf8 = [&4_u32.to_be_bytes()[..], b"\xff\xfe{}"].concat();
    let cases: Vec<(Vec<u8>, ErrorCode, u64, &[&str])> = vec![
        (
            vec![0; 4],
            ErrorCode::BadFrame,
            0,
            &["empty body", "1 to 1048576"],
        ),
        (
            vec![0xff; 4],
            ErrorCode::BadFrame,
            0,
            &["frame of 4294967295 bytes", "1 to 1048576", "connect again"],
        ),
        (
            frame(&long),
            ErrorCode::BadFrame,
            0,
            &["frame of 1048577 bytes", "1 to 1048576", "connect again"],
        ),
        (
            frame("oops"),
            ErrorCode::BadMessage,
            0,
            &["not a message", "docs/formats.md", "connect again"],
        ),
        (
            utf8,
            ErrorCode::BadMessage,
            0,
            &["not a message", "connect again"],
        ),
        (
            message(1, "nonsense", "{}"),
            ErrorCode::BadMessage,
            7,
            &["nonsense", "docs/formats.md"],
        ),
        (
            message(1, "status", r#"{"x":1}"#),
            ErrorCode::BadMessage,
            7,
            &["unknown field `x`", "docs/formats.md"],
        ),
        (
            message(2, "status", "{}"),
            ErrorCode::BadVersion,
            7,
            &["protocol version 2", "speaks 1", "of one build"],
        ),
        (
            message(
                1,
                "prepare",
                r#"{"session":"other","call":1,"tool":"t","grant":"g","generation":1,"arguments":"{}"}"#,
            ),
            ErrorCode::BadMessage,
            7,
            &["prepare is not asked here", "session_open, session_list"],
        ),
        (
            message(1, "stop", "{}"),
            ErrorCode::BadMessage,
            7,
            &["stop is not asked here", "session_open, session_list"],
        ),
    ];
    for (bytes, code, id, words) in cases {
        let (answered, error) = told(&home, &bytes);
        assert_eq!((error.code, answered), (code, id), "{}", error.detail);
        for word in words {
            assert!(error.detail.contains(word), "{word}: {}", error.detail);
        }
        other.reads(&home);
    }
    assert_eq!(system.process.tools().len(), 1);
    assert_eq!(status(&home).roles[0].restarts, 0);
    assert_eq!(sessions(&home).len(), 2);
    drop(running);
    until("its tool is gone", || system.process.tools().is_empty());
    assert!(system.stop().success());
    home.sound();
}
