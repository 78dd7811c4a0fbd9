//! The inner half: pid 1 of the sandbox, or without namespaces the parent of all of it. Its one function is the list of
//! steps from the new root to the report.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

use ipc::Wire;
use rustix::process::Signal;

use super::descendants::Descendants;
use super::ground::{Standing, Waiting};
use super::{At, StageError, Steps, bare, privileges, run};
use crate::message::{FromStage, Inner, Step, ToStage, receive, send};

pub(super) fn run(wire: &Wire, steps: Steps) -> Result<ExitCode, StageError> {
    // Or whoever looks at the host's processes sees `exe`, for it was started as /proc/self/exe.
    let _: rustix::io::Result<()> = rustix::thread::set_name(c"boxmaker-stage");
    steps.take(Step::Session, || {
        rustix::process::setsid()
            .map(drop)
            .at(Step::Session, "setsid")
    })?;
    let ground = match receive(wire).at(Step::ReceivePlan, "standard input")? {
        (ToStage::Base(ground), _) => *ground,
        _ => return Err("another message came first").at(Step::ReceivePlan, "standard input"),
    };
    let waiting = Waiting::prepare(ground, wire, steps)?;

    let (inner, stdio, trees) = receive_all(wire)?;
    let (standing, filters) = waiting.stand(&inner, trees)?;
    let Standing {
        readings,
        rules,
        mut canaries,
    } = standing;
    let Inner {
        mut plan,
        identity,
        one_user,
        bare,
        ..
    } = *inner;
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

    privileges::drop_all(identity, one_user, at_end, steps)?;
    if steps.has(Step::CanariesBefore) {
        canaries.before();
    }
    steps.take(Step::NoNewPrivs, || {
        rustix::thread::set_no_new_privs(true).at(Step::NoNewPrivs, "prctl")
    })?;
    let reaper = run::Reaper::new(descendants)?;
    rules.restrict()?;
    canaries.after_landlock();
    steps.take(Step::Seccomp, || {
        filters.own.install().at(Step::Seccomp, "install")
    })?;

    let tried = canaries.after_seccomp();
    let known: Vec<BorrowedFd<'_>> = stdio
        .iter()
        .map(AsFd::as_fd)
        .chain([wire.as_fd()])
        .chain(canaries.held())
        .chain(reaper.held())
        .collect();
    let inside = readings.read(tried, &plan, filters.foreign, &known);
    let inside = inside.at(Step::Report, "/proc/self")?;
    steps.take(Step::Report, || {
        send(wire, &FromStage::Report(Box::new(inside)), &[]).at(Step::Report, "send")
    })?;
    if let Some(bare) = &bare {
        plan.program = bare::program(plan.program, bare);
    }
    run::wait_and_start(
        wire,
        &plan.program,
        stdio,
        reaper,
        filters.narrower,
        canaries,
    )
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
