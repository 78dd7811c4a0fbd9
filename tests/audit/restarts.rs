//! How often `boxmaker up` starts brokerd again, as `[restart]` of config.toml says.

use std::fs;
use std::process::Command;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::processes::until;
use ledger::Entry;
use proto::audit::RoleEvent;
use rustix::process::{Pid, Signal, kill_process};

use crate::log::Home;
use crate::service::Up;
use crate::up::up;

/// A supervisor whose configuration holds `[restart]` with these lines.
fn with_restart(home: &Home, lines: &str) -> Command {
    let command = up(home);
    let config = home.home().with_file_name("config/config.toml");
    let waits = "backoff_first = \"1ms\"\nbackoff_max = \"2ms\"";
    fs::write(config, format!("[restart]\n{waits}\n{lines}\n")).unwrap();
    command
}

/// What became of brokerd, in its order, each with its pid.
fn events(home: &Home) -> Vec<(Option<u32>, RoleEvent)> {
    let lines = ledger::read(&home.paths()).map(Result::unwrap);
    let pick = |entry| match entry {
        Entry::Role { pid, event, .. } => Some((pid, *event)),
        _ => None,
    };
    lines.filter_map(|line| pick(line.entry)).collect()
}

/// Kills the brokerd that was started last.
fn kill_brokerd(home: &Home) {
    let mut found = None;
    until("a brokerd runs", || {
        found = match events(home).pop() {
            Some((pid, RoleEvent::Started { .. })) => pid,
            _ => None,
        };
        found.is_some()
    });
    let pid = Pid::from_raw(found.unwrap().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn the_third_end_of_brokerd_is_the_last_where_give_up_is_three() {
    if skipped_without_root("the_third_end_of_brokerd_is_the_last") {
        return;
    }
    let home = Home::empty();
    let mut system = Up::start(with_restart(&home, "give_up = 3"));
    for end in 0..3 {
        if end > 0 {
            system.wait_up();
        }
        kill_brokerd(&home);
    }
    let output = system.end();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("brokerd ended 3 times within 300s and is given up"),
        "{told}"
    );
    let last = events(&home).pop().unwrap();
    assert_eq!(last, (None, RoleEvent::GivenUp {}));
    home.sound();
}

#[test]
fn brokerd_goes_on_after_three_ends_where_give_up_is_four() {
    if skipped_without_root("brokerd_goes_on_after_three_ends") {
        return;
    }
    let home = Home::empty();
    let mut system = Up::start(with_restart(&home, "give_up = 4"));
    for _ in 0..3 {
        kill_brokerd(&home);
        system.wait_up();
    }
    system.signal(Signal::TERM);
    let output = system.end();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let starts = events(&home)
        .into_iter()
        .filter(|(_, event)| matches!(event, RoleEvent::Started { .. }));
    assert_eq!(starts.count(), 4);
    home.sound();
}
