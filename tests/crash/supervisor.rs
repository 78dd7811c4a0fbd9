//! The supervisor is killed over and over while eight callers call: every descendant is gone with it, and the next start
//! cleans up, verifies the log, and goes on where it ended.

use boxmaker_tests::binaries::{skipped_without_root, skipped_without_user_namespaces};
use boxmaker_tests::system::processes::{Process, until};
use boxmaker_tests::system::{Home, System};
use serde_json::json;

use crate::account::account;
use crate::caller::Socket;
use crate::crowd::Crowd;
use crate::home::{Starter, block, home, up};
use crate::traces::{Traces, processes};

/// Kills the supervisor and waits until everything that it had started is gone.
fn kill(system: &mut System, home: &Home, starter: Starter) {
    let below = system.process.descendants();
    system.kill();
    until("every descendant is gone", || {
        !below.iter().any(Process::lives)
    });
    // Also what was started between the look and the kill.
    until("no process of this home is left", || {
        processes(home, starter).is_empty()
    });
    // A process that is ending has no program any more and is there for a moment.
    until("no cgroup of this home holds a process", || {
        home.in_cgroups().0.is_empty()
    });
    home.sound();
}

/// A tool that ends only when it is killed, and what it left behind.
fn stays<'a>(system: &System, socket: &'a std::path::Path) -> Socket<'a> {
    let mut caller = Socket::open(socket, "stays");
    caller.send("stays", &json!({ "acts": ["orphan", "ignore_term"] }));
    until("the tool and its orphan run", || {
        system.process.tools().len() == 2
    });
    caller
}

fn killed(starter: Starter, times: usize) {
    let home = home(starter);
    assert!(up(&home).stop().success());
    let stopped = Traces::of(&home, starter);
    let mut system = up(&home);
    let idle = Traces::of(&home, starter);

    let socket = home.home().join("run/bxctl/broker.sock");
    let crowd = Crowd::new(&home);
    let mut ups = 0;
    let told = crowd.call(|| {
        for time in 0..times {
            if time % 5 == 4 {
                // While it starts: brokerd's stage is the first that it has.
                until("it starts something", || {
                    !system.process.children().is_empty()
                });
                kill(&mut system, &home, starter);
            } else {
                system.wait_up(&home, ups);
                crowd.taints_are_right(false);
                let _in_flight = stays(&system, &socket);
                crowd.answered(time % 3);
                kill(&mut system, &home, starter);
            }
            ups = home.times_up();
            system = home.start();
        }
        system.wait_up(&home, ups);
        until("every session has read", || crowd.all_read());
    });
    idle.again(&home, starter);
    crowd.taints_are_right(true);
    crowd.taint_is_obeyed();
    assert!(system.stop().success(), "{}", home.stderr());
    stopped.again(&home, starter);

    let account = account(&home, &told);
    println!("{account:?} of {} calls", told.len());
    assert!(account.results > 0 && account.nothing > 0);
}

#[test]
fn the_supervisor_killed_twenty_times_under_load_takes_everything_with_it() {
    if skipped_without_root("the_supervisor_killed_twenty_times_under_load") {
        return;
    }
    killed(Starter::Root(block(2)), 20);
}

#[test]
fn the_supervisor_of_a_plain_user_killed_under_load_takes_everything_with_it() {
    if skipped_without_user_namespaces("the_supervisor_of_a_plain_user_killed_under_load") {
        return;
    }
    killed(Starter::Plain(block(3)), 6);
}
