//! The configuration directory as one value: read from disk, sealed into memory, read from there.
//!
//! Supervisor, brokerd and `bxctl check` all judge the same bytes, so that none can be shown another policy.

mod error;
mod walk;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags};

pub use error::{FilesError, Unreadable};

/// The most bytes that one file may have.
pub const MAX_FILE: u64 = 1_048_576;
/// The most bytes of all files together.
pub const MAX_TOTAL: u64 = 268_435_456;

/// File contents by path below the configuration directory, for example `grants/notes.toml`. Only `config.toml`,
/// `grants/*.toml`, `tools/*.toml` and `profiles/**.toml` are taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files(pub BTreeMap<String, Vec<u8>>);

impl Files {
    /// Copies everything into a memory file that nobody can change any more.
    ///
    /// # Errors
    /// As memfd_create(2) and fcntl(2) with `F_ADD_SEALS`.
    pub fn seal(&self) -> Result<OwnedFd, FilesError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = rustix::fs::memfd_create("boxmaker-policy", flags).map_err(io::Error::from)?;
        let mut file = fs::File::from(memory);
        for (name, bytes) in &self.0 {
            for part in [name.as_bytes(), bytes] {
                file.write_all(&(part.len() as u64).to_be_bytes())?;
                file.write_all(part)?;
            }
        }
        let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        rustix::fs::fcntl_add_seals(&file, seals).map_err(io::Error::from)?;
        Ok(file.into())
    }

    /// Reads what [`Files::seal`] wrote.
    ///
    /// # Errors
    /// The descriptor is no sealed memory, or does not hold what `seal` writes.
    pub fn unseal(memory: OwnedFd) -> Result<Self, FilesError> {
        let seals = rustix::fs::fcntl_get_seals(&memory).map_err(io::Error::from)?;
        if !seals.contains(SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW) {
            return Err(FilesError::Format("it is not sealed"));
        }
        let mut file = fs::File::from(memory);
        file.seek(SeekFrom::Start(0))?;
        let mut bytes = Vec::new();
        file.take(MAX_TOTAL * 2).read_to_end(&mut bytes)?;
        let mut rest = bytes.as_slice();
        let mut files = Self::default();
        while !rest.is_empty() {
            let name = String::from_utf8(part(&mut rest)?.to_vec())
                .map_err(|_| FilesError::Format("a file name is not UTF-8"))?;
            let content = part(&mut rest)?.to_vec();
            files.0.insert(name, content);
        }
        Ok(files)
    }
}

/// Cuts one length and that many bytes off the front of `rest`.
fn part<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], FilesError> {
    let short = || FilesError::Format("it ends inside a file");
    let (length, after) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_be_bytes(*length)).map_err(|_| short())?;
    let (content, after) = after.split_at_checked(length).ok_or_else(short)?;
    *rest = after;
    Ok(content)
}
