//! Limits by cgroup v1 or v2, or none: memory, processes and processor time of each sandbox.
//!
//! Every sandbox gets a group of its own, `boxmaker-<name>/<id>` below the group that the supervisor is in, in each
//! hierarchy that limits something. Groups that exist already are never touched, but those below the own
//! `boxmaker-<name>`, and with v2 the own group, if nobody else is in it. A layer without a controller is reported with
//! its reason and is the caller's gap.

mod group;
mod hierarchy;
mod limits;
mod mounts;
mod unified;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proto::Layer;
use proto::config::CgroupChoice;
use rustix::io::Errno;

pub use group::Group;
use group::Part;
use hierarchy::{CONTROLLERS, Hierarchy, Missing, Version};
use unified::Unified;

use crate::plan::Limits;

/// Why limits cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// A name that would not be one directory.
    #[error(
        "{0:?} cannot name a cgroup: 1 to 64 characters of a-z, A-Z, 0-9, _, . and -, not beginning with a dot"
    )]
    Name(String),
    /// One of the two versions is demanded, and it cannot limit something.
    #[error(
        "cgroup = \"{choice}\", but {reason}; put that right, or say cgroup = \"auto\" and accept what is then missing"
    )]
    Demanded {
        /// What the configuration says.
        choice: &'static str,
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
    choice: CgroupChoice,
    hierarchies: Vec<Hierarchy>,
    /// Until the supervisor has settled in it.
    unified: Option<Unified>,
    missing: Missing,
    directory: String,
}

impl Backend {
    /// Looks for the controllers and for the group of the calling process; `name` tells apart the supervisors of one
    /// host. With `auto` each controller is used where the host has it, in v1 or in v2. Makes nothing and changes nothing.
    ///
    /// # Errors
    /// [`CgroupError::Name`], [`CgroupError::Read`] for `/proc`, and [`CgroupError::Demanded`] if the choice is `v1` or
    /// `v2` and something cannot be limited with it.
    pub fn detect(choice: CgroupChoice, name: &str) -> Result<Self, CgroupError> {
        let directory = format!("boxmaker-{}", is_name(name)?);
        let read = |path: &str| {
            fs::read_to_string(path).map_err(|source| CgroupError::Read {
                path: path.into(),
                source,
            })
        };
        let (own, mounts) = match choice {
            CgroupChoice::None => (String::new(), Vec::new()),
            _ => (
                read("/proc/self/cgroup")?,
                mounts::mounts(&read("/proc/self/mountinfo")?),
            ),
        };
        let all = CONTROLLERS.iter().map(|(layer, _)| *layer);
        let (in_v1, in_v2): (Vec<_>, Vec<_>) = all.partition(|layer| match choice {
            CgroupChoice::Auto => {
                let name = hierarchy::controller(*layer);
                mounts.iter().any(|mount| mount.is_of(name))
            }
            CgroupChoice::V1 => true,
            CgroupChoice::V2 | CgroupChoice::None => false,
        });
        let (hierarchies, mut missing) = hierarchy::v1(&in_v1, &own, &mounts, &group::holds_caller);
        let (unified, more) = if choice == CgroupChoice::None {
            let reason = "the configuration says cgroup = \"none\"";
            let none = in_v2.iter().map(|layer| (*layer, reason.to_owned()));
            (None, none.collect())
        } else {
            unified::find(&in_v2, &own, &mounts, &group::holds_caller)
        };
        missing.extend(more);
        let backend = Self {
            choice,
            hierarchies,
            unified,
            missing,
            directory,
        };
        backend.complete()
    }

    /// With v2, moves the calling process into a group of its own below the one it is in, which then passes its
    /// controllers on; else does nothing. To be called once, before [`Backend::clean`].
    ///
    /// # Errors
    /// [`CgroupError::Demanded`] if v2 is demanded and the kernel refuses something.
    pub fn settle(mut self) -> Result<Self, CgroupError> {
        if let Some(unified) = self.unified.take() {
            let (hierarchy, missing) = unified.settle();
            self.hierarchies.extend(hierarchy);
            self.missing.extend(missing);
        }
        self.complete()
    }

