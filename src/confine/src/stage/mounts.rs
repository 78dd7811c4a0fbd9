//! The new root: built on a fresh tmpfs in the stage's own mount namespace, then made the root; the host's tree is
//! gone afterwards (mount_namespaces(7), pivot_root(2)).
//!
//! Host paths are opened before anything is mounted, because the new root is built on top of one of them. Nothing is
//! ever bound recursively: a submount would keep flags that the bind does not have.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};

use super::{At, StageError, Steps};
use crate::message::Step;
use crate::plan::{Identity, Mount};

/// Where the new root is built: a directory that every host has and the stage no longer needs.
const BASE: &str = "/proc";

/// The device nodes of a sandbox.
pub(crate) const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// The links that stand in its `/dev`.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
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

/// Builds the new root from `mounts`; `trees` are the descriptors of its [`Mount::Tree`] entries.
pub(super) fn build(
    mounts: &[Mount],
    trees: Vec<OwnedFd>,
    identity: Identity,
) -> Result<(), StageError> {
    let step = Step::Mounts;
    let opened = open_host(mounts)?;
    rustix::mount::mount("tmpfs", BASE, "tmpfs", DATA, c"mode=0755,size=1m")
        .at(step, "tmpfs for the new root")?;
    let mut opened = opened.into_iter();
    let mut trees = trees.into_iter();
    for mount in mounts {
        match mount {
            Mount::View { path, directory } => {
                let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
                attach(opened.next(), path, *directory, flags)?;
            }
            Mount::Link { path, target } => {
                parents(path)?;
                std::os::unix::fs::symlink(target, inside(path)).at(step, path)?;
            }
            Mount::Proc => {
                let target = directory("/proc")?;
                let flags = DATA | MountFlags::RDONLY;
                rustix::mount::mount("proc", &target, "proc", flags, c"subset=pid")
                    .at(step, "/proc")?;
            }
            Mount::Devices => devices(&mut opened)?,
            Mount::Scratch { bytes, inodes } => {
                let target = directory("/tmp")?;
                let Identity { uid, gid } = identity;
                let options =
                    format!("mode=0700,size={bytes},nr_inodes={inodes},uid={uid},gid={gid}");
                let options = std::ffi::CString::new(options).at(step, "/tmp")?;
                rustix::mount::mount("tmpfs", &target, "tmpfs", DATA, options.as_c_str())
                    .at(step, "/tmp")?;
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
                attach(trees.next(), path, *directory, flags)?;
            }
        }
    }
    Ok(())
}

/// Makes the directory `cwd` of the new root, where nothing that was mounted brings it: a program that is granted what
/// does not exist still starts where the plan says, and finds nothing there. Only directories of the new root itself are
/// made, never one behind a link or in something that is mounted.
pub(super) fn working_directory(cwd: &str) -> Result<(), StageError> {
    let step = Step::Mounts;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut above = rustix::fs::open(BASE, flags, Mode::empty()).at(step, "new root")?;
    for name in cwd.split('/').filter(|name| !name.is_empty()) {
        match rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno).at(step, cwd),
        }
        let how = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
        above = match rustix::fs::openat2(&above, name, flags, Mode::empty(), how) {
            Ok(below) => below,
            Err(Errno::XDEV | Errno::LOOP | Errno::NOTDIR) => return Ok(()),
            Err(errno) => return Err(errno).at(step, cwd),
        };
    }
    Ok(())
}

/// Makes the new root itself read-only: what stands in it are mount points, links and nothing else.
pub(super) fn seal() -> Result<(), StageError> {
    remount(BASE, DATA | MountFlags::RDONLY).at(Step::RootFlags, "/")
}

/// Makes the new root the root and lets go of the old one.
pub(super) fn pivot(steps: Steps) -> Result<(), StageError> {
    let step = Step::Pivot;
    rustix::process::chdir(BASE).at(step, "new root")?;
    // Both are ".": the old root is then mounted on top of the new one, and is detached from there (pivot_root(2)).
    steps.take(step, || {
        rustix::process::pivot_root(".", ".").at(step, "pivot_root")
    })?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).at(step, "detach the old root")?;
    rustix::process::chdir("/").at(step, "/")?;
    // The old root had a file system under every name; the new one holds only what the plan says.
    let left = fs::metadata("/").at(step, "/")?;
    let new = rustix::fs::statfs("/").at(step, "/")?;
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    if new.f_type as u64 != TMPFS_MAGIC || left.ino() != 1 {
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

fn copy(path: &str) -> Result<OwnedFd, StageError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    rustix::mount::open_tree(CWD, path, flags).at(Step::Mounts, path)
}

fn devices(opened: &mut impl Iterator<Item = OwnedFd>) -> Result<(), StageError> {
    let step = Step::Mounts;
    let target = directory("/dev")?;
    rustix::mount::mount("tmpfs", &target, "tmpfs", DATA, c"mode=0755,size=64k")
        .at(step, "/dev")?;
    for name in DEVICES {
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::RDONLY;
        attach(opened.next(), &format!("/dev/{name}"), false, flags)?;
    }
    for (name, to) in DEVICE_LINKS {
        std::os::unix::fs::symlink(to, target.join(name)).at(step, name)?;
    }
    remount(&target, DATA | MountFlags::RDONLY).at(step, "/dev")
}

/// Attaches a detached tree at `path` of the new root and sets its flags.
fn attach(
    tree: Option<OwnedFd>,
    path: &str,
    is_directory: bool,
    flags: MountFlags,
) -> Result<(), StageError> {
    let step = Step::Mounts;
    let tree = tree.ok_or("no descriptor came for it").at(step, path)?;
    let target = if is_directory {
        directory(path)?
    } else {
        file(path)?
    };
    move_to(tree.as_fd(), &target).at(step, path)?;
    remount(&target, flags).at(step, path)
}

fn move_to(tree: BorrowedFd<'_>, target: &Path) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(tree, "", CWD, target, flags)
}

fn remount(target: impl rustix::path::Arg, flags: MountFlags) -> rustix::io::Result<()> {
    rustix::mount::mount_remount(target, flags | MountFlags::BIND, c"")
}

/// Where a path of the sandbox is while its root is being built.
fn inside(path: &str) -> PathBuf {
    Path::new(BASE).join(path.trim_start_matches('/'))
}

fn parents(path: &str) -> Result<(), StageError> {
    match inside(path).parent() {
        Some(parent) => fs::create_dir_all(parent).at(Step::Mounts, parent.display()),
        None => Ok(()),
    }
}

fn directory(path: &str) -> Result<PathBuf, StageError> {
    let target = inside(path);
    fs::create_dir_all(&target).at(Step::Mounts, path)?;
    Ok(target)
}

fn file(path: &str) -> Result<PathBuf, StageError> {
    let target = inside(path);
    if !target.exists() {
        parents(path)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::open(&target, flags, Mode::from_raw_mode(0o444)).at(Step::Mounts, path)?;
    }
    Ok(target)
}
