//! `fs_edit`: one exact text of a file becomes another, and everything else stays as it is, byte for byte.

mod text;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};

use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use rustix::io::Errno;
use serde::Deserialize;

use self::text::{Edited, MOST, Problem, edit};
use crate::failure::{Failure, SystemError};
use crate::input::{PathArgument, parse};
use crate::read::decode::Charset;
use crate::read::{OpenError, kind, regular_at};
use crate::visible::visible_path;
use crate::write::{HeldSignals, Place, WriteError, atomic};

/// Why nothing was edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// It is no file that can be read.
    #[error("{0}; nothing was changed")]
    Open(#[from] OpenError),
    /// It may be written and not read, which is also how a file looks that somebody has just put in its place.
    #[error(
        "cannot read {0}: permission denied; an edit needs a grant that lets the file be read and written. If somebody \
         replaced it just now, call again; nothing was changed"
    )]
    Unreadable(String),
    /// It cannot be written, or not where it is.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Nothing to look for.
    #[error("old is empty: give the text to replace; fs_write makes a file or adds to its end")]
    Empty,
    /// Nothing would change.
    #[error("old and new are the same text: nothing would change")]
    Same,
    /// A number that is not served.
    #[error("count = {0} is out of range: from 1 to {MOST_TIMES}")]
    Count(u64),
    /// Too much to hold.
    #[error("{path} has {size} bytes, an edit takes at most {LARGEST}; nothing was changed")]
    Large {
        /// The path.
        path: String,
        /// Its size.
        size: u64,
    },
    /// No text.
    #[error("{path} is no text ({what}): only text is edited; nothing was changed")]
    Binary {
        /// The path.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// Bytes that are no text in the file's encoding.
    #[error("{path} is no valid {encoding}: {advice}; nothing was changed")]
    Encoding {
        /// The path.
        path: String,
        /// What it would be.
        encoding: &'static str,
        /// The way out.
        advice: &'static str,
    },
    /// The old text is not there.
    #[error("old does not occur in {path}: {hint}; nothing was changed")]
    Absent {
        /// The path.
        path: String,
        /// What to do.
        hint: String,
    },
    /// It is there more or less often than it should.
    #[error("old occurs {found} in {path}, in {lines}: {advice}; nothing was changed")]
    Times {
        /// The path.
        path: String,
        /// How often, in words.
        found: String,
        /// Where, in words.
        lines: String,
        /// What to do.
        advice: String,
    },
    /// Occurrences share characters.
    #[error(
        "occurrences of old overlap in {path}, line {line}, so it is not clear what should stand there: give a longer \
         text; nothing was changed"
    )]
    Overlap {
        /// The path.
        path: String,
        /// Where.
        line: u64,
    },
    /// There would be too much of it.
    #[error("{0} would grow over {MOST} bytes: replace less at once; nothing was changed")]
    Growth(String),
}

/// The largest file that is edited, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// The most occurrences that one call replaces.
const MOST_TIMES: u64 = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: PathArgument,
    old: String,
    new: String,
    count: Option<u64>,
}

pub(crate) fn run(input: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    let arguments: Arguments = parse(input)?;
    let text = replace(&arguments)?;
    out.write_all(text.as_bytes()).map_err(Failure::Output)
}

fn replace(arguments: &Arguments) -> Result<String, EditError> {
    let times = arguments.count.unwrap_or(1);
    if !(1..=MOST_TIMES).contains(&times) {
        return Err(EditError::Count(times));
    }
    if arguments.old.is_empty() {
        return Err(EditError::Empty);
    }
    if arguments.old == arguments.new {
        return Err(EditError::Same);
    }
    let place = Place::find(arguments.path.as_path())?;
    let (before, seen) = content(&place)?;
    let Edited {
        content: after,
        lines,
    } = decoded(&place, &before, arguments, times)?;
    let held = HeldSignals::hold().map_err(WriteError::from)?;
    // Asked last before the new content takes the name: nobody's change is to be lost.
    let done = atomic::replace(&place, &after, || is_as(&place, &seen));
    held.release().map_err(WriteError::from)?;
    let done = done?;
    let mut text = format!(
        "{} replaced in {}, {}: {} bytes before, {} now\n",
        occurrences(times),
        place.shown(),
        lines_in_words(&lines, times),
        before.len(),
        after.len()
    );
    if place.linked() {
        let link = visible_path(arguments.path.as_path());
        let _ = writeln!(
            text,
            "[fs_edit: {link} is a symbolic link, which stays; its target was edited]"
        );
    }
    for note in done.notes {
        let _ = writeln!(text, "[fs_edit: {note}]");
    }
    Ok(text)
}