    /// Refuses what is not all that was demanded.
    fn complete(mut self) -> Result<Self, CgroupError> {
        let place = |layer| CONTROLLERS.iter().position(|(of, _)| *of == layer);
        self.missing.sort_by_key(|(layer, _)| place(*layer));
        let choice = match self.choice {
            CgroupChoice::V1 => "v1",
            CgroupChoice::V2 => "v2",
            CgroupChoice::Auto | CgroupChoice::None => return Ok(self),
        };
        match self.missing.first() {
            None => Ok(self),
            Some((layer, reason)) => Err(CgroupError::Demanded {
                choice,
                layer: *layer,
                reason: reason.clone(),
            }),
        }
    }

    /// The layers that cannot be limited here, and why. Before [`Backend::settle`] what can be foreseen.
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

    /// Makes the group of one sandbox and sets its limits; `id` is unique among the living groups of this back end, which
    /// has settled.
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
                version: hierarchy.version,
                layers: hierarchy.layers.clone(),
                directory: base.join(id),
                group: format!(
                    "{}/{}/{id}",
                    hierarchy.group.trim_end_matches('/'),
                    self.directory
                ),
            };
            make(&base, &part)?;
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

fn is_name(name: &str) -> Result<&str, CgroupError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('.') {
        Ok(name)
    } else {
        Err(CgroupError::Name(name.to_owned()))
    }
}

/// Makes a group below the directory of all groups. The directory may vanish in between, when the last sandbox that was
/// in it is removed, so all is tried a few times.
fn make(base: &Path, part: &Part) -> Result<(), CgroupError> {
    let failed = |path: &Path, error: Errno| CgroupError::Create {
        path: path.to_owned(),
        source: error.into(),
    };
    for _ in 0..16 {
        match rustix::fs::mkdir(base, 0o755.into()) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(base, error)),
        }
        if part.version == Version::V2 && !pass_on(base, &part.layers)? {
            continue;
        }
        match rustix::fs::mkdir(&part.directory, 0o755.into()) {
            Err(Errno::NOENT) => {}
            done => return done.map_err(|error| failed(&part.directory, error)),
        }
    }
    Err(failed(&part.directory, Errno::NOENT))
}

/// Passes the controllers on to the groups of sandboxes, unless the directory of all groups has vanished.
fn pass_on(base: &Path, layers: &[Layer]) -> Result<bool, CgroupError> {
    let vanished = |error: &io::Error| {
        let errno = Errno::from_io_error(error);
        matches!(errno, Some(Errno::NOENT | Errno::NODEV)) && !base.exists()
    };
    let refused = match unified::pass_on(base, layers) {
        Ok(refused) => refused.into_iter().next(),
        Err(error) => layers.first().map(|layer| (*layer, error)),
    };
    match refused {
        None => Ok(true),
        Some((_, error)) if vanished(&error) => Ok(false),
        Some((layer, source)) => Err(CgroupError::Limit {
            path: base.join("cgroup.subtree_control"),
            value: format!("+{}", hierarchy::controller(layer)),
            source,
        }),
    }
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

/// The places of all cgroup mounts in the text of a `mountinfo`, and the groups in that of a `cgroup` file, for
/// the fuzz targets.
#[cfg(fuzzing)]
#[must_use]
pub fn read_proc(mountinfo: &str, groups: &str) -> (Vec<std::path::PathBuf>, Vec<String>) {
    let mounts = mounts::mounts(mountinfo);
    let group = |name| mounts::group_of(groups, name);
    let found = ["cpu", "memory", "pids"].into_iter().filter_map(group);
    (
        mounts.into_iter().map(|mount| mount.at).collect(),
        found.chain(mounts::unified_group(groups)).collect(),
    )
}

#[cfg(test)]
mod tests;
