//! Which files are searched: everything below a directory in order of name, but hidden files, what ignore files name and
//! what globs leave out. Links are not followed.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, Walk, WalkBuilder};
use rustix::io::Errno;

use crate::failure::reason;
use crate::visible::{visible, visible_path};

/// What the call asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'a> {
    /// Whether names that begin with a dot are searched.
    pub(super) hidden: bool,
    /// Whether what ignore files name is searched.
    pub(super) ignored: bool,
    /// Globs of which a file must match one, and, with `!` in front, must match none.
    pub(super) globs: &'a [String],
}

/// A glob that is none.
#[derive(Debug, thiserror::Error)]
#[error(
    "{glob:?} in globs is no glob: {why}; write it as in a .gitignore, for example \"*.md\" or \"!target/\""
)]
pub struct GlobError {
    glob: String,
    why: String,
}

/// What was met and left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Hidden entries; what lies in hidden directories is not counted.
    pub(super) hidden: u64,
    /// Whether there was an ignore file whose rules were followed.
    pub(super) rules: bool,
}

/// The names of ignore files.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The files, one after the other; an error is a sentence about what could not be looked at.
pub(super) struct Files {
    walk: Walk,
    hidden: Arc<AtomicU64>,
    rules: Arc<AtomicBool>,
    ignored: bool,
    /// What is wrong with ignore files, to be told before the file that it was found with.
    pending: Option<PathBuf>,
}

impl Files {
    /// What is below `path`, or `path` itself if it is a file.
    ///
    /// # Errors
    /// A glob is none.
    pub(super) fn below(path: &Path, choice: Choice<'_>) -> Result<Self, GlobError> {
        let globs = globs(path, choice.globs)?;
        let hidden = Arc::new(AtomicU64::new(0));
        let rules = Arc::new(AtomicBool::new(false));
        let (count, seen, show) = (Arc::clone(&hidden), Arc::clone(&rules), choice.hidden);
        let walk = WalkBuilder::new(path)
            // Judged below instead, so that they can be counted.
            .hidden(false)
            .ignore(!choice.ignored)
            .git_ignore(!choice.ignored)
            .git_exclude(!choice.ignored)
            // Whose configuration that would be is not this tool's to know, and nothing above the path is granted.
            .git_global(false)
            .parents(false)
            .require_git(false)
            .follow_links(false)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .filter_entry(move |entry| {
                let name = entry.file_name();
                if IGNORE_FILES.iter().any(|known| name == *known) {
                    seen.store(true, Ordering::Relaxed);
                }
                if !show && name.as_encoded_bytes().starts_with(b".") && entry.depth() > 0 {
                    count.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
                let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
                entry.depth() == 0 || !globs.matched(entry.path(), directory).is_ignore()
            })
            .build();
        Ok(Self {
            walk,
            hidden,
            rules,
            ignored: choice.ignored,
            pending: None,
        })
    }

    /// What was left out so far.
    pub(super) fn left_out(&self) -> LeftOut {
        LeftOut {
            hidden: self.hidden.load(Ordering::Relaxed),
            rules: !self.ignored && self.rules.load(Ordering::Relaxed),
        }
    }
}

impl Iterator for Files {
    type Item = Result<PathBuf, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(path) = self.pending.take() {
            return Some(Ok(path));
        }
        loop {
            let entry = match self.walk.next()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(format!("not searched: {}", Told(&error)))),
            };
            let file = is_file(&entry);
            // Rules of an ignore file that are none; the others of that file hold.
            if let Some(error) = entry.error() {
                let fault = format!("ignore rules: {}", Told(error));
                self.pending = file.then(|| entry.into_path());
                return Some(Err(fault));
            }
            if file {
                return Some(Ok(entry.into_path()));
            }
        }
    }
}

/// What was named by the call may be a link; it was looked at before.
fn is_file(entry: &DirEntry) -> bool {
    entry
        .file_type()
        .is_some_and(|kind| kind.is_file() || (entry.depth() == 0 && !kind.is_dir()))
}

fn globs(path: &Path, globs: &[String]) -> Result<Override, GlobError> {
    let mut builder = OverrideBuilder::new(path);
    for glob in globs {
        let wrong = |why: String| GlobError {
            glob: glob.clone(),
            why,
        };
        if glob.trim().is_empty() {
            return Err(wrong("it is empty".to_owned()));
        }
        builder.add(glob).map_err(|error| match error {
            ignore::Error::Glob { err, .. } => wrong(err),
            error => wrong(error.to_string()),
        })?;
    }
    builder.build().map_err(|error| GlobError {
        glob: globs.join(" "),
        why: error.to_string(),
    })
}

/// What the kernel said, also where the walk has wrapped it.
fn errno(error: &io::Error) -> Option<Errno> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        let own = error.downcast_ref::<io::Error>();
        if let Some(errno) = own.and_then(Errno::from_io_error) {
            return Some(errno);
        }
        // An error that wraps another hides it from `source`, which gives what the other one is from.
        next = match own.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

/// An error of the walk in our words, on one line.
struct Told<'a>(&'a ignore::Error);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ignore::Error as E;
        match self.0 {
            E::WithPath { path, err } => write!(f, "{}: {}", visible_path(path), Told(err)),
            E::WithDepth { err, .. } => Told(err).fmt(f),
            E::WithLineNumber { line, err } => write!(f, "line {line}: {}", Told(err)),
            E::Partial(errors) => {
                let told: Vec<String> = errors.iter().map(|one| Told(one).to_string()).collect();
                f.write_str(&told.join("; "))
            }
            E::Io(error) => match errno(error) {
                Some(errno) => f.write_str(&reason(errno)),
                None => f.write_str(&visible(error.to_string().as_bytes())),
            },
            other => f.write_str(&visible(other.to_string().as_bytes())),
        }
    }
}
