//! What members of the group `boxmaker` may use and read: the owner's socket, the log and its anchor. A plain user has
//! no group to share with, so what they make stays theirs.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use confine::accounts::Accounts;
use ledger::Paths;

/// The group.
const GROUP: &str = "boxmaker";

/// Why something was not shared.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} {}: {source}", path.display())]
pub(crate) struct ShareError {
    step: &'static str,
    path: PathBuf,
    source: io::Error,
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ShareError {
    let path = path.to_owned();
    move |source| ShareError { step, path, source }
}

/// Whose group files get.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Members {
    /// Root gives them to this group; to its own where the host has no group `boxmaker`.
    Group(u32),
    /// Nobody's.
    Nobody,
}

impl Members {
    /// The members that this host has.
    ///
    /// # Errors
    /// `/etc/group` could not be read.
    pub(crate) fn of_host() -> Result<Self, ShareError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Nobody);
        }
        let group = Accounts::of_host()
            .group(GROUP)
            .map_err(failed("read", Path::new("/etc/group")))?;
        Ok(Self::Group(group.unwrap_or(0)))
    }

    /// Gives `path` to them, with this mode.
    ///
    /// # Errors
    /// As chown(2) and chmod(2).
    pub(crate) fn share(self, path: &Path, mode: u32) -> Result<(), ShareError> {
        if let Self::Group(group) = self {
            chown(path, Some(0), Some(group)).map_err(failed("change the owner of", path))?;
        }
        // After the owner, because a change of that may take bits away.
        fs::set_permissions(path, Permissions::from_mode(mode))
            .map_err(failed("change the mode of", path))
    }

    /// Lets them read the log and its anchor: what is there, and by the set-group-id bit of the directory what comes.
    ///
    /// # Errors
    /// As [`Members::share`], and as readdir(3).
    pub(crate) fn share_log(self, paths: &Paths) -> Result<(), ShareError> {
        self.share(&paths.audit, 0o2750)?;
        self.share(&paths.anchor, 0o640)?;
        let entries = fs::read_dir(&paths.audit).map_err(failed("list", &paths.audit))?;
        for entry in entries {
            let entry = entry.map_err(failed("list", &paths.audit))?;
            let day = entry.path().extension().is_some_and(|end| end == "jsonl");
            // Not a link: the log is read through none.
            if day && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                self.share(&entry.path(), 0o640)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use ledger::{Entry, Ledger};
    use proto::Timestamp;

    use super::*;

    /// A group that nobody of the machine is in.
    const GROUP: u32 = 1_879_000_123;

    fn look(path: &Path) -> (u32, u32, u32) {
        let found = fs::metadata(path).unwrap();
        (found.uid(), found.gid(), found.mode() & 0o7777)
    }

    fn append(ledger: &Ledger) {
        let files = Default::default();
        let entry = Entry::Policy {
            generation: 1,
            files,
        };
        ledger.append_durable(entry).unwrap();
    }

    #[test]
    fn members_read_the_days_that_are_there_and_those_that_come() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give files to a group");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let paths = Paths {
            audit: home.path().join("audit"),
            anchor: home.path().join("anchor"),
        };
        let day = |day: &str| -> Timestamp { format!("{day}T12:00:00.000Z").parse().unwrap() };
        let open = |time| Ledger::open(&paths, Box::new(move || time)).unwrap().0;
        // A log from before it was shared.
        append(&open(day("2026-09-01")));
        let old = paths.audit.join("2026-09-01.jsonl");
        assert_eq!(look(&old), (0, 0, 0o640));

        let ledger = open(day("2026-09-02"));
        Members::Group(GROUP).share_log(&paths).unwrap();
        append(&ledger);
        let new = paths.audit.join("2026-09-02.jsonl");
        for path in [&old, &new, &paths.anchor] {
            assert_eq!(look(path), (0, GROUP, 0o640), "{}", path.display());
        }
        assert_eq!(look(&paths.audit), (0, GROUP, 0o2750));
        // Whoever may open the lock may hold it.
        assert_eq!(look(&paths.audit.join("lock")).2, 0o600);
    }

    #[test]
    fn what_a_plain_user_makes_stays_theirs() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x");
        fs::write(&path, "").unwrap();
        let before = look(&path);
        Members::Nobody.share(&path, 0o660).unwrap();
        assert_eq!(look(&path), (before.0, before.1, 0o660));
    }
}
