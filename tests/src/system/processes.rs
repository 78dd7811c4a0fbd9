//! Processes as `/proc` shows them from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// How long a state may take to come; a test never says that it comes sooner.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `holds`.
///
/// # Panics
/// It did not within [`PATIENCE`].
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes(holds), "{what}: not within 30 s");
}

/// Waits until `holds`, and says whether it did within [`PATIENCE`].
#[must_use]
pub fn comes(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// One process, told from a later one of the same number by its start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its number as this process sees it.
    pub pid: u32,
    started: u64,
}

/// What `/proc/<pid>/stat` says (proc(5)); none for a process that is gone, or that is dead and not reaped.
struct Stat {
    command: String,
    parent: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (before, after) = text.rsplit_once(')')?;
    let command = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_whitespace().collect();
    let dead = matches!(*fields.first()?, "Z" | "X");
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    (!dead).then_some(Stat {
        command,
        parent: u32::try_from(number(1)?).ok()?,
        started: number(19)?,
    })
}

impl Process {
    /// The process that has this number now.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let started = stat(pid)?.started;
        Some(Self { pid, started })
    }

    /// Whether it runs.
    #[must_use]
    pub fn lives(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Its command's name, as far as the kernel keeps it.
    #[must_use]
    pub fn command(&self) -> String {
        stat(self.pid).map_or_else(String::new, |stat| stat.command)
    }

    /// Ends it with SIGKILL.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Sends it a signal, if it lives.
    pub fn signal(&self, signal: Signal) {
        if self.lives()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw)
        {
            // It may end in between, which is what was wanted.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Its children.
    #[must_use]
    pub fn children(&self) -> Vec<Self> {
        let mut all = children();
        all.remove(&self.pid).unwrap_or_default()
    }

    /// Every process below it that runs boxmaker's misbehaving tool. Only these have been started for sure: a process
    /// below a stage may also be that stage on its way.
    #[must_use]
    pub fn tools(&self) -> Vec<Self> {
        let mut below = self.descendants();
        below.retain(|process| process.command().starts_with("boxmaker-misbeh"));
        below
    }

    /// Every process below it.
    #[must_use]
    pub fn descendants(&self) -> Vec<Self> {
        let mut all = children();
        let mut found = all.remove(&self.pid).unwrap_or_default();
        let mut next = 0;
        while let Some(pid) = found.get(next).map(|process| process.pid) {
            found.extend(all.remove(&pid).unwrap_or_default());
            next += 1;
        }
        found
    }
}

/// Every process whose command has this name, as far as the kernel keeps it.
#[must_use]
pub fn named(command: &str) -> Vec<Process> {
    let all = children().into_values().flatten();
    all.filter(|process| process.command() == command).collect()
}

/// Every process that lives, by its parent.
fn children() -> BTreeMap<u32, Vec<Process>> {
    let mut all: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Some(stat) = stat(pid) {
            let started = stat.started;
            all.entry(stat.parent)
                .or_default()
                .push(Process { pid, started });
        }
    }
    all
}

/// The processes in the cgroups below the directories called `name`, and how many groups there are at most in one
/// hierarchy.
#[must_use]
pub fn in_cgroups(name: &str) -> (Vec<u32>, usize) {
    let mut processes = Vec::new();
    let mut groups = 0;
    for hierarchy in fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten()
    {
        for base in called(&hierarchy.path(), name, 6) {
            let mut here = 0;
            for group in directories(&base) {
                here += 1;
                let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
                processes.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
            }
            groups = groups.max(here);
        }
    }
    (processes, groups)
}

fn called(directory: &Path, name: &str, depth: u32) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for below in directories(directory) {
        if below.file_name().is_some_and(|own| own == name) {
            found.push(below);
        } else if depth > 0 {
            found.extend(called(&below, name, depth - 1));
        }
    }
    found
}

fn directories(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}
