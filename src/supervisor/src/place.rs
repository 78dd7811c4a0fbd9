//! Where a path really is: by name, by device and inode of every ancestor, and by its place in the file system behind
//! the mount, so that neither a link nor a bind mount hides it. Judges nothing.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Where a path really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its name without links.
    canonical: PathBuf,
    /// Device and inode of it, if it exists, and of every directory above.
    ancestors: Vec<(u64, u64)>,
    /// Device and inode of itself, if it exists.
    own: Option<(u64, u64)>,
    /// The device of its mount, and its path from the root of that device's file system.
    inside: Option<(String, PathBuf)>,
}

impl Place {
    /// Finds `path`; what does not exist yet is where its nearest existing ancestor says.
    ///
    /// # Errors
    /// As open(2) and stat(2), but for a path that does not exist.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let mut missing = Vec::new();
        let mut nearest = path;
        loop {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            match rustix::fs::open(nearest, flags, Mode::empty()) {
                Ok(descriptor) => {
                    let mut place = Self::held(&descriptor)?;
                    if !missing.is_empty() {
                        place.own = None;
                    }
                    for name in missing.into_iter().rev() {
                        place.canonical.push(name);
                        if let Some((_, inside)) = &mut place.inside {
                            inside.push(name);
                        }
                    }
                    return Ok(place);
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let (Some(above), Some(name)) = (nearest.parent(), nearest.file_name()) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            missing.push(name);
            nearest = above;
        }
    }

    /// Finds what `descriptor` holds.
    ///
    /// # Errors
    /// As readlink(2) and stat(2) on `/proc/self/fd`.
    pub(crate) fn held(descriptor: &OwnedFd) -> io::Result<Self> {
        let canonical = location(descriptor)?;
        let mut ancestors = Vec::new();
        for above in canonical.ancestors() {
            let metadata = fs::metadata(above)?;
            ancestors.push((metadata.dev(), metadata.ino()));
        }
        Ok(Self {
            own: ancestors.first().copied(),
            inside: inside(descriptor, &canonical)?,
            canonical,
            ancestors,
        })
    }

    /// Its name without links.
    pub(crate) fn canonical(&self) -> &Path {
        &self.canonical
    }

    /// Whether this is `other` or lies in it.
    fn lies_in(&self, other: &Self) -> bool {
        let by_name = self.canonical.starts_with(&other.canonical);
        let by_inode = other.own.is_some_and(|own| self.ancestors.contains(&own));
        let by_mount = match (&self.inside, &other.inside) {
            (Some((one, path)), Some((two, above))) => one == two && path.starts_with(above),
            _ => false,
        };
        by_name || by_inode || by_mount
    }

    /// Whether this lies in `other` and is not `other` itself.
    pub(crate) fn lies_below(&self, other: &Self) -> bool {
        self.lies_in(other) && !other.lies_in(self)
    }

    /// Whether it is a directory now. What does not exist is none.
    pub(crate) fn is_directory(&self) -> bool {
        self.own.is_some() && self.canonical.is_dir()
    }

    /// Whether one of the two contains the other.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.lies_in(other) || other.lies_in(self)
    }
}

/// The name of what `descriptor` holds, as the kernel has it now.
fn location(descriptor: &OwnedFd) -> io::Result<PathBuf> {
    let number = descriptor.as_raw_fd();
    fs::read_link(format!("/proc/self/fd/{number}"))
}

/// The place of a held file in the file system behind its mount (proc(5), `fdinfo` and `mountinfo`).
fn inside(descriptor: &OwnedFd, canonical: &Path) -> io::Result<Option<(String, PathBuf)>> {
    let number = descriptor.as_raw_fd();
    let information = fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
    let id = information
        .lines()
        .find_map(|line| line.strip_prefix("mnt_id:"));
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(id.and_then(|id| mounted(&mounts, id.trim(), canonical)))
}

/// Looks mount `id` up in the text of `mountinfo`.
fn mounted(mounts: &str, id: &str, canonical: &Path) -> Option<(String, PathBuf)> {
    let line = mounts
        .lines()
        .find(|line| line.split(' ').next() == Some(id))?;
    let mut fields = line.split(' ').skip(2);
    let device = fields.next()?.to_owned();
    let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
    let below = canonical.strip_prefix(point).ok()?;
    let path = Path::new(&root)
        .components()
        .chain(below.components())
        .filter(|component| *component != Component::CurDir)
        .collect();
    Some((device, path))
}

/// A field of `mountinfo`, in which space, tab, newline and backslash stand as `\` and three octal digits.
fn unescape(field: &str) -> String {
    let mut text = field.to_owned();
    for (code, character) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n")] {
        text = text.replace(code, character);
    }
    // Last, because what it gives back must not be read as the start of another code.
    text.replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_followed_to_its_place_in_the_file_system_behind_it() {
        let mounts = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      35 21 8:1 /var/lib/boxmaker/audit /mnt/a\\040b rw - ext4 /dev/sda1 rw\n\
                      36 21 0:40 / /srv rw - tmpfs tmpfs rw\n";
        let place = |id, path: &str| {
            let inside = mounted(mounts, id, Path::new(path));
            Place {
                canonical: PathBuf::from(path),
                ancestors: Vec::new(),
                own: None,
                inside,
            }
        };
        let home = place("21", "/var/lib/boxmaker");
        assert_eq!(
            place("35", "/mnt/a b/x").inside,
            Some(("8:1".to_owned(), PathBuf::from("/var/lib/boxmaker/audit/x")))
        );
        assert!(place("35", "/mnt/a b").overlaps(&home));
        assert!(!place("36", "/srv/var/lib/boxmaker").overlaps(&home));
        assert!(!place("21", "/srv2").overlaps(&home));
    }
}
