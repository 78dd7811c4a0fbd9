//! Uids that belong to one sandbox: allotted from a range, and locked so that no other supervisor of this host, whatever
//! its home, uses the same one meanwhile.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::plan::Identity;

/// Uids at the start of the range that are kept for roles without a user of their own.
pub const ROLE_SLOTS: u32 = 16;

/// Where the locks of all supervisors of a host are.
pub const LOCKS: &str = "/run/boxmaker/uids";

/// Why no uid could be had.
#[derive(Debug, thiserror::Error)]
pub enum UidError {
    /// Every uid of the range is in use.
    #[error("all {0} uids of uid_range are in use")]
    Exhausted(u32),
    /// The slot is not one of [`ROLE_SLOTS`].
    #[error("role slot {0} is not below {ROLE_SLOTS}")]
    Slot(u32),
    /// A lock could not be made.
    #[error("cannot lock {path}, which keeps a uid to one sandbox: {source}")]
    Lock {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Allots uids.
#[derive(Debug)]
pub(crate) struct Uids {
    first: u32,
    count: u32,
    locks: PathBuf,
    /// The search for a free one starts at the lowest that may be free.
    search: Mutex<()>,
}

impl Uids {
    pub(crate) fn new((first, count): (u32, u32), locks: PathBuf) -> Self {
        Self {
            first,
            count,
            locks,
            search: Mutex::default(),
        }
    }

    /// The lowest free uid above the role slots: low ones come back soon, so their id maps are found in the cache.
    pub(crate) fn fresh(&self) -> Result<Uid, UidError> {
        let _one_at_a_time = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in ROLE_SLOTS..self.count {
            if let Some(uid) = self.take(self.first + slot)? {
                return Ok(uid);
            }
        }
        Err(UidError::Exhausted(self.count.saturating_sub(ROLE_SLOTS)))
    }

    /// The uid of a role; where another supervisor has a role with it, a free one.
    pub(crate) fn slot(&self, slot: u32) -> Result<Uid, UidError> {
        if slot >= ROLE_SLOTS.min(self.count) {
            return Err(UidError::Slot(slot));
        }
        match self.take(self.first + slot)? {
            Some(uid) => Ok(uid),
            None => self.fresh(),
        }
    }

    /// Takes a uid, unless somebody has it.
    fn take(&self, number: u32) -> Result<Option<Uid>, UidError> {
        let path = self.locks.join(number.to_string());
        let failed = |source| UidError::Lock {
            path: path.clone(),
            source,
        };
        // Closed to everybody else: whoever may open a lock may also hold it.
        let open = || {
            File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
        };
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&self.locks).map_err(failed)?;
                fs::set_permissions(&self.locks, Permissions::from_mode(0o700)).map_err(failed)?;
                open()
            }
            opened => opened,
        };
        let file = file.map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Uid {
                number,
                _lock: file,
            })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(failed(errno.into())),
        }
    }
}

/// A uid that nobody else is given as long as this lives.
#[derive(Debug)]
pub(crate) struct Uid {
    number: u32,
    _lock: File,
}

impl Uid {
    pub(crate) const fn identity(&self) -> Identity {
        Identity {
            uid: self.number,
            gid: self.number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_free_again_only_after_its_owner_is_gone() {
        let locks = tempfile::tempdir().unwrap();
        let uids = Uids::new((100, ROLE_SLOTS + 2), locks.path().join("uids"));
        let one = uids.fresh().unwrap();
        let two = uids.fresh().unwrap();
        assert_ne!(one.identity(), two.identity());
        assert!(matches!(uids.fresh(), Err(UidError::Exhausted(2))));
        let freed = one.identity();
        drop(one);
        assert_eq!(uids.fresh().unwrap().identity(), freed);
    }

    #[test]
    fn two_supervisors_never_give_the_same_uid() {
        let locks = tempfile::tempdir().unwrap();
        let [one, other] = [(), ()].map(|()| Uids::new((100, 64), locks.path().to_owned()));
        let held: Vec<Uid> = (0..10)
            .flat_map(|_| [one.fresh().unwrap(), other.fresh().unwrap()])
            .chain([one.slot(0).unwrap(), other.slot(0).unwrap()])
            .collect();
        let mut numbers: Vec<u32> = held.iter().map(|uid| uid.identity().uid).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 22);
        assert_eq!(numbers[0], 100);
    }

    #[test]
    fn a_role_has_a_place_of_its_own_or_none() {
        let locks = tempfile::tempdir().unwrap();
        let uids = Uids::new((100, 4), locks.path().to_owned());
        assert_eq!(uids.slot(3).unwrap().identity().uid, 103);
        assert!(matches!(uids.slot(4), Err(UidError::Slot(4))));
        let uids = Uids::new((100, 64), locks.path().to_owned());
        assert!(matches!(uids.slot(ROLE_SLOTS), Err(UidError::Slot(_))));
    }

    #[test]
    fn locks_are_closed_to_other_users() {
        let locks = tempfile::tempdir().unwrap();
        let directory = locks.path().join("uids");
        let _uid = Uids::new((100, 64), directory.clone()).fresh().unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(directory.clone()), mode(directory.join("116"))),
            (0o700, 0o600)
        );
    }
}
