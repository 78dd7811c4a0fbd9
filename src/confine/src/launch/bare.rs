//! What a sandbox without namespaces needs of its launcher: a directory for the canaries, since none can be mounted, and
//! an end for what it started, since no namespace ends with it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long the descendants of one stage may take to die after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// An empty directory that no rule of any plan is about. It is removed with all that is in it when this is dropped.
#[derive(Debug)]
pub(super) struct CanaryDirectory {
    path: PathBuf,
}

impl CanaryDirectory {
    /// Makes one in `parent`.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("canaries-{}-{number}", std::process::id()));
        // One that a crash left belongs to a process that is gone.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path })
    }

    /// Opens it.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.path, flags, Mode::empty())?)
    }
}

impl Drop for CanaryDirectory {
    fn drop(&mut self) {
        // What stays is removed by whoever gets its name next.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Kills all that descends from process `stage`, which has made itself the parent of whatever loses its own, until
/// nothing is left, also not of what is forked meanwhile; at most for 5 seconds. The stage itself is left alone.
pub(super) fn kill_descendants(stage: u32) {
    let begun = Instant::now();
    loop {
        let living = descendants(stage);
        if living.is_empty() || begun.elapsed() > PATIENCE {
            return;
        }
        for pid in living {
            kill(stage, pid);
        }
        thread::sleep(PAUSE);
    }
}

/// Kills `pid` if it still descends from `stage` while it is held: its number may have gone to a stranger.
fn kill(stage: u32, pid: u32) {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(held) = number.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return;
    };
    if descendants(stage).contains(&pid) {
        let _: rustix::io::Result<()> = pidfd_send_signal(held, Signal::KILL);
    }
}

/// The processes below `stage` that are not dead, nearest first.
fn descendants(stage: u32) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut next = vec![stage];
    while let Some(pid) = next.pop() {
        for child in children(pid) {
            if !found.contains(&child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found.retain(|pid| !is_dead(*pid));
    found
}

/// The children of every thread of a process; none if it is gone (proc_tid_children(5)).
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let pids: Vec<u32> = list
                .split_ascii_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect();
            pids
        })
        .collect()
}

/// Whether a process has ended and waits to be reaped, or is gone.
fn is_dead(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    matches!(state, None | Some(None | Some('Z' | 'X')))
}
