//! What a person and a program are told of one call.

use proto::Hash32;

use super::*;

fn record(decision: &str, confinement: bool) -> (u64, Decision) {
    let confinement = if confinement {
        format!(
            r#"{{"level": "full", "layers": [], "asserted": [], "gaps": [], "waived": [], "landlock_abi": 6,
                "plan": "{}"}}"#,
            Hash32::ZERO
        )
    } else {
        "null".to_owned()
    };
    let text = format!(
        r#"{{"session": "s-1", "call": 1, "tool": "fs_read", "arguments": "{{}}", "session_taint": "private",
            "decision": {decision}, "labels": null, "detail": "for the owner", "generation": 1,
            "confinement": {confinement}}}"#
    );
    (12, serde_json::from_str(&text).unwrap())
}

fn report(answer: &str, record: Option<(u64, Decision)>) -> Option<Report> {
    let answer = serde_json::from_str(answer).unwrap();
    Report::new(
        "s-1".parse().unwrap(),
        "fs_read".to_owned(),
        answer,
        record,
        43,
    )
}

const RESULT: &str = r#"{"status": "result", "content": "hello\n", "class": "private", "untrusted": true,
    "truncated": true, "confinement": "full"}"#;
const DENIED: &str =
    r#"{"status": "denied", "reason": "no_grant", "detail": "no grant\u001b covers path"}"#;
const FAILED: &str = r#"{"status": "failed", "message": "exit 1\nno such\u0007 file", "class": "secret",
    "untrusted": false}"#;

#[test]
fn a_result_is_one_line_with_grant_level_labels_and_time() {
    let allowed = record(r#"{"outcome": "allowed", "grant": "notes"}"#, true);
    let report = report(RESULT, Some(allowed)).unwrap();
    assert_eq!(
        report.remark(false),
        "fs_read allowed: grant notes, level full, private, untrusted, truncated, 43 ms, session s-1, record 12\n"
    );
}

#[test]
fn what_the_log_does_not_tell_is_left_out_and_not_guessed() {
    let report = report(RESULT, None).unwrap();
    assert_eq!(
        report.remark(false),
        "fs_read allowed: level full, private, untrusted, truncated, 43 ms, session s-1\n"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json.get("grant"), None);
    assert_eq!(json["content"], "hello\n");
    assert_eq!(json["status"], "result");
}

#[test]
fn a_denial_says_reason_detail_why_and_where_to_look() {
    let denied = record(
        r#"{"outcome": "denied", "reason": "no_grant", "grant": null}"#,
        false,
    );
    let remark = report(DENIED, Some(denied)).unwrap().remark(false);
    assert!(
        remark.starts_with("fs_read denied: no_grant, 43 ms, session s-1, record 12\n"),
        "{remark}"
    );
    assert!(
        remark.contains("record 12\n  for the owner\n  look: "),
        "{remark}"
    );
    assert!(
        remark.ends_with("`bxctl audit show --session s-1`\n"),
        "{remark}"
    );
    // Without the record there is what the caller may know, and it is about the tool of the line above.
    let mut told = report(DENIED, None).unwrap();
    let remark = told.remark(false);
    assert!(
        remark.contains("session s-1\n  no grant\\x1b covers path\n  look: "),
        "{remark}"
    );
    told.why = Some("tool fs_read: argument `path` is required".to_owned());
    let remark = told.remark(false);
    assert!(
        remark.contains("session s-1\n  argument `path` is required\n  look: "),
        "{remark}"
    );
}

#[test]
fn a_failure_shows_what_the_tool_said_with_controls_visible() {
    let allowed = record(r#"{"outcome": "allowed", "grant": "notes"}"#, true);
    let report = report(FAILED, Some(allowed)).unwrap();
    assert_eq!(
        report.remark(false),
        "fs_read failed: grant notes, level full, secret, 43 ms, session s-1, record 12\n  exit 1\n  no such\\x07 file\n"
    );
    assert_eq!(
        (report.status, report.decision),
        (Status::Failed, "allowed")
    );
}

#[test]
fn a_question_to_the_owner_is_no_end() {
    let pending =
        r#"{"status": "pending_approval", "approval": "a", "expires": "2026-09-17T08:05:00.000Z"}"#;
    assert_eq!(report(pending, None), None);
}
