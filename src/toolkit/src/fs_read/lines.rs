//! A range of lines of decoded text, cut where one answer ends.

use std::io::Read;
use std::path::Path;

use super::ReadError;
use crate::failure::SystemError;
use crate::read::decode::{Charset, Decoder};
use crate::visible::visible_path;

/// Lines of one answer, unless the call says less or more.
const LINES: u64 = 2000;
/// Bytes of text after which no further line is begun.
const BYTES: usize = 160 * 1024;
/// Characters of one line that are shown.
const LINE: u64 = 4000;
/// Characters of a cut line that are passed over in search of its end.
const PATIENCE: u64 = 64 * 1024 * 1024;

/// Shows at most `limit` lines from line `first`, counted from 1, and says in last lines what is not shown as it is.
///
/// # Errors
/// Reading failed, or there is no such line.
pub(super) fn show<R: Read>(
    path: &Path,
    mut decoder: Decoder<R>,
    marked: bool,
    (first, limit): (u64, Option<u64>),
) -> Result<String, ReadError> {
    let mut page = Page::new(first, limit.unwrap_or(LINES));
    while page.stopped.is_none()
        && decoder
            .next_piece()
            .map_err(|error| SystemError::from_io("read", path, &error))?
    {
        page.take(decoder.text(), decoder.replaced());
    }
    page.end_of_line_cut();
    let has = page.complete + u64::from(page.begun);
    if page.stopped.is_none() && has > 0 && first > has {
        return Err(ReadError::PastEnd {
            path: visible_path(path),
            offset: first,
            has,
            unit: "lines",
        });
    }
    Ok(page.finish(decoder.charset(), marked, has == 0))
}

/// Why reading stopped before the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// A further line begins, which was not asked for or does not fit.
    More,
    /// A line has no end within [`PATIENCE`].
    Endless,
}

#[derive(Debug)]
struct Page {
    first: u64,
    limit: u64,
    text: String,
    /// Lines whose end was seen.
    complete: u64,
    /// Whether characters of a further line were seen.
    begun: bool,
    /// Characters of the line that were met, shown or not.
    width: u64,
    cut: u64,
    replaced: u64,
    first_replaced: u64,
    stopped: Option<Stop>,
}

impl Page {
    const fn new(first: u64, limit: u64) -> Self {
        Self {
            first,
            limit,
            text: String::new(),
            complete: 0,
            begun: false,
            width: 0,
            cut: 0,
            replaced: 0,
            first_replaced: 0,
            stopped: None,
        }
    }

    /// The number of the line that the next character belongs to.
    const fn line(&self) -> u64 {
        self.complete + 1
    }

    fn take(&mut self, piece: &str, replaced: &[usize]) {
        let mut at = 0;
        while at < piece.len() {
            let shown = self.line() >= self.first;
            let full =
                self.line() - self.first.min(self.line()) >= self.limit || self.text.len() >= BYTES;
            if shown && !self.begun && full {
                self.stopped = Some(Stop::More);
                return;
            }
            let rest = &piece[at..];
            let length = rest.find('\n').unwrap_or(rest.len());
            if shown {
                self.count(replaced, at, at + length);
                self.append(&rest[..length]);
                if self.width > LINE + PATIENCE {
                    self.stopped = Some(Stop::Endless);
                    return;
                }
            }
            self.begun = true;
            at += length;
            if length < rest.len() {
                self.end_of_line_cut();
                if shown {
                    self.text.push('\n');
                }
                self.complete += 1;
                self.begun = false;
                self.width = 0;
                at += 1;
            }
        }
    }

    fn append(&mut self, part: &str) {
        let room = usize::try_from(LINE.saturating_sub(self.width)).unwrap_or(0);
        let end = part
            .char_indices()
            .nth(room)
            .map_or(part.len(), |(at, _)| at);
        self.text.push_str(&part[..end]);
        self.width += part.chars().count() as u64;
    }

    fn count(&mut self, replaced: &[usize], from: usize, to: usize) {
        let start = replaced.partition_point(|at| *at < from);
        let end = replaced.partition_point(|at| *at < to);
        if start < end && self.replaced == 0 {
            self.first_replaced = self.line();
        }
        self.replaced += (end - start) as u64;
    }

    fn end_of_line_cut(&mut self) {
        if self.width > LINE {
            let hidden = self.width - LINE;
            let over = if self.stopped == Some(Stop::Endless) {
                "more than "
            } else {
                ""
            };
            self.text
                .push_str(&format!("[… {over}{hidden} characters cut]"));
            self.cut += 1;
            self.width = 0;
        }
    }

