//! How a run ends: with the program's status, by the clock, by a signal; and that nothing is left.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use boxmaker_tests::system::processes::{Process, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::place::{Ended, Who, places};

/// With a profile that lets a shell start `sleep` and `setsid`.
const SLEEPER: [&str; 2] = ["--profile", "tools/sleeper"];

#[test]
fn the_status_is_the_programs_or_says_why_there_is_none() {
    for place in places("the_status_is_the_programs") {
        let file = place.show("files/note");
        for (options, words, code, says) in [
            (&[] as &[&str], &["true"] as &[&str], 0, ""),
            (&[], &["sh", "-c", "exit 7"], 7, ""),
            (&[], &["sh", "-c", "kill -TERM $$"], 143, ""),
            (
                &["--timeout", "500ms"],
                &["sleep", "100"],
                124,
                "ended after 500ms",
            ),
            (&[], &["no-such-program"], 127, "no such program in PATH"),
            (&[], &["./no-such-program"], 127, "no such program"),
            (&[], &[&file], 126, "cannot be executed"),
            (
                &["--profile", "tools/none"],
                &["true"],
                125,
                "there is no profile",
            ),
            (
                &["--profile", "roles/brokerd"],
                &["true"],
                125,
                "there is no profile",
            ),
        ] {
            let ended = Ended::of(place.run(options, words));
            assert_eq!(ended.code, Some(code), "{words:?}: {ended:?}");
            assert!(ended.err.contains(says), "{words:?}: {ended:?}");
        }
    }
}

#[test]
fn a_level_that_is_not_reached_is_refused_and_said_otherwise() {
    for place in places("a_level_that_is_not_reached_is_refused") {
        let ended = Ended::of(place.run(&[], &["echo", "run"]));
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(0), "run\n"),
            "{ended:?}"
        );
        let full = Ended::of(place.run(&["--confinement", "full"], &["echo", "run"]));
        match place.who {
            // Where limits cannot be had it is refused as well.
            Who::Root if ended.err.contains("confinement full") => {
                assert_eq!(
                    (full.code, full.out.as_str()),
                    (Some(0), "run\n"),
                    "{full:?}"
                );
            }
            _ => {
                assert!(ended.err.contains("confinement partial"), "{ended:?}");
                assert!(ended.err.contains("gaps: uid"), "{ended:?}");
                assert_eq!((full.code, full.out.as_str()), (Some(125), ""), "{full:?}");
                assert!(
                    full.err.contains("level full is required and partial"),
                    "{full:?}"
                );
                assert!(full.err.contains("--confinement partial"), "{full:?}");
            }
        }
    }
}

/// What the program starts is gone with it, whoever ends it.
#[test]
fn a_signal_ends_the_program_and_all_that_it_started_and_then_boxmaker() {
    for place in places("a_signal_ends_the_program") {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            let script =
                "trap '' INT TERM HUP; (setsid sleep 1000 &); echo up; while :; do sleep 1; done";
            let mut command = place.command(&SLEEPER);
            command.args(["sh", "-c", script]);
            let mut child = command
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let mut out = BufReader::new(child.stdout.take().unwrap());
            out.read_line(&mut line).unwrap();
            assert_eq!(line, "up\n");
            let process = Process::of(child.id()).unwrap();
            until("all of it runs", || process.descendants().len() >= 3);
            let inside = process.descendants();
            kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
            let status = child.wait().unwrap();
            assert_eq!(status.signal(), Some(signal as i32), "{status:?}");
            until("everything in it is gone", || {
                !inside.iter().any(Process::lives)
            });
        }
    }
}

#[test]
fn a_run_that_is_killed_takes_its_program_along() {
    for place in places("a_run_that_is_killed_takes_its_program_along") {
        let mut command = place.command(&SLEEPER);
        command.args(["sh", "-c", "(setsid sleep 1000 &); echo up; sleep 1000"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let process = Process::of(child.id()).unwrap();
        until("all of it runs", || process.descendants().len() >= 3);
        let inside = process.descendants();
        child.kill().unwrap();
        child.wait().unwrap();
        until("everything in it is gone", || {
            !inside.iter().any(Process::lives)
        });
        // The next run has the home to itself, and says in the log that nobody saw the end of this one.
        let ended = Ended::of(place.run(&[], &["true"]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let unknown = crate::log::lines(&place.home())
            .into_iter()
            .filter(|line| line["entry"]["status"] == "unknown");
        assert_eq!(unknown.count(), 1);
    }
}

#[test]
fn json_is_one_object_on_standard_error() {
    for place in places("json_is_one_object_on_standard_error") {
        let told = |options: &[&str], words: &[&str]| -> (Option<i32>, Value) {
            let ended = Ended::of(place.run(options, words));
            assert_eq!(ended.out, "");
            (ended.code, serde_json::from_str(&ended.err).unwrap())
        };
        let (code, object) = told(&["--json"], &["sh", "-c", "exit 3"]);
        assert_eq!((code, &object["status"]), (Some(3), &Value::from(3)));
        assert_eq!(object["cause"], "exited");
        assert!(object["confinement"]["layers"].as_array().unwrap().len() > 10);
        assert!(object["usage"]["wall_ms"].is_u64());
        let (code, object) = told(&["--json", "--allow", "fs:read:missing"], &["true"]);
        assert_eq!((code, &object["status"]), (Some(125), &Value::from(125)));
        assert!(object["error"].as_str().unwrap().contains("make it first"));
    }
}
