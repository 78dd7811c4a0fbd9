//! `fs_write`: a file is replaced whole, created, or added to.
//!
//! Nothing is opened for reading, neither the file nor its directory: in its sandbox the tool may create, write,
//! truncate, rename and remove regular files in one directory, or write one file, and nothing else. What it must know
//! it learns from `stat`, which is not mediated (landlock(7)).

mod atomic;
mod in_place;
mod place;

use std::fmt::{self, Write as _};
use std::io::Write;

use nix::sys::signal::{SigSet, Signal};
use serde::Deserialize;

use self::place::Place;
use crate::failure::{Failure, SystemError};
use crate::input::{PathArgument, parse};
use crate::visible::visible_path;

/// Why nothing was written, or not everything.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A step failed, and the file is as it was.
    #[error("{0}; nothing was changed")]
    System(#[from] SystemError),
    /// The path names a directory.
    #[error("{0} is a directory: name a file in it")]
    Directory(String),
    /// The path names a pipe, socket or device.
    #[error("{0} is not a regular file: only regular files are written")]
    NotAFile(String),
    /// The directory of the file is not there.
    #[error(
        "the directory {0} does not exist here: this tool makes no directories; nothing was changed"
    )]
    NoDirectory(String),
    /// `create` of what exists.
    #[error(
        "{0} exists already: mode = \"replace\" replaces it, \"append\" adds to it; nothing was changed"
    )]
    Exists(String),
    /// A symbolic link that leads to another directory.
    #[error(
        "{path} is a symbolic link to {target}, outside its directory: write to the target's own path"
    )]
    LinkLeadsAway {
        /// The link.
        path: String,
        /// What it says.
        target: String,
    },
    /// Symbolic links without end.
    #[error(
        "{0} is a symbolic link that leads in a circle: write to another path or remove the link"
    )]
    LinkCircle(String),
    /// A file that can only be written in place was left half written.
    #[error(
        "{source}; {path} was being written in place and now holds {written} of {wanted} new bytes with what is \
         left of the old ones: write it again"
    )]
    Torn {
        /// The path.
        path: String,
        /// Bytes that were written.
        written: usize,
        /// Bytes that should have been.
        wanted: usize,
        /// Why no more were.
        source: SystemError,
    },
    /// Only a part was appended.
    #[error(
        "{source}; {written} of {wanted} bytes were appended to {path}: append the rest, or replace the file"
    )]
    PartAppended {
        /// The path.
        path: String,
        /// Bytes that were written.
        written: usize,
        /// Bytes that should have been.
        wanted: usize,
        /// Why no more were.
        source: SystemError,
    },
    /// Signals could not be held back.
    #[error("cannot hold signals back: {0}; nothing was changed")]
    Signals(#[from] nix::errno::Errno),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: PathArgument,
    content: String,
    #[serde(default)]
    mode: Mode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Replace,
    Create,
    Append,
}

/// What was done, as the result says it.
#[derive(Debug)]
struct Done {
    how: String,
    notes: Vec<String>,
}

impl Done {
    fn new(how: impl Into<String>) -> Self {
        Self {
            how: how.into(),
            notes: Vec::new(),
        }
    }

    fn note(&mut self, note: impl fmt::Display) {
        self.notes.push(note.to_string());
    }
}

pub(crate) fn run(input: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    let arguments: Arguments = parse(input)?;
    let text = write(&arguments)?;
    out.write_all(text.as_bytes()).map_err(Failure::Output)
}

fn write(arguments: &Arguments) -> Result<String, WriteError> {
    let place = Place::find(arguments.path.as_path())?;
    let content = arguments.content.as_bytes();
    let held = HeldSignals::hold()?;
    let done = match arguments.mode {
        Mode::Replace => atomic::replace(&place, content),
        Mode::Create => atomic::create(&place, content),
        Mode::Append => in_place::append(&place, content),
    };
    held.release()?;
    let done = done?;
    let mut text = format!(
        "{} bytes written to {}: {}\n",
        content.len(),
        place.shown(),
        done.how
    );
    if place.linked() {
        let link = visible_path(arguments.path.as_path());
        let _ = writeln!(
            text,
            "[fs_write: {link} is a symbolic link, which stays; its target was written]"
        );
    }
    for note in done.notes {
        let _ = writeln!(text, "[fs_write: {note}]");
    }
    Ok(text)
}

/// The signals that ask a process to end wait while a temporary file exists, so that none is left behind.
struct HeldSignals {
    before: SigSet,
}

impl HeldSignals {
    fn hold() -> Result<Self, nix::errno::Errno> {
        let mut set = SigSet::empty();
        for signal in [
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGHUP,
            Signal::SIGQUIT,
        ] {
            set.add(signal);
        }
        let before = set.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
        // Never released: a file over RLIMIT_FSIZE is then EFBIG (setrlimit(2)), which can be told, and no death.
        let mut size = SigSet::empty();
        size.add(Signal::SIGXFSZ);
        size.thread_block()?;
        Ok(Self { before })
    }

    fn release(self) -> Result<(), nix::errno::Errno> {
        let mut mask = self.before;
        mask.add(Signal::SIGXFSZ);
        mask.thread_set_mask()
    }
}
