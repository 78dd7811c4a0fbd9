//! `bxctl audit verify` and `bxctl audit show` on a log that the ledger wrote.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ledger::{Ledger, Paths};
use proto::{Entry, Timestamp};

use crate::host::{Ended, Host};

/// 2026-09-17T08:00:00.000Z; each record is a minute later.
const START: u64 = 1_789_632_000_000;

fn entries() -> Vec<Entry> {
    let decision = |session: &str, call: u64, tool: &str, decision: &str| {
        format!(
            r#"{{"type":"decision","session":"{session}","call":{call},"tool":"{tool}","arguments":"{{}}",
                "session_taint":"private","decision":{decision},"labels":null,"detail":"","generation":1,
                "confinement":null}}"#
        )
    };
    let outcome = r#"{"type":"outcome","of":1,"session":"s-1","class":"private","untrusted":true,"truncated":false,
        "bytes":5,"usage":null,"status":"result","cause":"exited","exit":{"code":0}}"#;
    let allowed = r#"{"outcome":"allowed","grant":"notes"}"#;
    let denied = r#"{"outcome":"denied","reason":"no_grant","grant":null}"#;
    [
        r#"{"type":"session","session":"s-1","event":"opened","by":"bxctl"}"#.to_owned(),
        decision("s-1", 1, "fs_read", allowed),
        decision("s-2", 1, "evil\\u001b[31m\\u202e", denied),
        outcome.to_owned(),
    ]
    .iter()
    .map(|text| serde_json::from_str(text).unwrap())
    .collect()
}

fn paths(host: &Host) -> Paths {
    Paths {
        audit: host.home().join("audit"),
        anchor: host.home().join("anchor"),
    }
}

fn logged() -> Host {
    let host = Host::new();
    let minute = Arc::new(AtomicU64::new(0));
    let hand = Arc::clone(&minute);
    let clock = move || Timestamp::from_millis(START + 60_000 * hand.load(Ordering::Relaxed));
    let (ledger, _) = Ledger::open(&paths(&host), Box::new(clock)).unwrap();
    for entry in entries() {
        ledger.append_durable(entry).unwrap();
        minute.fetch_add(1, Ordering::Relaxed);
    }
    host
}

fn day_file(host: &Host) -> PathBuf {
    paths(host).audit.join("2026-09-17.jsonl")
}

fn shown(host: &Host, words: &[&str]) -> Ended {
    host.run(&[&["audit", "show"], words].concat())
}

fn seqs(ended: &Ended) -> Vec<u64> {
    let lines = ended.out.lines();
    lines
        .map(|line| serde_json::from_str::<proto::Line>(line).unwrap().seq)
        .collect()
}

