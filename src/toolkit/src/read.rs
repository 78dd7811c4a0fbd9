//! Opening a file that may be read, finding out what it is, and turning its bytes into text.

pub(crate) mod decode;
pub(crate) mod kind;
mod open;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub(crate) use self::open::{regular, regular_at};
use crate::failure::SystemError;

/// Why a file was not opened for reading.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A step failed.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A directory.
    #[error("{0} is a directory: list it with fs_list")]
    Directory(String),
    /// Neither file nor directory.
    #[error("{path} is a {kind}: only regular files can be read")]
    NotAFile {
        /// The path.
        path: String,
        /// What it is.
        kind: &'static str,
    },
}

/// How much of the beginning decides what a file is, in bytes.
const SAMPLE: u64 = 8192;

/// The beginning of a file, which is read on from there.
///
/// # Errors
/// It cannot be read.
pub(crate) fn sample(path: &Path, file: &mut File) -> Result<Vec<u8>, SystemError> {
    let mut sample = Vec::new();
    file.take(SAMPLE)
        .read_to_end(&mut sample)
        .map_err(|error| SystemError::from_io("read", path, &error))?;
    Ok(sample)
}
