//! The host's side of one sandbox: its socket, its pid 1, its cgroup, its uid. Whatever happens, dropping it leaves
//! nothing behind.

use std::os::fd::{AsFd, OwnedFd};

use ipc::Wire;
use proto::Layer;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::bare;
use crate::cgroup::{CgroupError, Group};
use crate::uids::Uid;

#[derive(Debug)]
pub(crate) struct Sandbox {
    wire: Wire,
    pid: u32,
    handle: OwnedFd,
    group: Group,
    /// Whether it has no pid namespace that ends with its pid 1.
    bare: bool,
    /// Held so that nobody else gets it while anything of this sandbox lives.
    uid: Option<Uid>,
}

impl Sandbox {
    pub(crate) const fn new(
        wire: Wire,
        pid: u32,
        handle: OwnedFd,
        group: Group,
        bare: bool,
    ) -> Self {
        Self {
            wire,
            pid,
            handle,
            group,
            bare,
            uid: None,
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

    pub(crate) fn measure_limits(&self) -> Vec<(Layer, Result<(), String>)> {
        self.group.measure(self.pid)
    }

    /// How often the kernel killed something in it for want of memory.
    pub(crate) fn oom_kills(&self) -> u64 {
        self.group.oom_kills()
    }

    /// Kills pid 1, and with it everything inside (pid_namespaces(7)); a bare sandbox's processes one by one, and its stage
    /// last, since that is where those come to that lose their parent.
    pub(crate) fn kill(&self) {
        if self.bare {
            bare::kill_descendants(self.pid);
        }
        // ESRCH says that it is gone already.
        let _: rustix::io::Result<()> =
            rustix::process::pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.kill();
        // Pid 1 is a zombie only after everything in its namespace is gone, so nothing is left when this returns.
        let id = WaitId::PidFd(self.handle.as_fd());
        while let Err(rustix::io::Errno::INTR) =
            rustix::process::waitid(id.clone(), WaitIdOptions::EXITED)
        {}
        remove(&self.group);
    }
}

/// Removes a cgroup that should be empty by now. One that cannot be removed holds nothing that runs, and the next
/// start of the supervisor tries again.
pub(super) fn remove(group: &Group) {
    let _: Result<(), CgroupError> = group.kill().and_then(|()| group.remove());
}
