//! A compromised brokerd commits, aborts and finishes what it should not.

use boxmaker_tests::binaries::skipped_without_root;
use proto::audit::{ExitCause, ExitStatus, OutcomeStatus};
use proto::broker::Abort;
use proto::{DecisionRecord, DenyReason, ErrorCode, Message, Ticket};

use crate::calls::{Broker, at, commit, decide, finish, grant, touched};

const TOUCH: &str = r#"{"acts":[]}"#;

/// The refusal of something that makes no sense in its place; the line goes on.
fn refused(broker: &mut Broker, message: Message, words: &str) {
    let (code, detail) = broker.relay.refused(message);
    assert_eq!(code, ErrorCode::BadMessage, "{detail}");
    assert!(detail.contains(words), "{detail:?} does not say {words:?}");
}

#[test]
fn a_commit_starts_what_was_prepared_under_that_grant_and_nothing_else() {
    if skipped_without_root("a_commit_starts_what_was_prepared_under_that_grant") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("touch", "touch", TOUCH);
    let ticket = standing.ticket;
    for other in ["vault", "act", "nobody-wrote-this"] {
        refused(
            &mut broker,
            commit(ticket, &grant(other)),
            "was prepared under grant touch",
        );
    }
    let approved = DecisionRecord::Approved {
        grant: grant("vault"),
        approver: "owner".to_owned(),
        post: None,
    };
    refused(
        &mut broker,
        decide(ticket, approved),
        "was prepared under grant touch",
    );
    let denied = DecisionRecord::Denied {
        reason: DenyReason::NoGrant,
        grant: Some(grant("touch")),
    };
    refused(&mut broker, decide(ticket, denied), "record takes denials");
    for unknown in [0, ticket.0 + 1, u64::MAX] {
        let message = commit(Ticket(unknown), &grant("touch"));
        refused(
            &mut broker,
            message,
            &format!("ticket {unknown} is not prepared"),
        );
    }
    assert!(!touched(&broker.home));
    assert_eq!(broker.home.decisions(), []);

    let ran = broker.run(standing);
    assert_eq!(ran.exited.exit, Some(ExitStatus::Code(0)), "{}", ran.stderr);
    assert!(touched(&broker.home));
    assert_eq!(broker.home.decisions().len(), 1);
    broker.home.sound();
}

#[test]
fn a_decision_about_one_ticket_does_not_pass_for_another() {
    if skipped_without_root("a_decision_about_one_ticket_does_not_pass_for_another") {
        return;
    }
    let mut broker = Broker::up();
    let note = at(&broker.home.path("notes/a.md"));
    let code = at(&broker.home.path("vault/code.txt"));
    let harmless = broker.prepare("fs_read", "notes", &note);
    let secret = broker.prepare("fs_read", "vault", &code);
    let crossed = commit(secret.ticket, &harmless.grant);
    refused(&mut broker, crossed, "was prepared under grant vault");
    let crossed = commit(harmless.ticket, &secret.grant);
    refused(&mut broker, crossed, "was prepared under grant notes");
    // Each still runs as itself, and its record says what it was, in whatever order they are committed.
    let (harmless_call, secret_call) = (harmless.call, secret.call);
    let second = broker.run(secret);
    let first = broker.run(harmless);
    for (ran, call, id, arguments) in [
        (&first, harmless_call, "notes", &note),
        (&second, secret_call, "vault", &code),
    ] {
        let decisions = broker.home.decisions();
        let (_, decision) = decisions.iter().find(|(seq, _)| *seq == ran.seq).unwrap();
        assert_eq!(decision.call, call);
        assert_eq!(decision.decision.granted(), Some(&grant(id)));
        assert_eq!(
            decision.arguments,
            proto::Arguments::Text(arguments.clone())
        );
    }
}

