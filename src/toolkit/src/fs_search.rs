//! `fs_search`: lines of files that hold a text or match a pattern, with where they are.
//!
//! The search itself, the walk and the rules of ignore files are those of ripgrep's libraries; what is here says which
//! files, how much of them is shown, and how to get the rest.

mod answer;
mod files;
mod line;
mod matches;

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use rustix::fs::{FileType, stat};
use serde::Deserialize;

use self::answer::{Answer, Bounds};
use self::files::{Choice, Files, GlobError};
use self::matches::FileMatches;
use crate::failure::{Failure, SystemError};
use crate::input::{PathArgument, parse};
use crate::read::{OpenError, kind, regular, sample};
use crate::visible::visible_path;

/// Why nothing was searched.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// A step failed.
    #[error(transparent)]
    System(#[from] SystemError),
    /// It is no file that can be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Nothing to look for.
    #[error("pattern is empty: give a text or a regular expression")]
    Empty,
    /// More than a line.
    #[error("pattern holds a line end: a search goes line by line, so look for one of the lines")]
    LineEnd,
    /// No regular expression.
    #[error(
        "pattern is no regular expression: {0}; literal = true looks for the text as it stands"
    )]
    Pattern(String),
    /// No glob.
    #[error("{0}")]
    Glob(#[from] GlobError),
    /// A number that is not served.
    #[error("{name} = {value} is out of range: from {least} to {most}")]
    Range {
        /// The argument.
        name: &'static str,
        /// What was asked for.
        value: u64,
        /// The smallest value.
        least: u64,
        /// The largest value.
        most: u64,
    },
}

/// Matches of one answer, unless the call says otherwise.
const MATCHES: u64 = 200;
/// The most matches of one answer.
const MOST_MATCHES: u64 = 2000;
/// The most lines of context before and after a match.
const MOST_CONTEXT: u64 = 10;
/// How long a search goes on. Less than a tool is given by default, so that it can still answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest line that is searched, in bytes; a file with a longer one is named.
const MOST_LINE: usize = 64 * 1024 * 1024;
/// What a compiled pattern may take, in bytes.
const MOST_PATTERN: usize = 32 * 1024 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: PathArgument,
    pattern: String,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    globs: Vec<String>,
    context: Option<u64>,
    limit: Option<u64>,
    offset: Option<u64>,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    ignored: bool,
}

pub(crate) fn run(input: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    let arguments: Arguments = parse(input)?;
    let text = search(&arguments, Instant::now() + PATIENCE)?;
    out.write_all(text.as_bytes()).map_err(Failure::Output)
}

fn search(arguments: &Arguments, until: Instant) -> Result<String, SearchError> {
    let path = arguments.path.as_path();
    let context = in_range("context", arguments.context, 0, 0, MOST_CONTEXT)?;
    let limit = in_range("limit", arguments.limit, MATCHES, 1, MOST_MATCHES)?;
    let matcher = matcher(arguments)?;
    let choice = Choice {
        hidden: arguments.hidden,
        ignored: arguments.ignored,
        globs: &arguments.globs,
    };
    let seen = stat(path).map_err(|errno| SystemError::new("search", path, errno))?;
    if FileType::from_raw_mode(seen.st_mode) != FileType::Directory {
        // Says what it is, if it is no file.
        regular(path)?;
    }
    let mut files = Files::below(path, choice)?;
    let mut searcher = searcher(context);
    let mut answer = Answer::new(Bounds {
        offset: arguments.offset.unwrap_or(0),
        limit,
        context,
    });
    for file in &mut files {
        if Instant::now() >= until {
            answer.time_is_up();
            break;
        }
        match file {
            Ok(file) => one(&file, &mut searcher, &matcher, until, &mut answer),
            Err(fault) => answer.fault(fault),
        }
        if answer.is_complete() {
            break;
        }
    }
    Ok(answer.finish(&files.left_out()))
}

/// Searches one file. What goes wrong with it is told in the answer: the other files are searched all the same.
fn one(
    path: &Path,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    until: Instant,
    answer: &mut Answer,
) {
    let fault = |error: &dyn std::fmt::Display| format!("not searched: {error}");
    let mut file = match regular(path) {
        Ok(file) => file,
        Err(error) => return answer.fault(fault(&error)),
    };
    let begins = sample(path, &mut file).and_then(|sample| {
        file.seek(SeekFrom::Start(0))
            .map_err(|error| SystemError::from_io("read", path, &error))?;
        Ok(sample)
    });
    let begins = match begins {
        Ok(begins) => begins,
        Err(error) => return answer.fault(fault(&error)),
    };
    let binary = kind::byte_order_mark(&begins).is_none() && kind::binary(&begins).is_some();
    let mut matches = FileMatches::new(path, matcher, answer, binary);
    let timed = Timed { file, until };
    let searched = searcher.search_reader(matcher, timed, &mut matches);
    matches.finish();
    match searched {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::TimedOut => answer.time_is_up(),
        Err(error) => answer.fault(format!(
            "{} was not searched to its end: {error}",
            visible_path(path)
        )),
    }
}

fn in_range(
    name: &'static str,
    value: Option<u64>,
    default: u64,
    least: u64,
    most: u64,
) -> Result<usize, SearchError> {
    let value = value.unwrap_or(default);
    if !(least..=most).contains(&value) {
        return Err(SearchError::Range {
            name,
            value,
            least,
            most,
        });
    }
    Ok(usize::try_from(value).unwrap_or(usize::MAX))
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, SearchError> {
    let pattern = arguments.pattern.as_str();
    if pattern.is_empty() {
        return Err(SearchError::Empty);
    }
    if pattern.contains(['\n', '\r']) {
        return Err(SearchError::LineEnd);
    }
    RegexMatcherBuilder::new()
        .fixed_strings(arguments.literal)
        .case_insensitive(arguments.ignore_case)
        .multi_line(true)
        .crlf(true)
        .size_limit(MOST_PATTERN)
        .dfa_size_limit(MOST_PATTERN)
        .build(pattern)
        .map_err(|error| SearchError::Pattern(why(&error.to_string())))
}

/// The last line of what the library says: before it, it draws an arrow below the pattern.
fn why(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::convert(0))
        .heap_limit(Some(MOST_LINE))
        .build()
}

/// A reader that gives up when the time is up, also in the middle of a large file without a match.
struct Timed<R> {
    file: R,
    until: Instant,
}

impl<R: Read> Read for Timed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(path: &Path) -> Arguments {
        let text = serde_json::json!({"path": path, "pattern": "x"}).to_string();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn when_the_time_is_up_the_answer_says_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("a"), "x\n").unwrap();
        let arguments = arguments(home.path());
        let late = search(&arguments, Instant::now()).unwrap();
        assert!(late.contains("the time was up"), "{late}");
        assert!(late.contains("search a subdirectory"), "{late}");
        let early = search(&arguments, Instant::now() + PATIENCE).unwrap();
        assert!(early.contains("1 match in 1 of 1 file"), "{early}");
    }

    #[test]
    fn a_large_file_is_left_in_the_middle() {
        let mut timed = Timed {
            file: io::repeat(b'x'),
            until: Instant::now() + Duration::from_millis(5),
        };
        let mut buffer = [0; 64];
        let error = loop {
            match timed.read(&mut buffer) {
                Ok(read) => assert_eq!(read, 64),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
