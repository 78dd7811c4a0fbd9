//! Whether anything can be launched at all: the stage is there and can be started, and why nothing can.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::cgroup::CgroupError;

/// The way out of a stage that does not start.
pub(super) const INSTALL: &str =
    "boxmaker-stage is installed beside boxmaker: install both from one build";

/// Why nothing can be launched at all.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// The stage's binary is not there, or no program.
    #[error("cannot start {}: {source}; {INSTALL}", path.display())]
    Stage {
        /// Where it was looked for.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel refuses what every launch needs.
    #[error("cannot {what}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The cgroup back end cannot be used.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
}

/// Whether a program of that name can be started, as far as that can be said without starting it.
pub(super) fn startable(program: &Path) -> io::Result<()> {
    if !std::fs::metadata(program)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok(rustix::fs::access(program, Access::EXEC_OK)?)
}
