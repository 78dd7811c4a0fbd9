//! The inner half: pid 1 of the sandbox, or without namespaces the parent of all of it. Its one function is the list of
//! steps from the new root to the report.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;

use ipc::Wire;
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

use super::descendants::Descendants;
use super::landlock::Rules;
use super::{At, StageError, Steps, bare, landlock, mounts, privileges, run};
use crate::measure::Readings;
use crate::measure::canary::Canaries;
use crate::message::{FromStage, Inner, NAMESPACES, Step, ToStage, receive, send};
use crate::plan::Plan;
use crate::seccomp;

/// The NIS domain of every sandbox: the kernel's own word for none.
pub(crate) const NO_DOMAIN: &str = "(none)";

pub(super) fn run(wire: &Wire, steps: Steps) -> Result<ExitCode, StageError> {
    // Or whoever looks at the host's processes sees `exe`, for it was started as /proc/self/exe.
    let _: rustix::io::Result<()> = rustix::thread::set_name(c"boxmaker-stage");
    steps.take(Step::Session, || {
        rustix::process::setsid()
            .map(drop)
            .at(Step::Session, "setsid")
    })?;
    let (inner, stdio, trees) = receive_all(wire)?;
    let namespaces = if steps.has(Step::OpenNamespaces) {
        open_namespaces()?
    } else {
        Vec::new()
    };
    let (readings, rules, canary_root) = match inner.bare {
        Some(_) => keep_root(&inner.plan, trees, steps)?,
        None => new_root(&inner, trees, steps)?,
    };
    let Inner {
        mut plan,
        identity,
        landlock_abi,
        one_user,
        bare,
        ..
    } = *inner;
    let filter = seccomp::filter(&plan.seccomp.sets).at(Step::Seccomp, "find")?;
    if filter.hash() != plan.seccomp.program {
        return Err("not the program that the plan names").at(Step::Seccomp, "find");
    }
    // What the program alone is refused, this process has still to do.
    let (filter, narrower) = match seccomp::of_stage(&plan.seccomp.sets) {
        None => (filter, None),
        Some(sets) => (
            seccomp::filter(&sets).at(Step::Seccomp, "find")?,
            Some(filter),
        ),
    };
    let mut canaries = Canaries::plant(canary_root, plan.is_bare(), narrower)
        .at(Step::CanariesBefore, "directory for canaries")?;
    if bare.is_some() {
        canaries
            .open_to_all()
            .at(Step::CanariesBefore, "directory for canaries")?;
    }
    let descendants = match &bare {
        None => Descendants::Namespace,
        Some(bare) => {
            bare::hold_processes(&plan, identity, bare.mark, steps)?;
            Descendants::of_this_process()?
        }
    };
    let at_end = match bare {
        None => Signal::KILL,
        Some(_) => Signal::TERM,
    };

    privileges::drop_all(identity, (bare.is_some(), one_user), at_end, steps)?;
    if steps.has(Step::CanariesBefore) {
        canaries.before();
    }
    steps.take(Step::NoNewPrivs, || {
        rustix::thread::set_no_new_privs(true).at(Step::NoNewPrivs, "prctl")
    })?;
    let reaper = run::Reaper::new(descendants)?;
    landlock::restrict(rules, landlock_abi, steps)?;
    canaries.after_landlock();
    steps.take(Step::Seccomp, || {
        filter.install().at(Step::Seccomp, "install")
    })?;

    let tried = canaries.after_seccomp();
    let known: Vec<BorrowedFd<'_>> = namespaces
        .iter()
        .chain(&stdio)
        .map(AsFd::as_fd)
        .chain([wire.as_fd()])
        .chain(reaper.held())
        .collect();
    let inside = readings.read(tried, &plan, filter, &known);
    let inside = inside.at(Step::Report, "/proc/self")?;
    let descriptors: Vec<_> = namespaces.iter().map(AsFd::as_fd).collect();
    steps.take(Step::Report, || {
        send(wire, &FromStage::Report(Box::new(inside)), &descriptors).at(Step::Report, "send")
    })?;
    drop(namespaces);
    if let Some(bare) = &bare {
        plan.program = bare::program(plan.program, bare);
    }
    run::wait_and_start(wire, &plan.program, stdio, reaper, narrower)
}

