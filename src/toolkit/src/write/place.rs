//! Where a write goes: a directory, held by a descriptor that can do nothing but name it, and a name in it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::WriteError;
use crate::failure::SystemError;
use crate::visible::{visible, visible_path};

/// Links that are followed inside one directory; the kernel's own limit (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// A directory, a name in it, and what stands there.
#[derive(Debug)]
pub(crate) struct Place {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
    existing: Option<Existing>,
    linked: bool,
}

/// The regular file that stands at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Existing {
    /// Permission bits with set-id and sticky bits.
    pub(crate) mode: u32,
    /// Owner.
    pub(crate) uid: u32,
    /// Group.
    pub(crate) gid: u32,
    /// Names it has.
    pub(crate) links: u64,
    /// Bytes.
    pub(crate) size: u64,
}

impl Place {
    /// Finds where a write to `path` goes: links in its directories are followed, a link at its end only to another
    /// name in the same directory.
    ///
    /// # Errors
    /// The directory is not there, or what stands at the end is no regular file or such a link.
    pub(crate) fn find(path: &Path) -> Result<Self, WriteError> {
        let spelled = path.as_os_str().as_bytes();
        let (Some(name), false) = (path.file_name(), ends_as_directory(spelled)) else {
            return Err(WriteError::Directory(visible_path(path)));
        };
        let above = above(path);
        let directory = open_directory(CWD, above).map_err(|errno| match errno {
            Errno::NOENT => WriteError::NoDirectory(visible_path(above)),
            errno => SystemError::new("reach the directory", above, errno).into(),
        })?;
        let mut place = Self {
            directory,
            name: name.to_owned(),
            path: path.to_owned(),
            existing: None,
            linked: false,
        };
        for _ in 0..MOST_LINKS {
            let Some(seen) = place.look()? else {
                return Ok(place);
            };
            match FileType::from_raw_mode(seen.st_mode) {
                FileType::RegularFile => {
                    place.existing = Some(Existing::of(&seen));
                    return Ok(place);
                }
                FileType::Symlink => place.follow()?,
                FileType::Directory => {
                    return Err(WriteError::Directory(visible_path(&place.path)));
                }
                _ => return Err(WriteError::NotAFile(visible_path(&place.path))),
            }
        }
        Err(WriteError::LinkCircle(visible_path(path)))
    }

    /// The directory, for calls that take one.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The name in it.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The whole path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The whole path, visible.
    pub(crate) fn shown(&self) -> String {
        visible_path(&self.path)
    }

    /// What stood there when it was found.
    pub(crate) const fn existing(&self) -> Option<&Existing> {
        self.existing.as_ref()
    }

    /// Whether a symbolic link led here.
    pub(crate) const fn linked(&self) -> bool {
        self.linked
    }

    fn look(&self) -> Result<Option<Stat>, SystemError> {
        match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(seen) => Ok(Some(seen)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(SystemError::new("examine", &self.path, errno)),
        }
    }

    fn follow(&mut self) -> Result<(), WriteError> {
        let says = readlinkat(&self.directory, &self.name, Vec::new())
            .map_err(|errno| SystemError::new("follow the link", &self.path, errno))?;
        let away = || WriteError::LinkLeadsAway {
            path: visible_path(&self.path),
            target: visible(says.as_bytes()),
        };
        let target = PathBuf::from(OsString::from_vec(says.as_bytes().to_vec()));
        let (Some(name), false) = (target.file_name(), ends_as_directory(says.as_bytes())) else {
            return Err(away());
        };
        // Compared by what they are: another spelling of the same directory is no other directory.
        let reached = open_directory(&self.directory, above(&target)).map_err(|_| away())?;
        if identity(&reached).map_err(|_| away())?
            != identity(&self.directory).map_err(|_| away())?
        {
            return Err(away());
        }
        self.path.set_file_name(name);
        self.name = name.to_owned();
        self.linked = true;
        Ok(())
    }
}

impl Existing {
    fn of(seen: &Stat) -> Self {
        Self {
            mode: seen.st_mode & 0o7777,
            uid: seen.st_uid,
            gid: seen.st_gid,
            links: seen.st_nlink,
            size: u64::try_from(seen.st_size).unwrap_or(0),
        }
    }
}

/// Opened with O_PATH, which needs no right to read it.
fn open_directory(from: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    openat(
        from,
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

fn above(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    }
}

/// `a/` and `a/.` name a directory, though the last component that std gives is `a`.
fn ends_as_directory(path: &[u8]) -> bool {
    path.ends_with(b"/") || path.ends_with(b"/.")
}

fn identity(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    fstat(directory).map(|seen| (seen.st_dev, seen.st_ino))
}
