//! The last part of the inner half: waits for the word, starts the program as pid 2, reaps everything, passes the
//! program's status on. Ends, and with it everything inside, when the launcher's socket closes. Without a pid namespace
//! it ends everything itself first.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

use ipc::Wire;
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use proto::audit::ExitStatus;
use rustix::event::{PollFd, PollFlags};

use super::descendants::Descendants;
use super::spawn::spawn;
use super::{At, StageError};
use crate::message::{FromStage, MessageError, Step, ToStage, receive, send};
use crate::plan::Program;
use crate::seccomp::Filter;

/// What tells a stage without a pid namespace that the launcher has ended: it still has something to do then.
pub(super) const LAUNCHER_ENDED: Signal = Signal::SIGTERM;

/// Tells by a descriptor that a child has ended, or that the launcher has.
pub(super) struct Reaper {
    signals: SignalFd,
    descendants: Descendants,
}

impl Reaper {
    /// Blocks the signals and opens a descriptor for them. The program is started with none of them blocked.
    pub(super) fn new(descendants: Descendants) -> Result<Self, StageError> {
        let step = Step::Start;
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        if matches!(descendants, Descendants::Children(_)) {
            mask.add(LAUNCHER_ENDED);
        }
        mask.thread_block().at(step, "block signals")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self {
            signals: SignalFd::with_flags(&mask, flags).at(step, "signalfd")?,
            descendants,
        })
    }

    /// Every descriptor that it holds.
    pub(super) fn held(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let held = self.descendants.held();
        [self.signals.as_fd()].into_iter().chain(held)
    }

    /// Takes the signals that came; whether the end of the launcher is among them.
    fn take_signals(&self) -> bool {
        let mut launcher_ended = false;
        while let Ok(Some(signal)) = self.signals.read_signal() {
            launcher_ended |= signal.ssi_signo == LAUNCHER_ENDED as u32;
        }
        launcher_ended
    }

    /// Reaps whatever has ended and returns the status of `program` if it is among them.
    fn reap(&self, program: Pid) -> Option<ExitStatus> {
        let mut status = None;
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == program => {
                    status = Some(ExitStatus::Code(
                        u8::try_from(code & 0xff).unwrap_or(u8::MAX),
                    ));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                    status = Some(ExitStatus::Signal(u8::try_from(signal as i32).unwrap_or(0)));
                }
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return status,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return status,
            }
        }
    }
}

/// Waits for `Start`, starts the program and stays until it has ended. `narrower` is installed for the program alone,
/// on top of the filter that this process has. `used` is not needed any more: it is closed while the program runs, because that
/// takes its time; the program does not inherit it.
pub(super) fn wait_and_start(
    wire: &Wire,
    program: &Program,
    stdio: Vec<OwnedFd>,
    mut reaper: Reaper,
    narrower: Option<&Filter>,
    used: impl Sized,
) -> Result<ExitCode, StageError> {
    let step = Step::Start;
    match receive::<ToStage>(wire) {
        Ok((ToStage::Start {}, _)) => {}
        // Given up before it ran: nothing to report.
        Ok((ToStage::Stop {}, _)) | Err(MessageError::Closed) => return Ok(ExitCode::FAILURE),
        Ok(_) => return Err("another message came instead of start").at(step, "standard input"),
        Err(error) => return Err(error).at(step, "standard input"),
    }
    let own_group = matches!(reaper.descendants, Descendants::Children(_));
    let child = match spawn(program, &stdio, own_group, narrower) {
        Ok(child) => child,
        Err(detail) => {
            send(wire, &FromStage::NotStarted { detail }, &[]).at(step, "report")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    // Whoever reads or writes their other ends waits for the program alone.
    drop(stdio);
    send(wire, &FromStage::Started {}, &[]).at(step, "report")?;
    drop(used);
    let exit = stay(wire, &reaper, child);
    // Also if there is nobody left to tell: without a namespace nothing else would end them.
    let ended = reaper.descendants.end();
    let exit = exit?;
    ended.at(step, "the list of children")?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).at(step, "getrusage")?;
    let cpu = usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds();
    let ended = FromStage::Ended {
        exit,
        cpu_ms: u64::try_from(cpu).unwrap_or(0),
        max_rss: u64::try_from(usage.max_rss()).unwrap_or(0),
    };
    send(wire, &ended, &[]).at(step, "report")?;
    Ok(ExitCode::SUCCESS)
}

/// Waits until the program ends, or the launcher says stop or is gone.
fn stay(wire: &Wire, reaper: &Reaper, program: Pid) -> Result<ExitStatus, StageError> {
    let step = Step::Start;
    loop {
        let mut watched = [
            PollFd::new(wire, PollFlags::IN),
            PollFd::new(&reaper.signals, PollFlags::IN),
        ];
        match rustix::event::poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno).at(step, "poll"),
        }
        let asked = !watched[0].revents().is_empty();
        let launcher_ended = reaper.take_signals();
        if let Some(status) = reaper.reap(program) {
            return Ok(status);
        }
        if launcher_ended {
            return Err("the launcher has ended").at(step, "signal");
        }
        if asked {
            match receive::<ToStage>(wire) {
                Ok((ToStage::Stop {}, _)) => return Ok(ExitStatus::Signal(Signal::SIGKILL as u8)),
                Ok(_) => {}
                // Pid 1 ends, and the kernel kills the rest.
                Err(MessageError::Closed) => {
                    return Err("the launcher is gone").at(step, "standard input");
                }
                Err(error) => return Err(error).at(step, "standard input"),
            }
        }
    }
}
