//! The few acts by which the log changes a disk, behind traits so that tests can make each of them fail.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;

/// The mode of every file of the log: the owner writes, the group reads.
pub(crate) const FILE_MODE: u32 = 0o640;

/// The mode of the directory of the day files.
const DIRECTORY_MODE: u32 = 0o750;

/// A file that grows at its end.
pub(crate) trait Sink: Send + Sync {
    /// Appends bytes with one system call and says how many of them were taken.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns when everything written is on the medium.
    fn sync(&self) -> io::Result<()>;
}

/// Where files are made.
pub(crate) trait Disk: Send + Sync {
    /// Makes the directory, mode 0750, and its name durable, unless it is there.
    fn directory(&self, path: &Path) -> io::Result<()>;

    /// Makes an empty file, mode 0640, and its name durable. An empty file of that name, which a crash may have left,
    /// is taken; one that holds bytes is an error.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Sink>>;

    /// Opens a file that exists, to append to it.
    fn append(&self, path: &Path) -> io::Result<Arc<dyn Sink>>;

    /// Puts a durable file with these bytes in the place of `path`, atomically; it belongs to the group of the file
    /// before.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
}

/// The file systems of this host.
#[derive(Debug)]
pub(crate) struct Host;

impl Disk for Host {
    fn directory(&self, path: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
            Ok(()) => {
                // Explicitly, because the umask took its part of the mode above.
                fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))?;
                sync_parent(path)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn Sink>> {
        let file = appending().create(true).open(path)?;
        if file.metadata()?.len() > 0 {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        file.sync_all()?;
        sync_parent(path)?;
        Ok(Arc::new(Grown(file)))
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn Sink>> {
        Ok(Arc::new(Grown(appending().open(path)?)))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let beside = path.with_extension("new");
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = appending().create_new(true).open(&beside)?;
        if let Ok(before) = fs::metadata(path) {
            // Who may not give it to that group has not given it before; to stop writing for it would be worse.
            let _ = fchown(&file, None, Some(before.gid()));
        }
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        sync_parent(path)
    }
}

/// Options to append to a regular file; no link is followed.
fn appending() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .append(true)
        .mode(FILE_MODE)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Makes a name durable: without it a new file may be gone after a power cut although its bytes were synced.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}

/// A file opened with `O_APPEND`.
#[derive(Debug)]
struct Grown(File);

impl Sink for Grown {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Writes all of `bytes` with one call. A short write is an error and is not continued: whatever made it short (a full
/// disk, a limit) would have to be guessed, and a torn line is something that the next start knows how to end.
///
/// # Errors
/// What the write answered, or [`io::ErrorKind::WriteZero`] with the counts after a short one.
pub(crate) fn write_whole(sink: &dyn Sink, bytes: &[u8]) -> io::Result<()> {
    loop {
        match sink.write(bytes) {
            Ok(count) if count == bytes.len() => return Ok(()),
            Ok(count) => {
                return Err(io::Error::new(
                    io::ErrorKind::WriteZero,
                    format!(
                        "only {count} of {} bytes were written, as on a full disk",
                        bytes.len()
                    ),
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
