//! The stage: one process that takes its plan from its standard input, confines itself step by step, reports what
//! was measured, and starts the program when it is told to. It runs no foreign code itself.
//!
//! The outer half leaves the supervisor's namespaces and ends once the inner half runs; the inner half becomes pid 1
//! of the sandbox. The order of the steps is load-bearing; [`Step`] gives the reasons.

mod bare;
mod descendants;
mod ground;
mod inner;
mod landlock;
mod mounts;
mod outer;
mod place;
mod privileges;
mod run;
mod spawn;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use ipc::Wire;
use rustix::mount::MountFlags;

use crate::message::{FromStage, MessageError, Step, send};

pub(crate) use ground::NO_DOMAIN;
pub(crate) use landlock::available as landlock_available;
pub(crate) use mounts::DEVICES;
pub(crate) use privileges::SECURE_BITS;

/// A step that failed, with the object and the kernel's answer.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {detail}")]
pub(crate) struct StageError {
    step: Step,
    detail: String,
}

/// Adds the step and the object to whatever went wrong.
pub(crate) trait At<T> {
    fn at(self, step: Step, object: impl std::fmt::Display) -> Result<T, StageError>;
}

impl<T, E: std::fmt::Display> At<T> for Result<T, E> {
    fn at(self, step: Step, object: impl std::fmt::Display) -> Result<T, StageError> {
        self.map_err(|error| StageError {
            step,
            detail: format!("{object}: {error}"),
        })
    }
}

/// What mounts are held back by, one by one. A step of its own has none of them: they are parts of [`Step::Mounts`] and
/// [`Step::RootFlags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Programs give no rights.
    NoSetId,
    /// Devices are none.
    NoDevices,
    /// Programs are none.
    NoPrograms,
    /// Nothing is written.
    ReadOnly,
    /// `/proc` shows processes and nothing of the machine.
    ProcessesOnly,
}

impl Part {
    /// Every part.
    pub const ALL: &[Self] = &[
        Self::NoSetId,
        Self::NoDevices,
        Self::NoPrograms,
        Self::ReadOnly,
        Self::ProcessesOnly,
    ];

    /// The part's name, as mount(8) has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSetId => "nosuid",
            Self::NoDevices => "nodev",
            Self::NoPrograms => "noexec",
            Self::ReadOnly => "ro",
            Self::ProcessesOnly => "subset",
        }
    }
}

/// Which steps are taken, with which parts. The stage takes all of them; the tests that prove that each one is measured, and
/// missed, build a stage of their own that leaves some out.
#[derive(Clone, Copy)]
pub struct Steps(fn(&str) -> bool);

impl Steps {
    /// Every step.
    pub const ALL: Self = Self(|_| true);

    /// The steps and parts for whose names `taken` says so.
    #[must_use]
    pub const fn only(taken: fn(&str) -> bool) -> Self {
        Self(taken)
    }

    pub(crate) fn has(self, step: Step) -> bool {
        (self.0)(step.as_str())
    }

    pub(crate) fn keeps(self, part: Part) -> bool {
        (self.0)(part.as_str())
    }

    /// These flags of a mount, without those that are left out.
    pub(crate) fn kept(self, flags: MountFlags) -> MountFlags {
        let parts = [
            (Part::NoSetId, MountFlags::NOSUID),
            (Part::NoDevices, MountFlags::NODEV),
            (Part::NoPrograms, MountFlags::NOEXEC),
            (Part::ReadOnly, MountFlags::RDONLY),
        ];
        let dropped = parts.iter().filter(|(part, _)| !self.keeps(*part));
        dropped.fold(flags, |flags, (_, flag)| flags.difference(*flag))
    }

    /// Takes the step, unless it is left out.
    pub(crate) fn take<E>(self, step: Step, act: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.has(step) { act() } else { Ok(()) }
    }
}

/// Runs the half of the stage that the first argument names, over standard input.
#[must_use]
pub fn main(steps: Steps) -> ExitCode {
    let half = std::env::args_os().nth(1).unwrap_or_default();
    let stdin = std::io::stdin();
    if rustix::net::sockopt::socket_domain(&stdin).is_err() {
        eprintln!(
            "boxmaker-stage is started by boxmaker with its plan on a socket; it does nothing by hand"
        );
        return ExitCode::from(2);
    }
    let Ok(owned) = stdin.as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let wire = Wire::new(UnixStream::from(owned));
    let outcome = match half.to_str() {
        Some("outer") => outer::run(&wire, steps),
        Some("inner") => inner::run(&wire, steps),
        Some("userns") => outer::hold_user_namespace(&wire),
        _ => return ExitCode::from(2),
    };
    match outcome {
        Ok(code) => code,
        Err(StageError { step, detail }) => {
            // If the launcher is gone there is nobody left to tell.
            let _: Result<(), MessageError> = send(&wire, &FromStage::Failed { step, detail }, &[]);
            ExitCode::FAILURE
        }
    }
}
