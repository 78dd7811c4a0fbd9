//! brokerd's life: launched through the same confinement as every tool, watched, ended, and started again
//! (protocol.md section 1, architecture.md section 6).

mod keeper;
mod start;

use std::num::NonZeroU32;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use confine::derive::DeriveError;
use confine::host::HostError;
use confine::launch::{Ended, LaunchError};
use ipc::FilesError;
use ledger::{AppendError, ReadError};
use proto::audit::{ExitCause, ExitStatus, RoleEvent};
use proto::role::Empty;
use proto::{Confinement, Entry, Message};

use self::start::{Brokerd, start};
use crate::broker::Core;
use crate::notify::Notifier;
use crate::restart::{Ends, Next};
use crate::up::Event;
use crate::{in_full, lock, voice};

/// The role.
const ROLE: &str = "brokerd";
/// Its profile.
const PROFILE: &str = "roles/brokerd";
/// How long it has after `stop`.
const STOP: Duration = Duration::from_secs(10);
/// Signals that come within this time of the first say the same: a terminal and a service manager may both send one.
const ONE_WISH: Duration = Duration::from_secs(1);
/// How long a killed sandbox may take to be gone.
const GONE: Duration = Duration::from_secs(30);

/// Why brokerd does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RoleError {
    /// There is no profile for it.
    #[error("there is no profile {PROFILE:?}")]
    Profile,
    /// A path is not UTF-8.
    #[error("the path of {ROLE} is not UTF-8")]
    Path,
    /// Its binary is not there, or no program.
    #[error("{ROLE}: {0}; it is installed beside boxmaker: install both from one build")]
    Program(#[source] HostError),
    /// The host cannot give what the plan needs.
    #[error("{ROLE}: {0}")]
    Host(#[source] HostError),
    /// There is no plan.
    #[error("{ROLE}: {0}")]
    Derive(#[from] DeriveError),
    /// Its sandbox could not be built.
    #[error("{ROLE}: {0}")]
    Launch(#[from] LaunchError),
    /// Its sandbox is too weak.
    #[error(
        "{ROLE} is not started: {0}; use a host that has these layers, or name them in `waive` of config.toml, which \
         every record then shows"
    )]
    Weak(String),
    /// The start could not be recorded.
    #[error("{ROLE} is not started without a record: {0}")]
    Record(#[from] AppendError),
    /// The end could not be recorded.
    #[error("{ROLE} has ended, and that is not recorded: {0}")]
    RecordEnd(#[source] AppendError),
    /// The log could not be replayed.
    #[error("the history for {ROLE}: {0}")]
    History(#[from] ReadError),
    /// The policy could not be handed over.
    #[error("the policy for {ROLE}: {0}")]
    Files(#[from] FilesError),
    /// A socket, pipe or thread could not be had.
    #[error("{ROLE}: {0}")]
    Io(#[from] std::io::Error),
    /// It ended too often.
    #[error(
        "{ROLE} ended {0} times within {1:?} and is given up, as `[restart]` of config.toml says; its messages are above, \
         and `bxctl audit show` has its ends"
    )]
    GivenUp(NonZeroU32, Duration),
    /// A sandbox did not end when it was killed.
    #[error("a sandbox did not end within {} s of being killed; the supervisor ends so that the kernel removes it", GONE.as_secs())]
    Stuck,
}

impl From<HostError> for RoleError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::NoProgram { .. } | HostError::Program { .. } => Self::Program(error),
            _ => Self::Host(error),
        }
    }
}

/// Runs brokerd until the supervisor is told to stop. `ready` is called, with what was measured of brokerd's sandbox, and
/// the service manager told, each time brokerd can serve.
///
/// # Errors
/// As [`RoleError`]; nothing of brokerd or its calls is left.
pub(crate) fn run(
    core: &Arc<Core>,
    listener: &UnixListener,
    events: &Receiver<Event>,
    told: &Sender<Event>,
    notifier: &Notifier,
    mut ready: impl FnMut(&Confinement),
) -> Result<(), RoleError> {
    let rule = &core.loaded.policy.config().restart;
    let mut ends = Ends::new(rule);
    let mut starts = 0;
    loop {
        match start(core, listener, told, starts) {
            Ok(brokerd) => {
                starts += 1;
                let mut ready = || {
                    ready(&brokerd.confinement);
                    notifier.ready();
                };
                match watch(events, brokerd.pid, &mut ready) {
                    Watched::Ended(ended) => conclude(core, brokerd, &ended)?,
                    Watched::Told(at) => {
                        notifier.stopping();
                        return stop(core, brokerd, events, at);
                    }
                }
            }
            // The first start shows that something is wrong with the host or the configuration.
            Err(error) if starts == 0 => return Err(error),
            Err(error @ (RoleError::Record(_) | RoleError::History(_) | RoleError::Weak(_))) => {
                return Err(error);
            }
            Err(error) => voice::remark(&in_full(&error)),
        }
        match ends.ended(Instant::now()) {
            Next::GiveUp => {
                notifier.stopping();
                notifier.status(&format!("{ROLE} ended too often and is given up"));
                record(core, None, RoleEvent::GivenUp {})?;
                return Err(RoleError::GivenUp(rule.give_up, rule.window));
            }
            Next::After(wait) => {
                let again = format!("{ROLE} is started again in {} ms", wait.as_millis());
                voice::remark(&again);
                notifier.status(&format!("no call is served: {again}"));
                if stopped_within(events, wait) {
                    notifier.stopping();
                    return Ok(());
                }
            }
        }
    }
}

/// What came first.
enum Watched {
    /// brokerd ended.
    Ended(Ended),
    /// The supervisor was told to stop, then.
    Told(Instant),
}

/// Waits for the end of brokerd, or for the supervisor to be told to stop.
fn watch(events: &Receiver<Event>, pid: u32, ready: &mut impl FnMut()) -> Watched {
    loop {
        match events.recv() {
            Ok(Event::Ended(of, ended)) if of == pid => return Watched::Ended(ended),
            // Of a start that failed half-way.
            Ok(Event::Ended(..)) => {}
            Ok(Event::Ready) => ready(),
            Ok(Event::Signal(at)) => return Watched::Told(at),
            // The senders live as long as this thread.
            Err(_) => return Watched::Told(Instant::now()),
        }
    }
}

/// Whether the supervisor is told to stop within `wait`.
fn stopped_within(events: &Receiver<Event>, wait: Duration) -> bool {
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match events.recv_timeout(left) {
            Ok(Event::Signal(_)) | Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
            Ok(Event::Ready | Event::Ended(..)) => {}
        }
    }
}

