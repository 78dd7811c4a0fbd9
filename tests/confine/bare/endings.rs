//! The end of a bare sandbox: nobody outlives it, whoever is killed.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use boxmaker_tests::binaries::{skipped_without_root, skipped_without_user_namespaces};
use boxmaker_tests::plain::USER;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::Level;
use proto::audit::ExitStatus;

use crate::place::{Launched, Place, launched, running, sleep, until};

#[test]
fn nothing_is_left_of_whoever_leaves_session_group_and_parent() {
    if skipped_without_user_namespaces("nothing_is_left_of_whoever_leaves") {
        return;
    }
    let place = Place::new();
    let all = [2, 3, 4].map(sleep);
    let [one, two, three] = &all;
    let script = format!(
        "trap '' TERM HUP; (setsid sh -c '(setsid {one} &) ; exec {two}' &); ({three} &) ; sleep 0.2; echo started; exit 7"
    );
    let launched = place.launch(&script);
    assert_eq!(launched.stdout, "started\n", "{}", launched.stderr);
    assert_eq!(launched.exit, Some(ExitStatus::Code(7)));
    for words in &all {
        assert_eq!(running(words), [] as [i32; 0], "{words}");
    }
}

/// SIGTERM tells the stage of the end of the supervisor; to everybody inside it is what it is elsewhere.
#[test]
fn a_program_ends_at_the_signals_that_its_stage_waits_for() {
    if skipped_without_user_namespaces("a_program_ends_at_the_signals") {
        return;
    }
    let launched =
        Place::new().launch("sleep 300 & kill -TERM $!; wait $!; test $? = 143 && echo ended");
    assert_eq!(launched.stdout, "ended\n", "{}", launched.stderr);
}

#[test]
fn nobody_outruns_the_end_by_starting_another_and_ending() {
    if skipped_without_user_namespaces("nobody_outruns_the_end_by_starting") {
        return;
    }
    let place = Place::new();
    let hop = place.path("tree/hop");
    fs::write(
        &hop,
        format!("setsid sh {0} {1} &\n", hop.display(), std::process::id()),
    )
    .unwrap();
    place.give("tree/hop");
    let words = format!("sh {} {}", hop.display(), std::process::id());
    let launched = place.launch(&format!(
        "setsid {words} & setsid {words} & sleep 0.2; echo started"
    ));
    assert_eq!(launched.stdout, "started\n", "{}", launched.stderr);
    assert_eq!(launched.exit, Some(ExitStatus::Code(0)));
    assert_eq!(running(&words), [] as [i32; 0]);
}

#[test]
fn when_the_supervisor_is_killed_every_descendant_of_its_sandbox_ends() {
    if skipped_without_user_namespaces("when_the_supervisor_is_killed_every") {
        return;
    }
    let place = Place::new();
    let all = [5, 6].map(sleep);
    let script = format!("(setsid {} &); exec {}", all[0], all[1]);
    let mut launch = place.start(&script, &[&all[0], &all[1]]);
    launch.kill().unwrap();
    launch.wait().unwrap();
    for words in &all {
        until(words, || running(words).is_empty());
    }
}

#[test]
fn when_the_stage_is_killed_the_supervisor_finds_every_process_by_its_mark() {
    if skipped_without_user_namespaces("when_the_stage_is_killed_the") {
        return;
    }
    let place = Place::new();
    let all = [7, 8].map(sleep);
    let script = format!("(setsid {} &); exec {}", all[0], all[1]);
    let launch = place.start(&script, &[&all[0], &all[1]]);
    let stage = parent_of(running(&all[1])[0]);
    let line = fs::read_to_string(format!("/proc/{stage}/cmdline")).unwrap();
    assert!(line.ends_with("boxmaker-stage\0inner\0"), "{line:?}");
    kill(Pid::from_raw(stage), Signal::SIGKILL).unwrap();
    let output = launch.wait_with_output().unwrap();
    let launched: Launched = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(launched.exit, None);
    for words in &all {
        assert_eq!(running(words), [] as [i32; 0], "{words}");
    }
}

