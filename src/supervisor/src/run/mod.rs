//! `boxmaker run`: one program in one sandbox, with what its budget says and nothing else. It is the supervisor of that
//! program alone: plan, launch, measurement and record are those of every tool's call; the owner who types the budget is
//! the one who decides, so no brokerd is asked.

mod budget;
mod place;
mod program;
mod record;
mod signals;
mod streams;
mod told;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use confine::derive::{DeriveError, derive};
use confine::host::{CapsError, Host, HostError};
use confine::launch::{
    Ended, IdentityChoice, LaunchError, Launcher, LauncherError, LauncherOptions, Means, PoolSizes,
    Prepared,
};
use confine::plan::Program;
use confine::profile::Profiles;
use ipc::Files;
use policy::Policy;
use policy::budget::Budget;
use proto::Level;
use proto::audit::{ExitCause, ExitStatus};
use proto::config::Config;

use crate::bare::bare;
use crate::books::digest;
use crate::broker::too_weak;
use crate::home::HomeError;
use crate::in_full;
use crate::load::Directories;
use crate::voice;

use budget::{Grants, GrantsError};
use place::Place;
use program::ProgramError;
use record::{Record, Subject};
use signals::Signals;
use streams::Streams;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The profile.
    pub(crate) profile: String,
    /// What the program may do.
    pub(crate) budget: Budget,
    /// How long it may run; as long as its profile says, if nothing else is said.
    pub(crate) timeout: Option<Duration>,
    /// The least level that will do; full for root and partial for a plain user, if none is named.
    pub(crate) level: Option<Level>,
    /// Whether what is told at the end is JSON.
    pub(crate) json: bool,
    /// Where the log is kept, if it is named.
    pub(crate) home: Option<PathBuf>,
    /// The program and its words, each as it was typed.
    pub(crate) words: Vec<OsString>,
}

/// How `boxmaker run` itself ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// With this status.
    Code(u8),
    /// By this signal, which was sent to boxmaker while the program ran.
    Signal(i32),
}