/// The orderly end: brokerd is asked, and killed if it does not go, or if a later signal than those around the `first`
/// says that somebody is impatient.
fn stop(
    core: &Core,
    brokerd: Brokerd,
    events: &Receiver<Event>,
    first: Instant,
) -> Result<(), RoleError> {
    core.stopping.store(true, Ordering::SeqCst);
    brokerd.life.line.say(Message::Stop(Empty {}));
    let mut until = Instant::now() + STOP;
    let mut killed = false;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match events.recv_timeout(left) {
            Ok(Event::Ended(of, ended)) if of == brokerd.pid => {
                return conclude(core, brokerd, &ended);
            }
            Ok(Event::Ended(..) | Event::Ready) => {}
            // Once it is killed there is nothing to hurry.
            Ok(Event::Signal(at)) if killed || !hurries(first, at) => {}
            Err(_) if killed => return Err(RoleError::Stuck),
            Ok(Event::Signal(_)) | Err(_) => {
                killed = true;
                brokerd.killer.kill(ExitCause::Aborted);
                until = Instant::now() + GONE;
            }
        }
    }
}

/// Whether a signal that came `at` says more than the first one.
fn hurries(first: Instant, at: Instant) -> bool {
    at.saturating_duration_since(first) >= ONE_WISH
}

/// brokerd is gone: so is everything it had asked for, and then its end is recorded.
fn conclude(core: &Core, brokerd: Brokerd, ended: &Ended) -> Result<(), RoleError> {
    let Brokerd {
        life, pid, reader, ..
    } = brokerd;
    life.close();
    life.line.close();
    // It ends with the line; a panic in it was reported and changes nothing here.
    let _ = reader.join();
    if !life.wait_idle(GONE) {
        return Err(RoleError::Stuck);
    }
    lock(&core.books).nothing_is_live();
    lock(&core.approvals).nobody_waits();
    lock(&core.roles)
        .iter_mut()
        .for_each(|role| role.pid = None);
    voice::remark(&format!(
        "{ROLE} (process {pid}) ended: {}",
        in_words(ended)
    ));
    let event = RoleEvent::Ended { exit: ended.exit };
    let appended = core.ledger.append(role_entry(Some(pid), event));
    appended.map(drop).map_err(RoleError::RecordEnd)
}

fn in_words(ended: &Ended) -> String {
    if ended.cause == ExitCause::Timeout {
        return format!("killed after the `wall` of profile {PROFILE}");
    }
    match ended.exit {
        Some(ExitStatus::Code(code)) => format!("status {code}"),
        Some(ExitStatus::Signal(signal)) => format!("signal {signal}"),
        None => "its status was not seen".to_owned(),
    }
}

fn role_entry(pid: Option<u32>, event: RoleEvent) -> Entry {
    Entry::Role {
        role: ROLE.to_owned(),
        pid,
        event: Box::new(event),
    }
}

fn record(core: &Core, pid: Option<u32>, event: RoleEvent) -> Result<(), AppendError> {
    core.ledger.append_durable(role_entry(pid, event)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_later_signal_hurries() {
        let first = Instant::now();
        let after = |ms| first + Duration::from_millis(ms);
        assert!(!hurries(first, first));
        assert!(!hurries(first, after(999)));
        assert!(hurries(first, after(1000)));
        // Two threads may see them in the other order.
        assert!(!hurries(after(1000), first));
    }
}
