//! The last part of the inner half: waits for the word, starts the program as pid 2, reaps everything, passes the
//! program's status on. Ends, and with it everything inside, when the launcher's socket closes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, ExitCode, Stdio};

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

use super::{At, StageError};
use crate::message::{FromStage, MessageError, Step, ToStage, receive, send};
use crate::plan::Program;

/// Tells by a descriptor that a child has ended.
pub(super) struct Reaper {
    signals: SignalFd,
}

impl Reaper {
    /// Blocks SIGCHLD and opens a descriptor for it. The program gets a clean mask: the standard library empties
    /// it before exec.
    pub(super) fn new() -> Result<Self, StageError> {
        let step = Step::Start;
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        mask.thread_block().at(step, "block SIGCHLD")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self {
            signals: SignalFd::with_flags(&mask, flags).at(step, "signalfd")?,
        })
    }

    /// Reaps whatever has ended and returns the status of `program` if it is among them.
    fn reap(&self, program: Pid) -> Option<ExitStatus> {
        while let Ok(Some(_)) = self.signals.read_signal() {}
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

impl AsFd for Reaper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

/// Waits for `Start`, starts the program and stays until it has ended.
pub(super) fn wait_and_start(
    wire: &Wire,
    program: &Program,
    stdio: Vec<OwnedFd>,
    reaper: Reaper,
) -> Result<ExitCode, StageError> {
    let step = Step::Start;
    match receive::<ToStage>(wire) {
        Ok((ToStage::Start {}, _)) => {}
        // Given up before it ran: nothing to report.
        Ok((ToStage::Stop {}, _)) | Err(MessageError::Closed) => return Ok(ExitCode::FAILURE),
        Ok(_) => return Err("another message came instead of start").at(step, "standard input"),
        Err(error) => return Err(error).at(step, "standard input"),
    }
    let child = match spawn(program, stdio) {
        Ok(child) => child,
        Err(detail) => {
            send(wire, &FromStage::NotStarted { detail }, &[]).at(step, "report")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    send(wire, &FromStage::Started {}, &[]).at(step, "report")?;
    let exit = stay(wire, &reaper, child)?;
    empty(&reaper);
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

fn spawn(program: &Program, stdio: Vec<OwnedFd>) -> Result<Pid, String> {
    let mut stdio = stdio.into_iter().map(Stdio::from);
    let [Some(stdin), Some(stdout), Some(stderr)] = [stdio.next(), stdio.next(), stdio.next()]
    else {
        return Err("no standard descriptors".to_owned());
    };
    let Some((path, words)) = program.argv.split_first() else {
        return Err("an empty command".to_owned());
    };
    let child = Command::new(path)
        .args(words)
        .env_clear()
        .envs(&program.env)
        .current_dir(&program.cwd)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .map_err(|error| format!("{path}: {error}"))?;
    // The handle is dropped, never waited on: the reaper sees every child.
    Ok(Pid::from_raw(
        i32::try_from(child.id()).map_err(|error| error.to_string())?,
    ))
}

/// Waits until the program ends, or the launcher says stop or is gone.
fn stay(wire: &Wire, reaper: &Reaper, program: Pid) -> Result<ExitStatus, StageError> {
    let step = Step::Start;
    loop {
        let mut watched = [
            PollFd::new(wire, PollFlags::IN),
            PollFd::new(reaper, PollFlags::IN),
        ];
        match rustix::event::poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno).at(step, "poll"),
        }
        let asked = !watched[0].revents().is_empty();
        if let Some(status) = reaper.reap(program) {
            return Ok(status);
        }
        if asked {
            match receive::<ToStage>(wire) {
                Ok((ToStage::Stop {}, _)) => return Ok(ExitStatus::Signal(Signal::SIGKILL as u8)),
                Ok(_) => {}
                // Pid 1 ends, and the kernel kills the rest.
                Err(_) => return Err("the launcher is gone").at(step, "standard input"),
            }
        }
    }
}

/// Kills and reaps whatever the program left behind.
fn empty(reaper: &Reaper) {
    loop {
        // Only as pid 1 does -1 mean the sandbox; anywhere else it would mean the host.
        if nix::unistd::getpid() == Pid::from_raw(1) {
            // ESRCH says that nobody is left.
            let _: nix::Result<()> = nix::sys::signal::kill(Pid::from_raw(-1), Signal::SIGKILL);
        }
        match waitpid(None, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    while let Ok(Some(_)) = reaper.signals.read_signal() {}
}
