//! The edit itself, on bytes: where a text occurs, and what stands there afterwards. Pure.
//!
//! Line ends: a model writes `\n`, files have `\r\n` too. If neither text of the edit holds a `\r`, a `\n` of the old one
//! stands for whichever line end the file has there, and those of the new one are written as the file writes them at that
//! place. If one does, both are taken to the byte.

/// An edit that can be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    /// The whole content afterwards.
    pub(super) content: Vec<u8>,
    /// The line, from 1 and before the edit, of each occurrence; at most [`NAMED`].
    pub(super) lines: Vec<u64>,
}

/// Why it cannot be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The old text is not there.
    Absent {
        /// The line where it would be if white space were all the same.
        similar: Option<u64>,
    },
    /// It is there, but not as often as it should.
    Times {
        /// How often, overlapping occurrences counted each.
        found: usize,
        /// The lines of the first [`NAMED`].
        lines: Vec<u64>,
    },
    /// It is there as often, but two of them share characters.
    Overlap {
        /// The line of the first of two.
        line: u64,
    },
    /// There would be more than [`MOST`] bytes.
    TooLarge,
}

/// Occurrences that are named by their line.
pub(super) const NAMED: usize = 10;
/// The largest content that an edit makes, in bytes.
pub(super) const MOST: usize = 64 * 1024 * 1024;

/// Replaces `old`, which must not be empty and must occur exactly `times` in `text`, by `new`.
pub(super) fn edit(text: &[u8], old: &str, new: &str, times: usize) -> Result<Edited, Problem> {
    let exact = old.contains('\r') || new.contains('\r');
    let view = View::of(text, exact);
    let (found, starts) = occurrences(&view.bytes, old.as_bytes(), times.max(NAMED));
    let lines = || view.lines(starts.iter().take(NAMED).copied());
    if found == 0 {
        let similar = similar(&view.bytes, old.as_bytes());
        return Err(Problem::Absent { similar });
    }
    if found != times {
        return Err(Problem::Times {
            found,
            lines: lines(),
        });
    }
    if let Some(pair) = starts.windows(2).find(|pair| pair[1] - pair[0] < old.len()) {
        let line = view.lines([pair[0]].into_iter()).first().copied();
        return Err(Problem::Overlap {
            line: line.unwrap_or(1),
        });
    }
    let with_returns = new.replace('\n', "\r\n");
    let longest = with_returns.len().saturating_mul(times);
    if longest.saturating_add(text.len()) > MOST {
        return Err(Problem::TooLarge);
    }
    let mut content = Vec::with_capacity(text.len());
    let mut copied = 0;
    for start in &starts {
        let end = start + old.len();
        content.extend_from_slice(&text[copied..view.offset(*start)]);
        let new = if view.returns_at(*start, end) {
            &with_returns
        } else {
            new
        };
        content.extend_from_slice(new.as_bytes());
        copied = view.offset(end);
    }
    content.extend_from_slice(&text[copied..]);
    Ok(Edited {
        content,
        lines: lines(),
    })
}

/// A text with each `\r\n` as one `\n`, and where those were.
struct View {
    bytes: Vec<u8>,
    /// Places in `bytes` of the line ends that are two bytes in the text, ascending.
    returns: Vec<usize>,
}

impl View {
    fn of(text: &[u8], exact: bool) -> Self {
        let mut view = Self {
            bytes: Vec::with_capacity(text.len()),
            returns: Vec::new(),
        };
        for (at, byte) in text.iter().enumerate() {
            if !exact && *byte == b'\r' && text.get(at + 1) == Some(&b'\n') {
                view.returns.push(view.bytes.len());
            } else {
                view.bytes.push(*byte);
            }
        }
        view
    }

    /// Where a place of the view is in the text.
    fn offset(&self, place: usize) -> usize {
        place + self.returns.partition_point(|line_end| *line_end < place)
    }

    /// Whether lines end in `\r\n` at the occurrence from `start` to `end`: its own first line end decides, else the next
    /// one, else the last one before it.
    fn returns_at(&self, start: usize, end: usize) -> bool {
        if self.returns.is_empty() {
            return false;
        }
        let is_end = |byte: &u8| *byte == b'\n';
        let own = self.bytes[start..end].iter().position(is_end);
        let place = own
            .map(|at| start + at)
            .or_else(|| self.bytes[end..].iter().position(is_end).map(|at| end + at))
            .or_else(|| self.bytes[..start].iter().rposition(is_end));
        place.is_some_and(|place| self.returns.binary_search(&place).is_ok())
    }

