//! The log of runs: a decision before each program, an outcome after it, and runs at the same time each in a home of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use ledger::{Paths, Report};
use serde_json::Value;

use crate::place::{Who, places};

/// Every line of the log in a home, which must be sound.
pub(crate) fn lines(home: &Path) -> Vec<Value> {
    let paths = Paths {
        audit: home.join("audit"),
        anchor: home.join("anchor"),
    };
    let report = ledger::verify(&paths).unwrap();
    assert!(matches!(report, Report::Sound(_)), "{report:?}");
    let mut days: Vec<_> = fs::read_dir(&paths.audit)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    days.sort();
    let texts = days.iter().map(|day| fs::read_to_string(day).unwrap());
    let all: String = texts.collect();
    all.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_run_is_recorded_before_it_begins_and_after_it_ends() {
    for place in places("a_run_is_recorded_before_it_begins") {
        // The program reads the log itself through its standard input, which is handed to it: its record is there.
        place.run(&[], &["true"]);
        let before = lines(&place.home());
        let day = fs::read_dir(place.home().join("audit"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .unwrap();
        let mut command = place.command(&["--allow", "env:NONE,io"]);
        command.args(["grep", "-c", "\"env:NONE,io\\|env:NONE"]);
        let output = command
            .stdin(Stdio::from(fs::File::open(day).unwrap()))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "1\n");

        let all = lines(&place.home());
        let new: Vec<_> = all[before.len()..]
            .iter()
            .map(|line| &line["entry"])
            .collect();
        let kinds: Vec<_> = new
            .iter()
            .map(|entry| entry["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["session", "decision", "outcome", "session"]);
        let decision = new[1];
        assert_eq!(decision["tool"], "run");
        let said: Value = serde_json::from_str(decision["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(said["allow"], "env:NONE,io");
        assert_eq!(said["profile"], "tools/base");
        assert_eq!(said["program"][0], "/usr/bin/grep");
        assert!(decision["confinement"]["level"].is_string());
        assert_eq!(new[2]["status"], "result");
        assert_eq!(new[2]["of"], all[before.len() + 1]["seq"]);
    }
}

#[test]
fn a_refused_run_is_recorded_with_its_reason() {
    for place in places("a_refused_run_is_recorded_with_its_reason") {
        if place.who == Who::Root {
            // Root is refused nothing here that is known before the launch.
            continue;
        }
        let output = place.run(&["--confinement", "full"], &["true"]);
        assert_eq!(output.status.code(), Some(125));
        let all = lines(&place.home());
        let denied = all
            .iter()
            .find(|line| line["entry"]["type"] == "decision")
            .unwrap();
        let decision = &denied["entry"]["decision"];
        assert_eq!(decision["reason"], "confinement_too_weak", "{denied}");
    }
}

#[test]
fn runs_at_the_same_time_have_a_home_each() {
    for place in places("runs_at_the_same_time_have_a_home_each") {
        if place.who == Who::Root {
            // Root's homes would be the host's own.
            continue;
        }
        let children: Vec<_> = (0..6)
            .map(|number: u8| {
                let mut command = place.command(&[]);
                command.args(["sh", "-c", &format!("read line; exit {number}")]);
                command
                    .stdin(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let homes = || {
            let entries = fs::read_dir(place.path("state/boxmaker-run"));
            let begun = |home: &Path| {
                fs::read_dir(home.join("audit")).is_ok_and(|mut days| {
                    days.any(|day| {
                        fs::read_to_string(day.unwrap().path())
                            .is_ok_and(|text| text.contains("\"decision\""))
                    })
                })
            };
            let entries = entries.into_iter().flatten();
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|home| begun(home))
                .collect::<BTreeSet<_>>()
        };
        boxmaker_tests::system::processes::until("all six run", || homes().len() == 6);
        for (number, mut child) in (0..).zip(children) {
            drop(child.stdin.take());
            assert_eq!(child.wait().unwrap().code(), Some(number));
        }
        for home in homes() {
            let all = lines(&home);
            assert_eq!(
                all.iter()
                    .filter(|line| line["entry"]["type"] == "outcome")
                    .count(),
                1
            );
        }
    }
}
