//! `bxctl call` against a scripted brokerd.

use proto::{CallId, Message};

use crate::host::{Host, answering, message, opened};

const RESULT: &str = r#"{"status": "result", "content": "one\u001b[31m\ntwo", "class": "private", "untrusted": true,
    "truncated": false, "confinement": "full"}"#;
const DENIED: &str =
    r#"{"status": "denied", "reason": "no_grant", "detail": "no grant of fs_read covers path"}"#;
const FAILED: &str = r#"{"status": "failed", "message": "exit 1\nno such file", "class": "private", "untrusted": true}"#;
const TOOL: &str = r#"
description = "Reads."
kind = "stdio"
command = ["toolkit", "fs_read"]
profile = "tools/base"
side_effect = false
resources = { path = "read" }
[arguments]
type = "object"
required = ["path"]
properties.path.type = "string"
properties.first.type = "integer"
"#;

#[test]
fn a_call_opens_a_session_of_its_own_and_ends_it() {
    let host = Host::new();
    let seen = host.broker(answering(RESULT));
    let ended = host.run(&["call", "fs_read", "path=/srv/a.md"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let asked: Vec<Message> = seen.try_iter().collect();
    let [
        Message::SessionOpen(open),
        Message::ToolRequest(call),
        Message::SessionEnd(end),
    ] = &asked[..]
    else {
        panic!("{asked:?}");
    };
    assert_eq!(open.session, None);
    assert_eq!(
        (call.session.as_str(), call.call, call.tool.as_str()),
        ("s-1", CallId(0), "fs_read")
    );
    assert_eq!(call.arguments, r#"{"path":"/srv/a.md"}"#);
    assert_eq!(end.session.as_str(), "s-1");
}

#[test]
fn the_content_goes_raw_to_standard_output_and_one_line_to_standard_error() {
    let host = Host::new();
    let _seen = host.broker(answering(RESULT));
    let ended = host.run(&["call", "fs_read", "path=/srv/a.md"]);
    assert_eq!(ended.out, "one\x1b[31m\ntwo");
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    assert!(
        ended
            .err
            .starts_with("fs_read allowed: level full, private, untrusted, "),
        "{ended:?}"
    );
}

#[test]
fn a_named_session_is_resumed_and_left_open() {
    let host = Host::new();
    let seen = host.broker(answering(RESULT));
    assert_eq!(host.run(&["call", "fs_read", "--session", "s-1"]).status, 0);
    let asked: Vec<Message> = seen.try_iter().collect();
    assert!(
        matches!(&asked[..], [Message::SessionOpen(open), Message::ToolRequest(_)]
            if open.session.as_ref().is_some_and(|id| id.as_str() == "s-1")),
        "{asked:?}"
    );
}

#[test]
fn a_denial_is_status_1_with_reason_detail_and_where_to_look() {
    let host = Host::new();
    let seen = host.broker(answering(DENIED));
    let ended = host.run(&["call", "fs_read"]);
    assert_eq!((ended.status, ended.out.as_str()), (1, ""));
    for part in [
        "fs_read denied: no_grant",
        "no grant of fs_read covers path",
        "`bxctl grants`",
        "--session s-1",
    ] {
        assert!(ended.err.contains(part), "{part}: {ended:?}");
    }
    assert!(matches!(
        seen.try_iter().last(),
        Some(Message::SessionEnd(_))
    ));
}

#[test]
fn a_denial_says_which_files_of_the_configuration_are_not_loaded() {
    let host = Host::new();
    let _seen = host.broker(answering(DENIED));
    let ended = host.run(&["call", "fs_read"]);
    assert!(
        ended.err.contains(
            "  changed since boxmaker was started, and not loaded: grants/notes.toml; stop"
        ),
        "{ended:?}"
    );
    let json = host.run(&["call", "fs_read", "--json"]).json();
    assert_eq!(json["changed"], serde_json::json!(["grants/notes.toml"]));
    // What ran has no such remark.
    let host = Host::new();
    let _seen = host.broker(answering(RESULT));
    let ended = host.run(&["call", "fs_read"]);
    assert!(!ended.err.contains("changed"), "{ended:?}");
}

#[test]
fn a_failure_is_status_1_and_shows_what_the_tool_said() {
    let host = Host::new();
    let _seen = host.broker(answering(FAILED));
    let ended = host.run(&["call", "fs_read"]);
    assert_eq!((ended.status, ended.out.as_str()), (1, ""));
    assert!(
        ended.err.contains("fs_read failed: private, untrusted"),
        "{ended:?}"
    );
    assert!(ended.err.contains("  no such file\n"), "{ended:?}");
}

#[test]
fn json_is_one_document_for_results_and_denials() {
    let host = Host::new();
    let _seen = host.broker(answering(RESULT));
    let ended = host.run(&["call", "fs_read", "--json"]);
    let json = ended.json();
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    assert_eq!(json["content"], "one\u{1b}[31m\ntwo");
    assert_eq!(
        (&json["decision"], &json["level"]),
        (&"allowed".into(), &"full".into())
    );
    let host = Host::new();
    let _seen = host.broker(answering(DENIED));
    let ended = host.run(&["call", "fs_read", "--json"]);
    assert_eq!(ended.status, 1);
    assert_eq!(ended.json()["reason"], "no_grant");
}

#[test]
fn the_tools_file_gives_words_their_types() {
    let host = Host::new();
    host.file("tools/fs_read.toml", TOOL);
    // A mistake elsewhere does not matter here.
    host.file("grants/broken.toml", "tool = ");
    let seen = host.broker(answering(RESULT));
    let ended = host.run(&["call", "fs_read", "path=7", "first=7"]);
    assert_eq!(
        (ended.status, ended.err.lines().count()),
        (0, 1),
        "{ended:?}"
    );
    let asked: Vec<Message> = seen.try_iter().collect();
    let typed = r#"{"first":7,"path":"7"}"#;
    assert!(
        matches!(&asked[1], Message::ToolRequest(call) if call.arguments == typed),
        "{asked:?}"
    );
    let ended = host.run(&["call", "fs_read", "first=seven"]);
    assert_eq!(ended.status, 2);
    assert!(
        ended.err.contains("takes an integer for first"),
        "{ended:?}"
    );
    assert!(seen.try_iter().next().is_none(), "nothing was asked");
}

#[test]
fn arguments_come_from_standard_input_as_they_are() {
    let host = Host::new();
    let seen = host.broker(answering(RESULT));
    let text = "{ \"path\": \"x\",\n \"path\": \"y\" }\n";
    assert_eq!(
        host.run_with_input(&["call", "fs_read", "-"], text).status,
        0
    );
    assert!(
        seen.try_iter()
            .any(|asked| matches!(asked, Message::ToolRequest(call) if call.arguments == text))
    );
    let ended = host.run_with_input(&["call", "fs_read", "-"], "[]");
    assert_eq!(ended.status, 2, "{ended:?}");
}

#[test]
fn the_grant_and_the_owners_reason_come_from_the_log_when_it_can_be_read() {
    let host = Host::new();
    let line = r#"{"seq":5,"time":"2026-09-17T08:05:00.000Z","prev":"0000000000000000000000000000000000000000000000000000000000000000","entry":{"type":"decision","session":"s-1","call":1,"tool":"fs_read","arguments":"{}","session_taint":"private","decision":{"outcome":"denied","reason":"no_grant","grant":null},"labels":null,"detail":"/etc lies in no grant","generation":1,"confinement":null}}"#;
    std::fs::write(
        host.home().join("audit/2026-09-17.jsonl"),
        format!("{line}\n"),
    )
    .unwrap();
    let _seen = host.broker(answering(DENIED));
    let ended = host.run(&["call", "fs_read"]);
    assert!(ended.err.contains("record 5\n"), "{ended:?}");
    assert!(
        ended.err.contains("  /etc lies in no grant\n") && !ended.err.contains("covers path"),
        "{ended:?}"
    );
}

#[test]
fn a_question_to_the_owner_is_shown_while_the_call_waits() {
    let host = Host::new();
    let _seen = host.broker(|asked| match asked {
        Message::SessionOpen(_) => {
            vec![opened()]
        }
        Message::ToolRequest(_) => vec![
            message(
                "tool_response",
                r#"{"status": "pending_approval", "approval": "a", "expires": "2026-09-17T08:05:00.000Z"}"#,
            ),
            message("tool_response", RESULT),
        ],
        _ => vec![message("ok", "{}")],
    });
    let ended = host.run(&["call", "fs_read"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(
        ended
            .err
            .contains("waiting for approval a (bxctl approve a) until 2026-09-17T08:05:00.000Z\n"),
        "{ended:?}"
    );
}
