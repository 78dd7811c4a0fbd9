//! The hash-chained audit log: day files of JSON lines, one writer, one verifier, one anchor format.
//!
//! The chain is made of stored bytes: `prev` of a line is the SHA-256 of the line before it as it stands on the disk
//! (boxmaker seed, section 6; formats.md section 5). This crate knows no policy and gives entries no meaning, but for
//! [`proto::Entry::Recovery`], which is its own.

mod anchor;
mod chain;
mod day;
mod disk;
#[cfg(fuzzing)]
pub mod fuzzing;
mod lines;
mod lock;
mod open;
mod read;
mod verify;
mod walk;
mod writer;

#[cfg(test)]
mod faults;

use std::io;
use std::path::PathBuf;

pub use lock::LockError;
pub use open::{OpenError, Opened, Recovered};
pub use proto::{Entry, Line, Timestamp};
pub use read::{Lines, ReadError, read};
pub use verify::{Report, Sound, Torn, VerifyError, verify};
pub use walk::Broken;
pub use writer::{AppendError, Appended, Clock, Head, Ledger};

/// The longest line of the log, in bytes without its newline: a frame's arguments with every byte escaped fit with
/// room to spare.
pub const MAX_LINE: usize = 16 << 20;

/// Where one log lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The directory of the day files and the lock.
    pub audit: PathBuf,
    /// The anchor file, outside that directory.
    pub anchor: PathBuf,
}

/// A step on a file that the system refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} {}: {source}", path.display())]
pub struct FileError {
    /// What was tried, for example `read`.
    pub step: &'static str,
    /// On what.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

impl FileError {
    /// Makes the error of `step` on `path`, for `map_err`.
    fn on(step: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self { step, path, source }
    }
}
