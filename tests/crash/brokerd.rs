//! brokerd is killed over and over while eight callers call.

use std::thread;
use std::time::Duration;

use boxmaker_tests::binaries::{skipped_without_root, skipped_without_user_namespaces};
use boxmaker_tests::system::processes::{Process, until};
use boxmaker_tests::system::{Home, System};
use proto::Entry;
use proto::audit::{ExitStatus, RoleEvent};

use crate::account::account;
use crate::crowd::Crowd;
use crate::home::{Starter, block, home, up};
use crate::traces::{Traces, held};

/// How many descriptors more than at first the supervisor may have: it keeps user namespaces for id maps.
const KEPT: usize = 32;

/// The program that is brokerd, once it is another one than `before`.
fn next(system: &System, before: Option<&Process>) -> Process {
    let mut found = None;
    until("a brokerd runs", || {
        let all = system.process.descendants();
        let is = |process: &Process| process.command() == "brokerd" && Some(process) != before;
        found = all.into_iter().find(is);
        found.is_some()
    });
    found.unwrap()
}

/// Kills brokerd `times` times: mostly after some calls were answered since it served, each tenth time while it starts.
fn kill(system: &mut System, home: &Home, crowd: &Crowd, times: usize) {
    let mut last = None;
    for time in 0..times {
        let ups = home.times_up();
        let starting = time % 10 == 9;
        if !starting {
            crowd.answered(time % 3);
            // Not always in the same moment after an answer.
            thread::sleep(Duration::from_millis(time as u64 * 7 % 23));
        }
        let brokerd = next(system, last.as_ref());
        brokerd.kill();
        until("it is dead", || !brokerd.lives());
        last = Some(brokerd);
        if time % 10 != 8 {
            system.wait_up(home, ups);
            crowd.taints_are_right(false);
        }
    }
}

fn killed(starter: Starter, times: usize) {
    let home = home(starter);
    assert!(up(&home).stop().success());
    let stopped = Traces::of(&home, starter);
    let mut system = up(&home);
    let idle = Traces::of(&home, starter);
    let (descriptors, threads) = held(&system.process);

    let crowd = Crowd::new(&home);
    let told = crowd.call(|| {
        crowd.answered(1);
        kill(&mut system, &home, &crowd, times);
        until("every session has read", || crowd.all_read());
    });
    idle.again(&home, starter);
    until("threads and descriptors are given back", || {
        let now = held(&system.process);
        now.0 <= descriptors + KEPT && now.1 <= threads
    });
    crowd.taints_are_right(true);
    crowd.taint_is_obeyed();
    crowd.own_sessions_are_over();
    assert!(system.stop().success(), "{}", home.stderr());
    stopped.again(&home, starter);

    let account = account(&home, &told);
    println!("{account:?} of {} calls", told.len());
    // The load was there: calls were cut off in the middle, and calls came through.
    assert!(account.results > 0 && account.unknown > 0 && account.nothing > 0);
    let exit = |line: proto::Line| match line.entry {
        Entry::Role { event, .. } => match *event {
            RoleEvent::Ended { exit } => Some(exit),
            _ => None,
        },
        _ => None,
    };
    let ends: Vec<_> = home.lines().into_iter().filter_map(exit).collect();
    let killed = ends
        .iter()
        .filter(|exit| **exit == Some(ExitStatus::Signal(9)));
    assert_eq!(killed.count(), times, "{ends:?}");
}

#[test]
fn brokerd_killed_a_hundred_times_under_load_loses_no_call_and_leaves_nothing() {
    if skipped_without_root("brokerd_killed_a_hundred_times_under_load") {
        return;
    }
    killed(Starter::Root(block(0)), 100);
}

#[test]
fn brokerd_of_a_plain_user_killed_under_load_loses_no_call_and_leaves_nothing() {
    if skipped_without_user_namespaces("brokerd_of_a_plain_user_killed_under_load") {
        return;
    }
    killed(Starter::Plain(block(1)), 20);
}
