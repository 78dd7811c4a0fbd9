//! Keeps granted paths away from boxmaker's own files (architecture.md section 4.5), whatever name they go by.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::place::Place;

/// Something of boxmaker's own that no grant may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    what: String,
    path: PathBuf,
    place: Place,
}

/// Why a granted path is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GuardError {
    /// It touches a file of boxmaker's own.
    #[error("{path} contains or lies in {what}, {own}")]
    Own {
        /// The path.
        path: PathBuf,
        /// What it touches, for example `the home`.
        what: String,
        /// Where that is.
        own: PathBuf,
    },
    /// It leads through a link, which whoever can write there could turn elsewhere.
    #[error("{path} leads through a link to {to}")]
    Linked {
        /// The granted path.
        path: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// It could not be looked at.
    #[error("cannot look at {path}: {source}")]
    Look {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl GuardError {
    /// Whether it is only that this user may not look.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Look { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// Everything that is boxmaker's own.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    own: Vec<Own>,
}

impl Guard {
    /// Adds a file or directory that no grant may touch; `what` names it for people.
    ///
    /// # Errors
    /// It could not be looked at.
    pub(crate) fn protect(&mut self, what: &str, path: &Path) -> Result<(), GuardError> {
        let place = look(path)?;
        self.own.push(Own {
            what: what.to_owned(),
            path: path.to_owned(),
            place,
        });
        Ok(())
    }

    /// Judges a granted path. To be called after every [`Guard::protect`].
    ///
    /// # Errors
    /// As [`GuardError`].
    pub(crate) fn admit(&self, root: &Path) -> Result<(), GuardError> {
        let place = look(root)?;
        self.judge(root, &place)?;
        if place.canonical() == root {
            Ok(())
        } else {
            Err(GuardError::Linked {
                path: root.to_owned(),
                to: place.canonical().to_owned(),
            })
        }
    }

    /// Judges what a call is going to be given, held open.
    ///
    /// # Errors
    /// As [`GuardError`].
    pub(crate) fn judge_held(&self, path: &Path, held: &OwnedFd) -> Result<(), GuardError> {
        let place = Place::held(held).map_err(|source| GuardError::Look {
            path: path.to_owned(),
            source,
        })?;
        self.judge(path, &place)
    }

    fn judge(&self, path: &Path, place: &Place) -> Result<(), GuardError> {
        match self.own.iter().find(|own| place.overlaps(&own.place)) {
            None => Ok(()),
            Some(own) => Err(GuardError::Own {
                path: path.to_owned(),
                what: own.what.clone(),
                own: own.path.clone(),
            }),
        }
    }
}

fn look(path: &Path) -> Result<Place, GuardError> {
    Place::of(path).map_err(|source| GuardError::Look {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Host {
        directory: tempfile::TempDir,
        guard: Guard,
    }

    /// A home with a file in it, a directory beside it, and a guard of the home.
    fn host() -> Host {
        let directory = tempfile::tempdir().unwrap();
        let top = &fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(top.join("own/home/audit")).unwrap();
        fs::create_dir_all(top.join("files")).unwrap();
        fs::write(top.join("own/program"), "x").unwrap();
        let mut guard = Guard::default();
        guard.protect("the home", &top.join("own/home")).unwrap();
        guard
            .protect("a program", &top.join("own/program"))
            .unwrap();
        Host { directory, guard }
    }

    impl Host {
        fn path(&self, below: &str) -> PathBuf {
            fs::canonicalize(self.directory.path()).unwrap().join(below)
        }

        fn touches(&self, below: &str) -> bool {
            let path = self.path(below);
            match self.guard.admit(&path) {
                Ok(()) => false,
                Err(GuardError::Own { .. }) => true,
                Err(other) => panic!("{below}: {other}"),
            }
        }
    }

    #[test]
    fn a_path_beside_the_home_is_granted_and_one_in_or_around_it_is_not() {
        let host = host();
        assert!(!host.touches("files"));
        assert!(!host.touches("files/not/there/yet"));
        assert!(!host.touches("own/homestead"));
        for path in [
            "own/home",
            "own/home/audit",
            "own/home/later",
            "own",
            "own/program",
        ] {
            assert!(host.touches(path), "{path}");
        }
    }

    #[test]
    fn a_link_to_the_home_and_a_hard_link_to_a_program_are_recognised() {
        let host = host();
        symlink(host.path("own/home"), host.path("files/link")).unwrap();
        assert!(host.touches("files/link"));
        assert!(host.touches("files/link/audit"));
        fs::hard_link(host.path("own/program"), host.path("files/program")).unwrap();
        assert!(host.touches("files/program"));
        fs::copy(host.path("own/program"), host.path("files/copy")).unwrap();
        assert!(!host.touches("files/copy"));
    }

    #[test]
    fn a_granted_path_leads_through_no_link() {
        let host = host();
        fs::create_dir(host.path("files/a")).unwrap();
        symlink("a", host.path("files/link")).unwrap();
        host.guard.admit(&host.path("files/a/later")).unwrap();
        for path in ["files/link", "files/link/later"] {
            let linked = host.guard.admit(&host.path(path));
            assert!(matches!(linked, Err(GuardError::Linked { .. })), "{path}");
        }
    }
}
