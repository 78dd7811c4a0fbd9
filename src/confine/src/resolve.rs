//! Resolving a path of a call by descriptor: what is opened is what is bound, whatever the names do meanwhile
//! (openat2(2)).

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
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
    /// Opens the root that a grant names; `None` if it does not exist. No component may be a link: one that a tool
    /// with a write grant above it has put there would otherwise choose what the grant is about.
    ///
    /// # Errors
    /// [`ResolveError::Outside`] for a link on the way, and the other [`ResolveError`]s.
    pub fn open(path: &Path) -> Result<Option<Self>, ResolveError> {
        let (path, flags) = (path.to_owned(), OFlags::PATH | OFlags::CLOEXEC);
        let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match rustix::fs::openat2(CWD, &path, flags, Mode::empty(), how) {
                Ok(descriptor) => {
                    let resolved = describe(descriptor, &path)?;
                    return Ok(Some(Self { path, resolved }));
                }
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::LOOP) => {
                    return Err(ResolveError::Outside {
                        root: path.clone(),
                        path,
                    });
                }
                Err(errno) => {
                    return Err(ResolveError::Open {
                        path,
                        source: errno.into(),
                    });
                }
            }
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn granted() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        // The temporary directory itself may be reached by a link.
        let base = fs::canonicalize(directory.path()).unwrap();
        let root = base.join("granted");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/a.md"), "inside").unwrap();
        fs::write(base.join("secret"), "outside").unwrap();
        (directory, root)
    }

    fn inode(path: &Path) -> u64 {
        fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn what_is_inside_is_opened_however_links_lead_to_it() {
        let (_directory, root) = granted();
        symlink("sub/../sub/a.md", root.join("link")).unwrap();
        let open = Root::open(&root).unwrap().unwrap();
        for path in ["sub/a.md", "link"] {
            let resolved = open.resolve(&root.join(path)).unwrap().unwrap();
            assert_eq!(resolved.inode, inode(&root.join("sub/a.md")), "{path}");
            assert!(!resolved.directory);
        }
        assert!(open.resolve(&root).unwrap().unwrap().directory);
        assert!(open.resolve(&root.join("absent")).unwrap().is_none());
        assert!(
            open.resolve(&root.join("sub/a.md/below"))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn whatever_leads_out_is_outside() {
        let (directory, root) = granted();
        let secret = fs::canonicalize(directory.path()).unwrap().join("secret");
        symlink("../secret", root.join("relative")).unwrap();
        symlink(&secret, root.join("absolute")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("relative", root.join("chain")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        let open = Root::open(&root).unwrap().unwrap();
        for path in [
            "relative",
            "absolute",
            "up/secret",
            "chain",
            "magic",
            "../secret",
        ] {
            let outcome = open.resolve(&root.join(path));
            assert!(
                matches!(outcome, Err(ResolveError::Outside { .. })),
                "{path}: {outcome:?}"
            );
        }
        let outcome = open.resolve(&secret);
        assert!(
            matches!(outcome, Err(ResolveError::Outside { .. })),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_root_that_is_reached_by_a_link_is_refused() {
        let (_directory, root) = granted();
        let link = root.with_file_name("link-to-granted");
        symlink(&root, &link).unwrap();
        for path in [link.clone(), link.join("sub")] {
            let outcome = Root::open(&path);
            assert!(
                matches!(outcome, Err(ResolveError::Outside { .. })),
                "{outcome:?}"
            );
        }
        assert!(Root::open(&root.join("sub")).unwrap().is_some());
        assert!(Root::open(&root.join("absent")).unwrap().is_none());
    }

    #[test]
    fn a_single_file_can_be_a_root_and_has_nothing_below() {
        let (_directory, root) = granted();
        let file = root.join("sub/a.md");
        let open = Root::open(&file).unwrap().unwrap();
        assert_eq!(open.resolve(&file).unwrap().unwrap().inode, inode(&file));
        assert!(open.resolve(&file.join("x")).unwrap().is_none());
    }

    #[test]
    fn a_socket_or_a_pipe_is_neither_file_nor_directory() {
        let (_directory, root) = granted();
        let socket = root.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let open = Root::open(&root).unwrap().unwrap();
        assert!(matches!(
            open.resolve(&socket),
            Err(ResolveError::Kind { .. })
        ));
    }
}
