//! One sandbox's group in every hierarchy: limits, membership, killing what is in it, removal. Holds only groups that it
//! made itself.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use proto::Layer;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::hierarchy::{CONTROLLERS, Missing, Version};
use super::{CgroupError, limits, mounts};
use crate::plan::Limits;

/// How long processes have to die after SIGKILL, and a group without processes to be given up by the kernel.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// A group of one sandbox.
#[derive(Debug)]
pub struct Group {
    pub(super) parts: Vec<Part>,
    pub(super) missing: Missing,
    pub(super) limits: Limits,
}

/// The group in one hierarchy.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) version: Version,
    pub(super) layers: Vec<Layer>,
    pub(super) directory: PathBuf,
    /// What `/proc/<pid>/cgroup` says for its members.
    pub(super) group: String,
}

impl Part {
    /// Writes the limits of its layers.
    pub(super) fn limit(&self, limits: &Limits) -> Result<(), CgroupError> {
        self.layers
            .iter()
            .try_for_each(|layer| limits::set(&self.directory, self.version, *layer, limits))
    }

    /// How many processes the kernel has killed in it for want of memory.
    fn oom_kills(&self) -> Option<u64> {
        let file = match self.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        number(
            &fs::read_to_string(self.directory.join(file)).ok()?,
            "oom_kill",
        )
    }
}

impl Group {
    /// For each hierarchy the file by which a process joins, open for writing, with the first layer it limits. A process
    /// of one thread that writes `0` to all of them is in the group (cgroups(7)).
    ///
    /// In a hierarchy of version 1 that is `tasks`. It moves the one thread that writes, so the kernel need not hold up
    /// every fork and exit on the host first, which costs a grace period of RCU for `cgroup.procs`.
    ///
    /// # Errors
    /// [`CgroupError::Read`] for a file that does not open.
    pub fn join_files(&self) -> Result<Vec<(Layer, OwnedFd)>, CgroupError> {
        self.parts
            .iter()
            .map(|part| {
                let name = match part.version {
                    Version::V1 => "tasks",
                    Version::V2 => "cgroup.procs",
                };
                let path = part.directory.join(name);
                let file = OpenOptions::new()
                    .write(true)
                    .open(&path)
                    .map_err(|source| CgroupError::Read { path, source })?;
                Ok((part.layers[0], OwnedFd::from(file)))
            })
            .collect()
    }

    /// For memory, pids and cpu, whether process `pid` is in the group **and** the limit reads back as it was set; if
    /// not, the reason.
    #[must_use]
    pub fn measure(&self, pid: u32) -> Vec<(Layer, Result<(), String>)> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))
            .map_err(|error| format!("cannot read /proc/{pid}/cgroup: {error}"));
        let one = |layer: Layer, controller: &str| {
            if let Some((_, reason)) = self.missing.iter().find(|(missing, _)| *missing == layer) {
                return Err(reason.clone());
            }
            let part = self
                .parts
                .iter()
                .find(|part| part.layers.contains(&layer))
                .ok_or_else(|| format!("no group for {layer}"))?;
            let groups = groups.as_ref().map_err(Clone::clone)?;
            let group = match part.version {
                Version::V1 => mounts::group_of(groups, controller),
                Version::V2 => mounts::unified_group(groups),
            };
            if group.as_deref() != Some(part.group.as_str()) {
                let found = group.unwrap_or_else(|| "none".to_owned());
                return Err(format!(
                    "the process is in {found} instead of {}",
                    part.group
                ));
            }
            limits::check(&part.directory, part.version, layer, &self.limits)
        };
        CONTROLLERS
            .iter()
            .map(|(layer, controller)| (*layer, one(*layer, controller)))
            .collect()
    }

    /// How many processes the kernel has killed in the group because its memory was used up; 0 where memory is not
    /// limited.
    #[must_use]
    pub fn oom_kills(&self) -> u64 {
        self.parts
            .iter()
            .filter(|part| part.layers.contains(&Layer::Memory))
            .find_map(Part::oom_kills)
            .unwrap_or(0)
    }

    /// Kills everything in the group with SIGKILL and waits until it is empty, forks meanwhile included.
    ///
    /// # Errors
    /// [`CgroupError::Busy`] if something is still there after 2 seconds.
    pub fn kill(&self) -> Result<(), CgroupError> {
        self.parts
            .iter()
            .try_for_each(|part| kill_all(&part.directory))
    }

    /// Removes the group, which must be empty or about to be; and the directory of all groups, if it was the last.
    ///
    /// # Errors
    /// [`CgroupError::Busy`] if a process is still in it after 2 seconds, [`CgroupError::Remove`] otherwise.
    pub fn remove(&self) -> Result<(), CgroupError> {
        for part in &self.parts {
            remove(&part.directory)?;
            if let Some(base) = part.directory.parent() {
                // Busy while other sandboxes live; then they or the next start remove it.
                let _ = fs::remove_dir(base);
            }
        }
        Ok(())
    }
}

