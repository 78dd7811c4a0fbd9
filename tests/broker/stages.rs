//! Sandboxes that are not committed: no tool code runs in them. The tool's first act is a file in a write grant.

use std::thread;
use std::time::Duration;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::processes::{Process, until};
use proto::audit::{ExitCause, ExitStatus, OutcomeStatus};
use proto::broker::Abort;
use proto::{ErrorCode, Message};

use crate::calls::{Broker, commit, finish, touched};

const TOUCH: &str = r#"{"acts":[]}"#;

#[test]
fn a_stage_that_is_killed_before_the_commit_runs_nothing() {
    if skipped_without_root("a_stage_that_is_killed_before_the_commit_runs_nothing") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("touch", "touch", TOUCH);
    let ticket = standing.ticket;
    let sandbox = broker.sandbox();
    sandbox.kill();
    until("the stage is gone", || !sandbox.lives());
    // The record comes first, so the call is in the log, and so is that it was not started.
    let seq = broker.commit(&standing);
    let exited = broker.exited(ticket);
    assert_eq!(exited.exit, None);
    assert!(
        matches!(exited.cause, ExitCause::NotStarted | ExitCause::Aborted),
        "{exited:?}"
    );
    let finished = broker
        .relay
        .ask(finish(ticket, OutcomeStatus::Failed))
        .envelope
        .msg;
    assert!(matches!(finished, Message::Recorded(_)), "{finished:?}");
    broker.wait_empty();
    assert_eq!(standing.output(), (String::new(), String::new()));
    assert!(!touched(&broker.home));
    let outcomes = broker.home.outcomes();
    assert_eq!((outcomes[0].of, outcomes[0].exit), (seq, None));

    let ran = broker.call("touch", "touch", TOUCH);
    assert_eq!(ran.exited.exit, Some(ExitStatus::Code(0)), "{}", ran.stderr);
    assert!(touched(&broker.home));
    broker.home.sound();
}

#[test]
fn a_brokerd_that_never_commits_loses_the_sandbox() {
    if skipped_without_root("a_brokerd_that_never_commits_loses_the_sandbox") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("touch", "touch", TOUCH);
    let sandbox = broker.sandbox();
    assert_eq!(broker.status().sandboxes, 1);
    broker.wait_empty();
    assert!(!sandbox.lives());
    let said = broker.home.stderr();
    let first = format!(
        "1 prepared call, ticket {} the first, not committed within 10 s",
        standing.ticket
    );
    assert!(said.contains(&first), "{said}");
    let late = commit(standing.ticket, &standing.grant);
    let (code, detail) = broker.relay.refused(late);
    assert_eq!(code, ErrorCode::BadMessage);
    assert!(detail.contains("is not prepared"), "{detail}");
    assert_eq!(standing.output(), (String::new(), String::new()));
    assert!(!touched(&broker.home));
    assert_eq!(broker.home.decisions(), []);

    broker.call("touch", "touch", TOUCH);
    assert!(touched(&broker.home));
    broker.home.sound();
}

#[test]
fn an_aborted_sandbox_has_run_nothing() {
    if skipped_without_root("an_aborted_sandbox_has_run_nothing") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("touch", "touch", TOUCH);
    let sandbox = broker.sandbox();
    let inside = sandbox.descendants();
    assert_eq!(inside, [], "a prepared sandbox is its pid 1 alone");
    broker.abort(standing.ticket);
    assert!(!sandbox.lives());
    assert!(!touched(&broker.home));

    broker.call("touch", "touch", TOUCH);
    assert!(touched(&broker.home));
}

#[test]
fn a_running_tool_and_all_it_started_end_with_an_abort() {
    if skipped_without_root("a_running_tool_and_all_it_started_end_with_an_abort") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare(
        "act",
        "act",
        r#"{"acts":["orphan","orphan","ignore_term"]}"#,
    );
    let sandbox = broker.sandbox();
    broker.commit(&standing);
    until("the tool and two orphans", || sandbox.tools().len() == 3);
    let inside = sandbox.descendants();
    // Long enough for a tool that were going to end by itself.
    thread::sleep(Duration::from_millis(300));
    assert!(inside.iter().all(|process| process.lives()));
    broker.relay.say(Message::Abort(Abort {
        ticket: standing.ticket,
    }));
    let exited = broker.exited(standing.ticket);
    assert_eq!(exited.cause, ExitCause::Aborted);
    // `exited` says that the sandbox is empty, so there is nothing to wait for; its pid 1 ends behind that.
    let program = |process: &&Process| process.pid != sandbox.pid;
    assert!(!inside.iter().filter(program).any(Process::lives));
    until("its pid 1 has ended", || !sandbox.lives());
}
