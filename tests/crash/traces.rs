//! What one home has left on the host at a moment: processes, cgroups, mounts, files, locks. Two moments that should be
//! alike are compared.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use boxmaker_tests::system::Home;
use boxmaker_tests::system::processes::{PATIENCE, Process};
use confine::uids::LOCKS;

use crate::home::Starter;

/// The most stages that are there while nothing is called. More have been left.
const STAGES: usize = 16;

/// Everything that a sandbox or a supervisor could leave behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Traces {
    /// The commands of processes that run this home's programs or have its uids, but for stages.
    processes: Vec<String>,
    /// How many stages there are. Brokerd's and as many as a supervisor may keep waiting for calls count as one.
    stages: usize,
    /// How many cgroups there are in one hierarchy, but for one for each stage.
    cgroups: usize,
    /// Mounts of the host that name this home.
    mounts: Vec<String>,
    /// Everything below the test's directory but the day files of the log, which may come with midnight.
    files: Vec<String>,
    /// The locks of this home's uids.
    locks: Vec<String>,
}

impl Traces {
    /// What there is now.
    pub(crate) fn of(home: &Home, starter: Starter) -> Self {
        let mut files = Vec::new();
        walk(home.directory(), &mut files);
        let (stages, processes): (Vec<_>, _) = processes(home, starter)
            .into_iter()
            .partition(|command| command == "boxmaker-stage");
        Self {
            processes,
            stages: match stages.len() {
                1..=STAGES => 1,
                other => other,
            },
            cgroups: home.in_cgroups().1.saturating_sub(stages.len()),
            mounts: mounts(home.directory()),
            files,
            locks: locks(starter),
        }
    }

    /// Waits until there is the same again.
    pub(crate) fn again(&self, home: &Home, starter: Starter) {
        let start = Instant::now();
        loop {
            let now = Self::of(home, starter);
            if now == *self {
                return;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "left behind: {now:#?} instead of {self:#?}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The commands of all processes of this home, sorted.
pub(crate) fn processes(home: &Home, starter: Starter) -> Vec<String> {
    let own = rustix::process::geteuid().as_raw();
    let uids = starter.uids();
    let ours = |process: &Path| {
        let runs = fs::read_link(process.join("exe"));
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let uid = status
            .lines()
            .find_map(|line| line.strip_prefix("Uid:"))
            .and_then(|line| line.split_whitespace().next()?.parse().ok());
        runs.is_ok_and(|runs| runs.starts_with(home.directory()))
            || uid.is_some_and(|uid| uid != own && uids.contains(&uid))
    };
    let mut found: Vec<String> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let process = Process::of(pid)?;
            ours(&entry.path()).then(|| process.command())
        })
        .collect();
    found.sort();
    found
}

fn mounts(directory: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let name = directory.to_str().unwrap();
    let ours = |line: &&str| line.contains(name);
    table.lines().filter(ours).map(str::to_owned).collect()
}

fn walk(directory: &Path, found: &mut Vec<String>) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "jsonl") {
            continue;
        }
        found.push(path.display().to_string());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, found);
        }
    }
}

/// The files that keep the uids of this home; a plain user has none.
fn locks(starter: Starter) -> Vec<String> {
    let Starter::Root(_) = starter else {
        return Vec::new();
    };
    let uids = starter.uids();
    let mut locks: Vec<String> = fs::read_dir(LOCKS)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.parse().is_ok_and(|uid| uids.contains(&uid)))
        .collect();
    locks.sort();
    locks
}

/// How many descriptors and threads a process has.
pub(crate) fn held(process: &Process) -> (usize, usize) {
    let count = |what: &str| {
        let entries = fs::read_dir(format!("/proc/{}/{what}", process.pid));
        entries.map_or(0, Iterator::count)
    };
    (count("fd"), count("task"))
}
