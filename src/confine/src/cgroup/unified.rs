//! The place of the supervisor in the v2 hierarchy: the group below which those of sandboxes are made.
//!
//! A v2 group that passes controllers on to its children holds no processes itself (the rule of no internal processes in
//! the kernel's cgroup-v2 document). So the supervisor, started in a group that was delegated to it, moves into the leaf
//! `supervisor` below it. It does so only where nobody else is: processes and groups of others stay as they are, and the
//! layers are missing with a reason that says what would help.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use proto::Layer;

use super::group;
use super::hierarchy::{Hierarchy, Missing, Version, controller, writable};
use super::mounts::{self, Mounted};

/// Where the supervisor is itself. A unit may start it there with `DelegateSubgroup=` (systemd.resource-control(5)).
const LEAF: &str = "supervisor";
const PROCESSES: &str = "cgroup.procs";
const PASSED_ON: &str = "cgroup.subtree_control";
const WAY_OUT: &str = "with Delegate=yes in a unit of its own, boxmaker can set limits";

/// The hierarchy as it will be once the supervisor has settled in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unified {
    hierarchy: Hierarchy,
    /// What the group does not pass on yet.
    withheld: Vec<Layer>,
    /// Whether the caller is in the group itself, not in the leaf.
    inside: bool,
}

/// Finds where `layers` can be limited, and why some cannot be. Changes nothing.
pub(super) fn find(
    layers: &[Layer],
    own_groups: &str,
    mounts: &[Mounted],
    is_own: &impl Fn(&Path) -> bool,
) -> (Option<Unified>, Missing) {
    match Place::find(own_groups, mounts, is_own) {
        Ok(place) => place.judge(layers, mounts),
        Err(reason) => {
            let each = layers.iter().map(|layer| (*layer, reason.clone()));
            (None, each.collect())
        }
    }
}

impl Unified {
    /// Moves the caller into the leaf and lets the group pass its controllers on, as far as that has not been done. What
    /// the kernel refuses is missing; if it refuses all of it, the caller is where it was.
    pub(super) fn settle(mut self) -> (Option<Hierarchy>, Missing) {
        let group = &self.hierarchy.group;
        let missing: Missing = match self.take_place() {
            Ok(refused) => refused
                .into_iter()
                .map(|(layer, error)| {
                    let name = controller(layer);
                    let reason = format!("the group {group} cannot pass {name} on: {error}");
                    (layer, reason)
                })
                .collect(),
            Err(error) => {
                let reason = format!("no place is to be had in the group {group}: {error}");
                let each = self.withheld.iter();
                each.map(|layer| (*layer, reason.clone())).collect()
            }
        };
        let layers = &mut self.hierarchy.layers;
        layers.retain(|layer| missing.iter().all(|(of, _)| of != layer));
        ((!layers.is_empty()).then_some(self.hierarchy), missing)
    }

    /// Answers which controllers are not passed on.
    fn take_place(&self) -> io::Result<Vec<(Layer, io::Error)>> {
        if self.withheld.is_empty() {
            return Ok(Vec::new());
        }
        let directory = &self.hierarchy.directory;
        let leaf = directory.join(LEAF);
        if self.inside {
            enter(&leaf)?;
        }
        let refused = pass_on(directory, &self.withheld);
        let in_vain = match &refused {
            Ok(refused) => refused.len() == self.withheld.len(),
            Err(_) => true,
        };
        if self.inside && in_vain {
            // Where that does not succeed either, the caller is in a group of its own all the same.
            let _: io::Result<()> = move_to(directory).and_then(|()| fs::remove_dir(leaf));
        }
        refused
    }
}

/// Lets a group pass on the controllers of `layers` to its children, one by one. Answers which the kernel refused.
pub(super) fn pass_on(directory: &Path, layers: &[Layer]) -> io::Result<Vec<(Layer, io::Error)>> {
    let path = directory.join(PASSED_ON);
    let mut file = OpenOptions::new().write(true).open(path)?;
    let mut write = |layer: &Layer| {
        let error = file.write_all(format!("+{}", controller(*layer)).as_bytes());
        error.err().map(|error| (*layer, error))
    };
    Ok(layers.iter().filter_map(&mut write).collect())
}

/// Makes a group, if it is not there, and moves the caller into it.
fn enter(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => move_to(directory),
    }
}

/// `0` stands for the process that writes it, with all its threads.
fn move_to(directory: &Path) -> io::Result<()> {
    let path = directory.join(PROCESSES);
    OpenOptions::new().write(true).open(path)?.write_all(b"0")
}

/// The group below which those of sandboxes would be made.
struct Place {
    group: String,
    directory: PathBuf,
    /// The directory of the group that the caller is in: this one or its leaf.
    own: PathBuf,
    /// The directory of the topmost group that can be seen.
    root: PathBuf,
}

