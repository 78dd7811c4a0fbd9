//! The new root: built on a fresh tmpfs in the stage's own mount namespace, then made the root; the host's tree is
//! gone afterwards (mount_namespaces(7), pivot_root(2)).
//!
//! Host paths are opened before anything is mounted, because the new root is built on top of one of them. Nothing is
//! ever bound recursively: a submount would keep flags that the bind does not have.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, OpenTreeFlags,
    UnmountFlags,
};

use super::place::{self, Place, copy};
use super::{At, Part, StageError, Steps};
use crate::message::Step;
use crate::plan::{Identity, Mount, SCRATCH};

/// Where the new root is built: a directory that every host has, and whose files the stage has opened before.
const BASE: &str = "/dev";

/// The device nodes of a sandbox.
pub(crate) const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// The links that stand in its `/dev`.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    // Where the C library keeps named semaphores and shared memory.
    ("shm", SCRATCH),
];

/// Flags of a mount whose files are data.
pub(crate) const DATA: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// Makes sure that nothing that is mounted or unmounted from here on reaches the host.
pub(super) fn separate(foreign_namespace: u64) -> Result<(), StageError> {
    let step = Step::Mounts;
    let own = fs::metadata("/proc/self/ns/mnt")
        .at(step, "/proc/self/ns/mnt")?
        .ino();
    if own == foreign_namespace {
        return Err("still in the supervisor's mount namespace, nothing is mounted there")
            .at(step, "mount namespace");
    }
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change("/", private).at(step, "make / private")
}

/// Copies the trees that the launcher holds open, from the stage's own mount namespace: each by the path it has, and
/// only if that still is the very file or directory that is held.
pub(super) fn copy_held(paths: &[String], held: Vec<OwnedFd>) -> Result<Vec<OwnedFd>, StageError> {
    let step = Step::Mounts;
    let copy = |(path, held): (&String, OwnedFd)| {
        let found = place::open_plain(path).at(step, path)?;
        let [found_at, held_at] = [&found, &held].map(rustix::fs::fstat);
        let (found_at, held_at) = (found_at.at(step, path)?, held_at.at(step, path)?);
        if (found_at.st_dev, found_at.st_ino) != (held_at.st_dev, held_at.st_ino) {
            return Err("it is another file than the one that was resolved").at(step, path);
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        rustix::mount::open_tree(&found, "", flags).at(step, path)
    };
    paths.iter().zip(held).map(copy).collect()
}

/// The new root while it is put together.
pub(super) struct NewRoot {
    place: Place,
    /// The host's files that are not attached yet.
    opened: std::vec::IntoIter<OwnedFd>,
    steps: Steps,
}

impl NewRoot {
    /// A new file system with the first `early` of `mounts`, which are all but the granted trees; the others are opened.
    pub(super) fn begin(mounts: &[Mount], early: usize, steps: Steps) -> Result<Self, StageError> {
        let opened = open_host(mounts)?.into_iter();
        rustix::mount::mount("tmpfs", BASE, "tmpfs", DATA, c"mode=0755,size=1m")
            .at(Step::Mounts, "tmpfs for the new root")?;
        let place = Place::new(BASE, steps)?;
        let mut root = Self {
            place,
            opened,
            steps,
        };
        root.add(mounts.get(..early).unwrap_or(mounts), Vec::new())?;
        Ok(root)
    }

    /// Adds `mounts`; `trees` are the descriptors of the [`Mount::Tree`] among them.
    pub(super) fn add(&mut self, mounts: &[Mount], trees: Vec<OwnedFd>) -> Result<(), StageError> {
        let mut trees = trees.into_iter();
        for mount in mounts {
            match mount {
                Mount::View { path, directory } => {
                    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
                    self.place
                        .attach(self.opened.next(), path, *directory, flags)?;
                }
                Mount::Link { path, target } => self.place.link(path, target)?,
                Mount::Proc => {
                    let options = match self.steps.keeps(Part::ProcessesOnly) {
                        true => "subset=pid",
                        false => "",
                    };
                    let flags = DATA | MountFlags::RDONLY;
                    self.place.mount("/proc", "proc", flags, options)?;
                }
                Mount::Devices => devices(&mut self.place, &mut self.opened)?,
                Mount::Scratch { bytes, inodes } => {
                    let options = format!("mode=0700,size={bytes},nr_inodes={inodes}");
                    self.place.mount(SCRATCH, "tmpfs", DATA, &options)?;
                }
                Mount::Tree {
                    path,
                    directory,
                    access,
                    exec,
                } => {
                    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
                    flags.set(MountFlags::NOEXEC, !exec);
                    flags.set(MountFlags::RDONLY, !access.writes());
                    self.place.attach(trees.next(), path, *directory, flags)?;
                }
            }
        }
        Ok(())
    }

    /// Makes `cwd`, where the program starts, unless something that is mounted brings it, and gives the scratch directory
    /// to its user.
    pub(super) fn finish(&self, cwd: &str, scratch: Option<Identity>) -> Result<(), StageError> {
        self.place.working_directory(cwd)?;
        scratch.map_or(Ok(()), |owner| self.place.give(SCRATCH, owner))
    }

    /// Makes the root itself read-only: what stands in it are mount points, links and nothing else.
    pub(super) fn seal(&self) -> Result<(), StageError> {
        let flags = self.steps.kept(DATA | MountFlags::RDONLY) | MountFlags::BIND;
        rustix::mount::mount_remount(self.place.name(), flags, c"").at(Step::RootFlags, "/")
    }

    /// The device of the new root, which no other file system has.
    pub(super) fn device(&self) -> Result<u64, StageError> {
        self.place.device()
    }
}

/// Makes the new root, which is on `device`, the root and lets go of the old one.
pub(super) fn pivot(device: u64, steps: Steps) -> Result<(), StageError> {
    let step = Step::Pivot;
    rustix::process::chdir(BASE).at(step, "new root")?;
    // Both are ".": the old root is then mounted on top of the new one, and is detached from there (pivot_root(2)).
    steps.take(step, || {
        rustix::process::pivot_root(".", ".").at(step, "pivot_root")
    })?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).at(step, "detach the old root")?;
    rustix::process::chdir("/").at(step, "/")?;
    if fs::metadata("/").at(step, "/")?.dev() != device {
        return Err("the root is not the one that was built").at(step, "/");
    }
    Ok(())
}

