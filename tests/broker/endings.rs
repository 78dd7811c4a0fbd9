//! The end of the supervisor: killed, everything it started is gone; asked to stop, it stops in order.

use std::os::unix::process::ExitStatusExt;
use std::thread;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::Brokerd;
use boxmaker_tests::system::processes::{Process, until};
use proto::audit::{RoleEvent, SessionEvent};
use proto::client::{SessionOpen, ToolRequest};
use proto::{CallId, Entry, Envelope, Message};

use crate::calls::{Broker, ask, no_result, session, sessions, touched};
use crate::homes::home;

const STAYS: &str = r#"{"acts":["orphan","ignore_term"]}"#;

fn all_gone(processes: &[Process]) {
    for process in processes {
        until(&format!("{} is gone", process.command()), || {
            !process.lives()
        });
    }
}

#[test]
fn everything_is_gone_when_the_supervisor_is_killed() {
    if skipped_without_root("everything_is_gone_when_the_supervisor_is_killed") {
        return;
    }
    let mut broker = Broker::up();
    let prepared = broker.prepare("touch", "touch", r#"{"acts":[]}"#);
    let running = broker.prepare("act", "act", STAYS);
    broker.commit(&running);
    // brokerd's pid 1 and program, a prepared pid 1, and a pid 1 with a tool and what that left behind.
    until("all of it runs", || {
        broker.system.process.tools().len() == 2
    });
    let all = broker.system.process.descendants();
    assert!(all.iter().all(Process::lives));
    broker.system.kill();
    all_gone(&all);
    assert!(!touched(&broker.home));
    assert_eq!(prepared.output().0, "");
    assert_eq!(broker.home.in_cgroups().0, Vec::<u32>::new());
    broker.home.sound();

    // The next supervisor of that home starts, and what the killed one left is no obstacle.
    let Broker {
        home,
        relay,
        system,
        ..
    } = broker;
    drop((relay, system));
    let mut broker = Broker::up_in(home);
    broker.call("touch", "touch", r#"{"acts":[]}"#);
    assert!(touched(&broker.home));
    until("the group of the call is gone", || {
        broker.home.in_cgroups().1 <= 1
    });
    broker.home.sound();
}

#[test]
fn everything_is_gone_when_the_supervisor_of_the_real_brokerd_is_killed() {
    if skipped_without_root("everything_is_gone_when_the_supervisor_of_the_real_brokerd_is_killed")
    {
        return;
    }
    let home = home(Brokerd::Real);
    let mut system = home.start();
    system.wait_up(&home, 0);
    let caller = in_flight(&home);
    until("all of it runs", || system.process.tools().len() == 2);
    let all = system.process.descendants();
    system.kill();
    all_gone(&all);
    no_result(&caller.join().unwrap());
    home.sound();
    let mut again = home.start();
    again.wait_up(&home, 1);
    assert_eq!(sessions(&home).len(), 1);
    assert!(again.stop().success());
}

/// An owner's call that does not end by itself; the thread gets whatever answers it.
fn in_flight(
    home: &boxmaker_tests::system::Home,
) -> thread::JoinHandle<Result<Option<ipc::Received>, ipc::RecvError>> {
    let caller = home.connect().unwrap();
    let open = SessionOpen {
        session: Some(session("s")),
    };
    assert!(matches!(
        ask(&caller, Message::SessionOpen(open)),
        Message::SessionOpened(_)
    ));
    let request = ToolRequest {
        session: session("s"),
        call: CallId(0),
        tool: "act".to_owned(),
        arguments: STAYS.to_owned(),
    };
    caller
        .send(&Envelope::new(2, Message::ToolRequest(request)))
        .unwrap();
    thread::spawn(move || caller.receive())
}

#[test]
fn asked_to_stop_the_supervisor_stops_in_order() {
    if skipped_without_root("asked_to_stop_the_supervisor_stops_in_order") {
        return;
    }
    let home = home(Brokerd::Real);
    let mut system = home.start();
    system.wait_up(&home, 0);
    let caller = in_flight(&home);
    until("all of it runs", || system.process.tools().len() == 2);
    let all = system.process.descendants();
    let status = system.stop();
    assert_eq!(status.code(), Some(0), "{}", home.stderr());
    // Nothing to wait for: it ends after everything else.
    assert!(!all.iter().any(Process::lives));
    assert_eq!(home.in_cgroups(), (Vec::new(), 0));
    assert!(home.connect().is_err());
    assert!(!home.home().join("run/bxctl/broker.sock").exists());
    no_result(&caller.join().unwrap());

    // The log ends with the end of the role, and holds the decision with its outcome.
    home.sound();
    let last = home.lines().pop().unwrap().entry;
    assert!(
        matches!(&last, Entry::Role { event, .. } if matches!(**event, RoleEvent::Ended { .. })),
        "{last:?}"
    );
    let (seq, _) = home.decisions().pop().unwrap();
    assert_eq!(
        home.outcomes()
            .iter()
            .map(|outcome| outcome.of)
            .collect::<Vec<_>>(),
        [seq]
    );
    let opened = home.lines().into_iter().any(|line| {
        matches!(
            line.entry,
            Entry::Session {
                event: SessionEvent::Opened,
                ..
            }
        )
    });
    assert!(opened);
}

#[test]
fn a_brokerd_that_does_not_stop_is_ended_and_the_supervisor_still_stops_in_order() {
    if skipped_without_root("a_brokerd_that_does_not_stop_is_ended") {
        return;
    }
    let mut broker = Broker::up();
    let running = broker.prepare("act", "act", STAYS);
    broker.commit(&running);
    until("all of it runs", || {
        broker.system.process.tools().len() == 2
    });
    let all = broker.system.process.descendants();
    let Broker {
        home,
        relay,
        system,
        ..
    } = broker;
    let status = system.stop();
    assert_eq!(
        (status.code(), status.signal()),
        (Some(0), None),
        "{}",
        home.stderr()
    );
    assert!(!all.iter().any(Process::lives));
    drop(relay);
    home.sound();
    let last = home.lines().pop().unwrap().entry;
    assert!(matches!(last, Entry::Role { event, .. } if matches!(*event, RoleEvent::Ended { .. })));
}
