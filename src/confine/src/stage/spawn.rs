//! Starting the program: with the plan's words, variables and directory, with the standard descriptors that were handed
//! over, and with no signal blocked or ignored, whatever this process needs for itself.

use std::ffi::{CString, NulError};
use std::fmt::Display;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use nix::unistd::Pid;

use crate::plan::Program;
use crate::seccomp::Filter;

/// Starts it. The standard library's way would hand this process's blocked signals on. Its working directory becomes
/// this process's own first, for which this process has no use.
///
/// # Errors
/// What could not be had, and the kernel's answer.
pub(super) fn spawn(
    program: &Program,
    stdio: &[OwnedFd],
    own_group: bool,
    narrower: Option<&Filter>,
) -> Result<Pid, String> {
    let [_, _, _] = stdio else {
        return Err("no standard descriptors".to_owned());
    };
    let Some((path, _)) = program.argv.split_first() else {
        return Err("an empty command".to_owned());
    };
    std::env::set_current_dir(&program.cwd).map_err(at(&program.cwd))?;
    let words = program.argv.iter().map(|word| text(word));
    let words = words.collect::<Result<Vec<_>, _>>().map_err(at(path))?;
    let variables = program.env.iter();
    let variables = variables.map(|(name, value)| text(&format!("{name}={value}")));
    let variables = variables.collect::<Result<Vec<_>, _>>().map_err(at(path))?;
    let start = || -> Result<Pid, Errno> {
        let (attributes, actions) = (attributes(own_group)?, actions(stdio)?);
        posix_spawn(path.as_str(), &actions, &attributes, &words, &variables)
    };
    let started = match narrower {
        None => start(),
        Some(filter) => on_narrower_thread(filter, start)?,
    };
    started.map_err(io::Error::from).map_err(at(path))
}

fn at<E: Display>(object: &str) -> impl Fn(E) -> String + '_ {
    move |error| format!("{object}: {error}")
}

fn text(text: &str) -> Result<CString, NulError> {
    CString::new(text)
}

fn attributes(own_group: bool) -> Result<PosixSpawnAttr, Errno> {
    let mut attributes = PosixSpawnAttr::init()?;
    let mut flags =
        PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF;
    attributes.set_sigmask(&SigSet::empty())?;
    attributes.set_sigdefault(&SigSet::all())?;
    if own_group {
        flags |= PosixSpawnFlags::POSIX_SPAWN_SETPGROUP;
        attributes.set_pgroup(Pid::from_raw(0))?;
    }
    attributes.set_flags(flags)?;
    Ok(attributes)
}

/// The descriptors themselves close when the program starts.
fn actions(stdio: &[OwnedFd]) -> Result<PosixSpawnFileActions, Errno> {
    let mut actions = PosixSpawnFileActions::init()?;
    for (descriptor, number) in stdio.iter().zip(0..) {
        actions.add_dup2(descriptor.as_raw_fd(), number)?;
    }
    Ok(actions)
}

/// Starts a child on a thread that has another filter besides; the child keeps what its thread had.
fn on_narrower_thread(
    filter: &Filter,
    start: impl FnOnce() -> Result<Pid, Errno> + Send,
) -> Result<Result<Pid, Errno>, String> {
    std::thread::scope(|scope| {
        let run = || {
            filter.install().map_err(|error| error.to_string())?;
            Ok(start())
        };
        let thread = std::thread::Builder::new().spawn_scoped(scope, run);
        let thread = thread.map_err(|error| error.to_string())?;
        thread
            .join()
            .unwrap_or_else(|_| Err("the thread that starts it panicked".to_owned()))
    })
}
