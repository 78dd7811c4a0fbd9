//! What makes a line continue the chain, and how torn lines are told from broken ones. Works on lines that are handed
//! in; knows no files and no anchor.
//!
//! A crash leaves at most a torn line at the log's end. The next start ends it with a newline and appends a recovery
//! entry; a crash in the middle of that leaves another. So a stretch of bytes that is no record is *outside* the
//! chain until a recovery entry announces it, each stretch by one entry, in order, before anything else happens.
//!
//! A torn line can be a whole record that lacks nothing but its newline. Once ended it looks like a member of the
//! chain, and only a recovery entry right behind it tells that it is none. Therefore two readings are kept while the
//! lines pass: in [`Walker::now`] the last line is what it seems, in [`Walker::other`] it is outside. A recovery entry
//! that announces the first stretch of the other reading, and continues its chain, makes that reading the true one.
//! The two never fit the same entry, since they want different sequences or different hashes; and a start that
//! appends to what `now` says, with its torn tail outside, writes exactly what a walker accepts.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::{Entry, Hash32, Line, Timestamp};
use sha2::{Digest, Sha256};

use crate::day::Day;
use crate::lines::{Place, RawLine};

/// A stretch of bytes in one file that no recovery entry has announced yet.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    /// Where it begins.
    pub(crate) place: Place,
    /// Its bytes, with the newlines in it but without the one that ends it.
    pub(crate) length: u64,
    /// Why its first line is no record.
    pub(crate) reason: String,
    hasher: Sha256,
}

impl Outside {
    /// SHA-256 of its bytes.
    pub(crate) fn sha256(&self) -> Hash32 {
        Hash32::new(self.hasher.clone().finalize().into())
    }

    /// The entry that announces it.
    pub(crate) fn announcement(&self) -> Entry {
        Entry::Recovery {
            file: self.place.day.file_name(),
            offset: self.place.offset,
            length: self.length,
            sha256: self.sha256(),
        }
    }
}

/// A line of the chain.
#[derive(Debug)]
pub(crate) struct Member {
    /// Where it stands.
    pub(crate) place: Place,
    /// SHA-256 of its stored bytes.
    pub(crate) hash: Hash32,
    /// What it says.
    pub(crate) line: Line,
}

/// What the lines so far amount to.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// The sequence of the next line, which is also how many members there are.
    pub(crate) next: u64,
    /// The hash that the next line must hold.
    pub(crate) prev: Hash32,
    /// The time of the last member.
    pub(crate) time: Option<Timestamp>,
    /// How many stretches were announced.
    pub(crate) kept: u64,
    /// Stretches that were not.
    pub(crate) outside: VecDeque<Outside>,
    /// Members that a later recovery entry could still put outside.
    open: VecDeque<Arc<Member>>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            next: 0,
            prev: Hash32::ZERO,
            time: None,
            kept: 0,
            outside: VecDeque::new(),
            open: VecDeque::new(),
        }
    }
}

/// A line that breaks the chain.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Where it stands.
    pub(crate) place: Place,
    /// Its sequence, if it has one that can be believed.
    pub(crate) seq: Option<u64>,
    /// What is wrong, in plain words.
    pub(crate) reason: String,
    /// The hash of the line, if all that is wrong is that its `prev` and the line before do not agree.
    pub(crate) unlinked: Option<Hash32>,
}

impl State {
    /// This state with the bytes of `raw` outside the chain; `hasher` has taken exactly those bytes.
    fn with_outside(&self, raw: &RawLine, hasher: &Sha256, reason: String) -> Self {
        let mut state = self.clone();
        let length = raw.bytes.len() as u64;
        match state.outside.back_mut() {
            Some(last)
                if last.place.day == raw.place.day
                    && last.place.offset + last.length + 1 == raw.place.offset =>
            {
                last.hasher.update(b"\n");
                last.hasher.update(&raw.bytes);
                last.length += 1 + length;
            }
            _ => state.outside.push_back(Outside {
                place: raw.place.clone(),
                length,
                reason,
                hasher: hasher.clone(),
            }),
        }
        state
    }

    /// This state with a torn last line outside the chain.
    pub(crate) fn with_torn(&self, raw: &RawLine) -> Self {
        let hasher = Sha256::new_with_prefix(&raw.bytes);
        self.with_outside(raw, &hasher, "it has no newline".to_owned())
    }

