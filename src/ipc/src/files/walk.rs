//! The walk through a configuration directory: what is read, what is left alone, and what is refused because somebody
//! could believe in a rule that nobody reads, or because somebody else could write it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::error::{FilesError, Unreadable};
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
    /// Everything that is wrong, each with its path, and what could be read beside.
    pub fn read(directory: &Path) -> Result<Self, Unreadable> {
        let mut walk = Walk {
            root: directory,
            starter: rustix::process::geteuid().as_raw(),
            files: Self::default(),
            unread: BTreeSet::new(),
            errors: Vec::new(),
            total: 0,
        };
        if walk.top() {
            if !is_absent(&directory.join("config.toml")) {
                walk.file("config.toml");
            }
            for (name, deep) in DIRECTORIES {
                walk.directory(name, deep);
            }
        }
        if walk.errors.is_empty() {
            return Ok(walk.files);
        }
        Err(Unreadable {
            errors: walk.errors,
            rest: walk.files,
            unread: walk.unread,
        })
    }
}

struct Walk<'a> {
    root: &'a Path,
    starter: u32,
    files: Files,
    unread: BTreeSet<String>,
    errors: Vec<FilesError>,
    total: u64,
}

impl Walk<'_> {
    /// Looks for names beside the ones that are read and so like them that somebody meant those. Whether the directory
    /// could be looked into.
    fn top(&mut self) -> bool {
        let Some(names) = self.names(self.root) else {
            return false;
        };
        for name in names {
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
            self.errors.push(FilesError::Unread { path, rule, fix });
        }
        true
    }

    fn directory(&mut self, below: &str, deep: bool) {
        let path = self.root.join(below);
        if is_absent(&path) {
            return;
        }
        for name in self.names(&path).unwrap_or_default() {
            let path = path.join(&name);
            let name = match name.into_string() {
                Ok(name) if !name.chars().any(char::is_control) => name,
                _ => {
                    self.errors.push(FilesError::Name { path });
                    continue;
                }
            };
            let inner = format!("{below}/{name}");
            if name.ends_with(SUFFIX) {
                self.file(&inner);
            } else if is_aside(&name) {
                // What an editor keeps is nobody's rule.
            } else if !path.is_dir() {
                let (rule, fix) = (NOT_TOML, RENAME);
                self.errors.push(FilesError::Unread { path, rule, fix });
            } else if deep {
                self.directory(&inner, deep);
            } else {
                self.errors.push(FilesError::Unread {
                    path,
                    rule: "directories are read in profiles/ only",
                    fix: "move its files up, or out of the configuration",
                });
            }
        }
    }

    /// The names in a directory, in one order everywhere; that others may write it is an error beside them. None, with
    /// the error, if it cannot be looked into.
    fn names(&mut self, path: &Path) -> Option<Vec<OsString>> {
        let failed = |source| FilesError::Read {
            path: path.to_owned(),
            source,
        };
        let listed = fs::read_dir(path)
            .and_then(|entries| Ok((entries, fs::metadata(path)?)))
            .and_then(|(entries, metadata)| {
                let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
                Ok((names.collect::<io::Result<Vec<_>>>()?, metadata))
            });
        match listed {
            Ok((mut names, metadata)) => {
                self.errors.extend(self.open_to(path, &metadata));
                names.sort();
                Some(names)
            }
            Err(source) => {
                self.errors.push(failed(source));
                None
            }
        }
    }

    /// Reads one file, which was seen to be there: one that is gone by now is not left out, it may be on its way from one
    /// text to the next.
    fn file(&mut self, name: &str) {
        match self.take(&self.root.join(name)) {
            Ok(bytes) => {
                self.files.0.insert(name.to_owned(), bytes);
            }
            Err(error) => {
                self.errors.push(error);
                self.unread.insert(name.to_owned());
            }
        }
    }

    fn take(&mut self, path: &Path) -> Result<Vec<u8>, FilesError> {
        let path = path.to_owned();
        let read = |source| FilesError::Read {
            path: path.clone(),
            source,
        };
        let metadata = fs::metadata(&path).map_err(read)?;
        // A FIFO would make the read wait for ever.
        if !metadata.is_file() {
            return Err(FilesError::Kind { path });
        }
        let file = File::open(&path).map_err(read)?;
        // Of what is open: the name may lead elsewhere by now.
        let metadata = file.metadata().map_err(read)?;
        if let Some(open) = self.open_to(&path, &metadata) {
            return Err(open);
        }
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
        Ok(bytes)
    }

    /// By whom else a file or directory may be changed, as an error.
    fn open_to(&self, path: &Path, metadata: &Metadata) -> Option<FilesError> {
        let whom = match metadata.mode() & 0o022 {
            0 => None,
            0o020 => Some("its group"),
            _ => Some("everybody"),
        };
        let path = path.to_owned();
        match (whom, metadata.uid()) {
            (Some(whom), _) => Some(FilesError::Open { path, whom }),
            (None, owner) if owner == 0 || owner == self.starter => None,
            (None, owner) => Some(FilesError::Foreign { path, owner }),
        }
    }
}

/// Whether a name is put aside: hidden, or what an editor keeps of an earlier text.
fn is_aside(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~')
}

/// Whether nothing stands at `path`; a symbolic link that leads nowhere is a mistake to be told, not an absent file.
fn is_absent(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
