//! Ten thousand refused calls: the log stays short and counts every one, memory stays bounded, nothing leaks, and
//! another caller is served meanwhile.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::processes::{Process, until};
use boxmaker_tests::system::{Home, System};
use proto::{DenyReason, Entry};

use crate::home::{Peer, file, home, sessions, status, up};

const CALLS: usize = 10_000;

/// How much memory a process may have more than before, in KiB. Each call that left something of a KiB behind would
/// pass it.
const ROOM: u64 = 8 * 1024;

/// How many descriptors or threads more than before are none that a call left behind: the stages that wait for the other
/// caller's next calls hold some. Ten thousand calls would leave far more.
const SPARE: usize = 24;

/// What a process holds: memory in KiB, descriptors, threads.
fn held(process: &Process) -> (u64, usize, usize) {
    let of = |what: &str| format!("/proc/{}/{what}", process.pid);
    let text = fs::read_to_string(of("status")).unwrap();
    let resident = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    let count = |what: &str| fs::read_dir(of(what)).unwrap().count();
    (resident.unwrap(), count("fd"), count("task"))
}

/// Compares what both processes hold with what they held.
fn bounded(system: &System, home: &Home, before: &[(u64, usize, usize); 2]) {
    let processes = [system.process.clone(), system.brokerd(home)];
    until("descriptors and threads are given back", || {
        processes.iter().zip(before).all(|(process, before)| {
            let now = held(process);
            now.1 <= before.1 + SPARE && now.2 <= before.2 + SPARE
        })
    });
    for (process, before) in processes.iter().zip(before) {
        let now = held(process);
        println!("{}: {before:?}, then {now:?}", process.command());
        assert!(now.0 <= before.0 + ROOM, "{}: {now:?}", process.command());
    }
}

fn both(system: &System, home: &Home) -> [(u64, usize, usize); 2] {
    [held(&system.process), held(&system.brokerd(home))]
}

/// Reads a note over and over beside `during`; how often.
fn served_beside(home: &Home, during: impl FnOnce()) -> usize {
    let peer = Peer::new(home, "other");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut times = 0;
            while !over.load(Ordering::SeqCst) {
                peer.reads(home);
                times += 1;
            }
            times
        });
        let end = OnEnd(&over);
        during();
        drop(end);
        other.join().unwrap()
    })
}

/// Ends the other caller, also when the test fails.
struct OnEnd<'a>(&'a AtomicBool);

impl Drop for OnEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// By what the log holds of refusals: how many have a record, how many are counted, in how many records.
fn refusals(home: &Home) -> (usize, u64, usize) {
    let own = home.decisions();
    let own = own
        .iter()
        .filter(|(_, one)| one.decision.granted().is_none());
    let counted: Vec<u64> = home
        .lines()
        .into_iter()
        .filter_map(|line| match line.entry {
            Entry::Denials { count, .. } => Some(count),
            _ => None,
        })
        .collect();
    (own.count(), counted.iter().sum(), counted.len())
}

#[test]
fn ten_thousand_refused_calls_are_counted_and_leave_nothing() {
    if skipped_without_root("ten_thousand_refused_calls_are_counted") {
        return;
    }
    // Two sessions; both stay below the ceiling.
    let home = home(100_000);
    let system = up(&home);
    let outside = file(&home, "away.md");
    let through = file(&home, "notes/away.md");
    let long = format!("{{\"path\":\"/{}\"}}", "x".repeat(8000));
    let refuse = |peer: &Peer, number: usize| {
        let invented = format!("invented{number}");
        let (tool, arguments, reason) = match number % 5 {
            0 => ("fs_read", outside.as_str(), DenyReason::NoGrant),
            1 => ("fs_read", long.as_str(), DenyReason::NoGrant),
            2 => ("fs_read", "{", DenyReason::BadArguments),
            3 => (invented.as_str(), "{}", DenyReason::UnknownTool),
            // As far as the supervisor, which finds the link.
            _ => ("fs_read", through.as_str(), DenyReason::PathOutside),
        };
        assert_eq!(peer.denied(tool, arguments), reason);
    };
    let begun = Instant::now();
    let peers = [Peer::new(&home, "one"), Peer::new(&home, "two")];
    // What is kept for a minute or for good is there after this.
    for number in 0..500 {
        refuse(&peers[number % 2], number);
    }
    Peer::new(&home, "other").reads(&home);
    let before = both(&system, &home);
    let served = served_beside(&home, || {
        thread::scope(|scope| {
            for (index, peer) in peers.iter().enumerate() {
                let refuse = &refuse;
                scope.spawn(move || {
                    for number in (500..CALLS).filter(|number| number % 2 == index) {
                        refuse(peer, number);
                    }
                });
            }
        });
    });
    assert!(served > 0);
    bounded(&system, &home, &before);
    assert_eq!(status(&home).roles[0].restarts, 0);
    for known in sessions(&home) {
        let refused = if known.session.as_str() == "other" {
            0
        } else {
            CALLS as u64 / 2
        };
        assert_eq!(known.denied, refused, "{known:?}");
    }
    drop(peers);
    let minutes = begun.elapsed().as_secs() as usize / 60 + 2;
    assert!(system.stop().success());
    home.sound();
    let (own, counted, records) = refusals(&home);
    println!("{own} own records, {counted} counted in {records}, {served} served");
    assert_eq!(own as u64 + counted, CALLS as u64);
    // In a minute each session has at most 64 kinds of 8, and one more that counts the rest.
    assert!(own <= 2 * 64 * 8 * minutes, "{own}");
    assert!(records <= 2 * 65 * minutes, "{records}");
    // Four kinds and at most 60 invented names: far below what the rule allows.
    assert!(own < 2 * (4 * 8 + 64) * minutes, "{own}");
}

#[test]
fn past_the_ceiling_a_session_has_no_records_and_another_is_served() {
    if skipped_without_root("past_the_ceiling_a_session_has_no_records") {
        return;
    }
    let ceiling = 200;
    let home = home(ceiling as u64);
    let system = up(&home);
    let begun = Instant::now();
    let peer = Peer::new(&home, "one");
    let outside = file(&home, "away.md");
    for _ in 0..ceiling {
        assert_eq!(peer.denied("fs_read", &outside), DenyReason::NoGrant);
    }
    Peer::new(&home, "other").reads(&home);
    let before = both(&system, &home);
    let served = served_beside(&home, || {
        for number in ceiling..CALLS {
            let invented = format!("invented{number}");
            let reason = peer.denied(&invented, "{}");
            assert_eq!(reason, DenyReason::LimitReached);
        }
    });
    assert!(served > 0);
    bounded(&system, &home, &before);
    drop(peer);
    let minutes = begun.elapsed().as_secs() as usize / 60 + 2;
    assert!(system.stop().success());
    home.sound();
    let (own, counted, records) = refusals(&home);
    assert_eq!(own as u64 + counted, CALLS as u64);
    assert!((1..=8 * minutes).contains(&own), "{own}");
    assert!((1..=2 * minutes).contains(&records), "{records}");
}