impl Place {
    /// Usually the caller's own group; the one above if the caller is in the leaf already.
    fn find(
        own_groups: &str,
        mounts: &[Mounted],
        is_own: &impl Fn(&Path) -> bool,
    ) -> Result<Self, String> {
        let mount = mounts
            .iter()
            .find(|mount| mount.unified)
            .ok_or("cgroup v2 is not mounted")?;
        let group = mounts::unified_group(own_groups)
            .ok_or("/proc/self/cgroup names no group of cgroup v2")?;
        let own = mount.directory(&group, is_own)?;
        let root = mount.at.clone();
        let above = group
            .strip_suffix(&format!("/{LEAF}"))
            .zip(own.parent())
            .filter(|(_, parent)| own.ends_with(LEAF) && parent.starts_with(&root))
            .filter(|(_, parent)| processes(parent).is_ok_and(|pids| pids.is_empty()));
        let (group, directory) = match above {
            Some(("", parent)) => ("/".to_owned(), parent.to_owned()),
            Some((above, parent)) => (above.to_owned(), parent.to_owned()),
            None => (group, own.clone()),
        };
        Ok(Self {
            group,
            directory,
            own,
            root,
        })
    }

    /// What can be limited here, and why the rest of `layers` cannot be.
    fn judge(self, layers: &[Layer], mounts: &[Mounted]) -> (Option<Unified>, Missing) {
        let offered = words(&self.directory.join("cgroup.controllers"));
        let passed_on = words(&self.directory.join(PASSED_ON));
        let is_in = |words: &[String], layer: Layer| words.iter().any(|of| of == controller(layer));
        let (mut usable, absent): (Vec<_>, Vec<_>) =
            layers.iter().partition(|layer| is_in(&offered, **layer));
        let mut missing: Missing = absent
            .into_iter()
            .map(|layer| (layer, self.absent(controller(layer), mounts)))
            .collect();
        let withheld = usable.iter().filter(|layer| !is_in(&passed_on, **layer));
        let mut withheld: Vec<Layer> = withheld.copied().collect();
        let left_out = match self.allows() {
            Err(reason) => Some((usable.clone(), reason)),
            Ok(()) if withheld.is_empty() => None,
            Ok(()) => self
                .is_for_the_caller_alone()
                .err()
                .map(|reason| (withheld.clone(), reason)),
        };
        if let Some((left_out, reason)) = left_out {
            usable.retain(|layer| !left_out.contains(layer));
            withheld.clear();
            missing.extend(left_out.into_iter().map(|layer| (layer, reason.clone())));
        }
        let unified = (!usable.is_empty()).then(|| Unified {
            inside: self.directory == self.own,
            hierarchy: Hierarchy {
                version: Version::V2,
                layers: usable,
                group: self.group,
                directory: self.directory,
            },
            withheld,
        });
        (unified, missing)
    }

    /// Why a controller is not offered to the group.
    fn absent(&self, name: &str, mounts: &[Mounted]) -> String {
        let group = &self.group;
        let everywhere = words(&self.root.join("cgroup.controllers"));
        if everywhere.iter().any(|word| word == name) {
            format!("the group {group} is given no {name} controller; {WAY_OUT}")
        } else if mounts.iter().any(|mount| mount.is_of(name)) {
            format!("the {name} controller is in cgroup v1 on this host")
        } else {
            format!("cgroup v2 has no {name} controller here")
        }
    }

    /// Whether the caller may make groups here and move processes between them.
    fn allows(&self) -> Result<(), String> {
        [self.directory.clone(), self.directory.join(PROCESSES)]
            .iter()
            .try_for_each(|path| writable(path))
            .map_err(|reason| format!("{reason}; {WAY_OUT}"))
    }

    /// Whether nobody else is in the group or in any group below it, who would be touched by a change.
    fn is_for_the_caller_alone(&self) -> Result<(), String> {
        let group = &self.group;
        writable(&self.directory.join(PASSED_ON))
            .map_err(|reason| format!("{reason}; {WAY_OUT}"))?;
        let unreadable = |error: io::Error| format!("the group {group} cannot be read: {error}");
        let own = std::process::id().to_string();
        let pids = processes(&self.directory).map_err(unreadable)?;
        if let Some(pid) = pids.iter().find(|pid| **pid != own) {
            return Err(format!(
                "process {pid} is in the group {group} too; {WAY_OUT}"
            ));
        }
        for entry in fs::read_dir(&self.directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            if path == self.own || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if group::is_populated(&path).map_err(unreadable)? != Some(false) {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                return Err(format!(
                    "the group {group} holds {name}, which has processes; {WAY_OUT}"
                ));
            }
        }
        Ok(())
    }
}

/// The words of a file of the kernel; none if it cannot be read.
fn words(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The processes of a group as the kernel lists them, 0 for those of foreign pid namespaces.
fn processes(directory: &Path) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(directory.join(PROCESSES))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests;
