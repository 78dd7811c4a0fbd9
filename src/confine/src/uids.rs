//! Uids that belong to one sandbox: allotted from a range, and locked so that no other supervisor of this host, whatever
//! its home, uses the same one meanwhile. A lock is a file that is there as long as it is held; whoever holds it removes
//! it, so one that was removed between open(2) and flock(2) is no lock.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
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
    /// The range is not in the user namespace that this process is in.
    #[error(
        "uid_range {first} to {last} is not in this user namespace; {}",
        fitting.map_or_else(
            || "it has too few users for sandboxes to have their own".to_owned(),
            |(first, count)| format!("write uid_range = [{first}, {count}] in config.toml")
        )
    )]
    Unmapped {
        /// The first uid.
        first: u32,
        /// The last uid.
        last: u32,
        /// A range that would do.
        fitting: Option<(u32, u32)>,
    },
    /// A lock could not be made.
    #[error("cannot lock {path}, which keeps a uid to one sandbox: {source}")]
    Lock {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A range of uids that this process can give away: `wanted` if its user namespace has that, or one that it has. None if
/// it has no 80 of them apart from the system's own (formats.md section 4).
#[must_use]
pub fn fitting(wanted: (u32, u32)) -> Option<(u32, u32)> {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    fit(wanted, &read("uid_map"), &read("gid_map"))
}

/// Whether this process has users to give away at all.
pub(crate) fn are_there() -> bool {
    fitting((0, u32::MAX)).is_some()
}

/// As [`fitting`], of the two maps (user_namespaces(7)).
fn fit((first, count): (u32, u32), uids: &str, gids: &str) -> Option<(u32, u32)> {
    // Below are the system's own users, above those that systemd allots.
    const FREE: (u32, u32) = (1_000, 61_183);
    const FEWEST: u32 = 80;
    const USUAL: (u32, u32) = (32_768, 16_384);
    let (uids, gids) = (lines(uids), lines(gids));
    let has = |first: u32, last: u32| {
        [&uids, &gids]
            .iter()
            .all(|map| map.iter().any(|(from, to)| *from <= first && last <= *to))
    };
    let last = |(first, count): (u32, u32)| first.saturating_add(count.saturating_sub(1));
    if has(first, last((first, count))) {
        return Some((first, count));
    }
    if has(USUAL.0, last(USUAL)) {
        return Some(USUAL);
    }
    let free = uids
        .iter()
        .map(|(from, to)| ((*from).max(FREE.0), (*to).min(FREE.1)));
    let (from, to) = free
        .filter(|(from, to)| from <= to && has(*from, *to))
        .max_by_key(|(from, to)| to - from)?;
    let count = to - from + 1;
    (count >= FEWEST).then_some((from, count))
}

/// The first and the last id inside of each line of a map.
fn lines(map: &str) -> Vec<(u32, u32)> {
    let line = |line: &str| {
        let mut words = line.split_whitespace().map(str::parse::<u32>);
        let (first, _, count) = (words.next()?.ok()?, words.next()?, words.next()?.ok()?);
        Some((first, first.checked_add(count.checked_sub(1)?)?))
    };
    map.lines().filter_map(line).collect()
}

/// Allots uids.
#[derive(Debug)]
pub(crate) struct Uids {
    first: u32,
    count: u32,
    locks: PathBuf,
    /// Whether this process can give the range away.
    mapped: bool,
    /// The search for a free one starts at the lowest that may be free.
    search: Mutex<()>,
}

impl Uids {
    pub(crate) fn new((first, count): (u32, u32), locks: PathBuf) -> Self {
        Self {
            first,
            count,
            locks,
            mapped: fitting((first, count)) == Some((first, count)),
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

    /// Removes the locks of this range that nobody holds: those of a supervisor that was killed.
    pub(crate) fn sweep(&self) {
        // Without the directory, or without the right to read it, there is nothing to remove.
        let entries = fs::read_dir(&self.locks).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for number in numbers {
            let slot = u32::checked_sub(number, self.first);
            if slot.is_some_and(|slot| slot < self.count) {
                // Taken and given back. One that cannot be taken is left to who holds it.
                let _ = self.take(number);
            }
        }
    }

    /// Takes a uid, unless somebody has it.
    fn take(&self, number: u32) -> Result<Option<Uid>, UidError> {
        if !self.mapped {
            return Err(UidError::Unmapped {
                first: self.first,
                last: self.first.saturating_add(self.count.saturating_sub(1)),
                fitting: fitting((self.first, self.count)),
            });
        }
        let path = self.locks.join(number.to_string());
        loop {
            match self.try_lock(&path)? {
                Tried::Held => return Ok(None),
                Tried::Removed => {}
                Tried::Locked(lock) => {
                    return Ok(Some(Uid {
                        number,
                        path,
                        _lock: lock,
                    }));
                }
            }
        }
    }

    fn try_lock(&self, path: &Path) -> Result<Tried, UidError> {
        let failed = |source| UidError::Lock {
            path: path.to_owned(),
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
                .open(path)
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
            Ok(()) if file.metadata().map_err(failed)?.nlink() == 0 => Ok(Tried::Removed),
            Ok(()) => Ok(Tried::Locked(file)),
            Err(Errno::WOULDBLOCK) => Ok(Tried::Held),
            Err(errno) => Err(failed(errno.into())),
        }
    }
}

/// What one attempt at a lock came to.
enum Tried {
    Locked(File),
    /// Somebody else has it.
    Held,
    /// Who had it removed it meanwhile.
    Removed,
}

/// A uid that nobody else is given as long as this lives.
#[derive(Debug)]
pub(crate) struct Uid {
    number: u32,
    path: PathBuf,
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

impl Drop for Uid {
    fn drop(&mut self) {
        // Before the lock goes with its file. One that stays is removed by the next who takes it, or by the next start.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

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
    fn a_range_that_a_user_namespace_lacks_is_answered_with_one_that_it_has() {
        const HOST: &str = "         0          0 4294967295\n";
        const DEFAULT: (u32, u32) = (1_879_048_192, 65_536);
        let both = |map| fit(DEFAULT, map, map);
        assert_eq!(both(HOST), Some(DEFAULT));
        assert_eq!(both("0 71001 1\n1 720000 65535\n"), Some((32_768, 16_384)));
        assert_eq!(both("0 71001 1\n1 720000 10000\n"), Some((1_000, 9_001)));
        assert_eq!(both("0 71001 1\n1 720000 1078\n"), None);
        assert_eq!(both("71001 71001 1\n"), None);
        assert_eq!(both(""), None);
        assert_eq!(
            fit((2_000, 100), "0 5 4000\n", "0 5 4000\n"),
            Some((2_000, 100))
        );
        // Groups are allotted with the uids.
        assert_eq!(fit((2_000, 100), "0 5 4000\n", "0 5 1\n"), None);
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
    fn a_lock_is_there_while_it_is_held_and_one_that_was_left_is_removed() {
        let locks = tempfile::tempdir().unwrap();
        let there = || {
            let entries = fs::read_dir(locks.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        for left in ["99", "100", "117", "118", "other"] {
            fs::write(locks.path().join(left), "").unwrap();
        }
        let uids = Uids::new((100, ROLE_SLOTS + 2), locks.path().to_owned());
        let held = uids.fresh().unwrap();
        assert_eq!(there(), ["100", "116", "117", "118", "99", "other"]);
        uids.sweep();
        assert_eq!(there(), ["116", "118", "99", "other"]);
        drop(held);
        assert_eq!(there(), ["118", "99", "other"]);
    }

    #[test]
    fn a_lock_that_is_removed_and_taken_all_the_time_has_one_holder() {
        let locks = tempfile::tempdir().unwrap();
        let held = std::sync::atomic::AtomicU32::new(0);
        let uids = Uids::new((100, 1), locks.path().to_owned());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let Some(uid) = uids.take(100).unwrap() else {
                            continue;
                        };
                        assert_eq!(held.fetch_add(1, Ordering::SeqCst), 0);
                        held.fetch_sub(1, Ordering::SeqCst);
                        drop(uid);
                    }
                });
            }
        });
        assert!(fs::read_dir(locks.path()).unwrap().next().is_none());
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
