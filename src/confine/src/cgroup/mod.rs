//! Limits by cgroup v1, or none: memory, processes and processor time of each sandbox.
//!
//! Every sandbox gets a group of its own, `boxmaker-<name>/<id>` below the group that the supervisor is in, in each
//! hierarchy there is. Groups that exist already are never touched, but those below the own `boxmaker-<name>`. A
//! layer without a controller is reported with its reason and is the caller's gap.

mod group;
mod hierarchy;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proto::Layer;
use proto::config::CgroupChoice;
use rustix::fs::Access;
use rustix::io::Errno;

pub use group::Group;
use group::Part;
use hierarchy::Hierarchy;

use crate::plan::Limits;

/// Why limits cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// A name that would not be one directory.
    #[error(
        "{0:?} cannot name a cgroup: 1 to 64 characters of a-z, A-Z, 0-9, _, . and -, not beginning with a dot"
    )]
    Name(String),
    /// v1 is demanded and a controller is missing.
    #[error(
        "cgroup = \"v1\", but {reason}; mount the controller, or say cgroup = \"auto\" and accept the gap"
    )]
    Demanded {
        /// The layer that has no controller.
        layer: Layer,
        /// Why not.
        reason: String,
    },
    /// A file that does not open or read.
    #[error("cannot open {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A group that cannot be made.
    #[error("cannot make the cgroup {}", path.display())]
    Create {
        /// Its directory.
        path: PathBuf,
        /// What the kernel said; "file exists" is a group that somebody else made.
        source: io::Error,
    },
    /// A limit that the kernel does not take.
    #[error("cannot write {value} to {}", path.display())]
    Limit {
        /// The file of the limit.
        path: PathBuf,
        /// What was to be written.
        value: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Processes that do not die.
    #[error("processes are left in the cgroup {}", _0.display())]
    Busy(PathBuf),
    /// A group that cannot be removed.
    #[error("cannot remove the cgroup {}", path.display())]
    Remove {
        /// Its directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What this host offers, found once.
#[derive(Debug, Clone)]
pub struct Backend {
    hierarchies: Vec<Hierarchy>,
    missing: Vec<(Layer, String)>,
    directory: String,
}

impl Backend {
    /// Looks for the v1 controllers and for the group of the calling process; `name` tells apart the supervisors of one
    /// host. Makes nothing.
    ///
    /// # Errors
    /// [`CgroupError::Name`], [`CgroupError::Read`] for `/proc`, and [`CgroupError::Demanded`] if the choice is `v1` and
    /// a controller is missing or its directory is not writable.
    pub fn detect(choice: CgroupChoice, name: &str) -> Result<Self, CgroupError> {
        let read = |path: &str| {
            fs::read_to_string(path).map_err(|source| CgroupError::Read {
                path: path.into(),
                source,
            })
        };
        let (hierarchies, missing) = if choice == CgroupChoice::None {
            let reason = "the configuration says cgroup = \"none\"";
            let all = hierarchy::CONTROLLERS;
            let missing = all.iter().map(|(layer, _)| (*layer, reason.to_owned()));
            (Vec::new(), missing.collect())
        } else {
            let own = read("/proc/self/cgroup")?;
            let mountinfo = read("/proc/self/mountinfo")?;
            writable(hierarchy::find(&own, &mountinfo, group::holds_caller))
        };
        if choice == CgroupChoice::V1
            && let Some((layer, reason)) = missing.first()
        {
            return Err(CgroupError::Demanded {
                layer: *layer,
                reason: reason.clone(),
            });
        }
        let directory = format!("boxmaker-{}", is_name(name)?);
        Ok(Self {
            hierarchies,
            missing,
            directory,
        })
    }

    /// The layers that cannot be limited here, and why.
    #[must_use]
    pub fn missing(&self) -> &[(Layer, String)] {
        &self.missing
    }

    /// Kills and removes what a supervisor of the same name left behind. To be called before the first
    /// [`Backend::create`] and only by the holder of the home's lock.
    ///
    /// # Errors
    /// [`CgroupError::Busy`] for processes that do not die, [`CgroupError::Remove`] and [`CgroupError::Read`].
    pub fn clean(&self) -> Result<(), CgroupError> {
        self.hierarchies
            .iter()
            .try_for_each(|hierarchy| clean(&hierarchy.directory.join(&self.directory)))
    }

    /// Makes the group of one sandbox and sets its limits; `id` is unique among the living groups of this back end.
    /// With no controller at all it is a group without directories that limits nothing and measures as missing.
    ///
    /// # Errors
    /// [`CgroupError::Name`], [`CgroupError::Create`] (also for an id that exists), [`CgroupError::Limit`]. What was made
    /// before the error is removed again.
    pub fn create(&self, id: &str, limits: &Limits) -> Result<Group, CgroupError> {
        let id = is_name(id)?;
        let mut group = Group {
            parts: Vec::new(),
            missing: self.missing.clone(),
            limits: limits.clone(),
        };
        let made = self.hierarchies.iter().try_for_each(|hierarchy| {
            let base = hierarchy.directory.join(&self.directory);
            let part = Part {
                layers: hierarchy.layers.clone(),
                directory: base.join(id),
                group: format!(
                    "{}/{}/{id}",
                    hierarchy.own.trim_end_matches('/'),
                    self.directory
                ),
            };
            make(&base, &part.directory)?;
            group.parts.push(part);
            group.parts.last().map_or(Ok(()), |part| part.limit(limits))
        });
        match made {
            Ok(()) => Ok(group),
            Err(error) => {
                let _ = group.remove();
                Err(error)
            }
        }
    }
}

/// Sorts out hierarchies in which no group can be made, such as read-only ones of containers.
fn writable(
    (found, mut missing): (Vec<Hierarchy>, Vec<(Layer, String)>),
) -> (Vec<Hierarchy>, Vec<(Layer, String)>) {
    let keep = |hierarchy: &Hierarchy| {
        let Err(error) = rustix::fs::access(&hierarchy.directory, Access::WRITE_OK) else {
            return true;
        };
        let reason = format!(
            "{} is not writable: {}",
            hierarchy.directory.display(),
            io::Error::from(error)
        );
        missing.extend(
            hierarchy
                .layers
                .iter()
                .map(|layer| (*layer, reason.clone())),
        );
        false
    };
    (found.into_iter().filter(keep).collect(), missing)
}

fn is_name(name: &str) -> Result<&str, CgroupError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('.') {
        Ok(name)
    } else {
        Err(CgroupError::Name(name.to_owned()))
    }
}

/// Makes a group below the directory of all groups. The directory may vanish in between, when the last sandbox that was
/// in it is removed, so both are tried a few times.
fn make(base: &Path, directory: &Path) -> Result<(), CgroupError> {
    let failed = |path: &Path, error: Errno| CgroupError::Create {
        path: path.to_owned(),
        source: error.into(),
    };
    for _ in 0..16 {
        match rustix::fs::mkdir(base, 0o755.into()) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(base, error)),
        }
        match rustix::fs::mkdir(directory, 0o755.into()) {
            Err(Errno::NOENT) => {}
            done => return done.map_err(|error| failed(directory, error)),
        }
    }
    Err(failed(directory, Errno::NOENT))
}

/// Kills and removes a group and everything below it; no group there is no error.
fn clean(directory: &Path) -> Result<(), CgroupError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(CgroupError::Read {
                path: directory.to_owned(),
                source,
            });
        }
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            clean(&entry.path())?;
        }
    }
    group::kill_all(directory)?;
    group::remove(directory)
}

#[cfg(test)]
mod tests;
