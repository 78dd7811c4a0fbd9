//! The end of every process of a sandbox: by the pid namespace where there is one, and else child by child. The children
//! of whoever is killed become children of this process, a subreaper, so that nobody is out of reach for long, whatever
//! session or group it made for itself.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgid, getpgrp};

use super::{At, StageError};
use crate::message::Step;

/// How the processes of the sandbox are reached.
pub(super) enum Descendants {
    /// All of them, as pid 1.
    Namespace,
    /// The children, of which this file is the list as it is when it is read.
    Children(File),
}

impl Descendants {
    /// Without a pid namespace. To be called before Landlock, which closes `/proc`.
    pub(super) fn of_this_process() -> Result<Self, StageError> {
        // Names them since Linux 3.5, and in every kernel with CONFIG_PROC_CHILDREN.
        let path = "/proc/thread-self/children";
        Ok(Self::Children(File::open(path).at(Step::Subreaper, path)?))
    }

    /// The descriptor that is held for it.
    pub(super) fn held(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Namespace => None,
            Self::Children(file) => Some(file.as_fd()),
        }
    }

    /// Kills and reaps all of them, until none is left.
    ///
    /// # Errors
    /// The list of the children cannot be read: who they are is for the launcher to find out.
    pub(super) fn end(&mut self) -> io::Result<()> {
        loop {
            let struck = match self {
                Self::Namespace => strike_namespace(),
                Self::Children(list) => strike_children(list)?,
            };
            // One that was struck will end. Otherwise the list was read while it changed, and is read again.
            let mut how = (!struck).then_some(WaitPidFlag::WNOHANG);
            loop {
                match waitpid(None, how) {
                    Ok(WaitStatus::StillAlive) => break,
                    Ok(_) => how = Some(WaitPidFlag::WNOHANG),
                    Err(Errno::EINTR) => {}
                    Err(_) => return Ok(()),
                }
            }
        }
    }
}

fn strike_namespace() -> bool {
    // Only as pid 1 does -1 mean the sandbox; anywhere else it would mean the host.
    if nix::unistd::getpid() == Pid::from_raw(1) {
        // ESRCH says that nobody is left.
        let _: nix::Result<()> = kill(Pid::from_raw(-1), Signal::SIGKILL);
    }
    true
}

/// Kills each child and the process group it is in; whether there was one. A child is there until it is reaped, so its
/// number is nobody else's; and a group in its session holds nobody but what came of this process.
fn strike_children(list: &mut File) -> io::Result<bool> {
    let mut text = String::new();
    list.seek(SeekFrom::Start(0))?;
    list.read_to_string(&mut text)?;
    let mut any = false;
    let own = getpgrp();
    for pid in text.split_ascii_whitespace() {
        let Ok(pid) = pid.parse().map(Pid::from_raw) else {
            continue;
        };
        any = true;
        // A group is killed in one moment, so that whoever starts processes without end cannot outrun it.
        if let Some(group) = getpgid(Some(pid)).ok().filter(|group| *group != own) {
            let _: nix::Result<()> = kill(Pid::from_raw(-group.as_raw()), Signal::SIGKILL);
        }
        let _: nix::Result<()> = kill(pid, Signal::SIGKILL);
    }
    Ok(any)
}
