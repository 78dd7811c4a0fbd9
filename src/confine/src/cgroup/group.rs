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

use super::CgroupError;
use super::hierarchy::{self, CONTROLLERS};
use crate::plan::Limits;

/// The period over which processor time is counted, in microseconds.
const CPU_PERIOD: u64 = 100_000;
/// How long processes have to die after SIGKILL, and a group without processes to be given up by the kernel.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// A group of one sandbox.
#[derive(Debug)]
pub struct Group {
    pub(super) parts: Vec<Part>,
    pub(super) missing: Vec<(Layer, String)>,
    pub(super) limits: Limits,
}

/// The group in one hierarchy.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) layers: Vec<Layer>,
    pub(super) directory: PathBuf,
    /// What `/proc/<pid>/cgroup` says for its members.
    pub(super) group: String,
}

impl Part {
    /// Writes the limits of its layers.
    pub(super) fn limit(&self, limits: &Limits) -> Result<(), CgroupError> {
        for layer in &self.layers {
            match layer {
                Layer::Memory => {
                    let bytes = limits.memory.to_string();
                    self.write("memory.limit_in_bytes", &bytes)?;
                    // After the plain limit, which it may not be below. Without swap accounting it is not there.
                    self.write_if_there("memory.memsw.limit_in_bytes", &bytes)?;
                    self.write_if_there("memory.swappiness", "0")?;
                }
                Layer::Pids => self.write("pids.max", &limits.pids.to_string())?,
                _ => {
                    self.write("cpu.cfs_period_us", &CPU_PERIOD.to_string())?;
                    self.write("cpu.cfs_quota_us", &quota(limits).to_string())?;
                }
            }
        }
        Ok(())
    }

    fn write(&self, file: &str, value: &str) -> Result<(), CgroupError> {
        let path = self.directory.join(file);
        let write = || {
            OpenOptions::new()
                .write(true)
                .open(&path)?
                .write_all(value.as_bytes())
        };
        write().map_err(|source| CgroupError::Limit {
            path: path.clone(),
            value: value.to_owned(),
            source,
        })
    }

    fn write_if_there(&self, file: &str, value: &str) -> Result<(), CgroupError> {
        if self.directory.join(file).exists() {
            self.write(file, value)
        } else {
            Ok(())
        }
    }

    /// Whether the limit of `layer` stands as it was set, read back.
    fn check(&self, layer: Layer, limits: &Limits) -> Result<(), String> {
        match layer {
            Layer::Memory => {
                self.holds("memory.limit_in_bytes", |bytes| {
                    is_rounded(bytes, limits.memory)
                })?;
                if self.directory.join("memory.memsw.limit_in_bytes").exists() {
                    self.holds("memory.memsw.limit_in_bytes", |bytes| {
                        is_rounded(bytes, limits.memory)
                    })?;
                }
                Ok(())
            }
            Layer::Pids => self.holds("pids.max", |max| max == u64::from(limits.pids)),
            _ => {
                self.holds("cpu.cfs_period_us", |period| period == CPU_PERIOD)?;
                self.holds("cpu.cfs_quota_us", |given| given == quota(limits))
            }
        }
    }

    fn holds(&self, file: &str, is_right: impl Fn(u64) -> bool) -> Result<(), String> {
        let text = fs::read_to_string(self.directory.join(file))
            .map_err(|error| format!("cannot read {file}: {error}"))?;
        match text.trim().parse() {
            Ok(value) if is_right(value) => Ok(()),
            _ => Err(format!("{file} is {}", text.trim())),
        }
    }
}

/// Microseconds of each period.
fn quota(limits: &Limits) -> u64 {
    u64::from(limits.cpu) * (CPU_PERIOD / 100)
}

/// Whether `found` is `wanted` cut to whole pages, as the kernel keeps it.
fn is_rounded(found: u64, wanted: u64) -> bool {
    let page = rustix::param::page_size() as u64;
    found == wanted / page * page
}

impl Group {
    /// For each hierarchy its `cgroup.procs`, open for writing, with the first layer it limits. Who writes `0` to all
    /// of them is in the group (cgroups(7)).
    ///
    /// # Errors
    /// [`CgroupError::Read`] for a file that does not open.
    pub fn join_files(&self) -> Result<Vec<(Layer, OwnedFd)>, CgroupError> {
        self.parts
            .iter()
            .map(|part| {
                let path = part.directory.join("cgroup.procs");
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
            let group = hierarchy::own_group(groups.as_ref().map_err(Clone::clone)?, controller);
            if group.as_deref() != Some(part.group.as_str()) {
                let found = group.unwrap_or_else(|| "none".to_owned());
                return Err(format!(
                    "the process is in {found} instead of {}",
                    part.group
                ));
            }
            part.check(layer, &self.limits)
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
            .filter_map(|part| fs::read_to_string(part.directory.join("memory.oom_control")).ok())
            .find_map(|text| oom_kills(&text))
            .unwrap_or(0)
    }

    /// Kills everything in the group with SIGKILL and waits until it is empty; forks meanwhile are caught, because the
    /// group is read again until nothing is left.
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

/// `oom_kill` of a `memory.oom_control`.
fn oom_kills(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// Kills what is in a group until it is empty.
pub(super) fn kill_all(directory: &Path) -> Result<(), CgroupError> {
    let start = Instant::now();
    loop {
        let pids = members(directory)?;
        if pids.is_empty() {
            return Ok(());
        }
        let held: Vec<_> = pids
            .iter()
            .filter_map(|pid| Some((*pid, pidfd_open(*pid, PidfdFlags::empty()).ok()?)))
            .collect();
        // A number may have gone to a stranger between the two: only what is a member while held is killed.
        let still = members(directory)?;
        for (_, process) in held.iter().filter(|(pid, _)| still.contains(pid)) {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        if start.elapsed() > PATIENCE {
            return Err(CgroupError::Busy(directory.to_owned()));
        }
        thread::sleep(PAUSE);
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