    /// Checks that a line continues the chain.
    fn fits(&self, raw: &RawLine, line: &Line, hash: Hash32) -> Result<(), Fault> {
        let fault = |reason: String| Fault {
            place: raw.place.clone(),
            seq: Some(line.seq),
            reason,
            unlinked: None,
        };
        let day = Day::of(line.time);
        if day != *raw.place.day {
            return Err(fault(format!(
                "its time {} belongs into {}",
                line.time,
                day.file_name()
            )));
        }
        if line.seq > self.next {
            return Err(fault(format!(
                "its seq is {} where {} must follow: lines before it are missing",
                line.seq, self.next
            )));
        }
        if line.seq < self.next {
            return Err(fault(format!(
                "its seq is {} where {} must follow",
                line.seq, self.next
            )));
        }
        if line.prev != self.prev {
            let reason = if self.next == 0 {
                "it is the first line, and its prev is not 64 zeros"
            } else {
                "its prev is not the hash of the line before"
            };
            return Err(Fault {
                unlinked: Some(hash),
                ..fault(reason.to_owned())
            });
        }
        match self.time {
            Some(before) if line.time < before => Err(fault(format!(
                "its time {} is before that of the line before, {before}",
                line.time
            ))),
            _ => Ok(()),
        }
    }

    /// Whether a line announces the first stretch outside, and continues the chain.
    fn announced_by(&self, raw: &RawLine, line: &Line, hash: Hash32) -> bool {
        self.outside
            .front()
            .is_some_and(|front| front.announcement() == line.entry)
            && self.fits(raw, line, hash).is_ok()
    }

    /// This state with a line that fits as its last member.
    fn with_member(mut self, raw: &RawLine, line: Line, hash: Hash32) -> Self {
        self.next += 1;
        self.prev = hash;
        self.time = Some(line.time);
        self.open.push_back(Arc::new(Member {
            place: raw.place.clone(),
            hash,
            line,
        }));
        self
    }

    /// [`State::with_member`] for a line that announces the first stretch outside.
    fn with_announcement(mut self, raw: &RawLine, line: Line, hash: Hash32) -> Self {
        self.outside.pop_front();
        self.kept += 1;
        self.with_member(raw, line, hash)
    }

    /// The members that are not settled yet, in order.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.open.iter()
    }
}

/// Takes lines in order and says which are members of the chain.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    /// The reading in which the last line is what it seems.
    pub(crate) now: State,
    /// The reading in which it is outside the chain.
    other: Option<State>,
}

impl Walker {
    /// Takes the next line, which a newline ends, and gives the members that no later line can put outside.
    pub(crate) fn take(&mut self, raw: &RawLine) -> Result<Vec<Arc<Member>>, Fault> {
        let hasher = Sha256::new_with_prefix(&raw.bytes);
        let hash = Hash32::new(hasher.clone().finalize().into());
        let line = match serde_json::from_slice::<Line>(&raw.bytes) {
            Ok(line) => line,
            Err(error) => {
                self.now = self.now.with_outside(raw, &hasher, not_a_record(&error));
                self.other = None; // both readings are the same now
                return Ok(Vec::new());
            }
        };
        let other = self.now.with_outside(raw, &hasher, String::new());
        let recovery = matches!(line.entry, Entry::Recovery { .. });
        if let Some(reading) = self.other.take_if(|it| it.announced_by(raw, &line, hash)) {
            self.now = reading.with_announcement(raw, line, hash);
        } else if let Some(front) = self.now.outside.front() {
            if !self.now.announced_by(raw, &line, hash) {
                return Err(Fault {
                    place: front.place.clone(),
                    seq: None,
                    reason: format!(
                        "{}, and no recovery entry behind it announces it",
                        front.reason
                    ),
                    unlinked: None,
                });
            }
            self.now = std::mem::take(&mut self.now).with_announcement(raw, line, hash);
        } else {
            self.now.fits(raw, &line, hash)?;
            if recovery {
                return Err(Fault {
                    place: raw.place.clone(),
                    seq: Some(line.seq),
                    reason: "it announces a torn line that does not stand before it".to_owned(),
                    unlinked: None,
                });
            }
            self.now = std::mem::take(&mut self.now).with_member(raw, line, hash);
        }
        let other = self.other.insert(other);
        let mut settled = Vec::new();
        while let (Some(here), Some(there)) = (self.now.open.front(), other.open.front())
            && Arc::ptr_eq(here, there)
        {
            other.open.pop_front();
            settled.extend(self.now.open.pop_front());
        }
        Ok(settled)
    }

    /// The members that were left open, once no line follows.
    pub(crate) fn settle(&mut self) -> Vec<Arc<Member>> {
        self.other = None;
        self.now.open.drain(..).collect()
    }
}

/// Why bytes are no record; the words of the parser without its line number, which is always 1.
fn not_a_record(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("it is not a record ({what}, byte {})", error.column())
}
