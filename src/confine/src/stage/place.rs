//! Places in the new root, found and made by descriptor. No link is followed on the way: one that a tool has put into a
//! granted tree could lead to the host, whose tree is still there while the root is being built. Nothing is made but in
//! the file systems that the stage has just mounted itself.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags};

use super::{At, StageError, Steps};
use crate::message::Step;
use crate::plan::Identity;

const STEP: Step = Step::Mounts;

/// The new root while it is being built.
pub(super) struct Place {
    root: OwnedFd,
    /// The devices of the file systems that the stage has made, where it may make mount points.
    own: Vec<u64>,
    /// Which flags are set.
    steps: Steps,
}

impl Place {
    /// The root at `path`, a file system that the stage has made.
    pub(super) fn new(path: &str, steps: Steps) -> Result<Self, StageError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty()).at(STEP, "new root")?;
        let own = vec![device(root.as_fd())?];
        Ok(Self { root, own, steps })
    }

    /// The name by which the root is found.
    pub(super) fn name(&self) -> String {
        name(self.root.as_fd())
    }

    /// Makes `owner` the owner of what is at `path`.
    pub(super) fn give(&self, path: &str, owner: Identity) -> Result<(), StageError> {
        let given = self.existing(path).at(STEP, path)?;
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        rustix::fs::chownat(&given, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH).at(STEP, path)
    }

    /// The device of the root, which no other file system has.
    pub(super) fn device(&self) -> Result<u64, StageError> {
        device(self.root.as_fd())
    }

    /// Mounts a new file system at `path`; mount points may be made in it from now on.
    pub(super) fn mount(
        &mut self,
        path: &str,
        kind: &str,
        flags: MountFlags,
        options: &str,
    ) -> Result<(), StageError> {
        let target = self.directory(path)?;
        let options = std::ffi::CString::new(options).at(STEP, path)?;
        let flags = self.steps.kept(flags);
        rustix::mount::mount(kind, name(target.as_fd()), kind, flags, options.as_c_str())
            .at(STEP, path)?;
        self.own.push(device(self.directory(path)?.as_fd())?);
        Ok(())
    }

    /// Attaches a detached tree at `path` and sets its flags, which nothing but the tree itself has until then.
    pub(super) fn attach(
        &self,
        tree: Option<OwnedFd>,
        path: &str,
        directory: bool,
        flags: MountFlags,
    ) -> Result<(), StageError> {
        let tree = tree.ok_or("no descriptor came for it").at(STEP, path)?;
        let target = if directory {
            self.directory(path)?
        } else {
            self.file(path)?
        };
        let how = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        rustix::mount::move_mount(&tree, "", &target, "", how).at(STEP, path)?;
        self.set_flags(path, flags)
    }

    /// Sets the flags of the mount at `path`.
    pub(super) fn set_flags(&self, path: &str, flags: MountFlags) -> Result<(), StageError> {
        // Looked up again: the descriptor from before is of what the mount now hides.
        let mounted = self.existing(path).at(STEP, path)?;
        // What the host has closed on its mount stays closed; in a user namespace it could not be opened anyway.
        let flags = self.steps.kept(flags);
        let flags = flags | kept(mounted.as_fd()).at(STEP, path)? | MountFlags::BIND;
        rustix::mount::mount_remount(name(mounted.as_fd()), flags, c"").at(STEP, path)
    }

    /// Makes a symbolic link.
    pub(super) fn link(&self, path: &str, target: &str) -> Result<(), StageError> {
        let (above, last) = self.above(path)?;
        self.may_make(above.as_fd(), path)?;
        rustix::fs::symlinkat(target, &above, last).at(STEP, path)
    }

    /// Makes `path` a directory as far as file systems of the stage's own reach, the new root and `/tmp`: not in, nor below,
    /// anything of the host's that is mounted.
    pub(super) fn working_directory(&self, path: &str) -> Result<(), StageError> {
        let mut above = self.root.try_clone().at(STEP, path)?;
        for last in components(path) {
            if !self.own.contains(&device(above.as_fd())?) {
                return Ok(());
            }
            above = match self.below(above.as_fd(), last, OFlags::DIRECTORY) {
                Err(Errno::NOENT) => self.make(above.as_fd(), last, path)?,
                Err(Errno::LOOP | Errno::NOTDIR) => return Ok(()),
                found => found.at(STEP, path)?,
            };
        }
        Ok(())
    }

    /// The directory `path`, made with everything above it where it is not there.
    fn directory(&self, path: &str) -> Result<OwnedFd, StageError> {
        let mut above = self.root.try_clone().at(STEP, path)?;
        for last in components(path) {
            above = match self.below(above.as_fd(), last, OFlags::DIRECTORY) {
                Err(Errno::NOENT) => self.make(above.as_fd(), last, path)?,
                found => found.at(STEP, path)?,
            };
        }
        Ok(above)
    }

    /// The file `path`, made empty where it is not there.
    fn file(&self, path: &str) -> Result<OwnedFd, StageError> {
        let (above, last) = self.above(path)?;
        if let Err(Errno::NOENT) = self.below(above.as_fd(), last, OFlags::empty()) {
            self.may_make(above.as_fd(), path)?;
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&above, last, flags, Mode::from_raw_mode(0o444)).at(STEP, path)?;
        }
        self.below(above.as_fd(), last, OFlags::empty())
            .at(STEP, path)
    }

    fn above<'a>(&self, path: &'a str) -> Result<(OwnedFd, &'a str), StageError> {
        let (above, last) = path.rsplit_once('/').ok_or("not absolute").at(STEP, path)?;
        Ok((self.directory(above)?, last))
    }

    fn make(&self, above: BorrowedFd<'_>, last: &str, path: &str) -> Result<OwnedFd, StageError> {
        self.may_make(above, path)?;
        rustix::fs::mkdirat(above, last, Mode::from_raw_mode(0o755)).at(STEP, path)?;
        self.below(above, last, OFlags::DIRECTORY).at(STEP, path)
    }

    fn may_make(&self, above: BorrowedFd<'_>, path: &str) -> Result<(), StageError> {
        match self.own.contains(&device(above)?) {
            true => Ok(()),
            false => Err("it is missing in something that is mounted, where nothing is made")
                .at(STEP, path),
        }
    }

    fn existing(&self, path: &str) -> Result<OwnedFd, Errno> {
        let below = path.trim_start_matches('/');
        let below = if below.is_empty() { "." } else { below };
        self.below(self.root.as_fd(), below, OFlags::empty())
    }

    fn below(&self, above: BorrowedFd<'_>, path: &str, kind: OFlags) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | kind;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        loop {
            match rustix::fs::openat2(above, path, flags, Mode::empty(), how) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                found => return found,
            }
        }
    }
}