#[test]
fn after_both_were_killed_the_next_start_ends_what_is_left() {
    if skipped_without_user_namespaces("after_both_were_killed_the_next") {
        return;
    }
    let place = Place::new();
    let all = [9, 10].map(sleep);
    let home = place.path("tree/home");
    let script = format!("(setsid {} &); exec {}", all[0], all[1]);
    let mut command = place.command("boxmaker-stage", &script);
    command.env("LAUNCHER_HOME", &home).stdout(Stdio::null());
    let mut launch = command.spawn().unwrap();
    for words in &all {
        until(words, || !running(words).is_empty());
    }
    let stage = parent_of(running(&all[1])[0]);
    for pid in [stage, i32::try_from(launch.id()).unwrap()] {
        kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    }
    for pid in [stage, i32::try_from(launch.id()).unwrap()] {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
    launch.wait().unwrap();
    assert!(all.iter().all(|words| !running(words).is_empty()));
    let mut next = place.command("boxmaker-stage", "echo next");
    next.env("LAUNCHER_HOME", &home);
    assert_eq!(launched(next).stdout, "next\n");
    for words in &all {
        assert_eq!(running(words), [] as [i32; 0], "{words}");
    }
}

/// Anybody can take the limit that is a mark, and nobody is killed or waited for who is another user's.
#[test]
fn a_process_of_another_user_with_the_same_mark_is_in_nobodys_way() {
    if skipped_without_root("a_process_of_another_user_with_the_same_mark") {
        return;
    }
    let place = Place::new();
    let home = place.path("tree/home");
    let inside = sleep(12);
    let mut launch = place.start(&format!("exec {inside}"), &[&inside]);
    let limits = fs::read_to_string(format!("/proc/{}/limits", running(&inside)[0])).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max realtime timeout"));
    let mark = line.unwrap().split_ascii_whitespace().nth(4).unwrap();
    launch.kill().unwrap();
    launch.wait().unwrap();

    let marked = |words: &str, user: u32| {
        let mut command = Command::new("prlimit");
        command.arg(format!("--rttime={mark}:{mark}"));
        let child = command.args(words.split(' ')).uid(user).gid(user).spawn();
        until(words, || !running(words).is_empty());
        child.unwrap()
    };
    let words = [13, 14].map(sleep);
    let mut strangers = marked(&words[0], USER + 1);
    let mut own = marked(&words[1], USER);
    let mut next = place.command("boxmaker-stage", "echo next");
    next.env("LAUNCHER_HOME", &home);
    assert_eq!(launched(next).stdout, "next\n");
    assert!(strangers.try_wait().unwrap().is_none());
    // The twin: what has the mark and is the user's is taken for what is left of a sandbox.
    assert_eq!(own.wait().unwrap().signal(), Some(9));
    strangers.kill().unwrap();
    strangers.wait().unwrap();
}

fn parent_of(pid: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn under_an_old_landlock_no_signal_is_sent_and_everything_still_ends() {
    if skipped_without_user_namespaces("under_an_old_landlock_no_signal") {
        return;
    }
    let place = Place::new();
    let words = sleep(11);
    let script = format!("kill -0 $$ && echo sent; (setsid {words} &); sleep 0.2; echo up");
    let with = |abi: &str| {
        let mut command = place.command("boxmaker-stage", &script);
        command.env("LANDLOCK_ABI", abi);
        launched(command)
    };
    let old = with("5");
    assert_eq!(old.stdout, "up\n");
    assert!(
        old.stderr.contains("Operation not permitted"),
        "{}",
        old.stderr
    );
    assert_eq!(running(&words), [] as [i32; 0]);
    assert_eq!(old.confinement.level, Level::Partial);
    assert_eq!(with("6").stdout, "sent\nup\n");
}
