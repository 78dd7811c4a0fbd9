//! A sandbox whose program runs, until it is empty.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proto::audit::{ExitCause, ExitStatus, Usage};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::time::ClockId;

use super::pool::Underway;
use super::remover::Inbox;
use super::sandbox::Sandbox;
use crate::message::{FromStage, ToStage, receive, send};

/// How long pid 1 may take to empty its sandbox before it is killed itself.
const GRACE: Duration = Duration::from_secs(2);

/// A sandbox whose program was let go.
#[derive(Debug)]
pub struct Running {
    sandbox: Sandbox,
    started: Duration,
    killer: Killer,
    inbox: Inbox,
    _underway: Underway,
}

/// Stops a running sandbox from any thread.
#[derive(Debug, Clone)]
pub struct Killer {
    cause: Arc<Mutex<Option<ExitCause>>>,
    wake: Arc<OwnedFd>,
}

impl Killer {
    /// Asks for the end of the sandbox; the first cause counts.
    pub fn kill(&self, cause: ExitCause) {
        self.cause
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(cause);
        // The counter of an eventfd only overflows after 2^64 calls.
        let _: rustix::io::Result<usize> = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }

    fn cause(&self) -> Option<ExitCause> {
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a sandbox ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The program's status; none if it never ran or nobody saw it.
    pub exit: Option<ExitStatus>,
    /// Why the sandbox is empty.
    pub cause: ExitCause,
    /// What it used.
    pub usage: Usage,
    /// What the stage said if the program could not be started.
    pub detail: Option<String>,
}

impl Running {
    pub(super) fn new(mut sandbox: Sandbox, inbox: Inbox, underway: Underway) -> io::Result<Self> {
        sandbox.may_run(true);
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let killer = Killer {
            cause: Arc::default(),
            wake: Arc::new(wake),
        };
        Ok(Self {
            sandbox,
            started: boot_time(),
            killer,
            inbox,
            _underway: underway,
        })
    }

    /// The process id of the sandbox's pid 1 as this process sees it.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.sandbox.pid()
    }

    /// A handle that stops it.
    #[must_use]
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }

    /// Waits until the sandbox is empty, at most `wall` after its start; then everything in it is killed. Time is
    /// boot time: it goes on while the machine sleeps.
    #[must_use]
    pub fn wait(self, wall: Duration) -> Ended {
        let mut deadline = self.started.saturating_add(wall);
        let mut stopping = false;
        let mut ended = None;
        let mut detail = None;
        loop {
            let left = deadline.saturating_sub(boot_time());
            if left.is_zero() {
                if stopping {
                    break;
                }
                self.killer.kill(ExitCause::Timeout);
            }
            let (told, woken) = self.poll(left);
            if woken && !stopping {
                stopping = true;
                deadline = boot_time().saturating_add(GRACE);
                if send(self.sandbox.wire(), &ToStage::Stop {}, &[]).is_err() {
                    break;
                }
            }
            if !told {
                continue;
            }
            match receive(self.sandbox.wire()) {
                Ok((FromStage::Started {}, _)) => {}
                Ok((
                    FromStage::Ended {
                        exit,
                        cpu_ms,
                        max_rss,
                    },
                    _,
                )) => {
                    ended = Some((exit, cpu_ms, max_rss));
                    break;
                }
                Ok((FromStage::NotStarted { detail: why }, _)) => {
                    self.killer.kill(ExitCause::NotStarted);
                    detail = Some(why);
                    break;
                }
                Ok((FromStage::Failed { step, detail: why }, _)) => {
                    detail = Some(format!("{step}: {why}"));
                    break;
                }
                Ok(_) | Err(_) => break,
            }
        }
        self.conclude(ended, detail)
    }

    fn conclude(
        mut self,
        ended: Option<(ExitStatus, u64, u64)>,
        mut detail: Option<String>,
    ) -> Ended {
        let wall = boot_time().saturating_sub(self.started);
        let exit = ended.map(|(exit, ..)| exit);
        // The stage says that it ended when it has reaped everybody.
        self.sandbox.may_run(exit.is_none());
        let by_signal = !matches!(exit, Some(ExitStatus::Code(_)));
        let left = match self.sandbox.is_bare() {
            true => self.sandbox.end().err(),
            false => None,
        };
        let cause = match self.killer.cause() {
            // Whatever else there is to say: not all of it has ended.
            _ if left.is_some() => ExitCause::Lost,
            Some(cause) => cause,
            None if by_signal && self.sandbox.oom_kills() > 0 => ExitCause::Memory,
            None if exit.is_some() => ExitCause::Exited,
            // Pid 1 is gone and nobody here asked for it.
            None => ExitCause::Lost,
        };
        detail = left.map(|error| error.to_string()).or(detail);
        let usage = Usage {
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            cpu_ms: ended.map(|(_, cpu_ms, _)| cpu_ms),
            max_rss: ended.map(|(.., max_rss)| max_rss),
        };
        match exit {
            // The stage said so when it was alone: what is left is for the kernel to take apart.
            Some(_) if !self.sandbox.is_bare() => self.inbox.leave(self.sandbox),
            _ => drop(self.sandbox),
        }
        Ended {
            exit,
            cause,
            usage,
            detail,
        }
    }

    /// Whether the stage has something to say, and whether somebody wants the end.
    fn poll(&self, left: Duration) -> (bool, bool) {
        let mut watched = [
            PollFd::new(self.sandbox.wire(), PollFlags::IN),
            PollFd::new(&*self.killer.wake, PollFlags::IN),
        ];
        let timeout = Timespec::try_from(left).ok();
        if rustix::event::poll(&mut watched, timeout.as_ref()).is_err() {
            return (false, false);
        }
        let [told, woken] = watched.map(|one| !one.revents().is_empty());
        if woken {
            let mut count = [0; 8];
            // Emptied so that the next poll waits; the cause is kept beside it.
            let _: rustix::io::Result<usize> = rustix::io::read(&*self.killer.wake, &mut count);
        }
        (told, woken)
    }
}

fn boot_time() -> Duration {
    let now = rustix::time::clock_gettime(ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}