/// The bytes of the file, and what it was when they were read.
fn content(place: &Place) -> Result<(Vec<u8>, Stat), EditError> {
    let opened = regular_at(
        place.directory(),
        place.name(),
        place.path(),
        AtFlags::SYMLINK_NOFOLLOW,
    );
    let file = opened.map_err(|error| match error {
        OpenError::System(error) if error.errno() == Errno::ACCESS => {
            EditError::Unreadable(place.shown())
        }
        error => error.into(),
    })?;
    let failed = |error| OpenError::from(SystemError::from_io("read", place.path(), &error));
    let large = |size| EditError::Large {
        path: place.shown(),
        size,
    };
    let seen = fstat(&file).map_err(|errno| failed(errno.into()))?;
    let size = u64::try_from(seen.st_size).unwrap_or(u64::MAX);
    if size > LARGEST {
        return Err(large(size));
    }
    let mut bytes = Vec::new();
    File::take(file, LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(large(bytes.len() as u64));
    }
    Ok((bytes, seen))
}

/// Whether the file at `place` is still the one that was read. One that was only linked or renamed meanwhile counts as
/// another, which costs a second call.
fn is_as(place: &Place, seen: &Stat) -> bool {
    let now = statat(place.directory(), place.name(), AtFlags::SYMLINK_NOFOLLOW);
    now.is_ok_and(|now| {
        let of = |stat: &Stat| {
            (
                (stat.st_dev, stat.st_ino, stat.st_size),
                (stat.st_mtime, stat.st_mtime_nsec),
                (stat.st_ctime, stat.st_ctime_nsec),
            )
        };
        FileType::from_raw_mode(now.st_mode) == FileType::RegularFile && of(&now) == of(seen)
    })
}

/// Edits `bytes` in their own encoding; the content comes back in it, with its byte order mark.
fn decoded(
    place: &Place,
    bytes: &[u8],
    arguments: &Arguments,
    times: u64,
) -> Result<Edited, EditError> {
    let sample = &bytes[..bytes.len().min(8192)];
    let mark = kind::byte_order_mark(sample);
    if mark.is_none()
        && let Some(what) = kind::binary(sample)
    {
        return Err(EditError::Binary {
            path: place.shown(),
            what,
        });
    }
    let charset = mark.unwrap_or(Charset::Utf8);
    let skip = mark.map_or(0, |mark| mark.mark().len());
    let (mark, body) = bytes.split_at(skip);
    let change = |body: &[u8]| {
        let times = usize::try_from(times).unwrap_or(usize::MAX);
        edit(body, &arguments.old, &arguments.new, times)
            .map_err(|problem| explain(place, problem, times))
    };
    let invalid = |advice| EditError::Encoding {
        path: place.shown(),
        encoding: charset.name(),
        advice,
    };
    let mut edited = match charset {
        Charset::Utf8 | Charset::Latin1 => {
            let plain = arguments.old.is_ascii() && arguments.new.is_ascii();
            if !plain && std::str::from_utf8(body).is_err() {
                return Err(invalid(
                    "give old and new in ASCII, or replace the whole file",
                ));
            }
            change(body)?
        }
        Charset::Utf16Le => wide(body, u16::from_le_bytes, u16::to_le_bytes, change)
            .ok_or_else(|| invalid("replace the whole file"))??,
        Charset::Utf16Be => wide(body, u16::from_be_bytes, u16::to_be_bytes, change)
            .ok_or_else(|| invalid("replace the whole file"))??,
    };
    edited.content.splice(..0, mark.iter().copied());
    Ok(edited)
}

