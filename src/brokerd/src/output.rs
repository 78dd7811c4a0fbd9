//! What is kept of a tool's output while all of it is drained, and how it becomes the text of one frame
//! (formats.md section 3). Pure: bytes in, text out.

use std::collections::VecDeque;

/// Bytes of standard error that a `Failed` shows.
pub(crate) const TAIL: usize = 2048;

/// A tool that writes more than this many times its `max_output` is stopped (protocol.md section 5).
pub(crate) const FLOOD: u64 = 16;

/// The first bytes of a stream.
#[derive(Debug)]
pub(crate) struct Head {
    kept: Vec<u8>,
    limit: usize,
    total: u64,
}

/// The last [`TAIL`] bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    kept: VecDeque<u8>,
    total: u64,
}

/// The text of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// Bytes that are no UTF-8 are replaced by U+FFFD.
    pub(crate) text: String,
    /// Whether the stream held more.
    pub(crate) truncated: bool,
}

impl Head {
    /// Keeps the first `limit` bytes.
    #[must_use]
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit,
            total: 0,
        }
    }

    /// Takes the next bytes of the stream and drops what is past the limit.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.total = self.total.saturating_add(bytes.len() as u64);
    }

    /// Bytes that the stream held so far.
    #[must_use]
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// The text, at most `limit` bytes of UTF-8 and at most `encoded` bytes as the inside of a JSON text.
    #[must_use]
    pub(crate) fn text(&self, encoded: usize) -> Text {
        let dropped = self.total > self.kept.len() as u64;
        let mut text = String::with_capacity(self.kept.len());
        let mut rest = self.kept.as_slice().utf8_chunks().peekable();
        while let Some(chunk) = rest.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            // A character that the limit cut in two is not the tool's mistake.
            let cut = dropped && rest.peek().is_none() && unfinished(invalid);
            if !invalid.is_empty() && !cut {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        // Replacements are three bytes long, so the text may have grown past the limit.
        let fits = fitting(&text, self.limit, encoded);
        let truncated = dropped || fits < text.len();
        text.truncate(fits);
        Text { text, truncated }
    }
}

impl Tail {
    /// Takes the next bytes of the stream and drops what is too old.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let new = &bytes[bytes.len().saturating_sub(TAIL)..];
        let old = (self.kept.len() + new.len()).saturating_sub(TAIL);
        self.kept.drain(..old);
        self.kept.extend(new);
    }

    /// Bytes that the stream held so far.
    #[must_use]
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// The text of the last bytes, without white space at its ends.
    #[must_use]
    pub(crate) fn text(&self) -> Text {
        let truncated = self.total > self.kept.len() as u64;
        let bytes: Vec<u8> = self.kept.iter().copied().collect();
        let first = if truncated {
            // At most three bytes of a character whose beginning is gone.
            let behind = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
            bytes.iter().take(3).take_while(behind).count()
        } else {
            0
        };
        Text {
            text: String::from_utf8_lossy(&bytes[first..]).trim().to_owned(),
            truncated,
        }
    }
}

/// Whether `bytes` is the beginning of a character and nothing else.
fn unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// The length of the longest beginning of `text` that has at most `limit` bytes, and at most `encoded` bytes as JSON.
fn fitting(text: &str, limit: usize, encoded: usize) -> usize {
    let mut length = 0;
    let mut room = encoded;
    for character in text.chars() {
        let after = length + character.len_utf8();
        let Some(left) = room.checked_sub(encoded_length(character)) else {
            break;
        };
        if after > limit {
            break;
        }
        (length, room) = (after, left);
    }
    length
}

/// The bytes that a character takes within a JSON text as `serde_json` writes it.
const fn encoded_length(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(limit: usize, bytes: &[u8]) -> Head {
        let mut head = Head::new(limit);
        bytes.chunks(7).for_each(|part| head.take(part));
        head
    }

    fn text(text: &str, truncated: bool) -> Text {
        Text {
            text: text.into(),
            truncated,
        }
    }

    #[test]
    fn output_within_the_limit_is_whole() {
        assert_eq!(head(5, b"hello").text(100), text("hello", false));
    }

    #[test]
    fn output_past_the_limit_is_cut_and_says_so() {
        assert_eq!(head(4, b"hello").text(100), text("hell", true));
        assert_eq!(head(4, b"hello").total(), 5);
    }

    #[test]
    fn a_character_that_the_limit_cuts_is_left_out_and_a_broken_one_is_replaced() {
        let word = "zürich".as_bytes();
        assert_eq!(head(2, word).text(100), text("z", true));
        assert_eq!(head(9, &word[..2]).text(100), text("z\u{fffd}", false));
        assert_eq!(head(9, b"a\xffb").text(100), text("a\u{fffd}b", false));
    }

    #[test]
    fn replaced_bytes_never_grow_past_the_limit() {
        assert_eq!(head(4, b"\xff\xff\xff").text(100), text("\u{fffd}", true));
    }

    #[test]
    fn control_characters_are_cut_by_their_encoded_length() {
        assert_eq!(head(9, b"\x01\x02\x03").text(12), text("\x01\x02", true));
        assert_eq!(
            head(9, b"\x01\x02\x03").text(18),
            text("\x01\x02\x03", false)
        );
    }

    #[test]
    fn the_tail_keeps_the_end() {
        let mut tail = Tail::default();
        tail.take(&[b'a'; 3000]);
        tail.take(b"the end\n");
        let kept = tail.text();
        assert!(kept.truncated);
        assert!(kept.text.ends_with("athe end"));
        assert_eq!(kept.text.len(), TAIL - 1);
        assert_eq!(tail.total(), 3008);
    }

    #[test]
    fn a_tail_does_not_begin_inside_a_character() {
        let mut tail = Tail::default();
        tail.take("ü".repeat(TAIL).as_bytes());
        tail.take(b"x");
        assert_eq!(tail.text().text, format!("{}x", "ü".repeat(TAIL / 2 - 1)));
    }

    proptest! {
        #[test]
        fn a_text_never_passes_its_limits_and_only_a_cut_one_is_shorter(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            limit in 0_usize..500,
            encoded in 0_usize..900,
        ) {
            let cut = head(limit, &bytes).text(encoded);
            prop_assert!(cut.text.len() <= limit);
            let json = serde_json::to_string(&cut.text).unwrap();
            prop_assert!(json.len() - 2 <= encoded);
            let whole = String::from_utf8_lossy(&bytes);
            prop_assert!(whole.starts_with(&cut.text));
            prop_assert_eq!(cut.truncated, cut.text != whole);
        }

        #[test]
        fn the_encoded_length_is_what_the_encoder_writes(character in any::<char>()) {
            let json = serde_json::to_string(&character).unwrap();
            prop_assert_eq!(encoded_length(character), json.len() - 2);
        }

        #[test]
        fn a_tail_is_the_end_of_what_was_taken_however_it_came(
            parts in proptest::collection::vec(proptest::collection::vec(b' '..b'~', 0..900), 0..8)
        ) {
            let mut tail = Tail::default();
            parts.iter().for_each(|part| tail.take(part));
            let all = parts.concat();
            let end = &all[all.len().saturating_sub(TAIL)..];
            let kept = tail.text();
            let expected = String::from_utf8_lossy(end).trim().to_owned();
            prop_assert_eq!(kept.text, expected);
            prop_assert_eq!(kept.truncated, all.len() > TAIL);
        }
    }
}