/// A tmpfs that is mounted nowhere, for canaries: whoever holds its descriptor can use it, nobody else can name it.
pub(super) fn detached() -> Result<OwnedFd, StageError> {
    let step = Step::CanariesBefore;
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).at(step, "fsopen")?;
    rustix::mount::fsconfig_set_string(&context, "mode", "0777").at(step, "tmpfs mode")?;
    rustix::mount::fsconfig_set_string(&context, "size", "64k").at(step, "tmpfs size")?;
    rustix::mount::fsconfig_create(&context).at(step, "tmpfs")?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at(step, "fsmount")
}

/// Opens a copy of each host path that the plan binds, in the order in which they are attached.
fn open_host(mounts: &[Mount]) -> Result<Vec<OwnedFd>, StageError> {
    let mut opened = Vec::new();
    for mount in mounts {
        match mount {
            Mount::View { path, .. } => opened.push(copy(path)?),
            Mount::Devices => {
                for name in DEVICES {
                    opened.push(copy(&format!("/dev/{name}"))?);
                }
            }
            _ => {}
        }
    }
    Ok(opened)
}

fn devices(
    place: &mut Place,
    opened: &mut impl Iterator<Item = OwnedFd>,
) -> Result<(), StageError> {
    place.mount("/dev", "tmpfs", DATA, "mode=0755,size=64k")?;
    for name in DEVICES {
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::RDONLY;
        place.attach(opened.next(), &format!("/dev/{name}"), false, flags)?;
    }
    for (name, to) in DEVICE_LINKS {
        place.link(&format!("/dev/{name}"), to)?;
    }
    place.set_flags("/dev", DATA | MountFlags::RDONLY)
}
