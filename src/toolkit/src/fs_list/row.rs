//! One line of a listing: type, size in bytes, time of the last change in UTC, name.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, readlinkat, statat};
use rustix::io::Errno;

use super::look;
use crate::fact;
use crate::failure::reason;
use crate::visible::visible;

/// The line of `name` in `directory`, shown as `shown`. `hint` is the type that the directory itself gave, for a name
/// that cannot be examined. Never fails: what could not be learnt is said in the line.
pub(super) fn of(
    directory: impl AsFd,
    name: &OsStr,
    shown: &str,
    hint: Option<FileType>,
) -> String {
    let directory = directory.as_fd();
    match look(directory, name) {
        Ok(seen) => {
            let kind = FileType::from_raw_mode(seen.st_mode);
            let after = match kind {
                FileType::Symlink => target(directory, name),
                FileType::Directory => "/".to_owned(),
                _ => String::new(),
            };
            let size = match kind {
                FileType::RegularFile => seen.st_size.to_string(),
                _ => "-".to_owned(),
            };
            line(
                fact::kind(kind),
                &size,
                &fact::time(seen.st_mtime),
                &format!("{shown}{after}"),
            )
        }
        Err(errno) => {
            let kind = hint.map_or("unknown", fact::kind);
            line(
                kind,
                "-",
                "-",
                &format!("{shown} (cannot be examined: {})", reason(errno)),
            )
        }
    }
}

fn line(kind: &str, size: &str, time: &str, name: &str) -> String {
    format!("{kind:7} {size:>12}  {time:20}  {name}\n")
}

/// ` -> TARGET`, and what is there.
fn target(directory: impl AsFd, name: &OsStr) -> String {
    let directory = directory.as_fd();
    let says = match readlinkat(directory, name, Vec::new()) {
        Ok(says) => visible(says.as_bytes()),
        Err(errno) => return format!(" (target unreadable: {})", reason(errno)),
    };
    let what = match statat(directory, name, AtFlags::empty()) {
        Ok(seen) if FileType::from_raw_mode(seen.st_mode) == FileType::Directory => "/".to_owned(),
        Ok(_) => String::new(),
        Err(Errno::NOENT) => " (broken: the target does not exist)".to_owned(),
        Err(errno) => format!(" (broken: {})", reason(errno)),
    };
    format!(" -> {says}{what}")
}
