//! `bxctl sessions`, `bxctl status`, the help and the usage errors.

use proto::Message;

use crate::host::{Host, message};

const SESSIONS: &str = r#"{"sessions": [{"session": "s-2", "open": true, "taint": "secret", "untrusted": true,
    "calls": 12, "denied": 3, "last": "2020-01-01T08:02:00.000Z"}]}"#;
const STATUS: &str = r#"{"since": "2020-01-01T06:00:00.000Z", "generation": 2, "changed": [], "questions": 0, "sandboxes": 1, "roles": [{"role":
    "brokerd", "pid": 4711, "since": "2020-01-01T08:00:00.000Z", "restarts": 1, "level": "full"}], "audit": {"next":
    42, "last": null, "anchored": 0, "bytes": 0, "max_bytes": 8589934592, "full": false,
    "closed": null}}"#;

fn host() -> Host {
    let host = Host::new();
    let _seen = host.broker(|asked| {
        vec![match asked {
            Message::SessionList(_) => message("session_list_reply", SESSIONS),
            Message::Status(_) => message("status_reply", STATUS),
            other => panic!("nobody asks {}", other.kind()),
        }]
    });
    host
}

#[test]
fn sessions_are_a_table_for_people_and_exact_for_programs() {
    let ended = host().run(&["sessions"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert_eq!(
        ended.out,
        "session  state  taint   untrusted  calls  denied  last\n\
         s-2      open   secret  yes           12       3  2020-01-01\n"
    );
    let json = host().run(&["--json", "sessions"]).json();
    assert_eq!(
        json,
        serde_json::from_str::<serde_json::Value>(SESSIONS).unwrap()
    );
}

#[test]
fn status_is_told_in_words_and_exact_for_programs() {
    let ended = host().run(&["status"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(ended.out.contains("brokerd  4711  full"), "{ended:?}");
    let json = host().run(&["status", "--json"]).json();
    let mut want: serde_json::Value = serde_json::from_str(STATUS).unwrap();
    want["state"] = "running".into();
    assert_eq!(json, want);
}

#[test]
fn an_answer_to_another_question_is_refused() {
    let host = Host::new();
    let _seen = host.broker(|_| vec![message("status_reply", STATUS)]);
    let ended = host.run(&["sessions"]);
    assert_eq!(ended.status, 1);
    assert!(
        ended
            .err
            .contains("answered session_list with status_reply"),
        "{ended:?}"
    );
}

#[test]
fn help_shows_an_example_and_a_wrong_word_is_status_2() {
    let host = Host::new();
    let help = host.run(&["--help"]);
    assert_eq!((help.status, help.err.as_str()), (0, ""));
    assert!(
        help.out.contains("bxctl call fs_read path=/srv/a.md"),
        "{help:?}"
    );
    for words in [
        &["cal"][..],
        &["call"],
        &["call", "x", "--session", "UPPER"],
        &["audit"],
        &[],
    ] {
        let ended = host.run(words);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{words:?}");
        assert!(!ended.err.is_empty());
    }
}

#[test]
fn an_option_overrides_the_environment() {
    let host = host();
    let empty = tempfile::tempdir().unwrap();
    let ended = host.run(&["status", "--home", crate::host::text(empty.path())]);
    assert_eq!(ended.status, 1);
    assert!(
        ended.out.contains(crate::host::text(empty.path())),
        "{ended:?}"
    );
    assert_eq!(host.run(&["status"]).status, 0);
}
