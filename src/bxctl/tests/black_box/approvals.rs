//! Questions to the owner: shown so that nothing in them can speak for boxmaker, answered by their id.

use proto::Message;

use crate::host::{Host, message};

fn question(id: &str, arguments: &str) -> Message {
    let arguments = serde_json::to_string(arguments).unwrap();
    let body = format!(
        r#"{{"approvals": [{{"approval": "{id}", "session": "s-1", "call": 2, "tool": "fs_write", "arguments": {arguments},
            "grant": "ask", "taint": "private", "untrusted": true, "labels": {{"class": "private", "untrusted": false}},
            "why": "grant ask covers the call and asks", "asked": "2026-09-17T08:05:00.000Z",
            "expires": "2026-09-17T08:15:00.000Z"}}]}}"#
    );
    message("approvals_reply", &body)
}

#[test]
fn every_open_question_is_shown_in_full_and_within_80_columns() {
    let host = Host::new();
    let _seen = host.broker(|_| {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(500));
        vec![
            question("a1", "{\"b\":\"\u{202e}\u{1b}\"}"),
            question("a2", &long),
        ]
    });
    let ended = host.run(&["pending"]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    assert!(
        ended.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ended.out
    );
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines[0], "a1  fs_write asks to run");
    assert_eq!(lines[2], r#"  | {"b":"\u{202e}\x1b"}"#);
    assert!(
        ended.out.contains("\n\na2  fs_write asks to run\n"),
        "{}",
        ended.out
    );
    let quoted = lines.iter().filter_map(|line| line.strip_prefix("  | "));
    let quoted: String = quoted.skip(1).collect();
    assert_eq!(quoted, format!("{{\"a\":\"{}\"}}", "x".repeat(500)));
    assert!(
        ended
            .out
            .contains("bxctl approve a2   or   bxctl refuse a2")
    );
    let json = host.run(&["pending", "--json"]).json();
    assert_eq!(json["approvals"][1]["approval"], "a2");
    assert_eq!(
        json["approvals"][0]["arguments"],
        "{\"b\":\"\u{202e}\u{1b}\"}"
    );
}

#[test]
fn no_question_is_no_error() {
    let host = Host::new();
    let _seen = host.broker(|_| vec![message("approvals_reply", r#"{"approvals": []}"#)]);
    let ended = host.run(&["pending"]);
    assert_eq!((ended.status, ended.out.as_str()), (0, ""));
    assert_eq!(ended.err, "bxctl: no call waits for an answer\n");
}

#[test]
fn a_question_is_answered_by_its_id() {
    let host = Host::new();
    let seen = host.broker(|_| vec![message("ok", "{}")]);
    for (word, answer) in [("approve", "approved"), ("refuse", "refused")] {
        let ended = host.run(&[word, "a7"]);
        assert_eq!((ended.status, ended.err.as_str()), (0, ""));
        assert!(
            ended.out.starts_with(&format!("a7 is {answer}: ")),
            "{}",
            ended.out
        );
        assert_eq!(seen.recv().unwrap(), message(word, r#"{"approval": "a7"}"#));
        let json = host.run(&[word, "a7", "--json"]).json();
        assert_eq!(
            json,
            serde_json::json!({"approval": "a7", "answer": answer})
        );
        seen.recv().unwrap();
    }
    assert_eq!(host.run(&["approve", "../a7"]).status, 2);
}

#[test]
fn a_question_that_is_not_open_is_told_with_the_way_out() {
    let host = Host::new();
    let _seen = host.broker(|_| {
        let body = r#"{"code": "unknown_approval", "detail": "question a7 is not open"}"#;
        vec![message("error", body)]
    });
    let ended = host.run(&["approve", "a7"]);
    assert_eq!((ended.status, ended.out.as_str()), (1, ""));
    assert!(
        ended
            .err
            .contains("question a7 is not open\n  `bxctl pending`"),
        "{}",
        ended.err
    );
}
