//! The inner half where no namespace can be made: no root of its own but rules on the host's paths, a mark and a bound
//! instead of a pid namespace. What a mount would be is a descriptor here, so that no name decides anything twice.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};

use super::landlock::{self, Rules};
use super::{At, StageError, Steps, place};
use crate::measure::status::Status;
use crate::message::{Bare, Step};
use crate::plan::{Identity, Plan, Program, Rule, SCRATCH};
use crate::profile::is_below;

/// Processes of the user that may be started elsewhere while a sandbox runs, before its own limit is in their way.
const ELSEWHERE: u64 = 1000;

/// A count of the user's processes says nothing about a day later.
const DAY: u64 = 24 * 60 * 60 * 1000;

/// What was received, by what it is for.
pub(super) struct Places {
    trees: Vec<OwnedFd>,
    scratch: OwnedFd,
}

impl Places {
    /// Takes the trees, the scratch directory, and the directory for canaries, which comes out beside.
    pub(super) fn take(mut received: Vec<OwnedFd>) -> Result<(Self, OwnedFd), StageError> {
        let (canaries, scratch) = (received.pop(), received.pop());
        match (canaries, scratch) {
            (Some(canaries), Some(scratch)) => {
                let trees = received;
                Ok((Self { trees, scratch }, canaries))
            }
            _ => Err("they did not come").at(Step::ReceiveTrees, "directories of its own"),
        }
    }

    /// Makes every rule of the plan: what came by descriptor by that, what lies in it beneath it, and what
    /// the plan found without links, without links.
    pub(super) fn rules(&self, plan: &Plan, abi: u8, steps: Steps) -> Result<Rules, StageError> {
        let rules = match steps.has(Step::OpenRules) {
            true => plan.landlock.as_slice(),
            false => &[],
        };
        let trees: Vec<(&str, BorrowedFd<'_>)> = plan
            .trees()
            .zip(&self.trees)
            .map(|((path, ..), tree)| (path, tree.as_fd()))
            .collect();
        landlock::make(rules, abi, steps, |path, rule| match rule {
            Rule::Scratch => duplicate(self.scratch.as_fd()),
            Rule::Tree(_) => open_granted(&trees, path),
            Rule::Read | Rule::Execute | Rule::Device => place::open_plain(path),
        })
    }
}

/// What a rule for a granted tree is about: the tree itself, or something beneath the nearest one.
fn open_granted(trees: &[(&str, BorrowedFd<'_>)], path: &str) -> Result<OwnedFd, Errno> {
    let holds = |(tree, _): &&(&str, BorrowedFd<'_>)| is_below(path, tree);
    let nearest = trees
        .iter()
        .filter(holds)
        .max_by_key(|(tree, _)| tree.len());
    let (tree, held) = nearest.ok_or(Errno::NOENT)?;
    let below = Path::new(path)
        .strip_prefix(tree)
        .map_err(|_| Errno::NOENT)?;
    if below.as_os_str().is_empty() {
        return duplicate(*held);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    loop {
        match rustix::fs::openat2(held, below, flags, Mode::empty(), how) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            found => return found,
        }
    }
}

fn duplicate(held: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(held, 3)
}

/// The program as it is started: where its environment says the plan's scratch directory, it gets the real one.
pub(super) fn program(mut program: Program, bare: &Bare) -> Program {
    for value in program.env.values_mut() {
        if let Some(rest) = value
            .strip_prefix(SCRATCH)
            .filter(|_| is_below(value, SCRATCH))
        {
            *value = format!("{}{rest}", bare.scratch);
        }
    }
    program
}

/// Takes what stands in for a pid namespace: orphans come to this process, and every process of the sandbox carries a
/// mark that it cannot lose, because the hard limit cannot be raised and the filter refuses to lower it.
pub(super) fn hold_processes(
    plan: &Plan,
    identity: Identity,
    mark: u64,
    steps: Steps,
) -> Result<(), StageError> {
    steps.take(Step::Subreaper, || {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .at(Step::Subreaper, "prctl")
    })?;
    steps.take(Step::Mark, || {
        // A hard limit that is lower already is found when it is read back.
        match set_both(Resource::Rttime, mark) {
            Ok(()) | Err(Errno::PERM) => Ok(()),
            Err(errno) => Err(errno).at(Step::Mark, "real-time limit"),
        }
    })?;
    steps.take(Step::Processes, || {
        let limits = &plan.limits;
        if limits.wall_ms > DAY {
            return Ok(());
        }
        let most = processes_of(identity.uid)? + u64::from(limits.pids) + ELSEWHERE;
        let limit = rustix::process::getrlimit(Resource::Nproc).maximum;
        let most = limit.map_or(most, |limit| limit.min(most));
        set_both(Resource::Nproc, most).at(Step::Processes, "process limit")
    })
}

fn set_both(resource: Resource, value: u64) -> Result<(), Errno> {
    let limit = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    rustix::process::setrlimit(resource, limit)
}

/// Processes and threads of a real uid, as far as `/proc` shows them.
fn processes_of(uid: u32) -> Result<u64, StageError> {
    let mut count = 0;
    for entry in fs::read_dir("/proc").at(Step::Processes, "/proc")? {
        let name = entry.at(Step::Processes, "/proc")?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // One that ended meanwhile does not count.
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let is_own = Status::parse(&text).is_ok_and(|status| status.uid.first() == Some(&uid));
        if is_own {
            let threads = text.lines().find_map(|line| line.strip_prefix("Threads:"));
            count += threads
                .and_then(|threads| threads.trim().parse::<u64>().ok())
                .unwrap_or(1);
        }
    }
    Ok(count)
}
