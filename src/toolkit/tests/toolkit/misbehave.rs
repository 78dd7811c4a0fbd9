//! `boxmaker-misbehave` outside any sandbox: its acts succeed where nothing forbids them, and say why where something
//! does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::run::{How, MISBEHAVE, NOBODY, binary, directory, give, names, pid, root};

/// How long, in milliseconds, a process lives that a failing test leaves behind: it holds the test's standard error open,
/// and whoever reads that waits for it.
const LEFT_BEHIND: u64 = 60_000;

fn misbehave(arguments: &Value, how: &How) -> Vec<Value> {
    let out = binary(MISBEHAVE, &[], arguments.to_string().as_bytes(), how).result();
    out.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Outcome by act and object.
fn outcomes(lines: &[Value]) -> BTreeMap<(String, String), String> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    lines
        .iter()
        .map(|line| {
            (
                (text(line, "act"), text(line, "object")),
                text(line, "outcome"),
            )
        })
        .collect()
}

fn here(arguments: &Value) -> Vec<Value> {
    misbehave(arguments, &How::default())
}

#[test]
fn harmless_acts_succeed_for_everybody() {
    let home = directory();
    let path = home.path().join("mark");
    let acts = [
        "touch", "append", "append", "read", "socket", "ptrace", "fork", "set_id",
    ];
    let lines = here(&json!({"acts": acts, "path": path, "token": "t", "count": 3}));
    for ((act, object), outcome) in outcomes(&lines) {
        assert_eq!(outcome, "ok", "{act} {object}");
    }
    let detail =
        |act: &str| lines.iter().find(|line| line["act"] == act).unwrap()["detail"].clone();
    assert_eq!(detail("read"), "t\nt\n");
    assert_eq!(detail("fork"), 3);
    assert_eq!(detail("set_id"), "6755");
    assert_eq!(names(home.path()), ["mark"]);
}

#[test]
fn acts_on_the_system_succeed_for_root_and_are_refused_to_another_user_by_name() {
    if !root("reading /etc/shadow") {
        return;
    }
    let arguments = json!({"acts": ["shadow", "environ", "root_write", "kill"]});
    let as_root = outcomes(&here(&arguments));
    let as_other = outcomes(&misbehave(
        &arguments,
        &How {
            uid: Some(NOBODY),
            ..How::default()
        },
    ));
    let find = |from: &BTreeMap<(String, String), String>, act: &str| {
        from.iter()
            .find(|((name, _), _)| name == act)
            .unwrap()
            .1
            .clone()
    };
    // Not every pid 1 lets root look at it: one in an outer user namespace does not.
    let environ = match fs::read("/proc/1/environ") {
        Ok(_) => "ok",
        Err(_) => "EACCES",
    };
    for (act, success, refusal) in [
        ("shadow", "ok", "EACCES"),
        ("environ", environ, "EACCES"),
        ("root_write", "ok", "EACCES"),
        ("kill", "ok", "EPERM"),
    ] {
        assert_eq!(find(&as_root, act), success, "{act}");
        assert_eq!(find(&as_other, act), refusal, "{act}");
    }
    assert!(
        names("/".as_ref())
            .iter()
            .all(|name| !name.starts_with("boxmaker-misbehave"))
    );
}

