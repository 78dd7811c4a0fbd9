//! Why a tool has no result, in words that a person or a model can act on.

use std::fmt;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::fs_edit::EditError;
use crate::fs_list::ListError;
use crate::fs_read::ReadError;
use crate::fs_search::SearchError;
use crate::fs_stat::StatError;
use crate::input::InputError;
use crate::visible::visible_path;
use crate::write::WriteError;

/// Why a tool failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments.
    #[error(transparent)]
    Input(#[from] InputError),
    /// `fs_edit`.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// `fs_list`.
    #[error(transparent)]
    List(#[from] ListError),
    /// `fs_read`.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// `fs_search`.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// `fs_stat`.
    #[error(transparent)]
    Stat(#[from] StatError),
    /// `fs_write`.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The result could not be written.
    #[error("cannot write the result to standard output: {0}")]
    Output(#[source] io::Error),
}

/// A step that the kernel refused.
#[derive(Debug, thiserror::Error)]
pub struct SystemError {
    doing: &'static str,
    path: String,
    #[source]
    errno: Errno,
}

impl SystemError {
    /// `doing` is a verb, as in "cannot `doing` PATH".
    pub(crate) fn new(doing: &'static str, path: &Path, errno: Errno) -> Self {
        Self {
            doing,
            path: visible_path(path),
            errno,
        }
    }

    /// As [`SystemError::new`], for errors of std.
    pub(crate) fn from_io(doing: &'static str, path: &Path, error: &io::Error) -> Self {
        Self::new(
            doing,
            path,
            Errno::from_io_error(error).unwrap_or(Errno::IO),
        )
    }

    /// What the kernel answered.
    #[must_use]
    pub const fn errno(&self) -> Errno {
        self.errno
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} {}: {}",
            self.doing,
            self.path,
            reason(self.errno)
        )?;
        match way_out(self.errno) {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

/// What an error number means, in a few words.
pub(crate) fn reason(errno: Errno) -> String {
    let words = match errno {
        Errno::NOENT => "it does not exist",
        Errno::ACCESS => "permission denied",
        Errno::PERM => "not permitted",
        Errno::NOTDIR => "a part of the path is a file, not a directory",
        Errno::ISDIR => "it is a directory",
        Errno::LOOP => "its symbolic links lead in a circle",
        Errno::NAMETOOLONG => "a name in it is too long",
        Errno::ROFS => "the file system is read-only",
        Errno::NOSPC => "the disk is full",
        Errno::DQUOT => "the disk quota is used up",
        Errno::FBIG => "it would be larger than a file may be here",
        Errno::TXTBSY => "it is a program that is running",
        Errno::BUSY => "it is in use as a mount point",
        Errno::IO => "the disk reported an error",
        Errno::EXIST => "it exists already",
        other => return io::Error::from(other).to_string().to_lowercase(),
    };
    words.to_owned()
}

fn way_out(errno: Errno) -> Option<&'static str> {
    Some(match errno {
        Errno::NOENT => {
            "check the spelling with fs_list on its directory (what lies outside the grant does not exist here)"
        }
        Errno::ACCESS | Errno::PERM => {
            "its permissions or the grant do not allow this; choose another path or ask the owner"
        }
        Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP => "correct the path",
        Errno::ROFS => "choose a path that a grant lets be written",
        Errno::NOSPC | Errno::DQUOT => "free some space, then call again",
        Errno::FBIG => "write less",
        Errno::TXTBSY => "wait until it has ended, then call again",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_step_the_path_the_reason_and_the_way_out() {
        let error = SystemError::new("open", Path::new("/srv/a\nb"), Errno::NOENT);
        let text = error.to_string();
        assert!(
            text.starts_with("cannot open \"/srv/a\\nb\": it does not exist; check"),
            "{text}"
        );
        assert_eq!(error.errno(), Errno::NOENT);
    }

    #[test]
    fn an_unusual_error_keeps_the_words_of_the_system() {
        assert!(reason(Errno::STALE).contains("stale"));
    }
}
