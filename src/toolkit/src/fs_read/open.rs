//! Opening what may be read without waiting for it and without waking a device.

use std::fs::File;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, stat};

use super::ReadError;
use crate::failure::SystemError;
use crate::visible::visible_path;

/// Opens a regular file for reading.
///
/// # Errors
/// It is not there, may not be read, or is something else.
pub(super) fn regular(path: &Path) -> Result<File, ReadError> {
    // Asked by name first, because opening a device may already do something to it.
    let seen = stat(path).map_err(|errno| SystemError::new("open", path, errno))?;
    require_regular(path, seen.st_mode)?;
    // Asked again of what was opened: between the two the name may have become a pipe, and O_NONBLOCK keeps the
    // opening of a pipe that nobody writes to from waiting.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty())
        .map_err(|errno| SystemError::new("open", path, errno))?;
    let opened = fstat(&file).map_err(|errno| SystemError::new("examine", path, errno))?;
    require_regular(path, opened.st_mode)?;
    Ok(File::from(file))
}

fn require_regular(path: &Path, mode: u32) -> Result<(), ReadError> {
    let kind = match FileType::from_raw_mode(mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(ReadError::Directory(visible_path(path))),
        FileType::Fifo => "named pipe",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        _ => "file of an unknown kind",
    };
    Err(ReadError::NotAFile {
        path: visible_path(path),
        kind,
    })
}