/// What is read later, opened while everything can still be opened; the rules with their paths; a directory for canaries.
type Root = (Readings, Rules, OwnedFd);

/// Builds the new root, makes it the root, and opens what is to be read and ruled in it.
fn new_root(inner: &Inner, trees: Vec<OwnedFd>, steps: Steps) -> Result<Root, StageError> {
    let plan = &inner.plan;
    // Only in a namespace of its own, or the host's name would change; where it is not, the report shows it.
    let uts = fs::metadata("/proc/self/ns/uts").at(Step::Hostname, "/proc/self/ns/uts")?;
    let own_name = uts.ino() != inner.uts_namespace;

    mounts::separate(inner.mount_namespace)?;
    let trees = match &inner.sources {
        Some(paths) => mounts::copy_held(paths, trees)?,
        None => trees,
    };
    let device = match steps.has(Step::Mounts) {
        true => mounts::build(
            &plan.mounts,
            trees,
            inner.identity,
            &plan.program.cwd,
            steps,
        )?,
        false => 0,
    };
    steps.take(Step::RootFlags, || mounts::seal(steps))?;
    let canary_root = mounts::detached()?;
    mounts::pivot(device, steps)?;
    steps.take(Step::Hostname, || {
        if !own_name {
            return Ok(());
        }
        nix::unistd::sethostname(&plan.hostname).at(Step::Hostname, &plan.hostname)?;
        // A new namespace begins with both names of the host.
        rustix::system::setdomainname(NO_DOMAIN.as_bytes()).at(Step::Hostname, NO_DOMAIN)
    })?;
    let readings = Readings::open().at(Step::Report, "/proc/self")?;
    let rules = match steps.has(Step::OpenRules) {
        true => plan.landlock.as_slice(),
        false => &[],
    };
    let rules = landlock::open(rules, |path, _| {
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    })?;
    Ok((readings, rules, canary_root))
}

/// The same where the host's root stays.
fn keep_root(plan: &Plan, received: Vec<OwnedFd>, steps: Steps) -> Result<Root, StageError> {
    let (places, canary_root) = bare::Places::take(received)?;
    let readings = Readings::open().at(Step::Report, "/proc/self")?;
    let rules = places.open_rules(plan, steps)?;
    Ok((readings, rules, canary_root))
}

/// The plan, the program's standard descriptors, the granted trees.
type Inputs = (Box<Inner>, Vec<OwnedFd>, Vec<OwnedFd>);

/// Receives the plan with the program's standard descriptors, and every tree.
fn receive_all(wire: &Wire) -> Result<Inputs, StageError> {
    let step = Step::ReceiveTrees;
    let message = receive(wire).at(step, "standard input")?;
    let (ToStage::Inner(inner), stdio) = message else {
        return Err("another message came first").at(step, "standard input");
    };
    if stdio.len() != 3 {
        return Err(format!("{} came, not 3", stdio.len())).at(step, "standard descriptors");
    }
    let mut trees = Vec::new();
    while trees.len() < inner.trees {
        match receive(wire).at(step, "standard input")? {
            (ToStage::Trees {}, more) if !more.is_empty() => trees.extend(more),
            _ => return Err("another message came between").at(step, "trees"),
        }
    }
    Ok((inner, stdio, trees))
}

fn open_namespaces() -> Result<Vec<OwnedFd>, StageError> {
    NAMESPACES
        .iter()
        .map(|(name, _)| {
            let path = format!("/proc/self/ns/{name}");
            rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .at(Step::OpenNamespaces, path)
        })
        .collect()
}
