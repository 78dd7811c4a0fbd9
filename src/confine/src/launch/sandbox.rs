//! The host's side of one sandbox: its socket, its pid 1 or the stage that stands for it, its cgroup, its uid. Whatever happens, dropping it leaves
//! nothing behind.

use std::os::fd::{AsFd, OwnedFd};

use ipc::Wire;
use proto::Layer;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::marked::end_marked;
use super::park::Views;
use super::private::Private;
use crate::cgroup::{CgroupError, Group};
use crate::uids::Uid;

/// Which layers hold, as seen from outside, or why not.
pub(super) type Seen = Vec<(Layer, Result<(), String>)>;

#[derive(Debug)]
pub(crate) struct Sandbox {
    wire: Wire,
    pid: u32,
    handle: OwnedFd,
    group: Group,
    /// Held so that nobody else gets it while anything of this sandbox lives.
    uid: Option<Uid>,
    bare: Option<Bare>,
    /// What its namespaces are, once the stage has shown them.
    pub(super) namespaces: Option<Seen>,
    /// What the host's files were from which its root is made.
    pub(super) views: Views,
}

/// What is left of a sandbox without a pid namespace and a mount namespace when its stage has ended.
#[derive(Debug)]
struct Bare {
    mark: u64,
    /// Whether something may run that the stage did not see end.
    may_run: bool,
    _directory: Private,
}

impl Sandbox {
    pub(super) const fn new(
        wire: Wire,
        pid: u32,
        handle: OwnedFd,
        group: Group,
        views: Views,
    ) -> Self {
        Self {
            wire,
            pid,
            handle,
            group,
            uid: None,
            bare: None,
            namespaces: None,
            views,
        }
    }

    /// Has everything with `mark` ended, and `directory` removed, when the sandbox is.
    pub(crate) fn leaves(&mut self, mark: u64, directory: Private) {
        self.bare = Some(Bare {
            mark,
            may_run: false,
            _directory: directory,
        });
    }

    /// Whether it has neither a pid namespace nor a root of its own.
    pub(super) const fn is_bare(&self) -> bool {
        self.bare.is_some()
    }

    /// Says that a program was let go, or that the stage has reaped all that came of it.
    pub(crate) const fn may_run(&mut self, may_run: bool) {
        if let Some(bare) = &mut self.bare {
            bare.may_run = may_run;
        }
    }

    /// Keeps `uid` for as long as the sandbox lives.
    pub(crate) fn belongs_to(&mut self, uid: Option<Uid>) {
        self.uid = uid;
    }

    /// Whether its pid 1 has not ended.
    pub(crate) fn lives(&self) -> bool {
        let mut watched = [PollFd::new(&self.handle, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(rustix::event::poll(&mut watched, Some(&now)), Ok(0))
    }

    pub(crate) const fn wire(&self) -> &Wire {
        &self.wire
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn measure_limits(&self) -> Seen {
        self.group.measure(self.pid)
    }

    /// How often the kernel killed something in it for want of memory.
    pub(crate) fn oom_kills(&self) -> u64 {
        self.group.oom_kills()
    }

    /// Kills pid 1, and with it everything inside (pid_namespaces(7)).
    pub(crate) fn kill(&self) {
        // ESRCH says that it is gone already.
        let _: rustix::io::Result<()> =
            rustix::process::pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

impl Sandbox {
    /// Ends everything in it, and waits for that.
    ///
    /// # Errors
    /// Without a pid namespace: something of it does not end, or nobody can be looked for.
    pub(super) fn end(&mut self) -> std::io::Result<()> {
        self.kill();
        // Pid 1 is a zombie only after everything in its namespace is gone, so nothing of that is left when this returns.
        let id = WaitId::PidFd(self.handle.as_fd());
        while let Err(rustix::io::Errno::INTR) =
            rustix::process::waitid(id.clone(), WaitIdOptions::EXITED)
        {}
        match &mut self.bare {
            Some(Bare { mark, may_run, .. }) if *may_run => {
                *may_run = false;
                end_marked(*mark)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // Who waited for a program has heard of it; what has run nothing leaves nobody. The next start looks again.
        let _: std::io::Result<()> = self.end();
        remove(&self.group);
    }
}

/// Removes a cgroup that should be empty by now. One that cannot be removed holds nothing that runs, and the next
/// start of the supervisor tries again.
pub(super) fn remove(group: &Group) {
    let _: Result<(), CgroupError> = group.kill().and_then(|()| group.remove());
}
