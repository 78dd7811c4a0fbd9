//! The steps of a ticket, with sandboxes that are flags.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use std::time::Duration;

use proto::audit::Usage;
use proto::{Confinement, Hash32, Level, ToolName};

use super::super::call::{Call, Committed};
use super::*;

#[derive(Debug, Clone, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A sandbox that raises its flag when it is dropped.
#[derive(Debug)]
struct Sandbox(Flag);

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::SeqCst);
    }
}

impl Stop for Flag {
    fn stop(&self, cause: ExitCause) {
        assert_eq!(cause, ExitCause::Aborted);
        self.0.store(true, Ordering::SeqCst);
    }
}

fn call() -> Call {
    Call {
        session: SessionId::new("s").unwrap(),
        call: CallId(1),
        tool: ToolName::new("fs_read").unwrap(),
        grant: GrantId::new("notes").unwrap(),
        generation: 1,
        arguments: "{}".to_owned(),
    }
}

fn confinement() -> Confinement {
    Confinement {
        level: Level::Full,
        layers: Vec::new(),
        asserted: Vec::new(),
        gaps: Vec::new(),
        waived: Vec::new(),
        landlock_abi: 6,
        plan: Hash32::ZERO,
    }
}

struct Desk {
    tickets: Tickets<Sandbox, Flag>,
    numbers: Numbers,
    start: Instant,
}

impl Desk {
    fn new() -> Self {
        Self {
            tickets: Tickets::new(),
            numbers: Numbers::default(),
            start: Instant::now(),
        }
    }

    fn prepare(&self) -> (Ticket, Flag) {
        let ticket = self.tickets.reserve(&self.numbers).unwrap();
        let killed = Flag::default();
        let prepared = Prepared {
            call: call(),
            confinement: confinement(),
            sandbox: Sandbox(killed.clone()),
        };
        self.tickets.prepared(ticket, prepared, self.start).unwrap();
        (ticket, killed)
    }

    fn commit(&self, ticket: Ticket) -> Result<Prepared<Sandbox>, TicketError> {
        self.tickets.begin_commit(ticket, &call().grant, |_| Ok(()))
    }

    fn end(&self, ticket: Ticket) {
        let committed = Committed {
            call: call(),
            seq: 7,
        };
        let ended = Ended {
            committed,
            exit: Some(ExitStatus::Code(0)),
            cause: ExitCause::Exited,
            usage: Usage {
                wall_ms: 1,
                cpu_ms: None,
                max_rss: None,
            },
        };
        self.tickets.ended(ticket, ended);
    }
}

#[test]
fn a_ticket_is_committed_once_and_finished_once() {
    let desk = Desk::new();
    let (ticket, killed) = desk.prepare();
    let prepared = desk.commit(ticket).unwrap();
    assert_eq!(
        desk.commit(ticket).unwrap_err(),
        TicketError::NotPrepared(ticket)
    );
    assert!(desk.tickets.may_start(ticket));
    desk.tickets.running(ticket, Flag::default());
    assert_eq!(
        desk.tickets.finish(ticket),
        Err(TicketError::NotEnded(ticket))
    );
    desk.end(ticket);
    assert_eq!(
        desk.tickets.exit_of(ticket),
        Some(Some(ExitStatus::Code(0)))
    );
    assert_eq!(desk.tickets.finish(ticket).unwrap().committed.seq, 7);
    assert_eq!(
        desk.tickets.finish(ticket),
        Err(TicketError::NotEnded(ticket))
    );
    assert!(!killed.is_set());
    drop(prepared);
}

#[test]
fn a_commit_under_another_grant_is_refused_and_one_under_its_own_is_not() {
    let desk = Desk::new();
    let (ticket, killed) = desk.prepare();
    let named = GrantId::new("other").unwrap();
    let error = desk
        .tickets
        .begin_commit(ticket, &named, |_| Ok(()))
        .unwrap_err();
    let prepared = call().grant;
    assert_eq!(
        error,
        TicketError::OtherGrant {
            ticket,
            prepared,
            named
        }
    );
    assert!(!killed.is_set());
    desk.commit(ticket).unwrap();
}

#[test]
fn a_commit_that_may_not_be_changes_nothing() {
    let desk = Desk::new();
    let (ticket, killed) = desk.prepare();
    let grant = call().grant;
    let unasked = TicketError::Unasked(grant.clone());
    let error = desk
        .tickets
        .begin_commit(ticket, &grant, |asked| {
            assert_eq!(*asked, call());
            Err(unasked.clone())
        })
        .unwrap_err();
    assert_eq!(error, unasked);
    assert!(!killed.is_set());
    desk.commit(ticket).unwrap();
}

