//! Why the files of a configuration could not be had, each with the rule that is broken and the way out.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use super::{Files, MAX_FILE, MAX_TOTAL};

/// A configuration that was not read in full, or may be changed by others.
#[derive(Debug)]
pub struct Unreadable {
    /// Why: at least one, those of a directory before those of what is in it.
    pub errors: Vec<FilesError>,
    /// What could be read beside.
    pub rest: Files,
    /// The files that are there and not in the rest, by path below the configuration directory.
    pub unread: BTreeSet<String>,
}

impl Unreadable {
    /// The rest, with an empty file in the place of each one that was not read: for judging the rest, in which a file that
    /// is there must not be missing. Nothing that is said about one of `unread` is true.
    #[must_use]
    pub fn stand_ins(&self) -> Files {
        let mut files = self.rest.clone();
        let empty = |name: &String| (name.clone(), Vec::new());
        files.0.extend(self.unread.iter().map(empty));
        files
    }
}

/// Why the files could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file or directory could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is too large.
    #[error("{} has {bytes} bytes, at most {MAX_FILE} are allowed", path.display())]
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
    #[error("{} is neither a file nor a directory", path.display())]
    Kind {
        /// Which.
        path: PathBuf,
    },
    /// A name that looks like rules and that nothing reads.
    #[error("{} would be read by nobody: {rule}", path.display())]
    Unread {
        /// Which.
        path: PathBuf,
        /// What is read there.
        rule: &'static str,
        /// The way out.
        fix: &'static str,
    },
    /// A file or directory that others than its owner may change.
    #[error(
        "{} may be written by {whom}: only its owner may write what decides what runs",
        path.display()
    )]
    Open {
        /// Which.
        path: PathBuf,
        /// `its group` or `everybody`.
        whom: &'static str,
    },
    /// A file or directory of somebody else.
    #[error(
        "{} belongs to uid {owner}: what decides what runs belongs to root or to the user who starts boxmaker",
        path.display()
    )]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Whose.
        owner: u32,
    },
    /// All files together are too large.
    #[error("the configuration has more than {MAX_TOTAL} bytes")]
    Total,
    /// The sealed memory could not be made or read.
    #[error("sealed memory: {0}")]
    Memory(#[from] io::Error),
    /// The sealed memory is not what [`super::Files::seal`] makes.
    #[error("sealed memory: {0}")]
    Format(&'static str),
}

impl FilesError {
    /// Whether it is only that this user may not look.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// What to do about it.
    #[must_use]
    pub fn way_out(&self) -> String {
        match self {
            Self::Read { .. } if self.is_forbidden() => {
                "run this as root, or as the user whose configuration it is".to_owned()
            }
            Self::Read { path, .. } if path.is_symlink() => "correct or remove the link".to_owned(),
            // The directory itself; a file that goes away while all are read is no reason to make one.
            Self::Read { path, source }
                if source.kind() == io::ErrorKind::NotFound && path.extension().is_none() =>
            {
                format!(
                    "make it, with tools/ and grants/ in it (mkdir -p {0}/tools {0}/grants), or name another configuration with \
                 --config DIR or BOXMAKER_CONFIG",
                    path.display()
                )
            }
            Self::Read { .. } => {
                "--config DIR or BOXMAKER_CONFIG chooses another configuration".to_owned()
            }
            Self::TooLarge { .. } | Self::Total => {
                "make it smaller: rules are a few lines each".to_owned()
            }
            Self::Name { .. } => "rename it".to_owned(),
            Self::Kind { .. } => {
                "move it away: only config.toml, grants/, tools/ and profiles/ are read".to_owned()
            }
            Self::Unread { fix, .. } => (*fix).to_owned(),
            Self::Open { path, .. } => format!("chmod go-w {}", path.display()),
            Self::Foreign { path, .. } => {
                format!("see what it says, then chown root {}", path.display())
            }
            Self::Memory(_) | Self::Format(_) => "start boxmaker again".to_owned(),
        }
    }
}
