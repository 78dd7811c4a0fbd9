//! One walk over a whole log: every stored line through the chain and past the anchor, to the end or to the first bad
//! line. The verifier, the reader and the start of the writer are this walk.

use std::fmt;
use std::sync::Arc;

use proto::{Hash32, Line};
use serde::Serialize;

use crate::anchor::{self, Anchor, AnchorError};
use crate::chain::{Fault, Member, State, Walker};
use crate::day::{self, Day};
use crate::lines::{Place, RawLine, RawLines};
use crate::{FileError, Paths};

/// The first bad line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The name of its file: a day file, or the anchor.
    pub file: String,
    /// Its number in that file, from 1; one past the last where a line is missing.
    pub line: u64,
    /// The offset of its first byte in that file.
    pub offset: u64,
    /// Its sequence, if one can be told.
    pub seq: Option<u64>,
    /// What is wrong with it, in plain words.
    pub reason: String,
}

impl Broken {
    fn at(place: &Place, seq: Option<u64>, reason: impl Into<String>) -> Self {
        Self {
            file: place.day.file_name(),
            line: place.line,
            offset: place.offset,
            seq,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} (byte {}", self.file, self.line, self.offset)?;
        if let Some(seq) = self.seq {
            write!(f, ", seq {seq}")?;
        }
        write!(f, "): {}", self.reason)
    }
}

impl std::error::Error for Broken {}

/// Why a walk ended early.
#[derive(Debug)]
pub(crate) enum WalkError {
    /// At a bad line.
    Broken(Broken),
    /// At a file that could not be read.
    File(FileError),
}

impl From<FileError> for WalkError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<Broken> for WalkError {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<AnchorError> for WalkError {
    fn from(error: AnchorError) -> Self {
        match error {
            AnchorError::File(error) => Self::File(error),
            AnchorError::Garbled(broken) => Self::Broken(broken),
        }
    }
}

/// A walk that goes on.
#[derive(Debug)]
pub(crate) struct Walk {
    lines: RawLines,
    walker: Walker,
    anchor: Anchor,
    /// The days of the anchored lines that were passed; its length says how many those are.
    days: Vec<Day>,
    torn: Option<RawLine>,
    misnamed: Option<String>,
}

/// Where a walk that met no bad line ended.
#[derive(Debug)]
pub(crate) struct End {
    /// What the whole lines amount to.
    pub(crate) state: State,
    /// A last line without its newline.
    pub(crate) torn: Option<RawLine>,
    /// The last file that holds a byte.
    pub(crate) last: Option<Arc<Day>>,
    /// The anchor, if there is one.
    pub(crate) anchor: Option<Anchor>,
    /// The days of the lines that the anchor names, in its order.
    pub(crate) days: Vec<Day>,
    /// How many day files there are.
    pub(crate) files: u64,
    /// Whether the directory is there.
    pub(crate) present: bool,
}

impl Walk {
    /// A walk over these days' files that compares every line with the anchor.
    pub(crate) fn new(paths: &Paths, files: day::DayFiles, anchor: Anchor) -> Self {
        Self {
            lines: RawLines::new(&paths.audit, files.days),
            walker: Walker::default(),
            anchor,
            days: Vec::new(),
            torn: None,
            misnamed: files.misnamed,
        }
    }

    /// Takes one more line. Gives the members that are settled by it, or none at the end.
    pub(crate) fn step(&mut self) -> Result<Option<Vec<Arc<Member>>>, WalkError> {
        if let Some(file) = self.misnamed.take() {
            return Err(WalkError::Broken(Broken {
                file,
                line: 1,
                offset: 0,
                seq: None,
                reason: "its name is no day, so it has no place in the order of the log".to_owned(),
            }));
        }
        let Some(raw) = self.lines.next()? else {
            let settled = self.walker.settle();
            self.compare(&settled)?;
            return Ok(if settled.is_empty() {
                None
            } else {
                Some(settled)
            });
        };
        if let Some(torn) = &self.torn {
            let reason = "it has no newline and is not the last line of the log";
            return Err(Broken::at(&torn.place, None, reason).into());
        }
        if raw.too_long() {
            let reason = format!("it is longer than {} bytes", crate::MAX_LINE);
            return Err(self.first_bad(Broken::at(&raw.place, None, reason)));
        }
        if !raw.ended {
            self.torn = Some(raw);
            return Ok(Some(Vec::new()));
        }
        match self.walker.take(&raw) {
            Ok(settled) => {
                self.compare(&settled)?;
                Ok(Some(settled))
            }
            Err(fault) => Err(self.blame(fault)),
        }
    }

    /// The hash that the anchor holds for a line, if it names it.
    fn anchored(&self, seq: u64) -> Option<Hash32> {
        let lines = &self.anchor.lines;
        let index = lines.binary_search_by_key(&seq, |line| line.seq).ok()?;
        lines.get(index).map(|line| line.hash)
    }

