//! Every kind of message, and every variant inside a kind, with its fixture `message/<kind>[.<variant>].json`.

use std::collections::BTreeSet;

use proto::broker::{HistoryEntry, RecordEntry, RefuseReason};
use proto::client::{
    AnswerQuestion, ApprovalsReply, AuditStatus, Question, RoleStatus, SessionEnd,
    SessionListReply, SessionOpen, SessionOpened, SessionSummary, StatusReply, ToolRequest,
    ToolResponse, ToolSummary, ToolsListReply,
};
use proto::role::{Empty, RoleStart};
use proto::tool::ToolKind;
use proto::{
    ApprovalEvent, CallId, DataClass, DenyReason, Envelope, ErrorCode, Level, Message, WireError,
};

use crate::private_line::history;
use crate::samples::{ARGUMENTS, CALL, PRIVATE, approval, grant, later, session, time, tool};
use crate::{fixtures, private_line};

/// Fixture name without its ending, and the envelope it holds.
pub(crate) fn table() -> Vec<(&'static str, Envelope)> {
    let mut table = between_client_and_broker();
    table.extend(of_roles());
    table.extend(private_line::table());
    table
}

fn between_client_and_broker() -> Vec<(&'static str, Envelope)> {
    let response = |response| Envelope::new(7, Message::ToolResponse(response));
    let open = |session| Envelope::new(9, Message::SessionOpen(SessionOpen { session }));
    let pending = ToolResponse::PendingApproval {
        approval: approval(),
        expires: later(),
    };
    vec![
        (
            "error",
            Envelope::new(
                0,
                Message::Error(WireError {
                    code: ErrorCode::BadFrame,
                    detail: "frame of 1048577 bytes, at most 1048576 are allowed".into(),
                }),
            ),
        ),
        ("ok", Envelope::new(12, Message::Ok(Empty {}))),
        (
            "tool_request",
            Envelope::new(
                7,
                Message::ToolRequest(ToolRequest {
                    session: session(),
                    call: CALL,
                    tool: "fs_read".into(),
                    arguments: ARGUMENTS.into(),
                }),
            ),
        ),
        (
            "tool_response.pending_approval",
            Envelope::partial(7, Message::ToolResponse(pending)),
        ),
        (
            "tool_response.result",
            response(ToolResponse::Result {
                content: "Zürich\n\u{0}\u{1b}[31m".into(),
                class: DataClass::Private,
                untrusted: true,
                truncated: false,
                confinement: Level::Full,
            }),
        ),
        (
            "tool_response.failed",
            response(ToolResponse::Failed {
                message: "exit 1: no such file".into(),
                class: DataClass::Private,
                untrusted: true,
            }),
        ),
        (
            "tool_response.denied",
            response(ToolResponse::Denied {
                reason: DenyReason::NoGrant,
                detail: "fs_read: no grant covers `path`".into(),
            }),
        ),
        ("tools_list", Envelope::new(8, Message::ToolsList(Empty {}))),
        (
            "tools_list_reply",
            Envelope::new(
                8,
                Message::ToolsListReply(ToolsListReply {
                    tools: vec![ToolSummary {
                        name: tool(),
                        description: "Read one text file.".into(),
                        kind: ToolKind::Stdio,
                        side_effect: false,
                        arguments: r#"{"type":"object"}"#.into(),
                    }],
                }),
            ),
        ),
        ("session_open", open(None)),
        ("session_open.resume", open(Some(session()))),
        (
            "session_opened",
            Envelope::new(
                9,
                Message::SessionOpened(SessionOpened {
                    session: session(),
                    last_call: CallId(0),
                }),
            ),
        ),
        (
            "session_list",
            Envelope::new(10, Message::SessionList(Empty {})),
        ),
        (
            "session_list_reply",
            Envelope::new(
                10,
                Message::SessionListReply(SessionListReply {
                    sessions: vec![SessionSummary {
                        session: session(),
                        open: true,
                        taint: DataClass::Secret,
                        untrusted: true,
                        calls: 12,
                        denied: 2,
                        last: time(),
                    }],
                }),
            ),
        ),
        (
            "session_end",
            Envelope::new(12, Message::SessionEnd(SessionEnd { session: session() })),
        ),
        ("approvals", Envelope::new(14, Message::Approvals(Empty {}))),
        (
            "approvals_reply",
            Envelope::partial(
                14,
                Message::ApprovalsReply(ApprovalsReply {
                    approvals: vec![question()],
                }),
            ),
        ),
        (
            "approvals_reply.last",
            Envelope::new(
                14,
                Message::ApprovalsReply(ApprovalsReply {
                    approvals: Vec::new(),
                }),
            ),
        ),
        ("approve", Envelope::new(15, Message::Approve(answer()))),
        ("refuse", Envelope::new(16, Message::Refuse(answer()))),
        ("status", Envelope::new(13, Message::Status(Empty {}))),
        (
            "status_reply",
            Envelope::new(13, Message::StatusReply(status())),
        ),
        (
            "status_reply.closed",
            Envelope::new(
                13,
                Message::StatusReply(StatusReply {
                    roles: Vec::new(),
                    audit: AuditStatus {
                        next: 0,
                        last: None,
                        anchored: 0,
                        bytes: 0,
                        max_bytes: 1 << 20,
                        full: false,
                        closed: Some("fsync failed: input/output error".into()),
                    },
                    ..status()
                }),
            ),
        ),
    ]
}

