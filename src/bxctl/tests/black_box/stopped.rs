//! `bxctl status` where nobody answers: what the log, the anchor and the configuration say.

use std::fs;
use std::time::SystemTime;

use ledger::{Ledger, Paths};
use proto::{Entry, Timestamp};

use crate::host::{Host, text};

const GRANT: &str = "tool = \"fs_read\"\nmode = \"deny\"\n";

fn paths(host: &Host) -> Paths {
    Paths {
        audit: host.home().join("audit"),
        anchor: host.home().join("anchor"),
    }
}

/// A home whose supervisor loaded one grant, started brokerd, and ended three minutes ago.
fn stopped() -> Host {
    let host = Host::new();
    host.file("grants/notes.toml", GRANT);
    let then = Timestamp::from(SystemTime::now()).as_millis() - 180_000;
    let clock = move || Timestamp::from_millis(then);
    let (ledger, _) = Ledger::open(&paths(&host), Box::new(clock)).unwrap();
    let files = ipc::Files::read(&host.config()).unwrap().0;
    let loaded = Entry::Policy {
        generation: 1,
        files: policy::hashes(&files),
    };
    ledger.append_durable(loaded).unwrap();
    let ended =
        r#"{"type":"role","role":"brokerd","pid":77,"event":{"state":"ended","exit":{"code":0}}}"#;
    let ended: Entry = serde_json::from_str(ended).unwrap();
    ledger.append_durable(ended).unwrap();
    host
}

#[test]
fn what_the_files_say_is_told_and_the_status_is_1() {
    let host = stopped();
    let ended = host.run(&["status"]);
    assert_eq!((ended.status, ended.err.as_str()), (1, ""), "{ended:?}");
    let socket = host.socket();
    let want = format!(
        "supervisor  does not run\n\
         \x20           there is no socket {}\n\
         \x20           `boxmaker up` starts it; --home DIR or BOXMAKER_HOME names another home\n\
         \x20           last started 3 min ago\n\
         \x20           brokerd (pid 77) ended with status 0, 3 min ago\n\
         audit log   sound; 2 records, the last 3 min ago\n",
        text(&socket)
    );
    assert!(ended.out.starts_with(&want), "{}", ended.out);
    assert!(
        ended.out.ends_with("; the anchor names the last\n"),
        "{}",
        ended.out
    );
    let bytes = fs::read_dir(paths(&host).audit).unwrap();
    let bytes: u64 = bytes
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_str().unwrap().ends_with(".jsonl"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    let ended = host.run(&["status", "--json"]);
    assert_eq!(ended.status, 1);
    let json = ended.json();
    assert_eq!(json["state"], "stopped");
    assert_eq!(json["changed"], serde_json::json!([]));
    assert_eq!(json["roles"][0]["event"]["exit"]["code"], 0);
    assert_eq!(
        (&json["audit"]["next"], &json["audit"]["anchored"]),
        (&2.into(), &2.into())
    );
    assert_eq!(json["audit"]["bytes"], bytes);
    assert_eq!(json["audit"]["wrong"], serde_json::Value::Null);
}

#[test]
fn files_that_changed_since_the_last_start_are_named() {
    let host = stopped();
    host.file("grants/new.toml", GRANT);
    let ended = host.run(&["status"]);
    assert!(
        ended.out.contains(" changed since: grants/new.toml\n"),
        "{}",
        ended.out
    );
    fs::remove_file(host.config().join("grants/new.toml")).unwrap();
    fs::remove_file(host.config().join("grants/notes.toml")).unwrap();
    let json = host.run(&["status", "--json"]).json();
    assert_eq!(json["changed"], serde_json::json!(["grants/notes.toml"]));
}

#[test]
fn a_broken_log_is_said_to_be_broken() {
    let host = stopped();
    let day = fs::read_dir(paths(&host).audit)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .unwrap();
    let stored = fs::read_to_string(&day).unwrap();
    fs::write(&day, stored.replacen("notes", "other", 1)).unwrap();
    let ended = host.run(&["status"]);
    assert_eq!(ended.status, 1);
    assert!(
        ended.out.contains("            broken at "),
        "{}",
        ended.out
    );
    assert!(!ended.out.contains("sound"), "{}", ended.out);
}

#[test]
fn a_socket_that_a_crash_left_and_a_home_without_a_log_are_told_apart() {
    let host = Host::new();
    drop(std::os::unix::net::UnixListener::bind(host.socket()).unwrap());
    let ended = host.run(&["status"]);
    let nobody = format!("nobody listens at {}\n", text(&host.socket()));
    assert!(ended.out.contains(&nobody), "{}", ended.out);
    let ended = host.run(&["status", "--home", "/nonexistent"]);
    assert_eq!(ended.status, 1);
    assert!(
        ended
            .out
            .contains("no socket /nonexistent/run/bxctl/broker.sock\n")
            && ended.out.contains("/nonexistent/audit is not there\n"),
        "{}",
        ended.out
    );
}

#[test]
fn a_brokerd_that_closes_the_line_is_told_from_a_supervisor_that_is_gone() {
    let host = stopped();
    let _seen = host.broker(|_| Vec::new());
    let ended = host.run(&["status"]);
    assert_eq!(ended.status, 1);
    assert!(
        ended
            .out
            .starts_with("supervisor  runs, but brokerd does not answer\n"),
        "{}",
        ended.out
    );
    assert_eq!(host.run(&["status", "--json"]).json()["state"], "silent");
}