    /// The lines of ascending places, counted from 1.
    fn lines(&self, places: impl Iterator<Item = usize>) -> Vec<u64> {
        let (mut line, mut counted) = (1, 0);
        places
            .map(|place| {
                let passed = &self.bytes[counted..place];
                line += passed.iter().filter(|byte| **byte == b'\n').count() as u64;
                counted = place;
                line
            })
            .collect()
    }
}

/// How often `old` occurs in `text`, overlapping occurrences counted each, and where the first `keep` begin. Takes time
/// in proportion to the two lengths, whatever they hold (Knuth, Morris and Pratt).
fn occurrences(text: &[u8], old: &[u8], keep: usize) -> (usize, Vec<usize>) {
    // For each beginning of `old`, the length of the longest shorter beginning that it ends in.
    let mut borders = vec![0; old.len()];
    let mut border = 0;
    for at in 1..old.len() {
        while border > 0 && old[at] != old[border] {
            border = borders[border - 1];
        }
        border += usize::from(old[at] == old[border]);
        borders[at] = border;
    }
    let (mut found, mut starts, mut matched) = (0, Vec::new(), 0);
    for (at, byte) in text.iter().enumerate() {
        while matched > 0 && *byte != old[matched] {
            matched = borders[matched - 1];
        }
        matched += usize::from(*byte == old[matched]);
        if matched == old.len() {
            if starts.len() < keep {
                starts.push(at + 1 - matched);
            }
            found += 1;
            matched = borders[matched - 1];
        }
    }
    (found, starts)
}

/// The line where `old` would occur if every run of white space were one space.
fn similar(text: &[u8], old: &[u8]) -> Option<u64> {
    let (old, _) = squeezed(old);
    let old = old.trim_ascii();
    if old.is_empty() {
        return None;
    }
    let (squeezed, lines) = squeezed(text);
    let (_, starts) = occurrences(&squeezed, old, 1);
    starts.first().map(|start| u64::from(lines[*start]))
}

