//! The answer while it grows: which matches are shown, how much there may be of it, and the last lines. Opens nothing.

use std::fmt::Write as _;

use super::files::LeftOut;

/// Bytes of rows after which no further match is shown.
const BYTES: usize = 160 * 1024;
/// Faults that are told; the rest is counted.
const FAULTS: usize = 10;

/// What the call asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Matches that are passed over.
    pub(super) offset: u64,
    /// Matches that are shown.
    pub(super) limit: usize,
    /// Lines shown before and after each.
    pub(super) context: usize,
}

/// What becomes of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the first that is shown.
    Before,
    /// Shown.
    Shown,
    /// After the last that is shown: the answer is complete.
    After,
}

/// An answer in the making.
#[derive(Debug)]
pub(super) struct Answer {
    bounds: Bounds,
    text: String,
    /// Matches of the files before the current one.
    matches: u64,
    files: u64,
    with_matches: u64,
    more: bool,
    late: bool,
    faults: Vec<String>,
    more_faults: u64,
}

impl Answer {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            text: String::new(),
            matches: 0,
            files: 0,
            with_matches: 0,
            more: false,
            late: false,
            faults: Vec::new(),
            more_faults: 0,
        }
    }

    pub(super) const fn context(&self) -> usize {
        self.bounds.context
    }

    /// What becomes of a match before which the current file has `matches`, of which `bytes` of rows were made.
    pub(super) fn place(&self, matches: u64, bytes: usize) -> Place {
        let number = self.matches + matches;
        if number < self.bounds.offset {
            return Place::Before;
        }
        let full = self.text.len() + bytes >= BYTES;
        if number - self.bounds.offset >= self.bounds.limit as u64 || full {
            Place::After
        } else {
            Place::Shown
        }
    }

    /// The current file had so many `matches` and these `rows`; `more` if it has one that is not shown.
    pub(super) fn file(&mut self, matches: u64, rows: &str, more: bool) {
        self.files += 1;
        self.matches += matches;
        self.with_matches += u64::from(matches > 0);
        if self.bounds.context > 0 && !self.text.is_empty() && !rows.is_empty() {
            self.text.push_str("--\n");
        }
        self.text.push_str(rows);
        self.more |= more;
    }

    /// Something could not be searched, as a sentence.
    pub(super) fn fault(&mut self, fault: String) {
        if self.faults.len() < FAULTS {
            self.faults.push(fault);
        } else {
            self.more_faults += 1;
        }
    }

    pub(super) const fn time_is_up(&mut self) {
        self.late = true;
    }

    /// Whether nothing can be added.
    pub(super) const fn is_complete(&self) -> bool {
        self.more || self.late
    }

    /// The whole answer.
    pub(super) fn finish(mut self, left_out: &LeftOut) -> String {
        for fault in std::mem::take(&mut self.faults) {
            self.note(&fault);
        }
        if self.more_faults > 0 {
            self.note(&format!("{} more that were not searched", self.more_faults));
        }
        if left_out.hidden > 0 {
            let hidden = counted(left_out.hidden, "hidden entry", "hidden entries");
            self.note(&format!("{hidden} not searched: hidden = true"));
        }
        if left_out.rules {
            self.note("what .gitignore and .ignore name was not searched: ignored = true");
        }
        let last = self.last();
        self.note(&last);
        self.text
    }

    fn last(&self) -> String {
        let Bounds { offset, .. } = self.bounds;
        let files = counted(self.files, "file", "files");
        let shown = self.matches.saturating_sub(offset);
        if self.late {
            let found = match shown {
                0 => "none".to_owned(),
                _ => format!("{} to {}", offset + 1, self.matches),
            };
            return format!(
                "the time was up after {files}, matches shown: {found}; search a subdirectory, or fewer files with globs"
            );
        }
        if self.more {
            return format!(
                "matches {} to {} shown, more follow: offset = {}, or search for less",
                offset + 1,
                self.matches,
                self.matches
            );
        }
        let matches = match self.matches {
            0 => return format!("no match in {files}"),
            count => counted(count, "match", "matches"),
        };
        let before = if offset > 0 {
            format!(", the first {} not shown", offset.min(self.matches))
        } else {
            String::new()
        };
        format!("{matches} in {} of {files}{before}", self.with_matches)
    }

    fn note(&mut self, note: &str) {
        let _ = writeln!(self.text, "[fs_search: {note}]");
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
