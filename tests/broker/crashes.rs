//! brokerd dies: four times at each point of a call. Nothing of the call is left, the log is sound, and what the call
//! may have delivered counts as delivered, also after a second restart.

use std::collections::BTreeMap;
use std::thread;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::processes::until;
use boxmaker_tests::system::{Brokerd, Home};
use proto::audit::OutcomeStatus;
use proto::broker::{Abort, HistoryEntry};
use proto::client::{SessionOpen, ToolRequest, ToolResponse};
use proto::{CallId, DataClass, DenyReason, Message};

use crate::calls::{Broker, ask, finish, no_result, session, sessions};
use crate::homes::home;

const TIMES: usize = 4;

/// Where brokerd is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    BeforePrepare,
    Prepared,
    Committed,
    Exited,
    BeforeFinish,
}

impl Point {
    /// Whether the decision is in the log by then.
    fn decided(self) -> bool {
        !matches!(self, Self::BeforePrepare | Self::Prepared)
    }
}

/// Plays one call up to `point`.
fn play(broker: &mut Broker, point: Point) {
    if point == Point::BeforePrepare {
        return;
    }
    let acts = if point == Point::Committed {
        r#"{"acts":["orphan","ignore_term"]}"#
    } else {
        r#"{"acts":["shadow"]}"#
    };
    let standing = broker.prepare("act", "act", acts);
    if point == Point::Prepared {
        return;
    }
    broker.commit(&standing);
    if point == Point::Committed {
        let sandbox = broker.sandbox();
        until("the tool runs", || sandbox.tools().len() == 2);
        return;
    }
    broker.exited(standing.ticket);
    if point == Point::BeforeFinish {
        let (stdout, _) = standing.output();
        assert!(stdout.contains("shadow"), "{stdout}");
    }
}