#[test]
fn a_sandbox_that_is_not_committed_in_time_is_killed_and_one_that_is_lives_on() {
    let desk = Desk::new();
    let (late, killed) = desk.prepare();
    let (taken, alive) = desk.prepare();
    let _prepared = desk.commit(taken).unwrap();
    let just_before = desk.start + COMMIT_WITHIN - Duration::from_millis(1);
    assert_eq!(desk.tickets.expire(just_before), []);
    assert!(!killed.is_set());
    assert_eq!(desk.tickets.expire(desk.start + COMMIT_WITHIN), [late]);
    assert!(killed.is_set() && !alive.is_set());
    assert_eq!(
        desk.commit(late).unwrap_err(),
        TicketError::NotPrepared(late)
    );
}

#[test]
fn an_abort_kills_what_is_prepared_and_stops_what_runs() {
    let desk = Desk::new();
    let (waiting, killed) = desk.prepare();
    desk.tickets.abort(waiting);
    assert!(killed.is_set());
    assert_eq!(
        desk.commit(waiting).unwrap_err(),
        TicketError::NotPrepared(waiting)
    );

    let (running, _) = desk.prepare();
    desk.commit(running).unwrap();
    let stopped = Flag::default();
    desk.tickets.running(running, stopped.clone());
    assert!(!stopped.is_set());
    desk.tickets.abort(running);
    assert!(stopped.is_set());
}

#[test]
fn an_abort_while_the_decision_is_stored_keeps_the_tool_from_starting() {
    let desk = Desk::new();
    let (ticket, _) = desk.prepare();
    let _prepared = desk.commit(ticket).unwrap();
    assert!(desk.tickets.may_start(ticket));
    desk.tickets.abort(ticket);
    assert!(!desk.tickets.may_start(ticket));
    let stopped = Flag::default();
    desk.tickets.running(ticket, stopped.clone());
    assert!(stopped.is_set());
}

#[test]
fn no_more_calls_than_the_bound_are_live_and_an_ended_one_counts_until_it_is_finished() {
    let desk = Desk::new();
    let first = desk.prepare().0;
    for _ in 1..MOST_LIVE {
        desk.tickets.reserve(&desk.numbers).unwrap();
    }
    assert_eq!(desk.tickets.reserve(&desk.numbers), Err(TicketError::Full));
    let _prepared = desk.commit(first).unwrap();
    desk.end(first);
    assert_eq!(desk.tickets.reserve(&desk.numbers), Err(TicketError::Full));
    desk.tickets.finish(first).unwrap();
    desk.tickets.reserve(&desk.numbers).unwrap();
}

#[test]
fn closing_kills_everything_and_takes_nothing_new() {
    let desk = Desk::new();
    let (_, killed) = desk.prepare();
    let (running, _) = desk.prepare();
    let (storing, _) = desk.prepare();
    let building = desk.tickets.reserve(&desk.numbers).unwrap();
    desk.commit(running).unwrap();
    let _prepared = desk.commit(storing).unwrap();
    let stopped = Flag::default();
    desk.tickets.running(running, stopped.clone());
    assert_eq!(desk.tickets.sandboxes(), 4);
    desk.tickets.close();
    assert!(killed.is_set() && stopped.is_set());
    assert!(!desk.tickets.may_start(storing));
    assert_eq!(
        desk.tickets.reserve(&desk.numbers),
        Err(TicketError::Closed)
    );
    let late = Flag::default();
    let prepared = Prepared {
        call: call(),
        confinement: confinement(),
        sandbox: Sandbox(late.clone()),
    };
    let closed = desk.tickets.prepared(building, prepared, desk.start);
    assert_eq!(closed, Err(TicketError::Closed));
    assert!(late.is_set());
}

#[test]
fn a_refused_sandbox_serves_the_record_of_its_own_call_once() {
    let desk = Desk::new();
    let ticket = desk.tickets.reserve(&desk.numbers).unwrap();
    let refused = RefusedCall {
        call: call(),
        confinement: Some(confinement()),
    };
    desk.tickets.refused(ticket, refused.clone());
    let session = call().session;
    let take = |call, tool| desk.tickets.take_refused(ticket, &session, call, tool);
    assert_eq!(
        take(CallId(2), "fs_read"),
        Err(TicketError::NotRefused(ticket))
    );
    assert_eq!(
        take(CallId(1), "fs_write"),
        Err(TicketError::NotRefused(ticket))
    );
    assert_eq!(take(CallId(1), "fs_read"), Ok(refused));
    assert_eq!(
        take(CallId(1), "fs_read"),
        Err(TicketError::NotRefused(ticket))
    );
}

#[test]
fn a_ticket_number_is_never_used_twice() {
    let numbers = Numbers::default();
    let one: Tickets<Sandbox, Flag> = Tickets::new();
    let other: Tickets<Sandbox, Flag> = Tickets::new();
    let first = one.reserve(&numbers).unwrap();
    one.forget(first);
    assert_ne!(other.reserve(&numbers).unwrap(), first);
}
