//! Resolving a path of a call by descriptor: what is opened is what is bound, whatever the names do meanwhile
//! (openat2(2)).

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// Why a path was not resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// It leads out of the granted root, by `..`, by a link or by a magic link.
    #[error("{path} leads out of {root}")]
    Outside {
        /// The path as the call spells it.
        path: PathBuf,
        /// The granted root.
        root: PathBuf,
    },
    /// It is neither a file nor a directory.
    #[error("{path} is neither a file nor a directory")]
    Kind {
        /// The path as the call spells it.
        path: PathBuf,
    },
    /// The kernel refused for another reason.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A granted root, held open.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    resolved: Resolved,
}

/// Something below a granted root, held open without the right to read it.
#[derive(Debug)]
pub struct Resolved {
    /// An `O_PATH` descriptor of it.
    pub descriptor: OwnedFd,
    /// Whether it is a directory; else it is a regular file.
    pub directory: bool,
    /// Its owner and group.
    pub owner: (u32, u32),
    /// The device it is on.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
}

impl Root {
    /// Opens the root that a grant names; `None` if it does not exist. Links in the root itself are followed: the
    /// owner wrote it.
    ///
    /// # Errors
    /// As [`ResolveError`].
    pub fn open(path: &Path) -> Result<Option<Self>, ResolveError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Some(Self {
                path: path.to_owned(),
                resolved: describe(descriptor, path)?,
            })),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(ResolveError::Open {
                path: path.to_owned(),
                source: errno.into(),
            }),
        }
    }

    /// The root itself.
    #[must_use]
    pub const fn itself(&self) -> &Resolved {
        &self.resolved
    }

    /// Opens `spelled`, an absolute path at or below the root as the grant spells it; `None` if it does not exist.
    /// Links that stay inside are followed, the last component included.
    ///
    /// # Errors
    /// [`ResolveError::Outside`] for whatever leads out, and the other [`ResolveError`]s.
    pub fn resolve(&self, spelled: &Path) -> Result<Option<Resolved>, ResolveError> {
        let outside = || ResolveError::Outside {
            path: spelled.to_owned(),
            root: self.path.clone(),
        };
        let below = spelled.strip_prefix(&self.path).map_err(|_| outside())?;
        let below = if below.as_os_str().is_empty() {
            Path::new(".")
        } else {
            below
        };
        if !self.resolved.directory {
            if below != Path::new(".") {
                return Ok(None);
            }
            let copy =
                self.resolved
                    .descriptor
                    .try_clone()
                    .map_err(|source| ResolveError::Open {
                        path: spelled.to_owned(),
                        source,
                    })?;
            return describe(copy, spelled).map(Some);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            let root = &self.resolved.descriptor;
            match rustix::fs::openat2(root, below, flags, Mode::empty(), how) {
                Ok(descriptor) => return describe(descriptor, spelled).map(Some),
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                // A rename raced with the walk: the kernel cannot say whether it stayed inside, so it is asked again.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::XDEV | Errno::LOOP) => return Err(outside()),
                Err(errno) => {
                    let source = errno.into();
                    return Err(ResolveError::Open {
                        path: spelled.to_owned(),
                        source,
                    });
                }
            }
        }
    }
}

fn describe(descriptor: OwnedFd, path: &Path) -> Result<Resolved, ResolveError> {
    let open = |errno: Errno| ResolveError::Open {
        path: path.to_owned(),
        source: errno.into(),
    };
    let Stat {
        st_mode,
        st_uid,
        st_gid,
        st_dev,
        st_ino,
        ..
    } = rustix::fs::fstat(&descriptor).map_err(open)?;
    let directory = match FileType::from_raw_mode(st_mode) {
        FileType::Directory => true,
        FileType::RegularFile => false,
        _ => {
            return Err(ResolveError::Kind {
                path: path.to_owned(),
            });
        }
    };
    let owner = (st_uid, st_gid);
    Ok(Resolved {
        descriptor,
        directory,
        owner,
        device: st_dev,
        inode: st_ino,
    })
}
