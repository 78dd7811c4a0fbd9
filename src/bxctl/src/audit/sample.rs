//! A short log for the tests of this room: two sessions, every type of record.

use proto::{Hash32, Line};

/// The lines, chained by number only.
pub(crate) fn lines() -> Vec<Line> {
    let full = format!(
        r#"{{"level":"full","layers":[],"asserted":[],"gaps":[],"waived":[],"landlock_abi":6,"plan":"{}"}}"#,
        Hash32::ZERO
    );
    let call = |session: &str,
                call: u64,
                tool: &str,
                decision: &str,
                measured: bool,
                detail: &str| {
        format!(
            r#"{{"type":"decision","session":"{session}","call":{call},"tool":"{tool}","arguments":"{{}}",
                "session_taint":"private","decision":{decision},"labels":null,"detail":"{detail}","generation":1,
                "confinement":{}}}"#,
            if measured { full.as_str() } else { "null" }
        )
    };
    let end = |of: u64, session: &str, rest: &str| {
        format!(
            r#"{{"type":"outcome","of":{of},"session":"{session}","class":"private","untrusted":true,
                "truncated":false,"bytes":5,"usage":null,{rest}}}"#
        )
    };
    let allowed = r#"{"outcome":"allowed","grant":"notes-read"}"#;
    let denied = r#"{"outcome":"denied","reason":"no_grant","grant":null}"#;
    let entries = [
        r#"{"type":"policy","generation":1,"files":{}}"#.to_owned(),
        format!(
            r#"{{"type":"role","role":"brokerd","pid":77,"event":{{"state":"started","confinement":{full}}}}}"#
        ),
        r#"{"type":"session","session":"s-1","event":"opened","by":"bxctl"}"#.to_owned(),
        call("s-1", 1, "fs_read", allowed, true, ""),
        end(
            3,
            "s-1",
            r#""status":"result","cause":"exited","exit":{"code":0}"#,
        ),
        call(
            "s-1",
            2,
            "fs_read",
            denied,
            false,
            "/etc is not granted\\u001b",
        ),
        r#"{"type":"session","session":"s-2","event":"opened","by":"bxctl"}"#.to_owned(),
        call("s-2", 1, "fs_write", allowed, true, ""),
        call("s-2", 2, "fs_list", allowed, true, ""),
        end(
            7,
            "s-2",
            r#""status":"failed","cause":"timeout","exit":{"signal":9}"#,
        ),
        r#"{"type":"denials","session":"s-2","tool":"fs_read","reason":"no_grant","count":40,
            "first":"2026-09-17T08:00:00.000Z","last":"2026-09-17T08:00:30.000Z"}"#
            .to_owned(),
        format!(
            r#"{{"type":"recovery","file":"2026-09-17.jsonl","offset":10,"length":3,"sha256":"{}"}}"#,
            Hash32::ZERO
        ),
    ];
    entries
        .iter()
        .enumerate()
        .map(|(seq, entry)| {
            let text = format!(
                r#"{{"seq":{seq},"time":"2026-09-17T08:{seq:02}:00.000Z","prev":"{}","entry":{entry}}}"#,
                Hash32::ZERO
            );
            serde_json::from_str(&text).unwrap()
        })
        .collect()
}