#[test]
fn children_are_counted_until_the_limit_refuses_one() {
    if !root("a limit on the processes of another user") {
        return;
    }
    let how = How {
        uid: Some(NOBODY + 7),
        ..How::default()
    };
    let run = |words: &[&str]| {
        let out = binary(
            words[0],
            &words[1..],
            br#"{"acts":["fork"],"count":20}"#,
            &how,
        )
        .result();
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let limited = run(&["prlimit", "--nproc=5:5", MISBEHAVE]);
    assert_eq!(
        (&limited["outcome"], &limited["detail"]),
        (&json!("EAGAIN"), &json!(4))
    );
    let free = run(&[MISBEHAVE]);
    assert_eq!(
        (&free["outcome"], &free["detail"]),
        (&json!("ok"), &json!(20))
    );
}

#[test]
fn a_flood_has_the_size_that_was_asked_for() {
    let out = binary(
        MISBEHAVE,
        &[],
        br#"{"acts":["flood"],"bytes":1000001}"#,
        &How::default(),
    )
    .result();
    let (flood, last) = out.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(flood.len(), 1_000_001);
    assert!(last.contains("\"outcome\":\"ok\""), "{last}");
}

#[test]
fn a_process_that_ignores_sigterm_lives_on_and_one_that_sleeps_does_not() {
    for (act, dies) in [("sleep", true), ("ignore_term", false)] {
        let mut child = Command::new(MISBEHAVE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let arguments = json!({"acts": [act], "ms": LEFT_BEHIND});
        child
            .stdin
            .take()
            .unwrap()
            .write_all(arguments.to_string().as_bytes())
            .unwrap();
        // The line is written when the signal is blocked and the sleep begins.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("\"object\":\"begin\"")));
        kill_process(pid(&child), Signal::TERM).unwrap();
        if !dies {
            // The pending signal is seen in /proc, so it has arrived and is not acted on.
            let status = format!("/proc/{}/status", child.id());
            let pending = || {
                fs::read_to_string(&status)
                    .unwrap()
                    .lines()
                    .any(|line| line == "ShdPnd:\t0000000000004000")
            };
            wait_until("the signal is pending", pending);
            assert!(child.try_wait().unwrap().is_none());
            kill_process(pid(&child), Signal::KILL).unwrap();
        }
        let signal = std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap());
        assert_eq!(signal, Some(if dies { 15 } else { 9 }));
    }
}

#[test]
fn an_orphan_outlives_its_parent_in_a_session_of_its_own() {
    let mut child = Command::new(MISBEHAVE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(
            json!({"acts": ["orphan"], "ms": LEFT_BEHIND})
                .to_string()
                .as_bytes(),
        )
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(child.wait().unwrap().success());
    let line: Value = serde_json::from_str(&line).unwrap();
    let orphan = i32::try_from(line["detail"].as_i64().unwrap()).unwrap();
    let orphan = rustix::process::Pid::from_raw(orphan).unwrap();
    wait_until("the orphan has its own session", || {
        session(orphan) == orphan.as_raw_nonzero().get()
    });
    assert!(test_kill_process(orphan).is_ok());
    kill_process(orphan, Signal::KILL).unwrap();
}

#[test]
fn touch_by_word_happens_before_any_input_is_read() {
    let home = directory();
    let path = home.path().join("mark");
    let mut child = Command::new(MISBEHAVE)
        .arg("--touch")
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert!(child.stdin.is_some());
    wait_until("the file is there", || path.exists());
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"{\"acts\":[]}")
        .unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_refused_touch_is_told_and_a_permitted_one_makes_the_file() {
    if !root("writing as another user") {
        return;
    }
    let home = directory();
    let path = home.path().join("mark");
    let arguments = json!({"acts": ["touch"], "path": path});
    let how = How {
        uid: Some(NOBODY),
        ..How::default()
    };
    assert_eq!(misbehave(&arguments, &how)[0]["outcome"], "EACCES");
    assert!(!path.exists());
    give(home.path(), NOBODY, 0o755);
    assert_eq!(misbehave(&arguments, &how)[0]["outcome"], "ok");
    assert!(path.exists());
}

#[test]
fn inspect_tells_what_the_process_was_given() {
    let home = directory();
    let how = How {
        cwd: Some(home.path().to_owned()),
        limit: Some((Resource::Nofile, 77)),
        ..How::default()
    };
    let lines = misbehave(&json!({"acts": ["inspect"]}), &how);
    let seen = &lines[0]["detail"];
    let descriptors: BTreeSet<_> = seen["descriptors"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(descriptors, inheritable());
    assert!(
        seen["descriptors"]["0"]
            .as_str()
            .unwrap()
            .starts_with("pipe:")
    );
    assert_eq!(seen["cwd"], home.path().to_str().unwrap());
    assert_eq!(seen["limits"]["nofile"], json!([77, 77]));
    assert_eq!(seen["uids"][0], rustix::process::getuid().as_raw());
    assert_eq!(
        seen["hostname"],
        rustix::system::uname().nodename().to_str().unwrap()
    );
    assert_eq!(seen["environment"]["PATH"], std::env::var("PATH").unwrap());
    let own = seen["pid"].to_string();
    assert_eq!(seen["processes"][own], "boxmaker-misbeh");
    assert_eq!(seen["capabilities"]["CapEff"].as_str().unwrap().len(), 16);
    assert!(
        seen["mountinfo"]
            .as_array()
            .unwrap()
            .iter()
            .any(|line| line.as_str().unwrap().contains(" / / "))
    );
    assert!(seen["groups"].is_array() && seen["namespaces"]["mnt"].is_string());
}

#[test]
fn an_act_that_does_not_exist_is_refused_with_the_list() {
    let ran = binary(MISBEHAVE, &[], br#"{"acts":["dance"]}"#, &How::default());
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
    assert!(
        ran.err.contains("dance") && ran.err.contains("ignore_term"),
        "{}",
        ran.err
    );
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "not reached in 30 s: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The standard three, and what this process itself was left by whoever started it.
fn inheritable() -> BTreeSet<String> {
    let stays = |name: &String| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{name}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.is_some_and(|flags| u32::from_str_radix(flags.trim(), 8).unwrap() & 0o2_000_000 == 0)
    };
    let left = names("/proc/self/fd".as_ref()).into_iter().filter(stays);
    ["0", "1", "2"]
        .map(str::to_owned)
        .into_iter()
        .chain(left)
        .collect()
}

/// The session of a process as proc(5) gives it: 0 while its leader is outside this pid namespace.
fn session(process: rustix::process::Pid) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(3).unwrap().parse().unwrap()
}