#[test]
fn a_sound_log_is_status_0_with_head_and_anchor() {
    let host = logged();
    let ended = host.run(&["audit", "verify"]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{ended:?}");
    assert!(
        ended
            .out
            .starts_with("sound: 4 records in 1 file\nhead    seq 3, sha256 "),
        "{ended:?}"
    );
    assert!(
        ended.out.contains("anchor  names seq 3, the head\n"),
        "{ended:?}"
    );
    let json = host.run(&["audit", "verify", "--json"]).json();
    assert_eq!(
        (&json["verdict"], &json["lines"]),
        (&"sound".into(), &4.into())
    );
    let anchor = fs::read_to_string(paths(&host).anchor).unwrap();
    let last = anchor.lines().last().unwrap();
    assert_eq!(last, format!("3 {}", json["head"].as_str().unwrap()));
}

#[test]
fn a_changed_line_is_status_1_and_named() {
    let host = logged();
    let text = fs::read_to_string(day_file(&host)).unwrap();
    fs::write(day_file(&host), text.replace("fs_read", "fs_rade")).unwrap();
    let ended = host.run(&["audit", "verify"]);
    assert_eq!((ended.status, ended.err.as_str()), (1, ""), "{ended:?}");
    let offset = text.find('\n').unwrap() + 1;
    let place = format!("broken at 2026-09-17.jsonl:2 (byte {offset}, seq 1): ");
    assert!(ended.out.starts_with(&place), "{ended:?}");
    let json = host.run(&["audit", "verify", "--json"]);
    assert_eq!(
        (json.status, &json.json()["verdict"]),
        (1, &"broken".into())
    );
    assert_eq!(
        (&json.json()["line"], &json.json()["offset"]),
        (&2.into(), &offset.into())
    );
}

#[test]
fn a_log_that_is_not_there_is_status_2_and_the_home_is_named() {
    let host = Host::new();
    fs::remove_dir(paths(&host).audit).unwrap();
    for command in ["verify", "show"] {
        let ended = host.run(&["audit", command]);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{ended:?}");
        assert!(
            ended.err.contains("there is no audit log") && ended.err.contains("--home DIR"),
            "{ended:?}"
        );
    }
}

#[test]
fn a_log_that_cannot_be_read_is_status_2() {
    let host = logged();
    fs::remove_file(day_file(&host)).unwrap();
    fs::create_dir(day_file(&host)).unwrap();
    for command in ["verify", "show"] {
        let ended = host.run(&["audit", command]);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{ended:?}");
        assert!(ended.err.contains("2026-09-17.jsonl"), "{ended:?}");
    }
}

#[test]
fn the_table_joins_a_call_with_its_end_and_shows_controls() {
    let ended = shown(&logged(), &[]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{ended:?}");
    assert!(
        ended.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ended.out
    );
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines[1], "2026-09-17 UTC");
    assert_eq!(lines[2], "  0  08:00:00  s-1: session opened by bxctl");
    let call: Vec<&str> = lines[3].split_whitespace().collect();
    assert_eq!(
        call,
        [
            "1", "08:01:00", "1", "fs_read", "allowed", "notes", "-", "result"
        ]
    );
    assert!(!ended.out.contains(['\x1b', '\u{202e}']), "{}", ended.out);
    assert!(ended.out.contains("\\x1b"), "{}", ended.out);
}

#[test]
fn json_is_the_stored_lines_byte_for_byte() {
    let host = logged();
    let stored = fs::read_to_string(day_file(&host)).unwrap();
    assert_eq!(shown(&host, &["--json"]).out, stored);
    let chosen = shown(&host, &["--json", "--tool", "fs_read"]);
    let expected: Vec<&str> = stored
        .lines()
        .enumerate()
        .filter(|(seq, _)| matches!(seq, 1 | 3))
        .map(|(_, line)| line)
        .collect();
    assert_eq!(chosen.out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn filters_choose_by_session_outcome_time_and_number() {
    let host = logged();
    for (words, expected) in [
        (&["--session", "s-2"][..], &[2][..]),
        (&["--outcome", "allowed"], &[1, 3]),
        (&["--outcome", "denied"], &[2]),
        (&["--outcome", "result"], &[1, 3]),
        (&["--outcome", "failed"], &[]),
        (&["--since", "2026-09-17T08:02"], &[2]),
        (&["--until", "2026-09-17T08:01:00.000Z"], &[0]),
        (&["--limit", "2"], &[1, 2, 3]),
    ] {
        let ended = shown(&host, &[&["--json"], words].concat());
        assert_eq!(
            (ended.status, seqs(&ended)),
            (0, expected.to_vec()),
            "{words:?}"
        );
    }
    assert!(
        shown(&host, &["--outcome", "failed"])
            .err
            .contains("no record matches")
    );
}

#[test]
fn a_time_or_outcome_that_is_none_is_status_2() {
    let host = logged();
    for words in [
        ["--since", "soon"],
        ["--outcome", "maybe"],
        ["--limit", "0"],
    ] {
        let ended = shown(&host, &words);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{ended:?}");
    }
}

#[test]
fn a_broken_log_is_shown_up_to_the_break_and_is_status_1() {
    let host = logged();
    let text = fs::read_to_string(day_file(&host)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(
        day_file(&host),
        format!("{}\n{}\n{}\n", lines[0], lines[1], lines[3]),
    )
    .unwrap();
    let ended = shown(&host, &["--json"]);
    assert_eq!(
        (ended.status, ended.out.lines().next()),
        (1, Some(lines[0])),
        "{ended:?}"
    );
    assert!(
        ended
            .err
            .contains("the audit log is broken at 2026-09-17.jsonl:3"),
        "{ended:?}"
    );
}
