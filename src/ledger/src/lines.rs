//! Reads stored lines with their places, in the order of the days, without judging them and with a bound on memory.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::day::Day;
use crate::{FileError, MAX_LINE};

/// Where a line stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The day of its file.
    pub(crate) day: Arc<Day>,
    /// Its number in that file, from 1.
    pub(crate) line: u64,
    /// The offset of its first byte in that file.
    pub(crate) offset: u64,
}

/// One line as it is stored.
#[derive(Debug)]
pub(crate) struct RawLine {
    /// Where it stands.
    pub(crate) place: Place,
    /// Its bytes without the newline, at most [`MAX_LINE`] and one.
    pub(crate) bytes: Vec<u8>,
    /// Whether a newline ends it.
    pub(crate) ended: bool,
}

impl RawLine {
    /// Whether it goes on after the bytes that were read.
    pub(crate) fn too_long(&self) -> bool {
        self.bytes.len() > MAX_LINE
    }
}

/// The lines of several day files, one after the other.
#[derive(Debug)]
pub(crate) struct RawLines {
    directory: PathBuf,
    days: std::vec::IntoIter<Day>,
    open: Option<(BufReader<File>, Place)>,
    /// Where the next line would stand, once a file was read.
    pub(crate) end: Option<Place>,
    /// The last file that holds a byte.
    pub(crate) last: Option<Arc<Day>>,
}

impl RawLines {
    /// The lines of these days' files in `directory`.
    pub(crate) fn new(directory: &Path, days: Vec<Day>) -> Self {
        Self {
            directory: directory.to_owned(),
            days: days.into_iter(),
            open: None,
            end: None,
            last: None,
        }
    }

    /// The next line, or none after the last.
    pub(crate) fn next(&mut self) -> Result<Option<RawLine>, FileError> {
        loop {
            if self.open.is_none() {
                let Some(day) = self.days.next() else {
                    return Ok(None);
                };
                let file = open(&self.directory.join(day.file_name()))?;
                let start = Place {
                    day: Arc::new(day),
                    line: 1,
                    offset: 0,
                };
                self.end = Some(start.clone());
                self.open = Some((BufReader::with_capacity(1 << 16, file), start));
            }
            let Some((reader, place)) = &mut self.open else {
                return Ok(None);
            };
            let mut bytes = Vec::new();
            let limit = MAX_LINE as u64 + 1;
            let count = reader
                .by_ref()
                .take(limit)
                .read_until(b'\n', &mut bytes)
                .map_err(|error| {
                    FileError::on("read", self.directory.join(place.day.file_name()))(error)
                })?;
            if count == 0 {
                self.open = None;
                continue;
            }
            let ended = bytes.last() == Some(&b'\n');
            if ended {
                bytes.pop();
            }
            let here = place.clone();
            place.offset += count as u64;
            place.line += u64::from(ended);
            self.end = Some(place.clone());
            self.last = Some(Arc::clone(&here.day));
            return Ok(Some(RawLine {
                place: here,
                bytes,
                ended,
            }));
        }
    }
}

/// Opens a regular file for reading: no link is followed, and a FIFO cannot make the reader wait.
pub(crate) fn open(path: &Path) -> Result<File, FileError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)
        .map_err(FileError::on("open", path))?;
    let regular = file
        .metadata()
        .map_err(FileError::on("examine", path))?
        .is_file();
    if regular {
        Ok(file)
    } else {
        Err(FileError::on("read", path)(io::Error::other(
            "not a regular file, as each of the log is; move it away",
        )))
    }
}