/// Edits UTF-16 as UTF-8; `None` if it is not valid.
fn wide<E>(
    body: &[u8],
    read: fn([u8; 2]) -> u16,
    write: fn(u16) -> [u8; 2],
    change: impl FnOnce(&[u8]) -> Result<Edited, E>,
) -> Option<Result<Edited, E>> {
    let (pairs, rest) = body.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let units: Vec<u16> = pairs.iter().map(|pair| read(*pair)).collect();
    let text = String::from_utf16(&units).ok()?;
    let edited = match change(text.as_bytes()) {
        Ok(edited) => edited,
        Err(error) => return Some(Err(error)),
    };
    // Valid, because whole characters were replaced by whole characters.
    let text = String::from_utf8(edited.content).ok()?;
    let content = text.encode_utf16().flat_map(write).collect();
    Some(Ok(Edited { content, ..edited }))
}

fn explain(place: &Place, problem: Problem, times: usize) -> EditError {
    let path = place.shown();
    match problem {
        Problem::Absent { similar } => EditError::Absent {
            path,
            hint: similar.map_or_else(
                || "read the file again with fs_read and copy the text exactly".to_owned(),
                |line| {
                    format!(
                        "with other white space it would begin in line {line}; copy tabs, spaces and line ends exactly \
                         as fs_read shows them"
                    )
                },
            ),
        },
        Problem::Times { found, lines } => EditError::Times {
            path,
            lines: lines_in_words(&lines, found as u64),
            advice: if times == 1 {
                format!(
                    "give more of the text around the one that is meant, or count = {found} to replace all of them"
                )
            } else {
                format!("not count = {times} times; correct count, or give more of the text")
            },
            found: match found {
                1 => "once".to_owned(),
                found => format!("{found} times"),
            },
        },
        Problem::Overlap { line } => EditError::Overlap { path, line },
        Problem::TooLarge => EditError::Growth(path),
    }
}

fn occurrences(count: u64) -> String {
    match count {
        1 => "1 occurrence".to_owned(),
        _ => format!("{count} occurrences"),
    }
}

/// `line 4`, `lines 4 and 9`, `lines 1, 2, 3 and 7 more`.
fn lines_in_words(lines: &[u64], all: u64) -> String {
    let mut names: Vec<String> = lines.iter().map(u64::to_string).collect();
    names.dedup();
    let unnamed = all.saturating_sub(lines.len() as u64);
    if unnamed > 0 {
        names.push(format!("{unnamed} more"));
    }
    match names.split_last() {
        None => "no line".to_owned(),
        Some((only, [])) => format!("line {only}"),
        Some((last, rest)) => format!("lines {} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_touched_is_not_the_one_that_was_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let place = Place::find(&path).unwrap();
        let (bytes, seen) = content(&place).unwrap();
        assert_eq!(bytes, b"old");
        assert!(is_as(&place, &seen));
        std::fs::hard_link(&path, home.path().join("b")).unwrap();
        assert!(!is_as(&place, &seen));
        let (_, seen) = content(&place).unwrap();
        assert!(is_as(&place, &seen));
        std::fs::copy(&path, home.path().join("c")).unwrap();
        std::fs::rename(home.path().join("c"), &path).unwrap();
        assert!(!is_as(&place, &seen));
    }

    #[test]
    fn lines_read_as_words() {
        assert_eq!(lines_in_words(&[4], 1), "line 4");
        assert_eq!(lines_in_words(&[4, 4], 2), "line 4");
        assert_eq!(lines_in_words(&[4, 9], 2), "lines 4 and 9");
        assert_eq!(lines_in_words(&[1, 2, 3], 10), "lines 1, 2, 3 and 7 more");
    }
}
