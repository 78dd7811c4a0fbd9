//! `fs_list`: what is in a directory, in a fixed order, with what is left out counted.

mod row;
mod walk;

use std::io::Write;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, lstat, openat, stat, statat};
use rustix::io::Errno;
use serde::Deserialize;

use self::walk::{Bounds, Walk};
use crate::failure::{Failure, SystemError};
use crate::input::{PathArgument, parse};
use crate::visible::visible_path;

/// Why a directory was not listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A step failed.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A depth that is not served.
    #[error("depth = {0} is out of range: 1 lists the directory alone, {MOST_DEPTH} is the most")]
    Depth(u64),
    /// A limit that is not served.
    #[error("limit = {0} is out of range: from 1 to {MOST_ENTRIES} entries")]
    Limit(u64),
}

/// Levels of directories of one answer; each holds one descriptor open.
const MOST_DEPTH: u64 = 32;
/// Entries of one answer.
const MOST_ENTRIES: u64 = 5000;
/// Entries of one answer, unless the call says otherwise.
const ENTRIES: u64 = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: PathArgument,
    #[serde(default)]
    hidden: bool,
    depth: Option<u64>,
    limit: Option<u64>,
}

pub(crate) fn run(input: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    let arguments: Arguments = parse(input)?;
    let text = list(&arguments)?;
    out.write_all(text.as_bytes()).map_err(Failure::Output)
}

fn list(arguments: &Arguments) -> Result<String, ListError> {
    let depth = arguments.depth.unwrap_or(1);
    if !(1..=MOST_DEPTH).contains(&depth) {
        return Err(ListError::Depth(depth));
    }
    let limit = arguments.limit.unwrap_or(ENTRIES);
    if !(1..=MOST_ENTRIES).contains(&limit) {
        return Err(ListError::Limit(limit));
    }
    let path = arguments.path.as_path();
    let Some(seen) = examine(path)? else {
        return Ok(row::of(CWD, path.as_os_str(), &visible_path(path), None));
    };
    if FileType::from_raw_mode(seen.st_mode) != FileType::Directory {
        return Ok(row::of(CWD, path.as_os_str(), &visible_path(path), None));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let directory = openat(CWD, path, flags, Mode::empty())
        .map_err(|errno| SystemError::new("list", path, errno))?;
    let mut walk = Walk::new(Bounds {
        hidden: arguments.hidden,
        depth,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    });
    walk.directory(directory, "", 1)
        .map_err(|errno| SystemError::new("list", path, errno))?;
    Ok(walk.finish(&visible_path(path)))
}

/// What `path` leads to; `None` for a symbolic link that leads nowhere.
fn examine(path: &Path) -> Result<Option<Stat>, SystemError> {
    match stat(path) {
        Ok(seen) => Ok(Some(seen)),
        Err(Errno::NOENT | Errno::LOOP) if is_link(path) => Ok(None),
        Err(errno) => Err(SystemError::new("list", path, errno)),
    }
}

fn is_link(path: &Path) -> bool {
    lstat(path).is_ok_and(|seen| FileType::from_raw_mode(seen.st_mode) == FileType::Symlink)
}

/// What a name in a directory is, links not followed.
fn look(directory: impl std::os::fd::AsFd, name: impl rustix::path::Arg) -> Result<Stat, Errno> {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}