    fn against_anchor(&self, member: &Member) -> Result<bool, Broken> {
        match self.anchored(member.line.seq) {
            Some(hash) if hash != member.hash => Err(Broken::at(
                &member.place,
                Some(member.line.seq),
                "its hash is not the one in the anchor: it, or a line before it, was rewritten",
            )),
            found => Ok(found.is_some()),
        }
    }

    fn compare(&mut self, settled: &[Arc<Member>]) -> Result<(), Broken> {
        for member in settled {
            if self.against_anchor(member)? {
                self.days.push((*member.place.day).clone());
            }
        }
        Ok(())
    }

    /// The bad line, or a line before it that passed but is not the one that the anchor names.
    fn first_bad(&self, broken: Broken) -> WalkError {
        for member in self.walker.now.unsettled() {
            if let Err(earlier) = self.against_anchor(member) {
                return earlier.into();
            }
        }
        broken.into()
    }

    /// Finds which line to name. Where all that is wrong is that a line's `prev` is not the hash of the line before, one
    /// of the two was changed: the earlier, if the anchor or the line that follows still knows the later by its hash.
    fn blame(&mut self, fault: Fault) -> WalkError {
        let later = Broken::at(&fault.place, fault.seq, fault.reason);
        let (Some(hash), Some(before), Some(seq)) = (
            fault.unlinked,
            self.walker.now.unsettled().last().cloned(),
            fault.seq,
        ) else {
            return self.first_bad(later);
        };
        let known = self.anchored(seq) == Some(hash)
            || matches!(self.lines.next(), Ok(Some(raw))
                if serde_json::from_slice::<Line>(&raw.bytes).is_ok_and(|line| line.prev == hash));
        if known && self.anchored(before.line.seq).is_none() {
            let reason = "its hash is not the one that the next line holds: it was changed";
            return self.first_bad(Broken::at(&before.place, Some(before.line.seq), reason));
        }
        self.first_bad(later)
    }

    /// Checks, after the last step, that the log reaches as far as the anchor.
    fn reach(&self, anchor_name: &str) -> Result<(), Broken> {
        let state = &self.walker.now;
        let Some(last) = self.anchor.lines.last() else {
            return Ok(());
        };
        if last.seq < state.next {
            return Ok(());
        }
        let missing = Some(state.next);
        if let Some(outside) = state.outside.front() {
            let reason = format!("{}, and the anchor names seq {}", outside.reason, last.seq);
            return Err(Broken::at(&outside.place, missing, reason));
        }
        if let Some(torn) = &self.torn {
            let reason = format!(
                "it has no newline, and the anchor names seq {}, so it was whole once",
                last.seq
            );
            return Err(Broken::at(&torn.place, missing, reason));
        }
        if let Some(end) = &self.lines.end {
            let reason = format!("the log ends here, but the anchor names seq {}", last.seq);
            return Err(Broken::at(end, missing, reason));
        }
        Err(Broken {
            file: anchor_name.to_owned(),
            line: self.anchor.lines.len() as u64,
            offset: 0,
            seq: Some(last.seq),
            reason: format!("it names seq {}, but the log has no file", last.seq),
        })
    }
}

/// Walks over the whole log and its anchor.
///
/// The anchor is read first: a log that grows meanwhile is then ahead of it, which is normal. Only an anchor that named
/// nothing cannot be told from one that is yet to name its first line, so that is looked at again.
pub(crate) fn whole(paths: &Paths) -> Result<End, WalkError> {
    let mut anchor = anchor::read(&paths.anchor)?;
    loop {
        let end = against(paths, anchor)?;
        let Some(reason) = end.silence() else {
            return Ok(end);
        };
        let again = anchor::read(&paths.anchor)?;
        if again == end.anchor {
            return Err(WalkError::Broken(Broken {
                file: anchor::name(&paths.anchor),
                line: 1,
                offset: 0,
                seq: None,
                reason,
            }));
        }
        anchor = again;
    }
}

/// Walks over the whole log with an anchor that was read before.
fn against(paths: &Paths, anchor: Option<Anchor>) -> Result<End, WalkError> {
    let files = day::list(&paths.audit)?;
    let (count, present) = (files.days.len() as u64, files.present);
    let mut walk = Walk::new(paths, files, anchor.clone().unwrap_or_default());
    while walk.step()?.is_some() {}
    walk.reach(&anchor::name(&paths.anchor))?;
    Ok(End {
        state: walk.walker.now,
        torn: walk.torn,
        last: walk.lines.last,
        anchor,
        days: walk.days,
        files: count,
        present,
    })
}

impl End {
    /// Why this log cannot have an anchor that names nothing, if it has such a one.
    fn silence(&self) -> Option<String> {
        let records = self.state.next - self.state.kept;
        match &self.anchor {
            None if self.last.is_some() => {
                Some("it is missing, and the log is not empty".to_owned())
            }
            // The writer makes the anchor's first line durable before it writes a second record, recovery entries apart.
            Some(anchor) if anchor.lines.is_empty() && records > 1 => Some(format!(
                "it names no line, and the log has {}",
                self.state.next
            )),
            _ => None,
        }
    }
}
