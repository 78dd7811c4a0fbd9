//! The directory of one sandbox that cannot have a file system of its own: below it one to work in, one for canaries. It
//! is removed with the sandbox, whatever was made in it.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::plan::Identity;

/// What sandboxes without namespaces need to know.
#[derive(Debug, Clone)]
pub struct BareOptions {
    /// Why there are no namespaces and what would help, for the reasons of gaps.
    pub why: String,
    /// A directory of this supervisor's alone, made if it is not there. Everything in it is removed at the start; each
    /// sandbox has its scratch directory in it. No grant may cover it.
    pub directory: PathBuf,
}

/// Closed to every other user.
const MODE: u32 = 0o700;

/// A sandbox that has another uid comes through and sees nothing.
const THROUGH: u32 = 0o711;

/// Both directories.
#[derive(Debug)]
pub(super) struct Private {
    path: PathBuf,
}

/// What the stage is handed of them.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) scratch: OwnedFd,
    pub(super) canaries: OwnedFd,
    pub(super) scratch_path: String,
}

impl Private {
    /// Makes it in `parent`, with `name`, which nothing there has, for a sandbox that is `identity`.
    pub(super) fn make(
        parent: &Path,
        name: &str,
        identity: Identity,
    ) -> io::Result<(Self, Handed)> {
        let private = Self {
            path: parent.join(name),
        };
        let make = |path: &Path, mode| DirBuilder::new().mode(mode).create(path);
        make(&private.path, THROUGH)?;
        let [scratch, canaries] = ["scratch", "canaries"].map(|name| private.path.join(name));
        make(&scratch, MODE)?;
        make(&canaries, MODE)?;
        if identity.uid != rustix::process::geteuid().as_raw() {
            std::os::unix::fs::chown(&scratch, Some(identity.uid), Some(identity.gid))?;
        }
        let handed = Handed {
            scratch: open(CWD, &scratch, OFlags::PATH)?,
            canaries: open(CWD, &canaries, OFlags::PATH)?,
            scratch_path: scratch
                .to_str()
                .map(str::to_owned)
                .ok_or_else(|| io::Error::other(format!("{} is not UTF-8", scratch.display())))?,
        };
        Ok((private, handed))
    }

    /// Removes what the canaries were for, once they have been tried.
    pub(super) fn remove_canaries(&self) -> io::Result<()> {
        remove(&self.path.join("canaries"))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // What is left is removed by the next start.
        let _: io::Result<()> = remove(&self.path);
    }
}

/// Makes the directory in which sandboxes have theirs, and removes all that an earlier supervisor left in it.
pub(super) fn clean(parent: &Path) -> io::Result<()> {
    DirBuilder::new()
        .mode(THROUGH)
        .recursive(true)
        .create(parent)?;
    empty(open(CWD, parent, OFlags::RDONLY)?.as_fd())?;
    Ok(())
}

/// Removes a directory with all that is in it.
fn remove(path: &Path) -> io::Result<()> {
    empty(open(CWD, path, OFlags::RDONLY)?.as_fd())?;
    rustix::fs::rmdir(path)?;
    Ok(())
}

/// Empties a directory. However deep it is nothing here nests: what lies in a directory of it is moved up before that is
/// removed. Links are not followed, and modes that a tool has set are no hindrance.
fn empty(top: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut moved = 0_u64;
    loop {
        let names = names(top)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if unlink(top, &name)? {
                continue;
            }
            let below = enter(top, &name)?;
            for inner in self::names(below.as_fd())? {
                if !unlink(below.as_fd(), &inner)? {
                    // A directory that changes its parent is written to as well.
                    drop(enter(below.as_fd(), &inner)?);
                    move_up(below.as_fd(), &inner, top, &mut moved)?;
                }
            }
            match rustix::fs::unlinkat(top, &name, AtFlags::REMOVEDIR) {
                // There was more in it than was looked at; it is met again.
                Ok(()) | Err(Errno::NOTEMPTY) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

type Name = std::ffi::CString;

/// The names in a directory, or so many of them.
fn names(directory: BorrowedFd<'_>) -> Result<Vec<Name>, Errno> {
    const AT_ONCE: usize = 4096;
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)?.take(AT_ONCE) {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

/// Removes anything but a directory; false for that.
fn unlink(directory: BorrowedFd<'_>, name: &Name) -> Result<bool, Errno> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Opens a directory, after giving its owner all rights in it.
fn enter(directory: BorrowedFd<'_>, name: &Name) -> Result<OwnedFd, Errno> {
    let held = open(directory, name, OFlags::PATH)?;
    // By the descriptor, so that no link can stand in its place; chmod(2) knows no other way to one that is not open.
    let by_descriptor = format!("/proc/self/fd/{}", held.as_raw_fd());
    rustix::fs::chmod(by_descriptor, Mode::from_raw_mode(MODE))?;
    open(directory, name, OFlags::RDONLY)
}

fn move_up(
    from: BorrowedFd<'_>,
    name: &Name,
    top: BorrowedFd<'_>,
    moved: &mut u64,
) -> Result<(), Errno> {
    loop {
        *moved += 1;
        let fresh = format!("moved-{moved}");
        match rustix::fs::renameat_with(from, name, top, fresh, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            done => return done,
        }
    }
}

fn open(
    directory: BorrowedFd<'_>,
    path: impl rustix::path::Arg,
    how: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn own() -> Identity {
        Identity {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    #[test]
    fn whatever_was_made_in_it_is_removed_and_nothing_that_a_link_leads_to() {
        let home = tempfile::tempdir().unwrap();
        let outside = home.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        let parent = home.path().join("sandboxes");
        clean(&parent).unwrap();
        let (private, handed) = Private::make(&parent, "1", own()).unwrap();
        let scratch = Path::new(&handed.scratch_path);
        symlink(&outside, scratch.join("link")).unwrap();
        fs::write(scratch.join("moved-1"), "").unwrap();
        for closed in ["closed", "closed/below"] {
            fs::create_dir(scratch.join(closed)).unwrap();
        }
        symlink(&outside, scratch.join("closed/below/link")).unwrap();
        for closed in ["closed/below", "closed"] {
            fs::set_permissions(scratch.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
        }
        private.remove_canaries().unwrap();
        drop(private);
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
        assert!(outside.join("kept").exists());
    }

    #[test]
    fn a_directory_deeper_than_any_path_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let (private, handed) = Private::make(parent.path(), "1", own()).unwrap();
        let mut at = handed.scratch;
        for _ in 0..3000 {
            rustix::fs::mkdirat(&at, "deeper", Mode::from_raw_mode(0o755)).unwrap();
            at = open(at.as_fd(), "deeper", OFlags::PATH).unwrap();
        }
        drop(private);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_an_earlier_supervisor_left_is_removed_and_a_name_is_taken_once() {
        let parent = tempfile::tempdir().unwrap();
        let (private, _handed) = Private::make(parent.path(), "1", own()).unwrap();
        let again = Private::make(parent.path(), "1", own()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        std::mem::forget(private);
        clean(parent.path()).unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