#[test]
fn a_ticket_is_committed_once() {
    if skipped_without_root("a_ticket_is_committed_once") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("act", "act", r#"{"acts":["sleep"]}"#);
    let ticket = standing.ticket;
    broker.commit(&standing);
    let again = || commit(ticket, &grant("act"));
    refused(&mut broker, again(), "is not prepared: it was committed");
    broker.relay.say(Message::Abort(Abort { ticket }));
    let exited = broker.exited(ticket);
    assert_eq!(exited.cause, ExitCause::Aborted);
    refused(&mut broker, again(), "is not prepared: it was committed");
    let finished = broker
        .relay
        .ask(finish(ticket, OutcomeStatus::Failed))
        .envelope
        .msg;
    assert!(matches!(finished, Message::Recorded(_)), "{finished:?}");
    refused(&mut broker, again(), "is not prepared: it was committed");
    assert_eq!(broker.home.decisions().len(), 1);
    assert_eq!(broker.home.outcomes().len(), 1);
}

#[test]
fn what_was_aborted_is_not_committed_and_a_second_abort_changes_nothing() {
    if skipped_without_root("what_was_aborted_is_not_committed") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("touch", "touch", TOUCH);
    let other = broker.prepare("echo", "echo", r#"{"text":"x"}"#);
    let ticket = standing.ticket;
    assert_eq!(broker.status().sandboxes, 2);
    for _ in 0..2 {
        broker.relay.say(Message::Abort(Abort { ticket }));
        boxmaker_tests::system::processes::until("one sandbox", || broker.status().sandboxes == 1);
    }
    for unknown in [0, ticket.0 + 100] {
        broker.relay.say(Message::Abort(Abort {
            ticket: Ticket(unknown),
        }));
    }
    refused(
        &mut broker,
        commit(ticket, &grant("touch")),
        "is not prepared",
    );
    let (stdout, _) = standing.output();
    assert_eq!(stdout, "");
    assert_eq!(broker.run(other).stdout, r#"{"text":"x"}"#);
    assert!(!touched(&broker.home));
    assert_eq!(broker.home.decisions().len(), 1);
}

#[test]
fn a_call_is_finished_once_and_after_its_end() {
    if skipped_without_root("a_call_is_finished_once_and_after_its_end") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("act", "act", r#"{"acts":["sleep"]}"#);
    let ticket = standing.ticket;
    let done = || finish(ticket, OutcomeStatus::Failed);
    refused(&mut broker, done(), "has no end to record");
    broker.commit(&standing);
    refused(&mut broker, done(), "has no end to record");
    broker.relay.say(Message::Abort(Abort { ticket }));
    broker.exited(ticket);
    // It was stopped, so it has no result; and it was seen, so it is not unknown.
    refused(
        &mut broker,
        finish(ticket, OutcomeStatus::Result),
        "only a tool that ended with status 0",
    );
    refused(
        &mut broker,
        finish(ticket, OutcomeStatus::Unknown),
        "is no unknown one",
    );
    assert_eq!(broker.home.outcomes(), []);
    let finished = broker.relay.ask(done()).envelope.msg;
    assert!(matches!(finished, Message::Recorded(_)), "{finished:?}");
    refused(&mut broker, done(), "has no end to record");
    for unknown in [0, ticket.0 + 1, u64::MAX] {
        let message = finish(Ticket(unknown), OutcomeStatus::Failed);
        refused(
            &mut broker,
            message,
            &format!("ticket {unknown} has no end"),
        );
    }
    let outcomes = broker.home.outcomes();
    assert_eq!(outcomes.len(), 1);
    assert_eq!(outcomes[0].cause, Some(ExitCause::Aborted));
    broker.home.sound();
}

#[test]
fn the_outcome_holds_what_the_supervisor_measured() {
    if skipped_without_root("the_outcome_holds_what_the_supervisor_measured") {
        return;
    }
    let mut broker = Broker::up();
    let ended = broker.call("echo", "echo", r#"{"text":"x"}"#);
    let failed = broker.call("act", "act", r#"{"acts":["no such act"]}"#);
    let outcomes = broker.home.outcomes();
    for (ran, status, code) in [
        (&ended, OutcomeStatus::Result, 0),
        (&failed, OutcomeStatus::Failed, 2),
    ] {
        let outcome = outcomes
            .iter()
            .find(|outcome| outcome.of == ran.seq)
            .unwrap();
        assert_eq!(outcome.status, status);
        assert_eq!(outcome.exit, Some(ExitStatus::Code(code)));
        assert_eq!(outcome.exit, ran.exited.exit);
        assert_eq!(outcome.cause, Some(ExitCause::Exited));
        assert_eq!(outcome.usage, Some(ran.exited.usage));
    }
}
