//! A directory for what is tried, where no namespace can be made: in the home if there is one, because there it will be
//! when it counts, else among the temporary files. It is removed at the end.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Names that are tried before giving up.
const ATTEMPTS: u32 = 16;

#[derive(Debug)]
pub(super) struct Ground(PathBuf);

impl Ground {
    /// Takes a name that nobody has in the run directory of `home`, or beside all temporary files.
    pub(super) fn take(home: &Path) -> io::Result<Self> {
        Self::take_in(&home.join("run")).or_else(|_| Self::take_in(&std::env::temp_dir()))
    }

    fn take_in(parent: &Path) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for attempt in 0..ATTEMPTS {
            let name = format!("boxmaker-doctor-{}-{attempt}", std::process::id());
            let path = parent.join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Empty by now: every sandbox in it was removed. What is left is nobody's but this user's.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_in_the_home_where_that_can_be_and_is_gone_afterwards() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = Ground::take(home.path()).unwrap();
        assert!(elsewhere.path().starts_with(std::env::temp_dir()));
        let run = home.path().join("run");
        fs::create_dir(&run).unwrap();
        let [one, other] = [(); 2].map(|()| Ground::take(home.path()).unwrap());
        assert_ne!(one.path(), other.path());
        assert!(one.path().starts_with(&run));
        drop((one, other));
        assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
    }
}