fn answer() -> AnswerQuestion {
    AnswerQuestion {
        approval: approval(),
    }
}

fn question() -> Question {
    Question {
        approval: approval(),
        session: session(),
        call: CALL,
        tool: tool(),
        arguments: ARGUMENTS.into(),
        grant: grant(),
        taint: DataClass::Private,
        untrusted: true,
        labels: PRIVATE,
        why: "grant notes.read asks".into(),
        asked: time(),
        expires: later(),
    }
}

fn status() -> StatusReply {
    StatusReply {
        since: time(),
        generation: 2,
        roles: vec![
            RoleStatus {
                role: "brokerd".into(),
                pid: Some(4711),
                since: time(),
                restarts: 1,
                level: Level::Full,
            },
            RoleStatus {
                role: "other".into(),
                pid: None,
                since: later(),
                restarts: 10,
                level: Level::Partial,
            },
        ],
        changed: vec!["grants/notes.toml".into()],
        questions: 2,
        sandboxes: 1,
        audit: AuditStatus {
            next: 118,
            last: Some(later()),
            anchored: 116,
            bytes: 65536,
            max_bytes: 8 << 30,
            full: true,
            closed: None,
        },
    }
}

fn of_roles() -> Vec<(&'static str, Envelope)> {
    vec![
        (
            "role_start",
            Envelope::new(
                1,
                Message::RoleStart(RoleStart {
                    role: "brokerd".into(),
                    config: "waive = []\n".into(),
                    sockets: vec!["bxctl".into()],
                }),
            ),
        ),
        ("ready", Envelope::new(1, Message::Ready(Empty {}))),
        ("ping", Envelope::new(2, Message::Ping(Empty {}))),
        ("pong", Envelope::new(2, Message::Pong(Empty {}))),
        ("stop", Envelope::new(3, Message::Stop(Empty {}))),
    ]
}

fn file(name: &str) -> String {
    format!("{name}.json")
}

#[test]
fn every_kind_of_message_has_a_fixture() {
    let known = fixtures::words::<Message>(r#"{"kind":"?","body":{}}"#);
    let shown: BTreeSet<String> = table()
        .iter()
        .map(|(name, _)| name.split('.').next().unwrap().to_owned())
        .collect();
    assert_eq!(known, shown);
}

#[test]
fn every_variant_inside_a_kind_has_a_fixture() {
    let table = table();
    for (kind, words) in [
        (
            "tool_response",
            fixtures::words::<ToolResponse>(r#"{"status":"?"}"#),
        ),
        ("record", fixtures::words::<RecordEntry>(r#"{"type":"?"}"#)),
        (
            "refused",
            fixtures::words::<RefuseReason>(r#"{"because":"?"}"#),
        ),
        (
            "record.approval",
            fixtures::words::<ApprovalEvent>(r#"{"state":"?"}"#),
        ),
    ] {
        for word in words {
            let name = format!("{kind}.{word}");
            let within = format!("{name}.");
            let shows = |have: &str| *have == name || have.starts_with(&within);
            assert!(table.iter().any(|(have, _)| shows(have)), "{name}");
        }
    }
    let held: BTreeSet<String> = history()
        .iter()
        .map(|entry| {
            serde_json::to_value(entry).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(held, fixtures::words::<HistoryEntry>(r#"{"type":"?"}"#));
}

#[test]
fn every_fixture_of_a_message_is_in_the_table() {
    let listed: BTreeSet<String> = table().iter().map(|(name, _)| file(name)).collect();
    assert_eq!(fixtures::names("message"), listed);
}

#[test]
fn a_fixture_decodes_to_the_value_built_here() {
    for (name, envelope) in table() {
        let body = fixtures::bytes(&format!("message/{}", file(name)));
        assert_eq!(Envelope::decode(&body).as_ref(), Ok(&envelope), "{name}");
    }
}

#[test]
fn a_value_encodes_to_the_bytes_of_its_fixture() {
    for (name, envelope) in table() {
        let body = fixtures::bytes(&format!("message/{}", file(name)));
        let encoded = envelope.encode().unwrap();
        assert_eq!(
            String::from_utf8(encoded),
            String::from_utf8(body),
            "{name}"
        );
    }
}

#[test]
fn kind_is_the_word_on_the_wire() {
    for (name, envelope) in table() {
        let json = serde_json::to_value(&envelope).unwrap();
        assert_eq!(json["msg"]["kind"], envelope.msg.kind(), "{name}");
    }
}

#[test]
fn descriptors_come_with_three_kinds_only() {
    for (name, envelope) in table() {
        let expected = match name.split('.').next().unwrap() {
            "role_start" | "policy" => 1,
            "prepared" => 2,
            _ => 0,
        };
        assert_eq!(envelope.msg.descriptors(), expected, "{name}");
    }
}
