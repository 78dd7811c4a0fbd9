//! Writing beside a file and renaming over it: a reader meets the old content or the new, whole.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::fd::BorrowedFd;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, fchmod, fchown, fstat, fsync, linkat, openat,
    renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::place::{Existing, Place};
use super::{Done, WriteError, in_place};
use crate::failure::SystemError;

/// Names that are tried for a temporary file.
const ATTEMPTS: usize = 16;

/// Replaces the file at `place`, or creates it. Where the directory takes no second file beside it, or the file is a
/// mount point, it is written in place, and the result says so. `still` is asked when everything is ready, and stops it if
/// what stands there is not what is to be replaced.
///
/// # Errors
/// A step failed, or `still` said no; no temporary file is left.
pub(crate) fn replace(
    place: &Place,
    content: &[u8],
    still: impl Fn() -> bool,
) -> Result<Done, WriteError> {
    let ask = || match still() {
        true => Ok(()),
        false => Err(WriteError::Changed(place.shown())),
    };
    let existing = place.existing();
    let mut temporary = match Temporary::make(place) {
        Ok(temporary) => temporary,
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) if existing.is_some() => {
            ask()?;
            return in_place::replace(place, content, "its directory takes no new file");
        }
        Err(errno) => return Err(failed("create a file beside", place, errno).into()),
    };
    let mut done = match existing {
        Some(existing) => Done::new(format!("replaced {} bytes", existing.size)),
        None => Done::new("created"),
    };
    temporary.write(place, content)?;
    if let Some(existing) = existing {
        temporary.dress(place, existing, &mut done)?;
    }
    temporary.sync(place)?;
    ask()?;
    match renameat(
        place.directory(),
        &temporary.name,
        place.directory(),
        place.name(),
    ) {
        Ok(()) => {}
        Err(Errno::BUSY | Errno::ACCESS | Errno::PERM | Errno::XDEV) if existing.is_some() => {
            // Gone before the file itself is touched, so that no error can leave both.
            drop(temporary);
            return in_place::replace(place, content, "nothing may be renamed over it");
        }
        Err(errno) => return Err(failed("replace", place, errno).into()),
    }
    temporary.renamed();
    sync_name(place, &temporary.file, &mut done);
    Ok(done)
}

/// Creates the file at `place`, with its whole content or not at all.
///
/// # Errors
/// The name is taken, or a step failed; no temporary file is left.
pub(crate) fn create(place: &Place, content: &[u8]) -> Result<Done, WriteError> {
    let exists = || WriteError::Exists(place.shown());
    if place.existing().is_some() {
        return Err(exists());
    }
    let mut temporary = Temporary::make(place).map_err(|errno| failed("create", place, errno))?;
    temporary.write(place, content)?;
    temporary.sync(place)?;
    let directory = place.directory();
    let renamed = renameat_with(
        directory,
        &temporary.name,
        directory,
        place.name(),
        RenameFlags::NOREPLACE,
    );
    match renamed {
        Ok(()) => temporary.renamed(),
        // Where the file system or a filter does not know the flag: a link does not replace either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
            linkat(
                directory,
                &temporary.name,
                directory,
                place.name(),
                AtFlags::empty(),
            )
            .map_err(|errno| match errno {
                Errno::EXIST => exists(),
                errno => failed("create", place, errno).into(),
            })?;
            temporary.remove();
        }
        Err(Errno::EXIST) => return Err(exists()),
        Err(errno) => return Err(failed("create", place, errno).into()),
    }
    let mut done = Done::new("created");
    sync_name(place, &temporary.file, &mut done);
    Ok(done)
}

fn failed(doing: &'static str, place: &Place, errno: Errno) -> SystemError {
    SystemError::new(doing, place.path(), errno)
}

/// Makes the name durable. A sandbox may not open the directory, because that is reading it; the file, synced again,
/// takes its rename along on file systems that journal both.
fn sync_name(place: &Place, file: &File, done: &mut Done) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let synced = match openat(place.directory(), ".", flags, Mode::empty()) {
        Ok(directory) => fsync(&directory),
        Err(_) => fsync(file),
    };
    match synced {
        // EINVAL: a file system that has nothing to sync (fsync(2)).
        Ok(()) | Err(Errno::INVAL) => {}
        Err(errno) => done.note(format_args!(
            "the new content is in place, but the disk did not confirm it: {}",
            crate::failure::reason(errno)
        )),
    }
}

