//! What is no message on brokerd's line ends that brokerd, and nothing else notices. What is a message but not
//! brokerd's to say is refused, and the line goes on.

use std::os::fd::AsFd;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::relay::stray;
use proto::audit::{ExitCause, RoleEvent};
use proto::broker::{Committed, Exited, History, PolicyGeneration, Recorded};
use proto::role::{Empty, RoleStart};
use proto::{Entry, ErrorCode, Message, Ticket};
use serde_json::{Value, json};

use crate::calls::{Broker, touched};

const TOUCH: &str = r#"{"acts":[]}"#;

/// How the line goes wrong, and what the supervisor says of it.
enum Wrong {
    Bytes(&'static [u8], &'static str),
    Body(Value, &'static str),
    Descriptors(Value, &'static str),
}

impl Wrong {
    fn say(&self, broker: &mut Broker) -> &'static str {
        match self {
            Self::Bytes(bytes, words) => {
                broker.relay.bytes(bytes);
                words
            }
            Self::Body(body, words) => {
                broker.relay.frame(body.to_string().as_bytes(), &[]);
                words
            }
            Self::Descriptors(body, words) => {
                let stray = stray();
                broker
                    .relay
                    .frame(body.to_string().as_bytes(), &[stray.as_fd()]);
                words
            }
        }
    }
}

fn envelope(kind: &str, body: &Value) -> Value {
    json!({"v": 1, "id": 9, "final": true, "msg": {"kind": kind, "body": body}})
}

fn record(entry: &Value) -> Value {
    envelope("record", &json!({ "entry": entry }))
}

/// Says each wrong thing to a brokerd's line of its own: that brokerd ends, its call has run nothing, and the next
/// brokerd is served by the same supervisor. At most six, because ends are counted and the waits between them double.
fn each_ends_brokerd(cases: &[Wrong]) {
    let mut broker = Broker::up();
    for (done, case) in cases.iter().enumerate() {
        broker.prepare("touch", "touch", TOUCH);
        let sandbox = broker.sandbox();
        let role = broker.system.role(&broker.home);
        let before = broker.home.stderr().len();
        broker.relay.stay();
        let words = case.say(&mut broker);
        let heard = broker.relay.ended();
        // Told to brokerd too, with the rule and the way out, before its line ends.
        let told = heard.last();
        assert!(
            matches!(told, Some(Message::Error(error))
                if error.detail.contains(words) && error.detail.contains("connect again")
                    || error.code == ErrorCode::BadVersion && error.detail.contains("of one build")),
            "{words:?}: {told:?}"
        );
        broker.again();
        let said = broker.home.stderr().split_off(before);
        let expected = "boxmaker: brokerd's line is closed: ";
        let line = said.lines().find(|line| line.starts_with(expected));
        assert!(
            line.is_some_and(|line| line.contains(words)),
            "{words:?}: {said}"
        );
        assert!(!role.lives() && !sandbox.lives());
        assert!(!touched(&broker.home));
        let (_, groups) = broker.home.in_cgroups();
        assert!(groups <= 1, "{groups} cgroups, and brokerd's is one");
        assert_eq!(broker.status().roles[0].restarts, done as u64 + 1);
    }
    let ends = broker.home.lines().into_iter().filter(|line| {
        matches!(&line.entry, Entry::Role { event, .. } if matches!(**event, RoleEvent::Ended { .. }))
    });
    assert_eq!(ends.count(), cases.len());
    let kinds: Vec<Entry> = broker
        .home
        .lines()
        .into_iter()
        .map(|line| line.entry)
        .collect();
    let own = |entry: &Entry| {
        matches!(
            entry,
            Entry::Role { .. } | Entry::Policy { .. } | Entry::Session { .. }
        )
    };
    assert!(kinds.iter().all(own), "{kinds:?}");
    broker.call("touch", "touch", TOUCH);
    assert!(touched(&broker.home));
    broker.home.sound();
}

#[test]
fn what_is_no_frame_ends_brokerd_and_nothing_else_notices() {
    if skipped_without_root("what_is_no_frame_ends_brokerd_and_nothing_else_notices") {
        return;
    }
    each_ends_brokerd(&[
        Wrong::Bytes(&[0, 0, 0, 0], "frame with an empty body"),
        Wrong::Bytes(&[0xff; 4], "frame of 4294967295 bytes"),
        Wrong::Bytes(b"\0\0\0\x04\xff\xfe\x00{", "not a message"),
        Wrong::Descriptors(
            envelope("status", &json!({})),
            "status carries 0 descriptors, 1 came",
        ),
        Wrong::Body(
            json!({"v": 2, "id": 9, "final": true, "msg": {"kind": "status", "body": {}}}),
            "version",
        ),
    ]);
}

#[test]
fn a_record_with_a_place_or_a_measurement_of_its_own_is_no_message() {
    if skipped_without_root("a_record_with_a_place_or_a_measurement_of_its_own_is_no_message") {
        return;
    }
    let with = |field: &str, value: Value| {
        let mut entry = json!({
            "type": "decision", "session": "s", "call": 1, "tool": "echo", "arguments": "{}",
            "session_taint": "private", "decision": {"outcome": "denied", "reason": "no_grant", "grant": null},
            "detail": "", "generation": 1, "ticket": null,
        });
        entry[field] = value;
        record(&entry)
    };
    let measured = json!({
        "level": "full", "layers": [], "asserted": [], "gaps": [], "waived": [], "landlock_abi": 6,
        "plan": "0".repeat(64),
    });
    each_ends_brokerd(&[
        Wrong::Body(with("seq", json!(0)), "unknown field `seq`"),
        Wrong::Body(
            with("time", json!("2026-01-01T00:00:00.000Z")),
            "unknown field `time`",
        ),
        Wrong::Body(with("prev", json!("0".repeat(64))), "unknown field `prev`"),
        Wrong::Body(with("confinement", measured), "unknown field `confinement`"),
        Wrong::Body(
            with("labels", json!({"class": "public", "untrusted": false})),
            "unknown field `labels`",
        ),
        Wrong::Body(with("session", json!("../s")), "session id"),
    ]);
}

#[test]
fn a_record_of_a_type_that_is_not_brokerds_is_no_message() {
    if skipped_without_root("a_record_of_a_type_that_is_not_brokerds_is_no_message") {
        return;
    }
    let outcome = json!({
        "type": "outcome", "of": 1, "session": "s", "status": "result", "class": "public", "untrusted": false,
        "truncated": false, "bytes": 0, "cause": null, "exit": null, "usage": null,
    });
    let role = json!({"type": "role", "role": "brokerd", "pid": 1, "event": {"state": "given_up"}});
    let recovery = json!({
        "type": "recovery", "file": "2026-01-01.jsonl", "offset": 0, "length": 1, "sha256": "0".repeat(64),
    });
    each_ends_brokerd(&[
        Wrong::Body(record(&outcome), "unknown variant `outcome`"),
        Wrong::Body(record(&role), "unknown variant `role`"),
        Wrong::Body(
            record(&json!({"type": "policy", "generation": 1, "files": {}})),
            "unknown variant `policy`",
        ),
        Wrong::Body(record(&recovery), "unknown variant `recovery`"),
        Wrong::Body(
            record(&json!({"type": "injected", "of": 1})),
            "unknown variant `injected`",
        ),
        Wrong::Body(
            record(&json!({"type": "unknown", "of": 1, "class": "public"})),
            "unknown field `class`",
        ),
    ]);
}

#[test]
fn a_commit_with_arguments_or_a_measurement_of_its_own_is_no_message() {
    if skipped_without_root("a_commit_with_arguments_or_a_measurement_of_its_own_is_no_message") {
        return;
    }
    let with = |field: &str, value: Value| {
        // The first prepare of each case has the next ticket; any will do, because nothing of this is read.
        let mut body = json!({
            "ticket": 1, "decision": {"outcome": "allowed", "grant": "touch"}, "session_taint": "private",
            "labels": {"class": "private", "untrusted": false}, "detail": "",
        });
        body[field] = value;
        envelope("commit", &body)
    };
    each_ends_brokerd(&[
        Wrong::Body(
            with("arguments", json!("{\"acts\":[\"shadow\"]}")),
            "unknown field `arguments`",
        ),
        Wrong::Body(with("session", json!("other")), "unknown field `session`"),
        Wrong::Body(with("tool", json!("echo")), "unknown field `tool`"),
        Wrong::Body(
            with("confinement", json!(null)),
            "unknown field `confinement`",
        ),
        Wrong::Body(with("seq", json!(0)), "unknown field `seq`"),
    ]);
}

#[test]
fn a_session_or_tool_with_a_name_that_is_none_is_no_message() {
    if skipped_without_root("a_session_or_tool_with_a_name_that_is_none_is_no_message") {
        return;
    }
    let with = |field: &str, value: Value| {
        let mut body = json!({
            "session": "s", "call": 1, "tool": "touch", "grant": "touch", "generation": 1, "arguments": TOUCH,
        });
        body[field] = value;
        envelope("prepare", &body)
    };
    each_ends_brokerd(&[
        Wrong::Body(with("session", json!("../audit")), "is not a session id"),
        Wrong::Body(with("session", json!("")), "is not a session id"),
        Wrong::Body(
            with("session", json!("s".repeat(65))),
            "is not a session id",
        ),
        Wrong::Body(with("tool", json!("../touch")), "is not a tool name"),
        Wrong::Body(with("grant", json!("a/b")), "is not a grant id"),
    ]);
}

#[test]
fn what_others_say_is_refused_from_brokerd_and_the_line_goes_on() {
    if skipped_without_root("what_others_say_is_refused_from_brokerd_and_the_line_goes_on") {
        return;
    }
    let mut broker = Broker::up();
    let ticket = Ticket(1);
    let exited = Exited {
        ticket,
        exit: None,
        cause: ExitCause::Exited,
        usage: proto::audit::Usage {
            wall_ms: 0,
            cpu_ms: None,
            max_rss: None,
        },
    };
    let start = RoleStart {
        role: "supervisor".to_owned(),
        config: String::new(),
        sockets: Vec::new(),
    };
    for message in [
        Message::Committed(Committed { ticket, seq: 0 }),
        Message::Exited(exited),
        Message::Recorded(Recorded { seq: 0 }),
        Message::History(History {
            entries: Vec::new(),
        }),
        Message::RoleStart(start),
        Message::Stop(Empty {}),
        Message::Ready(Empty {}),
        Message::SessionList(Empty {}),
        Message::ToolsList(Empty {}),
    ] {
        let kind = message.kind();
        let (code, detail) = broker.relay.refused(message);
        assert_eq!(code, ErrorCode::BadMessage);
        assert_eq!(
            detail,
            format!("{kind} is nothing that brokerd may say here")
        );
    }
    assert_eq!(broker.status().roles[0].restarts, 0);
    broker.call("touch", "touch", TOUCH);
    assert!(touched(&broker.home));
}

#[test]
fn a_policy_from_brokerd_is_refused_and_changes_nothing() {
    if skipped_without_root("a_policy_from_brokerd_is_refused_and_changes_nothing") {
        return;
    }
    let mut broker = Broker::up();
    let mut files = broker.relay.policy.clone();
    let wide = "tool = \"fs_read\"\nmode = \"auto\"\nmax_taint = \"secret\"\n[constraints]\npaths = [\"read:/\"]\n";
    files.0.insert("grants/wide.toml".to_owned(), wide.into());
    let memory = files.seal().unwrap();
    let id = broker.relay.fresh();
    let policy = Message::Policy(PolicyGeneration { generation: 2 });
    let body = proto::Envelope::new(id, policy).encode().unwrap();
    broker.relay.frame(&body, &[memory.as_fd()]);
    let answer = broker.relay.answer(id).envelope.msg;
    assert!(matches!(answer, Message::Error(error) if error.code == ErrorCode::BadMessage));
    assert_eq!(broker.status().generation, 1);
    let reason = broker.denied("fs_read", "wide", &crate::calls::at("/etc/passwd"));
    assert_eq!(reason, proto::DenyReason::NoGrant);
    broker.call("touch", "touch", TOUCH);
}
