//! `bxctl audit`: whether the log is what was written, and what it says. Only reads; the supervisor may write meanwhile.

pub mod recent;
pub mod rows;
#[cfg(test)]
pub(crate) mod sample;
pub mod selection;
pub mod show;
pub mod verify;

use std::io;

use ledger::{Broken, FileError, ReadError, VerifyError};

use crate::place;

/// Why the log could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// There is none.
    #[error("{what}\n  --home DIR or BOXMAKER_HOME chooses another home")]
    Missing {
        /// What was looked for.
        what: String,
    },
    /// A file could not be read.
    #[error("{source}{help}")]
    Unreadable {
        /// What happened.
        source: FileError,
        /// What to do, on a line of its own; empty if nobody knows.
        help: String,
    },
    /// A line is not what was written.
    #[error(
        "the audit log is broken at {0}\n  nothing after that line can be trusted; `bxctl audit verify` compares it with the anchor too"
    )]
    Broken(Broken),
}

impl From<FileError> for AuditError {
    fn from(source: FileError) -> Self {
        let help = if source.source.kind() == io::ErrorKind::PermissionDenied {
            format!("\n  {}", place::who_may(&source.path))
        } else {
            String::new()
        };
        Self::Unreadable { source, help }
    }
}

impl From<ReadError> for AuditError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::File(error) => error.into(),
            ReadError::Broken(broken) => Self::Broken(broken),
        }
    }
}

impl From<VerifyError> for AuditError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::File(error) => error.into(),
            missing @ VerifyError::Missing { .. } => Self::Missing {
                what: missing.to_string(),
            },
        }
    }
}
