//! The home as the place of one supervisor: that it is a directory, and the lock that keeps a second one out. What is
//! kept in it is not known here.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Closed to everybody else: whoever may open a lock may also hold it.
const MODE: u32 = 0o600;

/// Why the home was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HomeError {
    /// It is a file.
    #[error(
        "the home {} is no directory: boxmaker keeps its log and its socket in one; move it away, or name another with \
         --home or BOXMAKER_HOME", .0.display()
    )]
    Kind(PathBuf),
    /// Others may write it.
    #[error(
        "{} may be written by {whom}: who may write a home could exchange the log in it, or the socket; chmod go-w {}",
        path.display(), path.display()
    )]
    Open {
        /// Which part of it.
        path: PathBuf,
        /// `its group` or `everybody`.
        whom: &'static str,
    },
    /// It is somebody else's.
    #[error(
        "{} belongs to uid {owner}, and boxmaker was started by uid {starter}: who owns a home could exchange the log in \
         it, or the socket; start boxmaker as that user, or use another home with --home or BOXMAKER_HOME", path.display()
    )]
    Foreign {
        /// Which part of it.
        path: PathBuf,
        /// Whose.
        owner: u32,
        /// Who this is.
        starter: u32,
    },
    /// A step failed.
    #[error("cannot {step} {}: {source}", path.display())]
    File {
        /// What was tried.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another supervisor serves this home.
    #[error(
        "{} is held {holder}: a home has one supervisor; stop that one first, or use another home with --home or \
         BOXMAKER_HOME", path.display()
    )]
    Held {
        /// The lock.
        path: PathBuf,
        /// By whom, if that is known.
        holder: String,
    },
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HomeError {
    let path = path.to_owned();
    move |source| HomeError::File { step, path, source }
}

/// Makes the home if it is not there, and takes its lock, which is held until the file is closed.
///
/// # Errors
/// As [`HomeError`].
pub(crate) fn hold(home: &Path) -> Result<File, HomeError> {
    // A link that leads to a directory will do.
    if fs::metadata(home).is_ok_and(|found| !found.is_dir()) {
        return Err(HomeError::Kind(home.to_owned()));
    }
    let run = home.join("run");
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(&run)
        .map_err(failed("make", &run))?;
    own(home)?;
    own(&run)?;
    lock(&run.join("lock"))
}

/// Refuses a directory in which others than root and this user could exchange what boxmaker keeps.
fn own(path: &Path) -> Result<(), HomeError> {
    let found = fs::metadata(path).map_err(failed("look at", path))?;
    let path = path.to_owned();
    let starter = rustix::process::geteuid().as_raw();
    match (found.mode() & 0o022, found.uid()) {
        (0, owner) if owner == 0 || owner == starter => Ok(()),
        (0, owner) => Err(HomeError::Foreign {
            path,
            owner,
            starter,
        }),
        (open, _) => {
            let whom = match open {
                0o020 => "its group",
                _ => "everybody",
            };
            Err(HomeError::Open { path, whom })
        }
    }
}

fn lock(path: &Path) -> Result<File, HomeError> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options
        .mode(MODE)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let mut file = options.open(path).map_err(failed("open", path))?;
    // Before the lock is asked for: whoever holds one that was left open to others keeps it, but nobody follows them.
    file.set_permissions(Permissions::from_mode(MODE))
        .map_err(failed("change the mode of", path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut text = String::new();
            let read = file.take(16).read_to_string(&mut text);
            return Err(HomeError::Held {
                path: path.to_owned(),
                holder: holder(read.ok().and_then(|_| text.trim().parse().ok())),
            });
        }
        Err(errno) => return Err(failed("lock", path)(errno.into())),
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(failed("write", path))?;
    Ok(file)
}

/// By whom a lock is held that names `pid`. Only a living process holds one, so another name is left from before.
fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) if lives(pid) => format!("by process {pid}"),
        Some(pid) => format!(
            "by a process that did not write its id (the last that did, {pid}, is gone); `lslocks` shows it"
        ),
        None => "by a process that did not write its id; `lslocks` shows it".to_owned(),
    }
}

fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process of somebody else lives although it may not be signalled.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;
    use std::process::Command;

    use super::*;

    fn home() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_home_is_held_by_one_and_free_again_after_it() {
        let home = home();
        let held = hold(home.path()).unwrap();
        let error = hold(home.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("is held by process {}", std::process::id())));
        assert!(error.contains("--home"), "{error}");
        drop(held);
        hold(home.path()).unwrap();
    }

    #[test]
    fn only_a_living_process_is_named_as_the_holder() {
        let home = home();
        let held = hold(home.path()).unwrap();
        let mut child = Command::new("/usr/bin/true").spawn().unwrap();
        child.wait().unwrap();
        let lock = home.path().join("run/lock");
        for (text, told) in [
            (
                format!("{}\n", child.id()),
                format!("{}, is gone", child.id()),
            ),
            (String::new(), "did not write its id; ".to_owned()),
            ("-1\n".to_owned(), "did not write its id".to_owned()),
            ("0\n".to_owned(), "did not write its id".to_owned()),
            (
                format!("{}\n", std::process::id()),
                format!("by process {}", std::process::id()),
            ),
        ] {
            fs::write(&lock, text).unwrap();
            let error = hold(home.path()).unwrap_err().to_string();
            assert!(error.contains(&told), "{error}");
        }
        drop(held);
    }

    #[test]
    fn a_lock_is_closed_to_other_users_also_one_that_was_open_to_them() {
        let home = home();
        let lock = home.path().join("run/lock");
        let mode = || fs::metadata(&lock).unwrap().permissions().mode() & 0o7777;
        drop(hold(home.path()).unwrap());
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&lock, Permissions::from_mode(0o666)).unwrap();
        let _held = hold(home.path()).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_lock_is_no_link_to_another_file() {
        let home = home();
        drop(hold(home.path()).unwrap());
        fs::remove_file(home.path().join("run/lock")).unwrap();
        let other = home.path().join("other");
        fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, home.path().join("run/lock")).unwrap();
        assert!(matches!(hold(home.path()), Err(HomeError::File { .. })));
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        fs::remove_file(home.path().join("run/lock")).unwrap();
        hold(home.path()).unwrap();
    }

    #[test]
    fn a_home_that_is_a_file_is_told_with_the_way_out() {
        let above = home();
        let file = above.path().join("home");
        fs::write(&file, "").unwrap();
        let error = hold(&file).unwrap_err().to_string();
        assert!(
            error.contains("no directory") && error.contains("--home"),
            "{error}"
        );
    }

    #[test]
    fn a_home_that_others_may_write_is_not_taken() {
        let home = home();
        drop(hold(home.path()).unwrap());
        for below in ["", "run"] {
            let path = home.path().join(below);
            for (mode, whom) in [(0o775, "its group"), (0o757, "everybody")] {
                fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
                let error = hold(home.path()).unwrap_err().to_string();
                let told = format!("may be written by {whom}");
                assert!(error.contains(&told), "{error}");
                assert!(error.contains("chmod go-w"), "{error}");
            }
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            hold(home.path()).unwrap();
        }
    }

    #[test]
    fn a_home_of_somebody_else_is_not_taken() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: a_home_of_somebody_else_is_not_taken: only root gives files away");
            return;
        }
        let home = home();
        drop(hold(home.path()).unwrap());
        for below in ["", "run"] {
            let path = home.path().join(below);
            chown(&path, Some(1000), None).unwrap();
            let error = hold(home.path()).unwrap_err().to_string();
            assert!(error.contains("belongs to uid 1000"), "{error}");
            assert!(error.contains("started by uid 0"), "{error}");
            chown(&path, Some(0), None).unwrap();
            hold(home.path()).unwrap();
        }
    }
}