/// The restricting flags that a mount has now.
fn kept(mounted: BorrowedFd<'_>) -> Result<MountFlags, Errno> {
    use rustix::fs::StatVfsMountFlags as Has;
    let has = rustix::fs::fstatvfs(mounted)?.f_flag;
    let pairs = [
        (Has::RDONLY, MountFlags::RDONLY),
        (Has::NOSUID, MountFlags::NOSUID),
        (Has::NODEV, MountFlags::NODEV),
        (Has::NOEXEC, MountFlags::NOEXEC),
    ];
    let kept = pairs.iter().filter(|(flag, _)| has.contains(*flag));
    Ok(kept.fold(MountFlags::empty(), |all, (_, flag)| all | *flag))
}

/// Opens `path` without following any link.
pub(super) fn open_plain(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), how)
}

fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

fn device(descriptor: BorrowedFd<'_>) -> Result<u64, StageError> {
    Ok(rustix::fs::fstat(descriptor).at(STEP, "new root")?.st_dev)
}

/// The name by which mount(2), which takes no descriptors, finds one: in the host's `/proc`, or in the sandbox's own.
fn name(descriptor: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// A copy of a host path, mounted nowhere yet.
pub(super) fn copy(path: &str) -> Result<OwnedFd, StageError> {
    use rustix::mount::OpenTreeFlags as Flags;
    let flags = Flags::OPEN_TREE_CLONE | Flags::OPEN_TREE_CLOEXEC;
    rustix::mount::open_tree(CWD, path, flags).at(STEP, path)
}