/// The number after `key` in a file of keys and numbers, one pair a line.
fn number(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok())?
    })
}

/// Kills what is in a group until it is empty: at once where the kernel has `cgroup.kill` (v2, since 5.14), else one by
/// one, and the group is read again until nothing is left.
pub(super) fn kill_all(directory: &Path) -> Result<(), CgroupError> {
    let start = Instant::now();
    let mut at_once = false;
    while !is_empty(directory)? {
        at_once = at_once || kill_at_once(directory);
        if !at_once {
            kill_each(directory)?;
        }
        if start.elapsed() > PATIENCE {
            return Err(CgroupError::Busy(directory.to_owned()));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Whether the kernel has taken the whole group, and what is forked meanwhile.
fn kill_at_once(directory: &Path) -> bool {
    let path = directory.join("cgroup.kill");
    let write = || OpenOptions::new().write(true).open(path)?.write_all(b"1");
    write().is_ok()
}

fn kill_each(directory: &Path) -> Result<(), CgroupError> {
    let held: Vec<_> = members(directory)?
        .into_iter()
        .filter_map(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)))
        .collect();
    // A number may have gone to a stranger between the two: only what is a member while held is killed.
    let still = members(directory)?;
    for (_, process) in held.iter().filter(|(pid, _)| still.contains(pid)) {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    Ok(())
}

/// Whether no process is in the group, nor, as v2 counts them, in one below it.
fn is_empty(directory: &Path) -> Result<bool, CgroupError> {
    match is_populated(directory) {
        Ok(Some(populated)) => Ok(!populated),
        Ok(None) => Ok(members(directory)?.is_empty()),
        Err(source) => Err(CgroupError::Read {
            path: directory.to_owned(),
            source,
        }),
    }
}

/// What the kernel says of a v2 group: whether a living process is in it or in a group below it. `None` where it does not
/// say, for a v1 group and for one that is gone.
pub(super) fn is_populated(directory: &Path) -> io::Result<Option<bool>> {
    match fs::read_to_string(directory.join("cgroup.events")) {
        Ok(text) => Ok(number(&text, "populated").map(|count| count > 0)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // A group that is removed while its file is open.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NODEV) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The processes of a group; those of foreign pid namespaces read as 0 and are left out.
pub(super) fn members(directory: &Path) -> Result<Vec<Pid>, CgroupError> {
    let path = directory.join("cgroup.procs");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(CgroupError::Read { path, source }),
    };
    Ok(text
        .lines()
        .filter_map(|line| Pid::from_raw(line.trim().parse().ok()?))
        .collect())
}

/// Removes one empty group; the kernel needs a moment after its last process has gone.
pub(super) fn remove(directory: &Path) -> Result<(), CgroupError> {
    let start = Instant::now();
    loop {
        match rustix::fs::rmdir(directory) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) if start.elapsed() < PATIENCE => thread::sleep(PAUSE),
            Err(Errno::BUSY) => return Err(CgroupError::Busy(directory.to_owned())),
            Err(error) => {
                return Err(CgroupError::Remove {
                    path: directory.to_owned(),
                    source: error.into(),
                });
            }
        }
    }
}

/// Whether the caller is in the group of this directory.
pub(super) fn holds_caller(directory: &Path) -> bool {
    let is_group = File::open(directory.join("cgroup.procs")).is_ok();
    is_group && members(directory).is_ok_and(|members| members.contains(&rustix::process::getpid()))
}

#[cfg(test)]
mod tests;