/// A file under a name of its own, removed when dropped.
#[derive(Debug)]
struct Temporary<'a> {
    directory: BorrowedFd<'a>,
    name: OsString,
    file: File,
}

impl<'a> Temporary<'a> {
    fn make(place: &'a Place) -> Result<Self, Errno> {
        // Closed to others while it is not dressed like the file it replaces; else what the umask gives any new file.
        let mode = if place.existing().is_some() {
            0o600
        } else {
            0o666
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut last = Errno::EXIST;
        for _ in 0..ATTEMPTS {
            let name = fresh_name(place.name());
            match openat(place.directory(), &name, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => {
                    return Ok(Self {
                        directory: place.directory(),
                        name,
                        file: File::from(file),
                    });
                }
                Err(Errno::EXIST) => {}
                Err(Errno::INTR) => last = Errno::INTR,
                Err(errno) => return Err(errno),
            }
        }
        Err(last)
    }

    fn write(&self, place: &Place, content: &[u8]) -> Result<(), SystemError> {
        (&self.file)
            .write_all(content)
            .map_err(|error| SystemError::from_io("write", place.path(), &error))
    }

    fn sync(&self, place: &Place) -> Result<(), SystemError> {
        fsync(&self.file).map_err(|errno| failed("write to disk", place, errno))
    }

    /// Gives it the owner, group and permission bits of the file it replaces, but never set-id or sticky bits.
    fn dress(
        &self,
        place: &Place,
        existing: &Existing,
        done: &mut Done,
    ) -> Result<(), SystemError> {
        let file = &self.file;
        let mine = fstat(file).map_err(|errno| failed("examine", place, errno))?;
        let (mut uid, mut gid) = (mine.st_uid, mine.st_gid);
        // The group may be one that this process is in even where the owner cannot be given away, hence two calls.
        if gid != existing.gid && fchown(file, None, Some(Gid::from_raw(existing.gid))).is_ok() {
            gid = existing.gid;
        }
        if uid != existing.uid && fchown(file, Some(Uid::from_raw(existing.uid)), None).is_ok() {
            uid = existing.uid;
        }
        let mut mode = existing.mode & 0o777;
        if uid != existing.uid {
            done.note(format_args!(
                "it now belongs to uid {uid}, before to uid {}",
                existing.uid
            ));
        }
        if gid != existing.gid {
            // The bits were meant for another group: this one gets no more than everybody has.
            mode &= 0o707 | (mode & 0o007) << 3;
            done.note(format_args!(
                "its group is now {gid}, before {}; the group may no more than others may",
                existing.gid
            ));
        }
        if existing.mode & 0o6000 != 0 {
            done.note("its set-id bits were dropped");
        }
        if existing.links > 1 {
            done.note(format_args!(
                "{} other hard links keep the old content",
                existing.links - 1
            ));
        }
        fchmod(file, Mode::from_raw_mode(mode))
            .map_err(|errno| failed("set the permissions of", place, errno))
    }

    /// Says that the temporary name is gone, because it was renamed.
    fn renamed(&mut self) {
        self.name = OsString::new();
    }

    fn remove(&mut self) {
        if !self.name.is_empty() {
            let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
            self.name = OsString::new();
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A hidden name like no other: the clock would not do, because two calls may share it, nor the process id, which is
/// the same in every sandbox.
fn fresh_name(of: &OsStr) -> OsString {
    let random = RandomState::new().build_hasher().finish();
    let mut name = OsString::from(".");
    // A name has at most 255 bytes; a long one is left out rather than cut inside a character.
    if of.len() <= 200 {
        name.push(of);
    }
    name.push(format!(".{random:016x}.tmp"));
    name
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn what_is_not_there_any_more_when_everything_is_ready_is_not_replaced() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let place = Place::find(&path).unwrap();
        let refused = replace(&place, b"new", || false);
        assert!(
            matches!(refused, Err(WriteError::Changed(_))),
            "{refused:?}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        replace(&place, b"new", || true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn temporary_names_differ_and_fit_whatever_the_name_is() {
        let long = OsString::from("x".repeat(255));
        for of in [OsStr::new("a.md"), &long] {
            let (one, other) = (fresh_name(of), fresh_name(of));
            assert_ne!(one, other);
            assert!(one.len() <= 255 && one.as_bytes().starts_with(b"."));
        }
    }
}
