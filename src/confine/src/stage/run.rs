//! The last part of the inner half: waits for the word, starts the program as pid 2, reaps everything, passes the
//! program's status on. Ends, and with it everything inside, when the launcher's socket closes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
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
    /// The list of this process's children, where it is not pid 1 of a namespace.
    children: Option<File>,
}

impl Reaper {
    /// Blocks SIGCHLD and opens a descriptor for it. The program gets a clean mask: the standard library empties
    /// it before exec.
    ///
    /// In a `bare` sandbox it makes itself the parent of whatever loses its own, so that everything the program starts is
    /// among its children sooner or later (PR_SET_CHILD_SUBREAPER(2const)).
    pub(super) fn new(bare: bool) -> Result<Self, StageError> {
        let step = Step::Start;
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        mask.thread_block().at(step, "block SIGCHLD")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let children = match bare {
            true => Some(adopt()?),
            false => None,
        };
        Ok(Self {
            children,
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

impl Reaper {
    /// What it holds open.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let children = self.children.as_ref().map(AsFd::as_fd);
        [self.signals.as_fd()].into_iter().chain(children)
    }
}

impl AsFd for Reaper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

/// Becomes the reaper of all descendants, and opens the list of children while it still can be opened.
fn adopt() -> Result<File, StageError> {
    let step = Step::Start;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).at(step, "subreaper")?;
    let path = "/proc/thread-self/children";
    File::open(path).at(step, path)
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
    let exit = stay(wire, &reaper, child);
    empty(&reaper);
    let exit = exit?;
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
        match &reaper.children {
            // What a child has started is a child of this process once that one is dead.
            Some(list) => kill_each(list),
            // Only as pid 1 does -1 mean the sandbox; anywhere else it would mean the host.
            None if nix::unistd::getpid() == Pid::from_raw(1) => {
                // ESRCH says that nobody is left.
                let _: nix::Result<()> = nix::sys::signal::kill(Pid::from_raw(-1), Signal::SIGKILL);
            }
            None => {}
        }
        match waitpid(None, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    while let Ok(Some(_)) = reaper.signals.read_signal() {}
}

/// Kills every child that the list names. It is not reaped before this process does so, so its number is nobody else's.
fn kill_each(mut list: &File) {
    let mut text = String::new();
    // A list that cannot be read names nobody; the launcher kills from outside what is left.
    let _ = list
        .seek(SeekFrom::Start(0))
        .and_then(|_| list.read_to_string(&mut text));
    for pid in text
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
    {
        let _: nix::Result<()> = nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}
