//! Lines of the audit log and of session logs, with their fixtures `audit/<type>[.<variant>].json` and
//! `session/<type>.json`: the bytes of a stored line without its newline.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use proto::audit::{
    Arguments, Decision, DecisionRecord, Entry, ExitCause, ExitStatus, Line, Outcome,
    OutcomeStatus, RoleEvent, SessionEvent,
};
use proto::session_log::{LogRecord, ToolCall};
use proto::{Answer, ApprovalEvent, DataClass, DenyReason, Epoch, Hash32};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fixtures;
use crate::private_line::approved;
use crate::samples::{
    ARGUMENTS, CALL, EXITED, PRIVATE, USAGE, approvals, full, grant, hash, later, session, time,
};

/// Fixture name without its ending, and the line of the audit log that it holds.
pub(crate) fn audit() -> Vec<(&'static str, Line)> {
    let line = |seq, prev, entry| Line {
        seq,
        time: time(),
        prev,
        entry,
    };
    let later = |entry| line(18, hash(), entry);
    let role = |pid, event| Entry::Role {
        role: "brokerd".into(),
        pid,
        event: Box::new(event),
    };
    let of_session = |event| Entry::Session {
        session: session(),
        event,
        by: "bxctl".into(),
    };
    vec![
        (
            "policy",
            line(
                0,
                Hash32::ZERO,
                Entry::Policy {
                    generation: 1,
                    files: BTreeMap::from([
                        ("tools/fs_read.toml".into(), hash()),
                        ("grants/notes.read.toml".into(), Hash32::ZERO),
                    ]),
                },
            ),
        ),
        (
            "role.started",
            later(role(
                Some(4711),
                RoleEvent::Started {
                    confinement: full(),
                },
            )),
        ),
        (
            "role.ended",
            later(role(
                Some(4711),
                RoleEvent::Ended {
                    exit: Some(ExitStatus::Signal(9)),
                },
            )),
        ),
        ("role.given_up", later(role(None, RoleEvent::GivenUp {}))),
        ("session.opened", later(of_session(SessionEvent::Opened))),
        ("session.resumed", later(of_session(SessionEvent::Resumed))),
        ("session.ended", later(of_session(SessionEvent::Ended))),
        (
            "decision.allowed",
            later(allowed(Arguments::Text(ARGUMENTS.into()))),
        ),
        (
            "decision.allowed.same_as",
            later(allowed(Arguments::SameAs { same_as: 3 })),
        ),
        (
            "decision.approved",
            later(decision(approved(), Arguments::Text("{}".into()), true)),
        ),
        (
            "decision.denied",
            later(decision(
                DecisionRecord::Denied {
                    reason: DenyReason::DeniedByGrant,
                    grant: Some(grant()),
                },
                Arguments::Digest {
                    length: 9_000_000,
                    sha256: hash(),
                },
                false,
            )),
        ),
        (
            "outcome.result",
            later(outcome(
                OutcomeStatus::Result,
                Some(ExitCause::Exited),
                Some(EXITED),
            )),
        ),
        (
            "outcome.failed",
            later(outcome(
                OutcomeStatus::Failed,
                Some(ExitCause::Timeout),
                Some(ExitStatus::Signal(9)),
            )),
        ),
        (
            "outcome.unknown",
            later(outcome(OutcomeStatus::Unknown, None, None)),
        ),
        ("approval.asked", later(of_approval(0))),
        ("approval.answered.approved", later(of_approval(1))),
        ("approval.answered.refused", later(of_approval(2))),
        ("approval.expired", later(of_approval(3))),
        ("approval.withdrawn", later(of_approval(4))),
        ("denials", later(denials())),
        (
            "recovery",
            later(Entry::Recovery {
                file: "2026-09-17.jsonl".into(),
                offset: 12_288,
                length: 117,
                sha256: hash(),
            }),
        ),
    ]
}

fn allowed(arguments: Arguments) -> Entry {
    decision(DecisionRecord::Allowed { grant: grant() }, arguments, true)
}

fn decision(decision: DecisionRecord, arguments: Arguments, runs: bool) -> Entry {
    Entry::Decision(Box::new(Decision {
        session: session(),
        call: CALL,
        tool: "fs_read".into(),
        arguments,
        session_taint: DataClass::Private,
        decision,
        labels: runs.then_some(PRIVATE),
        detail: "path is under /srv/notes".into(),
        generation: 1,
        confinement: runs.then(full),
    }))
}

fn outcome(status: OutcomeStatus, cause: Option<ExitCause>, exit: Option<ExitStatus>) -> Entry {
    Entry::Outcome(Outcome {
        of: 17,
        session: session(),
        status,
        class: DataClass::Private,
        untrusted: true,
        truncated: false,
        bytes: 1204,
        cause,
        exit,
        usage: cause.is_some().then_some(USAGE),
    })
}

fn of_approval(index: usize) -> Entry {
    Entry::Approval(approvals().remove(index).1)
}

fn denials() -> Entry {
    Entry::Denials {
        session: session(),
        tool: "fs_read".into(),
        reason: DenyReason::NoGrant,
        count: 992,
        first: time(),
        last: later(),
    }
}

