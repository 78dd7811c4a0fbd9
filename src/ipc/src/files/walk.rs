//! The walk through a configuration directory: what is read, what is left alone, and what is refused because somebody
//! could believe in a rule that nobody reads, or because somebody else could write it.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::FilesError;
use super::{Files, MAX_FILE, MAX_TOTAL};

/// The directories that are read, and whether directories in them are too.
const DIRECTORIES: [(&str, bool); 3] = [("grants", false), ("tools", false), ("profiles", true)];

const SUFFIX: &str = ".toml";
const NOT_TOML: &str = "rules are read from names that end in .toml";
const RENAME: &str = "rename it to end in .toml, or move it out; a name that begins with a dot or ends in ~ may stay";

impl Files {
    /// Reads a configuration directory for the calling user. A directory or file that is not there is left out; the
    /// directory itself must be there. Everything that is read, and the directories it is in, must belong to root or
    /// to that user and be writable by nobody else.
    ///
    /// # Errors
    /// As [`FilesError`], with the path, of the first that is found.
    pub fn read(directory: &Path) -> Result<Self, FilesError> {
        let mut walk = Walk {
            root: directory,
            starter: rustix::process::geteuid().as_raw(),
            files: Self::default(),
            total: 0,
        };
        walk.top()?;
        walk.take("config.toml")?;
        for (name, deep) in DIRECTORIES {
            walk.directory(name, deep)?;
        }
        Ok(walk.files)
    }
}

struct Walk<'a> {
    root: &'a Path,
    starter: u32,
    files: Files,
    total: u64,
}

impl Walk<'_> {
    /// Looks for names beside the ones that are read and so like them that somebody meant those.
    fn top(&self) -> Result<(), FilesError> {
        for name in self.names(self.root)? {
            let shown = name.to_string_lossy();
            let known =
                shown == "config.toml" || DIRECTORIES.iter().any(|(known, _)| shown == *known);
            if known || is_aside(&shown) {
                continue;
            }
            let lower = shown.to_lowercase();
            let like = |known: &str| lower == known || lower == known.trim_end_matches('s');
            let (rule, fix) = if lower.ends_with(SUFFIX) {
                (
                    "the only file of rules that is read here is config.toml",
                    "move it to grants/, tools/ or profiles/, or out of the configuration",
                )
            } else if DIRECTORIES.iter().any(|(known, _)| like(known)) {
                (
                    "rules are read from grants/, tools/ and profiles/",
                    "rename it, or move it out of the configuration",
                )
            } else {
                continue;
            };
            let path = self.root.join(name);
            return Err(FilesError::Unread { path, rule, fix });
        }
        Ok(())
    }

    fn directory(&mut self, below: &str, deep: bool) -> Result<(), FilesError> {
        let path = self.root.join(below);
        let names = match self.names(&path) {
            Err(FilesError::Read { source, .. }) if absent(&source, &path) => return Ok(()),
            names => names?,
        };
        for name in names {
            let path = path.join(&name);
            let name = match name.into_string() {
                Ok(name) if !name.chars().any(char::is_control) => name,
                _ => return Err(FilesError::Name { path }),
            };
            let inner = format!("{below}/{name}");
            if name.ends_with(SUFFIX) {
                self.take(&inner)?;
                continue;
            }
            if is_aside(&name) {
                continue;
            }
            if !path.is_dir() {
                let (rule, fix) = (NOT_TOML, RENAME);
                return Err(FilesError::Unread { path, rule, fix });
            } else if deep {
                self.directory(&inner, deep)?;
            } else {
                return Err(FilesError::Unread {
                    path,
                    rule: "directories are read in profiles/ only",
                    fix: "move its files up, or out of the configuration",
                });
            }
        }
        Ok(())
    }

    /// The names in a directory, which nobody else may write.
    fn names(&self, path: &Path) -> Result<Vec<OsString>, FilesError> {
        let failed = |source| FilesError::Read {
            path: path.to_owned(),
            source,
        };
        let entries = fs::read_dir(path).map_err(failed)?;
        self.closed(path, &fs::metadata(path).map_err(failed)?)?;
        let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
        let mut names: Vec<OsString> = names.collect::<io::Result<_>>().map_err(failed)?;
        // In one order everywhere, so that the same mistake is told first.
        names.sort();
        Ok(names)
    }

    fn take(&mut self, name: &str) -> Result<(), FilesError> {
        let path = self.root.join(name);
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
        let file = File::open(&path).map_err(read)?;
        // Of what is open: the name may lead elsewhere by now.
        let metadata = file.metadata().map_err(read)?;
        self.closed(&path, &metadata)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(read)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(FilesError::TooLarge {
                path,
                bytes: metadata.len(),
            });
        }
        self.total += bytes.len() as u64;
        if self.total > MAX_TOTAL {
            return Err(FilesError::Total);
        }
        self.files.0.insert(name.to_owned(), bytes);
        Ok(())
    }

    fn closed(&self, path: &Path, metadata: &Metadata) -> Result<(), FilesError> {
        let whom = match metadata.mode() & 0o022 {
            0 => None,
            0o020 => Some("its group"),
            _ => Some("everybody"),
        };
        let path = path.to_owned();
        match (whom, metadata.uid()) {
            (Some(whom), _) => Err(FilesError::Open { path, whom }),
            (None, owner) if owner == 0 || owner == self.starter => Ok(()),
            (None, owner) => Err(FilesError::Foreign { path, owner }),
        }
    }
}

/// Whether a name is put aside: hidden, or what an editor keeps of an earlier text.
fn is_aside(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~')
}

/// Whether nothing stands at `path`; a symbolic link that leads nowhere is a mistake to be told, not an absent file.
fn absent(error: &io::Error, path: &Path) -> bool {
    error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err()
}
