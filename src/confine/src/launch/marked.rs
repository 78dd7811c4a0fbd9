//! Every process of a sandbox without a pid namespace, by the mark it carries: a hard limit that it can neither raise nor
//! lower, and that all it starts inherit. Processes without that very mark are not touched, whosever they are.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use sha2::{Digest, Sha256};

use crate::measure::mark;

/// A bit that no limit has that means anything: as microseconds, 146 000 years.
const HIGH: u64 = 1 << 62;

/// The marks of one supervisor: this many of the bits below [`HIGH`] tell its sandboxes apart, more than there will be while one
/// of them lives; the others are its own.
const BITS: u32 = 36;

/// The marks of the sandboxes of one supervisor, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks(u64);

impl Marks {
    pub(super) fn of(name: &str) -> Self {
        let hash: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        let own = (u64::from_le_bytes(first) << BITS) & (HIGH - 1);
        Self(HIGH | own)
    }

    /// The mark of its sandbox number `number`; they begin again when there are no more.
    pub(super) const fn of_sandbox(self, number: u64) -> u64 {
        self.0 | (number & ((1 << BITS) - 1))
    }

    /// Ends every process of every sandbox of this supervisor, of an earlier life of it.
    pub(super) fn end_all(self) -> io::Result<()> {
        end(|mark| mark >> BITS == self.0 >> BITS)
    }
}

/// Ends every process with this mark.
pub(super) fn end_marked(mark: u64) -> io::Result<()> {
    end(|found| found == mark)
}

/// How long the marked processes may take to end. One that was killed and hangs in the kernel runs no code any more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kills the processes whose mark is meant until a look at all of them finds none that runs.
///
/// # Errors
/// `/proc` cannot be read, or one of them does not end.
fn end(is_meant: impl Fn(u64) -> bool) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if mark_of(pid).is_some_and(&is_meant) {
                left.extend(strike(pid, &is_meant).map(|handle| (pid, handle)));
            }
        }
        let Some((pid, _)) = left.first() else {
            return Ok(());
        };
        if begun.elapsed() > PATIENCE {
            let text = format!(
                "process {pid} of a sandbox without namespaces does not end; kill it, then start boxmaker again"
            );
            return Err(io::Error::other(text));
        }
        for (_, handle) in left {
            await_end(&handle, Duration::from_millis(100));
            reap(&handle);
        }
    }
}

/// Kills one process; its handle, unless it has ended by now.
fn strike(pid: i32, is_meant: impl Fn(u64) -> bool) -> Option<OwnedFd> {
    let handle = rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    // Asked again now that the number cannot become another process's.
    if !mark_of(pid).is_some_and(is_meant) {
        return None;
    }
    if await_end(&handle, Duration::ZERO) {
        // Somebody has still to take note of its end; if that is this process, it does.
        reap(&handle);
        return None;
    }
    match rustix::process::pidfd_send_signal(&handle, Signal::KILL) {
        // Anybody can take the same limit. What a plain user started is that user's.
        Err(Errno::PERM) if !rustix::process::geteuid().is_root() => None,
        // ESRCH says that it has just ended.
        _ => Some(handle),
    }
}

/// Whether the process ended within `patience`.
fn await_end(handle: &OwnedFd, patience: Duration) -> bool {
    let mut watched = [PollFd::new(handle, PollFlags::IN)];
    let patience = Timespec::try_from(patience).ok();
    matches!(rustix::event::poll(&mut watched, patience.as_ref()), Ok(ready) if ready > 0)
}

/// Reaps it if it is a child of this process, which orphans of a stage are.
fn reap(handle: &OwnedFd) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let _ = rustix::process::waitid(WaitId::PidFd(handle.as_fd()), options);
}

fn mark_of(pid: i32) -> Option<u64> {
    mark::of_limits(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_one_name_differ_by_sandbox_and_of_two_names_by_name() {
        let (one, other) = (Marks::of("one"), Marks::of("other"));
        assert_ne!(one.of_sandbox(1), one.of_sandbox(2));
        assert_eq!(one.of_sandbox(1), one.of_sandbox(1 + (1 << BITS)));
        assert_eq!(one.of_sandbox(7) >> BITS, one.0 >> BITS);
        assert_ne!(one.of_sandbox(7) >> BITS, other.of_sandbox(7) >> BITS);
        assert!(one.0 < u64::MAX / 2 && one.0 >= HIGH);
    }
}
