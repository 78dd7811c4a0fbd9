//! The lock that makes one process the log's only writer (boxmaker seed, section 6, rule 4).

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::FileError;

/// The lock file's name in the directory of the day files.
const NAME: &str = "lock";

/// Closed even to those who may read the log: whoever may open a lock may also hold it.
const MODE: u32 = 0o600;

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another opener holds it.
    #[error(
        "the audit log in {} is held by {}: a log has one writer; stop that one first, or use another home",
        audit.display(), holder(*pid)
    )]
    Held {
        /// The directory of the day files.
        audit: PathBuf,
        /// The process that holds it, if it said so and lives.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}

/// Held from `take` until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

impl Lock {
    /// Takes the lock of the log in `audit` and writes this process's id into the lock file; does not wait.
    pub(crate) fn take(audit: &Path) -> Result<Self, LockError> {
        let path = audit.join(NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(MODE)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(&path)
            .map_err(FileError::on("open", &path))?;
        // Before it is asked for, so that nobody follows who holds one that was open to others.
        file.set_permissions(Permissions::from_mode(MODE))
            .map_err(FileError::on("set the mode of", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let read = (&file).take(16).read_to_string(&mut text);
                return Err(LockError::Held {
                    audit: audit.to_owned(),
                    pid: read
                        .ok()
                        .and_then(|_| text.trim().parse().ok())
                        .filter(|pid| lives(*pid)),
                });
            }
            Err(error) => return Err(FileError::on("lock", &path)(error.into()).into()),
        }
        // Padded, so that it covers what an earlier holder wrote without a moment in which the file is empty.
        writeln!(file, "{:<10}", std::process::id()).map_err(FileError::on("write", &path))?;
        Ok(Self(file))
    }
}

/// Whether there is a process of this id; a dead one that the file still names holds nothing.
fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}
