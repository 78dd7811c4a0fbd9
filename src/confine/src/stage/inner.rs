//! The inner half: pid 1 of the sandbox. Its one function is the list of steps from the new root to the report.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;

use ipc::Wire;
use rustix::fs::{Mode, OFlags};

use super::{At, StageError, Steps, landlock, mounts, privileges, run};
use crate::measure::Readings;
use crate::measure::canary::Canaries;
use crate::message::{FromStage, Inner, NAMESPACES, Step, ToStage, receive, send};

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
    let (inner, mut stdio, trees) = receive_all(wire)?;
    let Inner {
        plan,
        identity,
        mount_namespace,
        uts_namespace,
        landlock_abi,
        sources,
        one_user,
        ..
    } = *inner;
    let namespaces = if steps.has(Step::OpenNamespaces) {
        open_namespaces()?
    } else {
        Vec::new()
    };
    // Only in a namespace of its own, or the host's name would change; where it is not, the report shows it.
    let uts = fs::metadata("/proc/self/ns/uts").at(Step::Hostname, "/proc/self/ns/uts")?;
    let own_name = uts.ino() != uts_namespace;

    let bare = plan.is_bare();
    let mut rules = landlock::Rules::default();
    let canary_root = if bare {
        rules.of_trees(&plan, trees)?;
        stdio
            .pop()
            .ok_or("none came")
            .at(Step::ReceiveTrees, "canaries")?
    } else {
        mounts::separate(mount_namespace)?;
        let trees = match sources {
            Some(paths) => mounts::copy_held(&paths, trees)?,
            None => trees,
        };
        let device = match steps.has(Step::Mounts) {
            true => mounts::build(&plan.mounts, trees, identity, &plan.program.cwd)?,
            false => 0,
        };
        steps.take(Step::RootFlags, mounts::seal)?;
        let canary_root = mounts::detached()?;
        mounts::pivot(device, steps)?;
        canary_root
    };
    steps.take(Step::Hostname, || {
        if !own_name {
            return Ok(());
        }
        nix::unistd::sethostname(&plan.hostname).at(Step::Hostname, &plan.hostname)?;
        // A new namespace begins with both names of the host.
        rustix::system::setdomainname(NO_DOMAIN.as_bytes()).at(Step::Hostname, NO_DOMAIN)
    })?;
    // Opened while everything can still be opened: what they read later is the state of that moment.
    let readings = Readings::open().at(Step::Report, "/proc/self")?;
    match steps.has(Step::OpenRules) {
        true => rules.open(&plan.landlock)?,
        false => rules = landlock::Rules::default(),
    }
    let filter = crate::seccomp::filter(&plan.seccomp.sets).at(Step::Seccomp, "find")?;
    if filter.hash() != plan.seccomp.program {
        return Err("not the program that the plan names").at(Step::Seccomp, "find");
    }
    let mut canaries = Canaries::plant(canary_root).at(Step::CanariesBefore, "canaries")?;
    if bare {
        canaries
            .open_to_all()
            .at(Step::CanariesBefore, "canaries")?;
    }

    privileges::drop_all(identity, bare, one_user, steps)?;
    if steps.has(Step::CanariesBefore) {
        canaries.before();
    }
    steps.take(Step::NoNewPrivs, || {
        rustix::thread::set_no_new_privs(true).at(Step::NoNewPrivs, "prctl")
    })?;
    let reaper = run::Reaper::new(bare)?;
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
        .chain(reaper.descriptors())
        .collect();
    let inside = readings.read(tried, &plan, filter, &known);
    let inside = inside.at(Step::Report, "/proc/self")?;
    let descriptors: Vec<_> = namespaces.iter().map(AsFd::as_fd).collect();
    steps.take(Step::Report, || {
        send(wire, &FromStage::Report(Box::new(inside)), &descriptors).at(Step::Report, "send")
    })?;
    drop(namespaces);
    run::wait_and_start(wire, &plan.program, stdio, reaper)
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
    let expected = 3 + usize::from(inner.plan.is_bare());
    if stdio.len() != expected {
        return Err(format!("{} came, not {expected}", stdio.len())).at(step, "descriptors");
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
