//! Writing to a file that keeps its inode: appending, and replacing where nothing can be renamed over it.

use std::fs::File;
use std::io::Write;

use rustix::fs::{
    FallocateFlags, FileType, Mode, OFlags, fallocate, fchmod, fstat, fsync, ftruncate, openat,
};
use rustix::io::Errno;

use super::place::Place;
use super::{Done, WriteError};
use crate::failure::SystemError;

/// Overwrites the file at `place`. `why` is the reason for not doing it atomically.
///
/// Space is reserved first and the rest is cut off last, so that a full disk is met before anything is changed.
///
/// # Errors
/// The file cannot be opened, or only a part was written; which of them is told.
pub(crate) fn replace(place: &Place, content: &[u8], why: &str) -> Result<Done, WriteError> {
    let mut file = open(place, OFlags::empty())?;
    let before = file
        .metadata()
        .map_err(|error| from_io("examine", place, &error))?
        .len();
    reserve(&file, content.len() as u64).map_err(|errno| system("write", place, errno))?;
    let done = write_all(&mut file, content)
        .and_then(|()| {
            ftruncate(&file, content.len() as u64).map_err(|errno| (content.len(), errno))
        })
        .and_then(|()| fsync(&file).map_err(|errno| (content.len(), errno)));
    match done {
        Ok(()) => {}
        // Nothing of the old content is gone yet.
        Err((0, errno)) if !content.is_empty() => return Err(system("write", place, errno).into()),
        Err((written, errno)) => {
            return Err(WriteError::Torn {
                path: place.shown(),
                written,
                wanted: content.len(),
                source: system("write", place, errno),
            });
        }
    }
    let mut done = Done::new(format!("replaced {before} bytes"));
    done.note(format_args!(
        "written in place, not atomically, because {why}"
    ));
    Ok(done)
}

/// Adds `content` to the end of the file at `place` in one write, or creates it.
///
/// # Errors
/// The file cannot be opened, or only a part was written; which of them is told.
pub(crate) fn append(place: &Place, content: &[u8]) -> Result<Done, WriteError> {
    let (mut file, how) = match place.existing() {
        Some(existing) => (
            open(place, OFlags::APPEND)?,
            format!("appended after {} bytes", existing.size),
        ),
        None => match open(place, OFlags::APPEND | OFlags::CREATE | OFlags::EXCL) {
            Ok(file) => (file, "created".to_owned()),
            // Somebody else created it meanwhile, which appending is meant to bear.
            Err(WriteError::System(error)) if error.errno() == Errno::EXIST => {
                (open(place, OFlags::APPEND)?, "appended".to_owned())
            }
            Err(error) => return Err(error),
        },
    };
    match write_all(&mut file, content)
        .and_then(|()| fsync(&file).map_err(|errno| (content.len(), errno)))
    {
        Ok(()) => Ok(Done::new(how)),
        Err((0, errno)) => Err(system("append to", place, errno).into()),
        Err((written, errno)) => Err(WriteError::PartAppended {
            path: place.shown(),
            written,
            wanted: content.len(),
            source: system("append to", place, errno),
        }),
    }
}

/// Opens the regular file at `place` for writing only.
fn open(place: &Place, more: OFlags) -> Result<File, WriteError> {
    // NONBLOCK: what was a file may have become a pipe.
    let flags = OFlags::WRONLY
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC
        | more;
    let file = openat(
        place.directory(),
        place.name(),
        flags,
        Mode::from_raw_mode(0o666),
    )
    .map_err(|errno| system("open", place, errno))?;
    let seen = fstat(&file).map_err(|errno| system("examine", place, errno))?;
    if FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile {
        return Err(WriteError::NotAFile(place.shown()));
    }
    if seen.st_mode & 0o6000 != 0 {
        // The kernel drops these bits on a write only for those who could not set them (chmod(2)); whoever may not
        // change the mode is such a one.
        let _ = fchmod(&file, Mode::from_raw_mode(seen.st_mode & 0o777));
    }
    Ok(File::from(file))
}

fn reserve(file: &File, bytes: u64) -> Result<(), Errno> {
    if bytes == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => Err(errno),
        // Not every file system, nor every system call filter, knows it; the write will tell.
        _ => Ok(()),
    }
}

/// Writes everything, in one call unless the kernel takes less; on an error, how much it took.
fn write_all(file: &mut File, content: &[u8]) -> Result<(), (usize, Errno)> {
    let mut written = 0;
    while written < content.len() {
        match file.write(&content[written..]) {
            Ok(0) => return Err((written, Errno::NOSPC)),
            Ok(count) => written += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, Errno::from_io_error(&error).unwrap_or(Errno::IO))),
        }
    }
    Ok(())
}

fn system(doing: &'static str, place: &Place, errno: Errno) -> SystemError {
    SystemError::new(doing, place.path(), errno)
}

fn from_io(doing: &'static str, place: &Place, error: &std::io::Error) -> SystemError {
    SystemError::from_io(doing, place.path(), error)
}