/// Status of a run that was refused, or that failed before the program could.
const REFUSED: u8 = 125;
/// Status of a program that is there and cannot be executed (env(1)).
const NOT_EXECUTABLE: u8 = 126;
/// Status of a program that is not there (env(1)).
const NOT_FOUND: u8 = 127;
/// Status of a program whose time was up (timeout(1)).
const TIMED_OUT: u8 = 124;

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The configuration's profiles or its `config.toml` cannot be used.
    #[error("the configuration is not usable:\n{}", .0.join("\n"))]
    Config(Vec<String>),
    /// There is no such profile.
    #[error("there is no profile {name:?} for a program; there are: {}; an own one is a file in profiles/ of the configuration", known.join(", "))]
    Profile {
        /// As it was named.
        name: String,
        /// All that there are.
        known: Vec<String>,
    },
    /// The program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The budget.
    #[error(transparent)]
    Grants(#[from] GrantsError),
    /// The home.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// No home is free, or there is no place for one.
    #[error("{0}")]
    Place(String),
    /// The log.
    #[error("nothing is run without a record: {0}")]
    Record(String),
    /// This process's rights could not be read.
    #[error("cannot read the capabilities of this process: {0}")]
    Capabilities(#[from] CapsError),
    /// Nothing can be launched here.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// The facts of the host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// There is no plan.
    #[error(transparent)]
    Derive(#[from] DeriveError),
    /// The sandbox was not built.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The level is too low.
    #[error("{0}")]
    Weak(String),
    /// Streams, signals or threads could not be had.
    #[error("cannot prepare the streams of the program: {0}")]
    Streams(#[from] io::Error),
}

impl RunError {
    const fn status(&self) -> u8 {
        match self {
            Self::Program(ProgramError::NotFound { .. }) => NOT_FOUND,
            Self::Program(ProgramError::NotExecutable { .. }) | Self::Host(_) => NOT_EXECUTABLE,
            _ => REFUSED,
        }
    }
}

/// Runs the program, and says on standard error how it was confined.
pub(crate) fn run(directories: &Directories, request: &Request) -> Status {
    match attempt(directories, request) {
        Ok(status) => status,
        Err(error) => {
            let status = error.status();
            match request.json {
                true => voice::plain(&told::refused(&in_full(&error), status)),
                false => voice::remark(&in_full(&error)),
            }
            Status::Code(status)
        }
    }
}

fn attempt(directories: &Directories, request: &Request) -> Result<Status, RunError> {
    // Files of the log are made with the modes that stand beside them; the program has the mask of its stage.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let (profiles, config) = configuration(&directories.config)?;
    // A role's profile is made for one program of boxmaker's own.
    let known = || {
        profiles
            .iter()
            .filter(|one| !one.name.starts_with("roles/"))
    };
    let profile = known().find(|one| one.name == request.profile);
    let profile = profile.ok_or_else(|| RunError::Profile {
        name: request.profile.clone(),
        known: known().map(|one| one.name.clone()).collect(),
    })?;
    let found = program::find(&request.words)?;
    let place = Place::take(request.home.as_deref())?;
    let Means { privilege, refusal } = Means::of_this_process(&directories.stage())?;
    let gives_users = privilege.gives_users();
    let grants = Grants::of(&request.budget, directories, place.home(), gives_users)?;

    let host = Host::take(profile, &found.path, privilege)?;
    let required = request.level.unwrap_or(match gives_users {
        true => Level::Full,
        false => Level::Partial,
    });
    let program = Program {
        argv: found.argv,
        env: grants.env,
        cwd: program::working_directory(),
        input: digest(b""),
    };
    let mut plan = derive(profile, program, &grants.mounts, required, &host)?;
    if let Some(timeout) = request.timeout {
        plan.limits.wall_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    }
    let options = LauncherOptions {
        stage: directories.stage(),
        uid_range: config.uid_range,
        cgroup: config.cgroup,
        name: place.name(),
        waive: config.waive,
        pool: PoolSizes::default(),
        bare: refusal.map(|refusal| bare(&refusal, place.home().join("run/sandboxes"))),
    };
    let launcher = Launcher::new(options)?;
    let mut record = Record::open(place.home(), config.audit.max_bytes.get())?;
    let subject = Subject::new(request, &plan.program.argv)?;

    let signals = Signals::wait_for()?;
    let (streams, ends) = Streams::of_this_process()?;
    let wall = Duration::from_millis(plan.limits.wall_ms);
    let prepared = match launcher.prepare(plan, grants.trees, ends, IdentityChoice::Fresh) {
        Ok(prepared) => prepared,
        Err(error) => {
            record.failed(&subject, &in_full(&error))?;
            return Err(error.into());
        }
    };
    let confinement = prepared.confinement().clone();
    if let Some(why) = too_weak(&confinement, required) {
        record.weak(&subject, &why, &confinement)?;
        return Err(RunError::Weak(weak(&why, confinement.level)));
    }
    let of = record.begins(&subject, &confinement)?;
    if !request.json {
        voice::remark(&told::begins(&confinement));
    }
    let (ended, signal) = started(prepared, streams, &signals, wall)?;
    record.ended(of, &ended)?;
    let status = status(&ended, signal);
    match request.json {
        true => voice::plain(&told::ended(&confinement, &ended, status, of)),
        false => {
            if let Some(text) = told::how(&ended, signal, wall) {
                voice::remark(&text);
            }
        }
    }
    Ok(status)
}

/// Lets the program go, and stays until nothing of it runs: how it ended, and the signal by which this process was asked to
/// end it, if it was.
fn started(
    prepared: Prepared,
    streams: Streams,
    signals: &Signals,
    wall: Duration,
) -> Result<(Ended, Option<i32>), RunError> {
    let running = prepared.start()?;
    let killer = running.killer();
    signals.end(killer.clone());
    let pumps = match streams.pump() {
        Ok(pumps) => pumps,
        Err(error) => {
            killer.kill(ExitCause::Aborted);
            let _ = running.wait(wall);
            return Err(error.into());
        }
    };
    let ended = running.wait(wall);
    pumps.finish();
    Ok((ended, signals.seen()))
}

/// The profiles, and what `config.toml` says, of a configuration that may not be there.
fn configuration(directory: &Path) -> Result<(Profiles, Config), RunError> {
    let files = match directory.exists() {
        true => Files::read(directory).map_err(|unreadable| {
            let told = unreadable.errors.iter();
            RunError::Config(
                told.map(|error| format!("{error}; {}", error.way_out()))
                    .collect(),
            )
        })?,
        false => Files::default(),
    };
    let texts = |errors: Vec<policy::LoadError>| {
        RunError::Config(errors.iter().map(ToString::to_string).collect())
    };
    let profiles = Profiles::load(&files.0).map_err(texts)?;
    // Tools and grants are those of calls; nothing here follows from them.
    let own = files
        .0
        .into_iter()
        .filter(|(name, _)| name == "config.toml");
    let policy = Policy::load(&own.collect(), 1).map_err(texts)?;
    Ok((profiles, policy.config().clone()))
}

fn weak(why: &str, level: Level) -> String {
    let less = match level {
        Level::None => "",
        _ => "; or say --confinement partial, if that will do",
    };
    format!("refused: {why}; `boxmaker doctor` says what helps{less}")
}

fn status(ended: &Ended, signal: Option<i32>) -> Status {
    match (ended.cause, ended.exit, signal) {
        (ExitCause::NotStarted, ..) => Status::Code(NOT_EXECUTABLE),
        (ExitCause::Timeout, ..) => Status::Code(TIMED_OUT),
        (ExitCause::Aborted, _, Some(signal)) => Status::Signal(signal),
        (ExitCause::Memory, ..) => Status::Code(128 + 9),
        (_, Some(ExitStatus::Code(code)), _) => Status::Code(code),
        (_, Some(ExitStatus::Signal(number)), _) => Status::Code(number.saturating_add(128)),
        _ => Status::Code(REFUSED),
    }
}

#[cfg(test)]
mod tests {
    use proto::audit::Usage;

    use super::*;

    fn ended(cause: ExitCause, exit: Option<ExitStatus>) -> Ended {
        Ended {
            exit,
            cause,
            usage: Usage {
                wall_ms: 1,
                cpu_ms: None,
                max_rss: None,
            },
            detail: None,
        }
    }

    #[test]
    fn the_status_is_the_programs_or_says_why_it_has_none() {
        let code = |code| Some(ExitStatus::Code(code));
        let by = |signal| Some(ExitStatus::Signal(signal));
        for (cause, exit, signal, expected) in [
            (ExitCause::Exited, code(0), None, Status::Code(0)),
            (ExitCause::Exited, code(7), None, Status::Code(7)),
            (ExitCause::Exited, by(15), None, Status::Code(143)),
            (ExitCause::Timeout, by(9), None, Status::Code(124)),
            (ExitCause::Memory, by(9), None, Status::Code(137)),
            (ExitCause::NotStarted, None, None, Status::Code(126)),
            (ExitCause::Lost, None, None, Status::Code(125)),
            (ExitCause::Aborted, by(9), Some(2), Status::Signal(2)),
            // It was over before the signal came.
            (ExitCause::Exited, code(3), Some(2), Status::Code(3)),
        ] {
            assert_eq!(status(&ended(cause, exit), signal), expected, "{cause:?}");
        }
    }
}