/// `text` with each run of white space as one space, and the line of every byte.
fn squeezed(text: &[u8]) -> (Vec<u8>, Vec<u32>) {
    let (mut bytes, mut lines, mut line) = (Vec::new(), Vec::new(), 1);
    for byte in text {
        let space = byte.is_ascii_whitespace();
        if !space || bytes.last() != Some(&b' ') {
            bytes.push(if space { b' ' } else { *byte });
            lines.push(line);
        }
        line += u32::from(*byte == b'\n');
    }
    (bytes, lines)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edited(text: &str, old: &str, new: &str, times: usize) -> Result<String, Problem> {
        edit(text.as_bytes(), old, new, times)
            .map(|edited| String::from_utf8(edited.content).unwrap())
    }

    #[test]
    fn what_occurs_once_is_replaced_and_the_rest_stays() {
        assert_eq!(edited("a b c", "b", "d", 1).unwrap(), "a d c");
        assert_eq!(edited("a\nb\nc", "a\nb\n", "", 1).unwrap(), "c");
        assert_eq!(edited("end", "end", "end\n", 1).unwrap(), "end\n");
        assert_eq!(edited("a*b.c", "*b.", "ü", 1).unwrap(), "aüc");
    }

    #[test]
    fn what_occurs_more_often_names_its_lines_and_is_replaced_only_if_the_number_is_said() {
        let text = "x\ny x\n\nx";
        let times = |found, lines: &[u64]| {
            Err(Problem::Times {
                found,
                lines: lines.to_vec(),
            })
        };
        assert_eq!(edited(text, "x", "z", 1), times(3, &[1, 2, 4]));
        assert_eq!(edited(text, "x", "z", 2), times(3, &[1, 2, 4]));
        assert_eq!(edited(text, "x", "z", 4), times(3, &[1, 2, 4]));
        assert_eq!(edited(text, "x", "zz", 3).unwrap(), "zz\ny zz\n\nzz");
        assert_eq!(edited("aaa", "aa", "b", 1), times(2, &[1, 1]));
        let many = "x\n".repeat(99);
        assert_eq!(
            edited(&many, "x", "y", 98),
            times(99, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
        );
        assert_eq!(edited(&many, "x", "y", 99).unwrap(), "y\n".repeat(99));
    }

    #[test]
    fn occurrences_that_share_characters_are_not_replaced() {
        let overlap = |line| Err(Problem::Overlap { line });
        assert_eq!(edited("aaa", "aa", "b", 2), overlap(1));
        assert_eq!(edited("aa\nabab ababab", "abab", "b", 3), overlap(2));
        assert_eq!(edited("aaaa", "aa", "b", 3), overlap(1));
        assert_eq!(edited("aa aa", "aa", "b", 2).unwrap(), "b b");
    }

    #[test]
    fn what_is_absent_is_looked_for_with_other_white_space() {
        let absent = |similar| Err(Problem::Absent { similar });
        assert_eq!(edited("a\n\tb  c\n", "b c", "x", 1), absent(Some(2)));
        assert_eq!(edited("a\nb\n", "\ta\n  b", "x", 1), absent(Some(1)));
        assert_eq!(edited("a\nb\n", "c", "x", 1), absent(None));
        assert_eq!(edited("a\nb\n", "\t", "x", 1), absent(None));
        assert_eq!(edited("", "c", "x", 1), absent(None));
    }

    #[test]
    fn line_ends_are_written_as_the_file_writes_them_there() {
        let crlf = "one\r\ntwo\r\nthree";
        assert_eq!(
            edited(crlf, "two", "2\n2", 1).unwrap(),
            "one\r\n2\r\n2\r\nthree"
        );
        assert_eq!(
            edited(crlf, "one\ntwo", "1\n\n2", 1).unwrap(),
            "1\r\n\r\n2\r\nthree"
        );
        assert_eq!(
            edited(crlf, "three", "3\n", 1).unwrap(),
            "one\r\ntwo\r\n3\r\n"
        );
        assert_eq!(edited(crlf, "\nthree", "", 1).unwrap(), "one\r\ntwo");
        assert_eq!(edited(crlf, "two\n", "", 1).unwrap(), "one\r\nthree");
        let mixed = "a\nb\r\nc\nd";
        assert_eq!(edited(mixed, "b", "b\nb", 1).unwrap(), "a\nb\r\nb\r\nc\nd");
        assert_eq!(edited(mixed, "c", "c\nc", 1).unwrap(), "a\nb\r\nc\nc\nd");
        assert_eq!(edited(mixed, "a\nb\nc", "x\ny", 1).unwrap(), "x\ny\nd");
        assert_eq!(edited("a b", "b", "b\nc", 1).unwrap(), "a b\nc");
    }

    #[test]
    fn with_a_carriage_return_in_the_edit_it_is_exact() {
        assert_eq!(
            edited("a\r\nb\nc\n", "a\r\n", "a\n", 1).unwrap(),
            "a\nb\nc\n"
        );
        assert_eq!(edited("a\r\nb\n", "b", "b\r", 1).unwrap(), "a\r\nb\r\n");
        let absent = Err(Problem::Absent { similar: Some(1) });
        assert_eq!(edited("a\nb\n", "a\r\nb", "c", 1), absent);
        assert_eq!(edited("a\r\r\nb", "a\r\r\n", "", 1).unwrap(), "b");
    }

    #[test]
    fn what_would_grow_beyond_measure_is_refused() {
        let text = "x".repeat(1000);
        let long = "y".repeat(MOST / 1000 + 1);
        assert_eq!(edited(&text, "x", &long, 1000), Err(Problem::TooLarge));
        assert!(edited(&text, &text, &long, 1).is_ok());
    }

    proptest! {
        #[test]
        fn occurrences_are_those_that_a_plain_search_finds(text in "[ab\n]{0,30}", old in "[ab\n]{1,4}") {
            let (text, old) = (text.as_bytes(), old.as_bytes());
            let plain: Vec<usize> = (0..text.len()).filter(|at| text[*at..].starts_with(old)).collect();
            prop_assert_eq!(occurrences(text, old, usize::MAX), (plain.len(), plain));
        }

        #[test]
        fn an_edit_and_its_reverse_give_the_same_file(text in "([abc]|\r\n|\n|\r){0,30}", old in "[abc]{1,2}") {
            if let Ok(there) = edit(text.as_bytes(), &old, "§", 1) {
                let back = edit(&there.content, "§", &old, 1).unwrap();
                prop_assert_eq!(back.content, text.as_bytes());
            }
        }

        #[test]
        fn bytes_outside_of_the_edit_stay(before in "([ab]|\r\n|\n){0,20}", after in "([ab]|\r\n|\n){0,20}", new in "[d\n]{0,3}") {
            let text = format!("{before}c{after}");
            let edited = edit(text.as_bytes(), "c", &new, 1).unwrap().content;
            prop_assert!(edited.starts_with(before.as_bytes()));
            prop_assert!(edited.ends_with(after.as_bytes()));
        }
    }
}