    fn finish(mut self, charset: Charset, marked: bool, empty: bool) -> String {
        let mut notes = Vec::new();
        if marked && charset == Charset::Utf8 {
            notes.push(
                "the file begins with a UTF-8 byte order mark, which is not shown".to_owned(),
            );
        } else if marked {
            notes.push(format!("decoded from {}", charset.name()));
        }
        if empty {
            notes.push("the file is empty".to_owned());
        }
        if self.replaced > 0 {
            let way = match charset {
                Charset::Utf8 => {
                    "encoding = \"latin1\" shows each byte as a character, \"hex\" the bytes"
                }
                _ => "encoding = \"hex\" shows the bytes",
            };
            notes.push(format!(
                "invalid {} was replaced by U+FFFD {} times, first in line {}: {way}",
                charset.name(),
                self.replaced,
                self.first_replaced
            ));
        }
        if self.cut > 0 {
            notes.push(format!(
                "{} lines were cut after {LINE} characters: encoding = \"hex\" or \"base64\" reads any range of bytes",
                self.cut
            ));
        }
        match self.stopped {
            Some(Stop::More) => notes.push(format!(
                "lines {} to {} shown, more follow: offset = {}",
                self.first,
                self.complete,
                self.line()
            )),
            Some(Stop::Endless) => notes.push(format!(
                "line {} has no end in {PATIENCE} characters, so nothing after it was read",
                self.line()
            )),
            None => {}
        }
        if !notes.is_empty() && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        for note in notes {
            self.text.push_str(&format!("[fs_read: {note}]\n"));
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8], first: u64, limit: Option<u64>) -> Result<String, ReadError> {
        show(
            Path::new("/f"),
            Decoder::new(bytes, Charset::Utf8),
            false,
            (first, limit),
        )
    }

    #[test]
    fn a_whole_text_comes_back_unchanged() {
        for text in ["a\n", "a", "a\r\nb\n", "\n", "\n\n", "a\n\nb"] {
            assert_eq!(shown(text.as_bytes(), 1, None).unwrap(), text);
        }
    }

    #[test]
    fn a_range_says_how_to_go_on_only_if_there_is_more() {
        let text = b"1\n2\n3\n4\n";
        assert_eq!(
            shown(text, 2, Some(2)).unwrap(),
            "2\n3\n[fs_read: lines 2 to 3 shown, more follow: offset = 4]\n"
        );
        assert_eq!(shown(text, 4, Some(2)).unwrap(), "4\n");
        assert_eq!(shown(text, 3, Some(2)).unwrap(), "3\n4\n");
        assert_eq!(shown(text, 3, Some(u64::MAX)).unwrap(), "3\n4\n");
    }

    #[test]
    fn an_offset_past_the_end_names_the_number_of_lines() {
        let error = shown(b"1\n2\n", 3, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "offset = 3 is past the end: /f has 2 lines"
        );
        let error = shown(b"1\n2", u64::MAX, None).unwrap_err();
        assert!(error.to_string().ends_with("/f has 2 lines"));
        assert_eq!(shown(b"1\n2", 2, None).unwrap(), "2");
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_not() {
        let text = format!("{}\nshort\n", "\u{e9}".repeat(4001));
        let answer = shown(text.as_bytes(), 1, None).unwrap();
        assert!(answer.starts_with(&"\u{e9}".repeat(4000)));
        assert!(answer.contains("\u{e9}[… 1 characters cut]\nshort\n[fs_read: 1 lines were cut"));
        let exact = format!("{}\n", "x".repeat(4000));
        assert_eq!(shown(exact.as_bytes(), 1, None).unwrap(), exact);
    }

    #[test]
    fn an_endless_line_is_given_up() {
        let endless = std::io::repeat(b'x');
        let answer = show(
            Path::new("/f"),
            Decoder::new(endless, Charset::Utf8),
            false,
            (1, None),
        )
        .unwrap();
        assert!(answer.contains("[… more than 671"), "{}", &answer[4000..]);
        assert!(answer.ends_with("characters, so nothing after it was read]\n"));
    }

    #[test]
    fn many_long_lines_stop_at_the_size_of_one_answer_and_can_be_continued() {
        let line = format!("{}\n", "y".repeat(3999));
        let text = line.repeat(100);
        let answer = shown(text.as_bytes(), 1, None).unwrap();
        assert!(answer.len() < BYTES + 8000);
        assert!(answer.ends_with("[fs_read: lines 1 to 41 shown, more follow: offset = 42]\n"));
        assert!(
            shown(text.as_bytes(), 42, None)
                .unwrap()
                .contains("lines 42 to 82")
        );
    }

    #[test]
    fn replacements_outside_the_range_are_not_spoken_of() {
        let text = b"\xff\nb\n\xfe\n";
        assert_eq!(
            shown(text, 2, Some(1)).unwrap().matches("U+FFFD").count(),
            0
        );
        let answer = shown(text, 1, None).unwrap();
        assert!(
            answer.contains("U+FFFD 2 times, first in line 1"),
            "{answer}"
        );
    }

    #[test]
    fn an_empty_file_is_said_to_be_empty() {
        assert_eq!(
            shown(b"", 1, None).unwrap(),
            "[fs_read: the file is empty]\n"
        );
        assert_eq!(
            shown(b"", 7, None).unwrap(),
            "[fs_read: the file is empty]\n"
        );
    }
}
