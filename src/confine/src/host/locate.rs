//! Where a path really is: every symbolic link on the way by name and content, and the path without links at the end.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::FileTypeExt as _;

use super::HostError;

/// As many as the kernel follows (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Where it stands; no component before the last is a link.
    pub path: String,
    /// What it says.
    pub target: String,
}

/// A path that exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Located {
    /// The links on the way, in the order in which they are met.
    pub links: Vec<Link>,
    /// The path without links.
    pub real: String,
    /// Whether it is a directory.
    pub directory: bool,
    /// Whether it is a socket, a device or a pipe.
    special: bool,
}

impl Located {
    /// Whether it can be bound into a view.
    pub(super) fn is_viewable(&self) -> Result<(), HostError> {
        if self.special {
            Err(HostError::Kind(self.real.clone()))
        } else {
            Ok(())
        }
    }

    /// Whether it is a regular file.
    pub(super) const fn is_file(&self) -> bool {
        !self.directory && !self.special
    }

    /// A place that is made up, for tests.
    #[cfg(test)]
    pub(crate) fn at(real: &str, directory: bool, links: &[(&str, &str)]) -> Self {
        let link = |(path, target): &(&str, &str)| Link {
            path: (*path).to_owned(),
            target: (*target).to_owned(),
        };
        Self {
            links: links.iter().map(link).collect(),
            real: real.to_owned(),
            directory,
            special: false,
        }
    }
}

/// Follows an absolute path; `None` if it leads nowhere.
pub(super) fn locate(path: &str) -> Result<Option<Located>, HostError> {
    let mut rest: Vec<String> = parts(path);
    let mut real = String::new();
    let mut links: Vec<Link> = Vec::new();
    let mut followed = 0;
    let mut kind: Option<FileType> = None;
    while let Some(part) = rest.pop() {
        if part == ".." {
            real.truncate(real.rfind('/').unwrap_or(0));
            kind = None;
            continue;
        }
        let next = format!("{real}/{part}");
        let found = match fs::symlink_metadata(&next) {
            Ok(found) => found.file_type(),
            Err(error) if is_absence(&error) => return Ok(None),
            Err(source) => return Err(HostError::Look { path: next, source }),
        };
        if !found.is_symlink() {
            real = next;
            kind = Some(found);
            continue;
        }
        followed += 1;
        if followed > MOST_LINKS {
            return Err(HostError::Links(path.to_owned()));
        }
        let target = fs::read_link(&next).map_err(|source| HostError::Look {
            path: next.clone(),
            source,
        })?;
        let target = super::text(&target)?;
        if target.starts_with('/') {
            real.clear();
        }
        rest.extend(parts(&target));
        let link = Link { path: next, target };
        if !links.contains(&link) {
            links.push(link);
        }
    }
    // The path ended in the root or by going up from a link: a directory either way.
    let directory = kind.is_none_or(|kind| kind.is_dir());
    let special = kind.is_some_and(|kind| {
        kind.is_socket() || kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
    });
    if real.is_empty() {
        real.push('/');
    }
    Ok(Some(Located {
        links,
        real,
        directory,
        special,
    }))
}

/// The components that are still to be walked, the first one last.
fn parts(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .rev()
        .collect()
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
