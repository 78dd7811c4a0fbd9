//! Facts about the host that a plan rests on, taken once before [`crate::derive`]: which of a profile's paths exist and
//! by way of which links, what a program needs to start, which programs its patterns match. Judges nothing and changes
//! nothing.

mod glob;
mod locate;
mod program;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub use caps::errors::CapsError;
pub use locate::{Link, Located};

use crate::launch::Means;
use crate::profile::Profile;
#[cfg(fuzzing)]
pub use program::started_by;

/// What the supervisor may do, which decides how a sandbox comes about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Privilege {
    /// Everything a sandbox needs: uids of its own, namespaces, id maps.
    #[default]
    Root,
    /// A plain user's: a user namespace gives the rest of the namespaces, and one uid.
    UserNamespace,
    /// No namespace at all: what is left is what a process can do to itself, Landlock, a filter, no new privileges.
    Bare,
}

impl Privilege {
    /// What the calling process may do: by its effective capabilities (capabilities(7)), and without these by whether
    /// `stage` can build the empty sandbox of a plain user, which is tried; [`Means`] says also why it cannot.
    ///
    /// # Errors
    /// The process cannot read its own capabilities.
    pub fn of_this_process(stage: &Path) -> Result<Self, CapsError> {
        Ok(Means::of_this_process(stage)?.privilege)
    }

    /// Whether the calling process has all that [`Self::Root`] stands for.
    pub(crate) fn is_root() -> Result<bool, CapsError> {
        use caps::Capability::{CAP_CHOWN, CAP_SETGID, CAP_SETPCAP, CAP_SETUID, CAP_SYS_ADMIN};
        let held = caps::read(None, caps::CapSet::Effective)?;
        let needed = [
            CAP_SYS_ADMIN,
            CAP_SETUID,
            CAP_SETGID,
            CAP_SETPCAP,
            CAP_CHOWN,
        ];
        let all = needed.iter().all(|capability| held.contains(capability));
        // Root of a user namespace with one user has nobody to be but itself.
        Ok(all && crate::uids::are_there())
    }

    /// Whether sandboxes can have uids of their own: as root, and as root of a container that may make no namespaces, if it
    /// may write any id map for a user namespace, with uid 0 in it too (user_namespaces(7)), or take any id where there is
    /// none. What cannot be read is not held.
    #[must_use]
    pub fn gives_users(self) -> bool {
        use caps::Capability as Has;
        let held = caps::read(None, caps::CapSet::Effective).unwrap_or_default();
        let needed: &[Has] = match self {
            Self::Root => return true,
            Self::UserNamespace => &[Has::CAP_SETUID, Has::CAP_SETGID, Has::CAP_SETFCAP],
            // To give it another uid and a scratch directory, to end what has that uid, and to tidy up after it.
            Self::Bare => &[
                Has::CAP_SETUID,
                Has::CAP_SETGID,
                Has::CAP_SETPCAP,
                Has::CAP_CHOWN,
                Has::CAP_KILL,
                Has::CAP_DAC_OVERRIDE,
                Has::CAP_FOWNER,
            ],
        };
        let may = needed.iter().all(|capability| held.contains(capability));
        may && crate::uids::are_there()
    }
}

/// What a process has of the kernel's Landlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    /// Its ABI, as far as this build knows it; at least 1.
    Abi(u8),
    /// The kernel has it, and it is not among the security modules that were switched on at boot (EOPNOTSUPP).
    Off,
    /// The calls are refused: the kernel has none, or a filter on this process holds them back.
    Refused,
}

impl Landlock {
    /// The ABI, 0 for none.
    #[must_use]
    pub const fn abi(self) -> u8 {
        match self {
            Self::Abi(abi) => abi,
            Self::Off | Self::Refused => 0,
        }
    }
}

/// Why the facts cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A path that cannot be looked at, for another reason than that it is not there.
    #[error("cannot look at {path}")]
    Look {
        /// The path, as far as it was followed.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A path that is not text; plans are.
    #[error("{} is not UTF-8", .0.display())]
    Text(PathBuf),
    /// A path that leads in a circle.
    #[error("{0} has too many symbolic links")]
    Links(String),
    /// A path of a view that is a socket, a device or a pipe.
    #[error("{0} is neither a file nor a directory, only those can be viewed")]
    Kind(String),
    /// A program or an interpreter that is not there.
    #[error("{path} does not exist{}", needed_by.as_ref().map(|by| format!(", and {by} needs it")).unwrap_or_default())]
    NoProgram {
        /// The path.
        path: String,
        /// The program that names it.
        needed_by: Option<String>,
    },
    /// A program that this machine or this version cannot start.
    #[error("cannot start {path}: {reason}")]
    Program {
        /// The program.
        path: String,
        /// Why not.
        reason: String,
    },
    /// A pattern that matches more than anyone meant.
    #[error("exec {pattern:?} matches more than {most} paths")]
    TooMany {
        /// The pattern.
        pattern: String,
        /// How many are looked at.
        most: usize,
    },
}

/// One match of an `exec` pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// Where it is; a file or a directory.
    pub at: Located,
    /// The loader it is linked with, if it is a dynamic program. A script's interpreter is not here: to allow a script is
    /// not to allow a shell.
    pub loader: Option<Located>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// What the supervisor may do.
    pub privilege: Privilege,
    /// The ABI of the kernel's Landlock where nothing but that and the filter holds files, 0 for none.
    pub landlock_abi: u8,
    /// For every view path of the profile where it is; those that do not exist are left out.
    pub views: BTreeMap<String, Located>,
    /// The program, as it was asked for.
    pub program: String,
    /// What is executed to start it, itself first: then the interpreters of scripts, and the loaders of all.
    pub chain: Vec<Located>,
    /// For every `exec` pattern of the profile what it matches.
    pub exec: BTreeMap<String, Vec<Executable>>,
}

impl Host {
    /// Looks at the host for `profile` and for `program`, an absolute path. Symbolic links are followed as the caller sees
    /// them; `#!/usr/bin/env NAME` is looked up in the profile's own `PATH`.
    ///
    /// # Errors
    /// [`HostError`]; a view path or an `exec` pattern without a match is no error, a program without one is.
    pub fn take(
        profile: &Profile,
        program: &Path,
        privilege: Privilege,
    ) -> Result<Self, HostError> {
        let mut host = Self {
            privilege,
            landlock_abi: match privilege {
                Privilege::Bare => crate::stage::landlock_available().abi(),
                _ => 0,
            },
            program: text(program)?,
            ..Self::default()
        };
        for path in &profile.view {
            if let Some(located) = locate::locate(path)? {
                located.is_viewable()?;
                host.views.insert(path.clone(), located);
            }
        }
        let search = profile.env.get("PATH").map(String::as_str);
        host.chain = program::chain(&host.program, search)?;
        for pattern in &profile.exec {
            let mut matches = Vec::new();
            for path in glob::expand(pattern)? {
                let Some(at) = locate::locate(&path)? else {
                    continue;
                };
                let loader = program::loader_of(&at)?;
                matches.push(Executable { at, loader });
            }
            host.exec.insert(pattern.clone(), matches);
        }
        Ok(host)
    }
}

fn text(path: &Path) -> Result<String, HostError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| HostError::Text(path.to_owned()))
}

#[cfg(test)]
mod tests;
