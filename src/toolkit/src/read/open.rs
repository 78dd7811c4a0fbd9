//! Opening what may be read without waiting for it and without waking a device.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::path::Arg;

use super::OpenError;
use crate::failure::SystemError;
use crate::visible::visible_path;

/// Opens a regular file for reading.
///
/// # Errors
/// It is not there, may not be read, or is something else.
pub(crate) fn regular(path: &Path) -> Result<File, OpenError> {
    regular_at(CWD, path, path, AtFlags::empty())
}

/// As [`regular`], of `name` in `directory`, which is `path` in messages. With `SYMLINK_NOFOLLOW` a link at the end is no
/// regular file.
///
/// # Errors
/// It is not there, may not be read, or is something else.
pub(crate) fn regular_at(
    directory: impl AsFd,
    name: impl Arg + Copy,
    path: &Path,
    follow: AtFlags,
) -> Result<File, OpenError> {
    let directory = directory.as_fd();
    // Asked by name first, because opening a device may already do something to it.
    let seen =
        statat(directory, name, follow).map_err(|errno| SystemError::new("open", path, errno))?;
    require_regular(path, seen.st_mode)?;
    // Asked again of what was opened: between the two the name may have become a pipe, and O_NONBLOCK keeps the
    // opening of a pipe that nobody writes to from waiting.
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if follow.contains(AtFlags::SYMLINK_NOFOLLOW) {
        flags |= OFlags::NOFOLLOW;
    }
    let file = openat(directory, name, flags, Mode::empty())
        .map_err(|errno| SystemError::new("open", path, errno))?;
    let opened = fstat(&file).map_err(|errno| SystemError::new("examine", path, errno))?;
    require_regular(path, opened.st_mode)?;
    Ok(File::from(file))
}

fn require_regular(path: &Path, mode: u32) -> Result<(), OpenError> {
    let kind = match FileType::from_raw_mode(mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(OpenError::Directory(visible_path(path))),
        FileType::Fifo => "named pipe",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::Symlink => "symbolic link",
        FileType::BlockDevice => "block device",
        _ => "file of an unknown kind",
    };
    Err(OpenError::NotAFile {
        path: visible_path(path),
        kind,
    })
}
