//! The configuration directory as one value: read from disk, sealed into memory, read from there.
//!
//! Supervisor, brokerd and `bxctl check` all judge the same bytes, so that none can be shown another policy.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags};

/// The most bytes that one file may have.
pub const MAX_FILE: u64 = 1_048_576;
/// The most bytes of all files together.
pub const MAX_TOTAL: u64 = 268_435_456;

/// File contents by path below the configuration directory, for example `grants/notes.toml`. Only `config.toml`,
/// `grants/*.toml`, `tools/*.toml` and `profiles/**.toml` are taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files(pub BTreeMap<String, Vec<u8>>);

/// Why the files could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file or directory could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is too large.
    #[error("{path} has {bytes} bytes, at most {MAX_FILE} are allowed")]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The name of a file is not UTF-8, or holds a control character.
    #[error("{path:?}: file names below the configuration must be plain UTF-8")]
    Name {
        /// Which.
        path: PathBuf,
    },
    /// Something there is neither a file nor a directory.
    #[error("{path} is neither a file nor a directory")]
    Kind {
        /// Which.
        path: PathBuf,
    },
    /// All files together are too large.
    #[error("the configuration has more than {MAX_TOTAL} bytes")]
    Total,
    /// The sealed memory could not be made or read.
    #[error("sealed memory: {0}")]
    Memory(#[from] io::Error),
    /// The sealed memory is not what [`Files::seal`] makes.
    #[error("sealed memory: {0}")]
    Format(&'static str),
}

impl Files {
    /// Reads a configuration directory. A directory or file that is not there is left out; the directory itself
    /// must be there.
    ///
    /// # Errors
    /// As [`FilesError`], with the path.
    pub fn read(directory: &Path) -> Result<Self, FilesError> {
        let failed = |path: &Path, source| FilesError::Read {
            path: path.to_owned(),
            source,
        };
        fs::metadata(directory).map_err(|error| failed(directory, error))?;
        let mut files = Self::default();
        let mut total = 0;
        files.take(directory, "config.toml", &mut total)?;
        for (kind, deep) in [("grants", false), ("tools", false), ("profiles", true)] {
            files.walk(directory, kind, deep, &mut total)?;
        }
        Ok(files)
    }

    fn walk(
        &mut self,
        root: &Path,
        below: &str,
        deep: bool,
        total: &mut u64,
    ) -> Result<(), FilesError> {
        let path = root.join(below);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if absent(&error, &path) => return Ok(()),
            Err(source) => return Err(FilesError::Read { path, source }),
        };
        for entry in entries {
            let entry = entry.map_err(|source| FilesError::Read {
                path: path.clone(),
                source,
            })?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                return Err(FilesError::Name { path: entry.path() });
            };
            if name.chars().any(char::is_control) {
                return Err(FilesError::Name { path: entry.path() });
            }
            let name = format!("{below}/{name}");
            if name.ends_with(".toml") {
                self.take(root, &name, total)?;
            } else if deep && entry.path().is_dir() {
                self.walk(root, &name, deep, total)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, root: &Path, name: &str, total: &mut u64) -> Result<(), FilesError> {
        let path = root.join(name);
        let read = |source| FilesError::Read {
            path: path.clone(),
            source,
        };
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if name == "config.toml" && absent(&error, &path) => return Ok(()),
            Err(error) => return Err(read(error)),
        };
        // A FIFO would make the read wait for ever.
        if !metadata.is_file() {
            return Err(FilesError::Kind { path });
        }
        let mut bytes = Vec::new();
        let file = fs::File::open(&path).map_err(read)?;
        file.take(MAX_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(read)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(FilesError::TooLarge {
                path,
                bytes: metadata.len(),
            });
        }
        *total += bytes.len() as u64;
        if *total > MAX_TOTAL {
            return Err(FilesError::Total);
        }
        self.0.insert(name.to_owned(), bytes);
        Ok(())
    }

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

/// Whether nothing stands at `path`; a symbolic link that leads nowhere is a mistake to be told, not an absent file.
fn absent(error: &io::Error, path: &Path) -> bool {
    error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err()
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
