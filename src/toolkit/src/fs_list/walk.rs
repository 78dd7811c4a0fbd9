//! Going through directories without following links, holding no more names than will be shown.

use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;

use super::{look, row};
use crate::failure::reason;
use crate::visible::visible;

/// Bytes of rows after which no further one is written.
const BYTES: usize = 192 * 1024;

/// What the call asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Whether names that begin with a dot are shown.
    pub(super) hidden: bool,
    /// Levels of directories that are opened.
    pub(super) depth: u64,
    /// Entries that are shown.
    pub(super) limit: usize,
}

/// A listing in the making.
#[derive(Debug)]
pub(super) struct Walk {
    bounds: Bounds,
    text: String,
    rows: usize,
    hidden: u64,
    more: u64,
    closed: u64,
}

impl Walk {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            text: String::new(),
            rows: 0,
            hidden: 0,
            more: 0,
            closed: 0,
        }
    }

    /// Lists one directory by name, each subdirectory's entries after its own line; `prefix` is what stands before
    /// every name, `level` is 1 for the directory of the call.
    ///
    /// # Errors
    /// The directory cannot be read at all. What happens further down is told in its line.
    pub(super) fn directory(
        &mut self,
        directory: OwnedFd,
        prefix: &str,
        level: u64,
    ) -> Result<(), Errno> {
        // Not `read_from`, which opens the directory again by way of its own name and so needs the right to pass it.
        let mut entries = Dir::new(directory)?;
        let room = self.bounds.limit - self.rows;
        let mut kept: BinaryHeap<(OsString, Kind)> = BinaryHeap::new();
        let mut broken = None;
        loop {
            let entry = match entries.read() {
                None => break,
                Some(Ok(entry)) => entry,
                Some(Err(errno)) if kept.is_empty() => return Err(errno),
                Some(Err(errno)) => {
                    broken = Some(errno);
                    break;
                }
            };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if name.starts_with(b".") && !self.bounds.hidden {
                self.hidden += 1;
                continue;
            }
            kept.push((
                OsString::from_vec(name.to_vec()),
                Kind::of(entry.file_type()),
            ));
            if kept.len() > room {
                kept.pop();
                self.more += 1;
            }
        }
        let directory = entries.fd()?;
        for (name, kind) in kept.into_sorted_vec() {
            self.entry(directory, prefix, &name, kind, level);
        }
        if let Some(errno) = broken {
            self.text.push_str(&format!(
                "[fs_list: reading {prefix}. ended early: {}]\n",
                reason(errno)
            ));
        }
        Ok(())
    }

    fn entry(
        &mut self,
        directory: BorrowedFd<'_>,
        prefix: &str,
        name: &OsStr,
        Kind(hint): Kind,
        level: u64,
    ) {
        if self.rows >= self.bounds.limit || self.text.len() >= BYTES {
            self.more += 1;
            return;
        }
        let shown = format!("{prefix}{}", visible(name.as_bytes()));
        self.text.push_str(&row::of(directory, name, &shown, hint));
        self.rows += 1;
        let is_directory = look(directory, name)
            .is_ok_and(|seen| FileType::from_raw_mode(seen.st_mode) == FileType::Directory);
        if !is_directory {
            return;
        }
        if level >= self.bounds.depth {
            self.closed += 1;
            return;
        }
        // NOFOLLOW: the directory may have become a link since it was looked at.
        let flags = OFlags::RDONLY
            | OFlags::DIRECTORY
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let listed = openat(directory, name, flags, Mode::empty())
            .and_then(|below| self.directory(below, &format!("{shown}/"), level + 1));
        if let Err(errno) = listed {
            if self.text.ends_with('\n') {
                self.text.pop();
            }
            self.text
                .push_str(&format!(" (cannot be listed: {})\n", reason(errno)));
        }
    }

    /// The whole answer for the directory that is shown as `path`.
    pub(super) fn finish(self, path: &str) -> String {
        let mut text = format!("{path}: {}\n{}", entries(self.rows as u64), self.text);
        if self.more > 0 {
            let least = if self.bounds.depth > 1 {
                "at least "
            } else {
                ""
            };
            text.push_str(&format!(
                "[fs_list: {least}{} more not shown: give a larger limit or list a subdirectory]\n",
                self.more
            ));
        }
        if self.hidden > 0 {
            text.push_str(&format!(
                "[fs_list: {} hidden {} not shown: hidden = true]\n",
                self.hidden,
                if self.hidden == 1 { "entry" } else { "entries" }
            ));
        }
        if self.closed > 0 && self.bounds.depth > 1 {
            text.push_str(&format!(
                "[fs_list: {} directories at depth {} not opened: list them or give a larger depth]\n",
                self.closed, self.bounds.depth
            ));
        }
        text
    }
}

fn entries(count: u64) -> String {
    match count {
        0 => "no entries".to_owned(),
        1 => "1 entry".to_owned(),
        _ => format!("{count} entries"),
    }
}

/// A type that says nothing about order, so that the heap orders by name.
#[derive(Debug, Clone, Copy)]
struct Kind(Option<FileType>);

impl Kind {
    fn of(kind: FileType) -> Self {
        Self((kind != FileType::Unknown).then_some(kind))
    }
}

impl PartialEq for Kind {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Kind {}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kind {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