/// Fixture name without its ending, and the record of a session log that it holds.
pub(crate) fn sessions() -> Vec<(&'static str, LogRecord)> {
    let time = time();
    let call = ToolCall {
        id: "call_0".into(),
        name: "fs_read".into(),
        arguments: ARGUMENTS.into(),
    };
    vec![
        (
            "session_start",
            LogRecord::SessionStart {
                time,
                session: session(),
                epoch: Epoch(0),
                slot: 2,
                baseline: hash(),
            },
        ),
        (
            "user",
            LogRecord::User {
                time,
                content: "What is in my notes?\n".into(),
            },
        ),
        (
            "assistant",
            LogRecord::Assistant {
                time,
                content: None,
                reasoning_content: Some("The notes first.".into()),
                tool_calls: vec![call],
            },
        ),
        (
            "tool_result",
            LogRecord::ToolResult {
                time,
                call: CALL,
                tool_call_id: "call_0".into(),
                content: "# Plan\n".into(),
                class: DataClass::Private,
                untrusted: false,
                truncated: true,
            },
        ),
        (
            "cache_loss",
            LogRecord::CacheLoss {
                time,
                expected: 8192,
                got: 512,
            },
        ),
        (
            "epoch_end",
            LogRecord::EpochEnd {
                time,
                next: Epoch(1),
                summary: "The owner plans a trip.".into(),
            },
        ),
    ]
}

fn is_its_fixture<T: Serialize + DeserializeOwned + Debug + PartialEq>(file: &str, value: &T) {
    let stored = String::from_utf8(fixtures::bytes(file)).unwrap();
    assert_eq!(
        &serde_json::from_str::<T>(&stored).unwrap(),
        value,
        "{file}"
    );
    assert_eq!(serde_json::to_string(value).unwrap(), stored, "{file}");
}

#[test]
fn a_line_of_the_audit_log_is_its_fixture_in_both_directions() {
    for (name, line) in audit() {
        is_its_fixture(&format!("audit/{name}.json"), &line);
    }
}

#[test]
fn a_record_of_a_session_log_is_its_fixture_in_both_directions() {
    for (name, record) in sessions() {
        is_its_fixture(&format!("session/{name}.json"), &record);
    }
}

#[test]
fn every_entry_and_every_variant_inside_it_has_a_fixture() {
    let names: BTreeSet<&str> = audit().iter().map(|(name, _)| *name).collect();
    let types = fixtures::words::<Entry>(r#"{"type":"?"}"#);
    let shown: BTreeSet<String> = names
        .iter()
        .map(|name| name.split('.').next().unwrap().to_owned())
        .collect();
    assert_eq!(types, shown);
    for (kind, words) in [
        (
            "decision",
            fixtures::words::<DecisionRecord>(r#"{"outcome":"?"}"#),
        ),
        ("outcome", fixtures::words::<OutcomeStatus>(r#""?""#)),
        ("role", fixtures::words::<RoleEvent>(r#"{"state":"?"}"#)),
        ("session", fixtures::words::<SessionEvent>(r#""?""#)),
        ("approval.answered", fixtures::words::<Answer>(r#""?""#)),
    ] {
        for word in words {
            let name = format!("{kind}.{word}");
            assert!(names.contains(name.as_str()), "{name}");
        }
    }
}

#[test]
fn every_event_of_a_question_has_a_fixture() {
    let names = audit();
    for word in fixtures::words::<ApprovalEvent>(r#"{"state":"?"}"#) {
        let begin = format!("approval.{word}");
        assert!(
            names.iter().any(|(name, _)| name.starts_with(&begin)),
            "{begin}"
        );
    }
}

#[test]
fn every_kind_of_session_record_has_a_fixture() {
    let shown: BTreeSet<String> = sessions()
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(fixtures::words::<LogRecord>(r#"{"type":"?"}"#), shown);
}

#[test]
fn every_fixture_of_a_log_is_in_a_table() {
    let files = |names: Vec<&str>| -> BTreeSet<String> {
        names.iter().map(|name| format!("{name}.json")).collect()
    };
    let audit = files(audit().iter().map(|(name, _)| *name).collect());
    assert_eq!(fixtures::names("audit"), audit);
    let session = files(sessions().iter().map(|(name, _)| *name).collect());
    assert_eq!(fixtures::names("session"), session);
}

#[test]
fn a_stored_line_holds_no_newline_of_its_own() {
    for (name, line) in audit() {
        assert!(
            !serde_json::to_string(&line).unwrap().contains('\n'),
            "{name}"
        );
    }
}

#[test]
fn an_argument_text_that_looks_like_another_form_stays_a_text() {
    for text in [
        r#"{"same_as":3}"#,
        r#"{"length":1,"sha256":"x"}"#,
        "",
        "null",
    ] {
        let arguments = Arguments::Text(text.to_owned());
        let stored = serde_json::to_string(&arguments).unwrap();
        assert_eq!(
            serde_json::from_str::<Arguments>(&stored).unwrap(),
            arguments
        );
    }
}
