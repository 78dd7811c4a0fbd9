//! The matches of one file as rows: `PATH:LINE:TEXT`, and `PATH-LINE-TEXT` for the lines around them.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::answer::{Answer, Place};
use super::line::shown;
use crate::visible::visible_path;

/// What is found in one file. Its rows join the answer only at its end, because it may turn out to be binary.
pub(super) struct FileMatches<'a> {
    path: String,
    matcher: &'a RegexMatcher,
    answer: &'a mut Answer,
    rows: String,
    /// Lines that are shown if the next match is.
    before: VecDeque<String>,
    matches: u64,
    /// Whether the latest match was shown, so that the lines after it are.
    shown: bool,
    /// Whether lines lie between the last row and the next.
    gap: bool,
    binary: bool,
    more: bool,
}

impl<'a> FileMatches<'a> {
    /// `binary` if its first bytes are those of a file that is no text.
    pub(super) fn new(
        path: &Path,
        matcher: &'a RegexMatcher,
        answer: &'a mut Answer,
        binary: bool,
    ) -> Self {
        Self {
            path: visible_path(path),
            matcher,
            answer,
            rows: String::new(),
            before: VecDeque::new(),
            matches: 0,
            shown: false,
            gap: false,
            binary,
            more: false,
        }
    }

    /// Adds what was found to the answer.
    pub(super) fn finish(self) {
        if !self.binary {
            self.answer.file(self.matches, &self.rows, self.more);
            return;
        }
        // One match, however often it was found, and none of its bytes.
        let found = self.matches > 0 || self.more;
        let (row, after) = match self.answer.place(0, 0) {
            Place::Shown if found => {
                let row = format!("{}: a binary file, which matches\n", self.path);
                (row, false)
            }
            place => (String::new(), found && place == Place::After),
        };
        self.answer.file(u64::from(found && !after), &row, after);
    }

    fn row(&self, mark: char, line: Option<u64>, text: &str) -> String {
        let line = line.unwrap_or(0);
        format!("{}{mark}{line}{mark}{text}\n", self.path)
    }
}

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.binary {
            self.matches += 1;
            return Ok(false);
        }
        match self.answer.place(self.matches, self.rows.len()) {
            Place::After => {
                self.more = true;
                return Ok(false);
            }
            Place::Before => {
                self.before.clear();
                self.shown = false;
            }
            Place::Shown => {
                if self.gap && !self.rows.is_empty() {
                    self.rows.push_str("--\n");
                }
                self.rows.extend(self.before.drain(..));
                let line = found.bytes();
                let at = self.matcher.find(line).ok().flatten();
                let text = shown(line, at.map_or(0, |at| at.start()));
                let row = self.row(':', found.line_number(), &text);
                self.rows.push_str(&row);
                self.shown = true;
            }
        }
        self.gap = false;
        self.matches += 1;
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        let row = self.row('-', line.line_number(), &shown(line.bytes(), 0));
        if self.shown && *line.kind() == SinkContextKind::After {
            self.rows.push_str(&row);
            return Ok(true);
        }
        // Lines after a match that is passed over may be the lines before one that is shown.
        self.before.push_back(row);
        if self.before.len() > self.answer.context() {
            self.before.pop_front();
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.gap = true;
        self.before.clear();
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary = true;
        // What was found before is enough to name it.
        Ok(self.matches == 0 && !self.more)
    }
}
