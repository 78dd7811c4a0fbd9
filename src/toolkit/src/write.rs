//! Putting bytes where a name stands: whole or not at all where that can be, in place where it cannot.
//!
//! Nothing here is opened for reading, neither the file nor its directory: in its sandbox a tool may create, write,
//! truncate, rename and remove regular files in one directory, or write one file, and nothing else. What must be known is
//! learnt from `stat`, which is not mediated (landlock(7)).

pub(crate) mod atomic;
pub(crate) mod in_place;
mod place;

use std::fmt;

use nix::sys::signal::{SigSet, Signal};

pub(crate) use self::place::Place;
use crate::failure::SystemError;

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
    /// Somebody else was faster.
    #[error(
        "{0} was changed by somebody else meanwhile: read it again, then call again; nothing was changed"
    )]
    Changed(String),
    /// Signals could not be held back.
    #[error("cannot hold signals back: {0}; nothing was changed")]
    Signals(#[from] nix::errno::Errno),
}

/// What was done, as the result says it.
#[derive(Debug)]
pub(crate) struct Done {
    /// In a few words.
    pub(crate) how: String,
    /// What else should be known, a sentence each.
    pub(crate) notes: Vec<String>,
}

impl Done {
    pub(crate) fn new(how: impl Into<String>) -> Self {
        Self {
            how: how.into(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, note: impl fmt::Display) {
        self.notes.push(note.to_string());
    }
}

/// The signals that ask a process to end wait while a temporary file exists, so that none is left behind.
pub(crate) struct HeldSignals {
    before: SigSet,
}

impl HeldSignals {
    pub(crate) fn hold() -> Result<Self, nix::errno::Errno> {
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

    pub(crate) fn release(self) -> Result<(), nix::errno::Errno> {
        let mut mask = self.before;
        mask.add(Signal::SIGXFSZ);
        mask.thread_set_mask()
    }
}
