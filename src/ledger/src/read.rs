//! Reads the log in order, for the replay of history and for `bxctl audit show`. Checks the chain as it goes and leaves
//! the anchor to the verifier.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::Line;

use crate::anchor::Anchor;
use crate::chain::Member;
use crate::walk::{Broken, Walk, WalkError};
use crate::{FileError, Paths, day};

/// Why reading ended before the log did.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line is not what was written.
    #[error("the audit log is broken at {0}: run `bxctl audit verify`")]
    Broken(#[from] Broken),
}

impl From<WalkError> for ReadError {
    fn from(error: WalkError) -> Self {
        match error {
            WalkError::Broken(broken) => Self::Broken(broken),
            WalkError::File(error) => Self::File(error),
        }
    }
}

/// The lines of a log, in order. After an error it ends.
#[derive(Debug)]
pub struct Lines {
    paths: Paths,
    walk: Option<Walk>,
    ready: VecDeque<Arc<Member>>,
    ended: bool,
}

/// Every line of the log in order, without the torn ones that it keeps; a log that does not exist has none.
///
/// Takes no lock. Beside a writer it sees the lines of one moment between its first and its last step.
#[must_use]
pub fn read(paths: &Paths) -> Lines {
    Lines {
        paths: paths.clone(),
        walk: None,
        ready: VecDeque::new(),
        ended: false,
    }
}

impl Lines {
    fn step(&mut self) -> Result<(), WalkError> {
        let walk = match &mut self.walk {
            Some(walk) => walk,
            none => {
                let files = day::list(&self.paths.audit)?;
                none.insert(Walk::new(&self.paths, files, Anchor::default()))
            }
        };
        match walk.step()? {
            Some(settled) => self.ready.extend(settled),
            None => self.ended = true,
        }
        Ok(())
    }
}

impl Iterator for Lines {
    type Item = Result<Line, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(member) = self.ready.pop_front() {
                return Some(Ok(match Arc::try_unwrap(member) {
                    Ok(member) => member.line,
                    Err(shared) => shared.line.clone(),
                }));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.step() {
                self.ended = true;
                return Some(Err(error.into()));
            }
        }
    }
}
