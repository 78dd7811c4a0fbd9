//! `bxctl audit verify`: is the log what was written? Reads only, takes no lock, and may run beside the writer.

use std::path::PathBuf;

use proto::Hash32;
use serde::Serialize;

use crate::walk::{self, Broken, WalkError};
use crate::{FileError, Paths};

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Report {
    /// Every line is what was written.
    Sound(Sound),
    /// This line is not, or is missing.
    Broken(Broken),
}

/// A log in which every line is what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sound {
    /// How many lines the chain has; the last one's `seq` is one less.
    pub lines: u64,
    /// How many day files there are.
    pub files: u64,
    /// SHA-256 of the last line's stored bytes, zero while there is none.
    pub head: Hash32,
    /// The last `seq` that the anchor names. The lines after it are chained, but nothing outside the log would show
    /// that they were cut or rewritten.
    pub anchored: Option<u64>,
    /// How many torn lines stand in the log, each announced by a recovery entry.
    pub kept: u64,
    /// A last line without its newline: a write that goes on, or one that a crash cut and the next start will end.
    pub torn: Option<Torn>,
}

/// A torn last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Torn {
    /// The name of its day file.
    pub file: String,
    /// Where its bytes begin.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
}

/// Why nothing can be said of a log.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A file or the directory cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is neither a log nor an anchor.
    #[error("there is no audit log in {} and no anchor at {}: name the home that has one", audit.display(), anchor.display())]
    Missing {
        /// The directory that was looked for.
        audit: PathBuf,
        /// The anchor that was looked for.
        anchor: PathBuf,
    },
}

/// Reads every stored byte of the log and its anchor, and says whether they are what was written, or names the first
/// bad line (formats.md section 5).
///
/// A whole line that is no record and that nothing announces is bad, even at the end, where a start that was itself cut
/// short may have left it; the next start announces it.
///
/// # Errors
/// [`VerifyError`] when a file cannot be read or there is none.
pub fn verify(paths: &Paths) -> Result<Report, VerifyError> {
    let end = match walk::whole(paths) {
        Ok(end) => end,
        Err(WalkError::Broken(broken)) => return Ok(Report::Broken(broken)),
        Err(WalkError::File(error)) => return Err(error.into()),
    };
    if !end.present && end.anchor.is_none() {
        return Err(VerifyError::Missing {
            audit: paths.audit.clone(),
            anchor: paths.anchor.clone(),
        });
    }
    if let Some(outside) = end.state.outside.front() {
        return Ok(Report::Broken(Broken {
            file: outside.place.day.file_name(),
            line: outside.place.line,
            offset: outside.place.offset,
            seq: Some(end.state.next),
            reason: format!("{}, and no recovery entry announces it", outside.reason),
        }));
    }
    Ok(Report::Sound(Sound {
        lines: end.state.next,
        files: end.files,
        head: end.state.prev,
        anchored: end
            .anchor
            .and_then(|anchor| anchor.lines.last().map(|line| line.seq)),
        kept: end.state.kept,
        torn: end.torn.map(|torn| Torn {
            file: torn.place.day.file_name(),
            offset: torn.place.offset,
            length: torn.bytes.len() as u64,
        }),
    }))
}
