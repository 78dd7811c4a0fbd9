//! A supervisor that runs: its processes, and its end.

use std::process::{Child, ExitStatus};

use proto::Entry;
use proto::audit::RoleEvent;
use rustix::process::Signal;

use super::Home;
use super::processes::{Process, until};

/// A running supervisor. Dropping it kills it, which is the end of everything it started.
#[derive(Debug)]
pub struct System {
    pub(super) child: Child,
    /// The supervisor.
    pub process: Process,
}

impl System {
    /// Fails at once if the supervisor has ended.
    ///
    /// # Panics
    /// It has.
    pub fn must_run(&mut self, home: &Home) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("boxmaker up ended, {status}:\n{}", home.stderr());
        }
    }

    /// Waits until calls are served, by a brokerd that was started since `times` such moments.
    pub fn wait_up(&mut self, home: &Home, times: usize) {
        until("boxmaker is up", || {
            self.must_run(home);
            home.times_up() > times
        });
    }

    /// Pid 1 of brokerd's sandbox: the latest role that the log has.
    ///
    /// # Panics
    /// The log has none, or it is gone.
    #[must_use]
    pub fn role(&self, home: &Home) -> Process {
        let started = home
            .lines()
            .into_iter()
            .rev()
            .find_map(|line| match line.entry {
                Entry::Role { pid, event, .. } if matches!(*event, RoleEvent::Started { .. }) => {
                    pid
                }
                _ => None,
            });
        Process::of(started.expect("a role was started")).expect("it lives")
    }

    /// The program that is brokerd, inside its sandbox.
    ///
    /// # Panics
    /// It is not there.
    #[must_use]
    pub fn brokerd(&self, home: &Home) -> Process {
        let inside = self.role(home).children();
        let [program] = inside.as_slice() else {
            panic!("one program in brokerd's sandbox, not {inside:?}");
        };
        program.clone()
    }

    /// Every sandbox but brokerd's, each by its pid 1; also stages that are being built.
    #[must_use]
    pub fn sandboxes(&self, home: &Home) -> Vec<Process> {
        let role = self.role(home);
        let mut all = self.process.children();
        all.retain(|process| *process != role);
        all
    }

    /// The end of everything in its order, as SIGTERM asks for it.
    ///
    /// # Panics
    /// The supervisor does not end.
    pub fn stop(mut self) -> ExitStatus {
        self.process.signal(Signal::TERM);
        let mut status = None;
        until("the supervisor ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// The end of the supervisor alone; everything else has to notice by itself.
    ///
    /// # Panics
    /// It cannot be killed.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
