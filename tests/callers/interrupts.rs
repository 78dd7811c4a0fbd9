//! Ctrl-C on `bxctl call`: the call is given up, its session ends with it, and what is said of it is what the log holds.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};

use boxmaker_tests::binaries::{binary, skipped_without_root};
use boxmaker_tests::system::processes::{Process, until};
use boxmaker_tests::system::{Home, System};
use proto::audit::{ExitCause, OutcomeStatus};
use rustix::process::Signal;

use crate::home::{Peer, bxctl, events, home, marks, questions, sessions, up};

const MARK: &str = r#"{"text":"one"}"#;
const STAYS: &str = r#"{"acts":["orphan","ignore_term"]}"#;

/// `bxctl call mark`, once it waits for the owner.
fn waiting(home: &Home, more: &[&str]) -> Child {
    let words = [&["call", "mark", MARK], more].concat();
    let child = bxctl(home, &words);
    until("the owner is asked", || questions(home).len() == 1);
    child
}

/// Sends a signal and collects what the command leaves.
fn interrupted(child: Child, signal: Signal) -> (Output, String) {
    Process::of(child.id()).unwrap().signal(signal);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.stdout, b"", "{said}");
    (output, said)
}

/// `yes` to the one question, by another bxctl.
fn approve(home: &Home) {
    let id = questions(home).remove(0).approval;
    let output = bxctl(home, &["approve", id.as_str()]).wait_with_output();
    assert!(output.unwrap().status.success());
}

fn nothing_is_left(home: &Home, system: System) {
    until("no sandbox is left", || system.sandboxes(home).is_empty());
    assert_eq!(questions(home), []);
    assert!(system.stop().success());
    home.sound();
}

#[test]
fn ctrl_c_on_a_call_that_waits_withdraws_its_question_and_ends_its_session() {
    if skipped_without_root("ctrl_c_on_a_call_that_waits_withdraws_its_question") {
        return;
    }
    let home = home(1000);
    let system = up(&home);
    let (output, said) = interrupted(waiting(&home, &[]), Signal::INT);
    assert_eq!(output.status.signal(), Some(2), "{said}");
    assert!(
        said.contains("interrupted: the call is given up\n"),
        "{said}"
    );
    assert!(
        said.contains("question a1 is withdrawn and nothing ran"),
        "{said}"
    );
    assert!(!said.contains("was not ended"), "{said}");
    let known = sessions(&home);
    assert_eq!(known.len(), 1);
    assert!(!known[0].open, "{known:?}");
    until("it is recorded", || events(&home) == ["asked", "withdrawn"]);
    assert_eq!(home.decisions().len(), 0);

    // The twin: nobody interrupts, and the owner says yes.
    let child = waiting(&home, &[]);
    approve(&home);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, MARK.as_bytes());
    assert_eq!(marks(&home), MARK);
    nothing_is_left(&home, system);
}

#[test]
fn ctrl_c_in_a_named_session_leaves_the_session_open() {
    if skipped_without_root("ctrl_c_in_a_named_session_leaves_the_session_open") {
        return;
    }
    let home = home(1000);
    let system = up(&home);
    let child = waiting(&home, &["--session", "mine"]);
    let (output, said) = interrupted(child, Signal::INT);
    assert_eq!(output.status.signal(), Some(2), "{said}");
    assert!(
        said.contains("question a1 is withdrawn and nothing ran"),
        "{said}"
    );
    let known = sessions(&home);
    assert!(known.len() == 1 && known[0].open, "{known:?}");
    assert_eq!(events(&home), ["asked", "withdrawn"]);
    assert_eq!(marks(&home), "");
    nothing_is_left(&home, system);
}

#[test]
fn a_signal_on_a_call_that_runs_stops_its_tool_and_says_that_it_ran() {
    if skipped_without_root("a_signal_on_a_call_that_runs_stops_its_tool") {
        return;
    }
    let home = home(1000);
    let system = up(&home);
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        let child = bxctl(&home, &["call", "stays", STAYS]);
        until("the tool runs", || system.process.tools().len() == 2);
        let tools = system.process.tools();
        let (output, said) = interrupted(child, signal);
        assert_eq!(output.status.signal(), Some(number), "{said}");
        let (seq, _) = home.decisions().pop().unwrap();
        assert!(
            said.contains(&format!("the call ran (record {seq})")),
            "{said}"
        );
        until("its tool is gone", || !tools.iter().any(Process::lives));
        until("its end is recorded", || {
            home.outcomes().last().is_some_and(|last| last.of == seq)
        });
        let outcome = home.outcomes().pop().unwrap();
        assert_eq!(
            (outcome.status, outcome.cause),
            (OutcomeStatus::Failed, Some(ExitCause::Aborted))
        );
        assert!(sessions(&home).iter().all(|known| !known.open));
    }
    nothing_is_left(&home, system);
}

#[test]
fn a_signal_that_is_ignored_when_bxctl_starts_interrupts_nothing() {
    if skipped_without_root("a_signal_that_is_ignored_when_bxctl_starts") {
        return;
    }
    let home = home(1000);
    let system = up(&home);
    // As a shell starts what runs in the background of a script.
    let child = Command::new("/bin/sh")
        .args(["-c", "trap '' INT; exec \"$@\"", "sh"])
        .arg(binary("bxctl"))
        .args(["call", "mark", MARK, "--home"])
        .arg(home.home())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the owner is asked", || questions(&home).len() == 1);
    Process::of(child.id()).unwrap().signal(Signal::INT);
    // Another caller's whole call is time enough for a signal to arrive.
    Peer::new(&home, "other").reads(&home);
    approve(&home);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, MARK.as_bytes());
    nothing_is_left(&home, system);
}

#[test]
fn a_brokerd_that_dies_under_a_waiting_call_is_told_with_what_became_of_it() {
    if skipped_without_root("a_brokerd_that_dies_under_a_waiting_call") {
        return;
    }
    let home = home(1000);
    let mut system = up(&home);
    let waits = waiting(&home, &[]);
    let runs = bxctl(&home, &["call", "stays", STAYS]);
    until("the tool runs", || system.process.tools().len() == 2);
    let times = home.times_up();
    system.brokerd(&home).kill();
    for (child, words) in [
        (waits, "question a1 is withdrawn and nothing ran"),
        (
            runs,
            "nobody saw its end: it may have done all, a part or nothing",
        ),
    ] {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("closed the connection before it answered"),
            "{said}"
        );
        assert!(said.contains(words), "{said}");
    }
    system.wait_up(&home, times);
    assert!(sessions(&home).iter().all(|known| !known.open));
    nothing_is_left(&home, system);
}