fn killed_at(point: Point) {
    let mut broker = Broker::up();
    let mut names = Vec::new();
    for time in 0..TIMES {
        let name = format!("at-{time}");
        broker.open(&name);
        names.push(name);
        play(&mut broker, point);
        let brokerd = broker.system.brokerd(&broker.home);
        let role = broker.system.role(&broker.home);
        let mut gone = broker.system.process.descendants();
        assert!(gone.contains(&brokerd) && gone.contains(&role));
        brokerd.kill();
        broker.relay.ended();
        broker.again();
        gone.retain(|process| process.lives());
        assert_eq!(gone, [], "{point:?}");
        nothing_but_brokerd(&mut broker);
        broker.home.sound();
        assert_eq!(
            open_decisions(&broker.relay.history),
            if point.decided() { time + 1 } else { 0 }
        );
    }
    // The twin: a call that is seen to its end has an outcome of its own and needs nobody to guess it.
    broker.open("whole");
    broker.call("act", "act", r#"{"acts":["shadow"]}"#);
    let (status, home) = broker.stop();
    assert!(status.success());

    let expected = if point.decided() {
        DataClass::Secret
    } else {
        DataClass::Private
    };
    home.put(Brokerd::Real);
    let mut outcomes = None;
    for _ in 0..2 {
        let times = home.times_up();
        let mut system = home.start();
        system.wait_up(&home, times);
        let taints = taints(&home);
        for name in &names {
            assert_eq!(
                taints.get(name.as_str()),
                Some(&expected),
                "{point:?} {taints:?}"
            );
        }
        assert_eq!(taints.get("whole"), Some(&DataClass::Secret));
        assert_eq!(taints.get("s"), Some(&DataClass::Private));
        assert!(system.stop().success());
        home.sound();
        // The first restart closes what was open, once; the second finds nothing to close.
        let now = home.outcomes();
        let unknown = now
            .iter()
            .filter(|outcome| outcome.status == OutcomeStatus::Unknown);
        assert_eq!(unknown.count(), if point.decided() { TIMES } else { 0 });
        assert_eq!(*outcomes.get_or_insert(now.len()), now.len());
        let secret = |class: &DataClass| *class == DataClass::Secret;
        assert!(
            now.iter()
                .all(|outcome| secret(&outcome.class) && outcome.untrusted)
        );
    }
}

/// Decisions of a replayed history that let a call run and have no outcome.
fn open_decisions(history: &[HistoryEntry]) -> usize {
    let mut open = BTreeMap::new();
    for entry in history {
        match entry {
            HistoryEntry::Decision { seq, decision, .. } if decision.granted().is_some() => {
                open.insert(*seq, ());
            }
            HistoryEntry::Outcome { of, .. } => {
                open.remove(of);
            }
            _ => {}
        }
    }
    open.len()
}

fn nothing_but_brokerd(broker: &mut Broker) {
    broker.wait_empty();
    let role = broker.system.role(&broker.home);
    let mut own = role.descendants();
    own.push(role);
    let (inside, groups) = broker.home.in_cgroups();
    assert!(
        inside
            .iter()
            .all(|pid| own.iter().any(|process| process.pid == *pid)),
        "{inside:?}"
    );
    assert!(groups <= 1, "{groups} cgroups");
}

fn taints(home: &Home) -> BTreeMap<String, DataClass> {
    let all = sessions(home).into_iter();
    all.map(|one| (one.session.as_str().to_owned(), one.taint))
        .collect()
}

#[test]
fn brokerd_killed_before_prepare_leaves_nothing() {
    if !skipped_without_root("brokerd_killed_before_prepare_leaves_nothing") {
        killed_at(Point::BeforePrepare);
    }
}

#[test]
fn brokerd_killed_when_prepared_leaves_nothing() {
    if !skipped_without_root("brokerd_killed_when_prepared_leaves_nothing") {
        killed_at(Point::Prepared);
    }
}

#[test]
fn brokerd_killed_when_committed_leaves_a_tainted_session() {
    if !skipped_without_root("brokerd_killed_when_committed_leaves_a_tainted_session") {
        killed_at(Point::Committed);
    }
}

#[test]
fn brokerd_killed_when_exited_leaves_a_tainted_session() {
    if !skipped_without_root("brokerd_killed_when_exited_leaves_a_tainted_session") {
        killed_at(Point::Exited);
    }
}

#[test]
fn brokerd_killed_before_finish_leaves_a_tainted_session() {
    if !skipped_without_root("brokerd_killed_before_finish_leaves_a_tainted_session") {
        killed_at(Point::BeforeFinish);
    }
}

#[test]
fn a_tool_that_a_dead_brokerd_had_prepared_has_run_nothing() {
    if skipped_without_root("a_tool_that_a_dead_brokerd_had_prepared_has_run_nothing") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("touch", "touch", r#"{"acts":[]}"#);
    let sandbox = broker.sandbox();
    broker.system.brokerd(&broker.home).kill();
    broker.relay.ended();
    until("the sandbox is gone", || !sandbox.lives());
    assert_eq!(standing.output(), (String::new(), String::new()));
    assert!(!crate::calls::touched(&broker.home));
    broker.again();
    broker.call("touch", "touch", r#"{"acts":[]}"#);
    assert!(crate::calls::touched(&broker.home));
}

/// The real brokerd with an owner's call in flight.
#[test]
fn the_real_brokerd_killed_with_a_call_in_flight_remembers_its_taint() {
    if skipped_without_root("the_real_brokerd_killed_with_a_call_in_flight") {
        return;
    }
    let home = home(Brokerd::Real);
    let mut system = home.start();
    system.wait_up(&home, 0);
    let owner = home.connect().unwrap();
    let open = |name: &str| {
        let open = SessionOpen {
            session: Some(session(name)),
        };
        ask(&home.connect().unwrap(), Message::SessionOpen(open))
    };
    let request = |name: &str, tool: &str, arguments: &str| {
        Message::ToolRequest(ToolRequest {
            session: session(name),
            call: CallId(0),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        })
    };
    assert!(matches!(open("idle"), Message::SessionOpened(_)));
    drop(owner);
    for time in 0..TIMES {
        let name = format!("flight-{time}");
        assert!(matches!(open(&name), Message::SessionOpened(_)));
        let caller = home.connect().unwrap();
        caller
            .send(&proto::Envelope::new(
                1,
                request(&name, "act", r#"{"acts":["ignore_term"]}"#),
            ))
            .unwrap();
        let waits = thread::spawn(move || caller.receive());
        until("the tool runs", || system.process.tools().len() == 1);
        let mut gone = system.process.descendants();
        let times = home.times_up();
        system.brokerd(&home).kill();
        no_result(&waits.join().unwrap());
        system.wait_up(&home, times);
        gone.retain(|process| process.lives());
        assert_eq!(gone, []);
        assert_eq!(taints(&home).get(name.as_str()), Some(&DataClass::Secret));
        home.sound();
    }
    // What a secret session may not do, it may not do after the restart either; a clean one may.
    let note = crate::calls::at(&home.path("notes/a.md"));
    let tainted = ask(
        &home.connect().unwrap(),
        request("flight-0", "fs_read", &note),
    );
    let Message::ToolResponse(ToolResponse::Denied { reason, .. }) = tainted else {
        panic!("{tainted:?}");
    };
    assert_eq!(reason, DenyReason::TaintTooHigh);
    let clean = ask(&home.connect().unwrap(), request("idle", "fs_read", &note));
    assert!(
        matches!(clean, Message::ToolResponse(ToolResponse::Result { .. })),
        "{clean:?}"
    );
    assert!(system.stop().success());
    let unknown = home.outcomes();
    let unknown = unknown
        .iter()
        .filter(|outcome| outcome.status == OutcomeStatus::Unknown);
    assert_eq!(unknown.count(), TIMES);
    home.sound();
}

/// What one brokerd had prepared or finished is nothing to the next.
#[test]
fn tickets_do_not_outlive_their_brokerd() {
    if skipped_without_root("tickets_do_not_outlive_their_brokerd") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("act", "act", r#"{"acts":["sleep"]}"#);
    broker.commit(&standing);
    let prepared = broker.prepare("echo", "echo", r#"{"text":"x"}"#);
    broker.system.brokerd(&broker.home).kill();
    broker.relay.ended();
    broker.again();
    for ticket in [standing.ticket, prepared.ticket] {
        broker.relay.say(Message::Abort(Abort { ticket }));
        let (_, detail) = broker.relay.refused(finish(ticket, OutcomeStatus::Failed));
        assert!(detail.contains("has no end to record"), "{detail}");
        let (_, detail) = broker
            .relay
            .refused(crate::calls::commit(ticket, &standing.grant));
        assert!(detail.contains("is not prepared"), "{detail}");
    }
    let fresh = broker.prepare("echo", "echo", r#"{"text":"x"}"#);
    assert!(fresh.ticket > prepared.ticket);
    assert_eq!(broker.run(fresh).stdout, r#"{"text":"x"}"#);
}
