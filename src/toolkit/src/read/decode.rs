//! Bytes to text, a piece at a time, with every replacement on record. Knows no lines.

use std::io::{self, Read};

/// An encoding of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    Utf16Le,
    Utf16Be,
    Latin1,
}

impl Charset {
    /// Its byte order mark; none for Latin-1.
    pub(crate) const fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8 => b"\xef\xbb\xbf",
            Self::Utf16Le => b"\xff\xfe",
            Self::Utf16Be => b"\xfe\xff",
            Self::Latin1 => b"",
        }
    }

    /// Its name in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16 little-endian",
            Self::Utf16Be => "UTF-16 big-endian",
            Self::Latin1 => "Latin-1",
        }
    }
}

/// Bytes read at a time.
const CHUNK: u64 = 65_536;

/// Decodes what a reader gives.
#[derive(Debug)]
pub(crate) struct Decoder<R> {
    reader: R,
    charset: Charset,
    raw: Vec<u8>,
    text: String,
    replaced: Vec<usize>,
}

impl<R: Read> Decoder<R> {
    pub(crate) const fn new(reader: R, charset: Charset) -> Self {
        Self {
            reader,
            charset,
            raw: Vec::new(),
            text: String::new(),
            replaced: Vec::new(),
        }
    }

    pub(crate) const fn charset(&self) -> Charset {
        self.charset
    }

    /// Decodes the next piece, which may be empty; `false` when there is none.
    ///
    /// # Errors
    /// What the reader says.
    pub(crate) fn next_piece(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.replaced.clear();
        let read = self
            .reader
            .by_ref()
            .take(CHUNK)
            .read_to_end(&mut self.raw)?;
        let end = read == 0;
        if end && self.raw.is_empty() {
            return Ok(false);
        }
        let used = match self.charset {
            Charset::Utf8 => self.utf8(end),
            Charset::Utf16Le => self.utf16(u16::from_le_bytes, end),
            Charset::Utf16Be => self.utf16(u16::from_be_bytes, end),
            Charset::Latin1 => {
                self.text
                    .extend(self.raw.iter().map(|byte| char::from(*byte)));
                self.raw.len()
            }
        };
        self.raw.drain(..used);
        Ok(true)
    }

    /// The last piece.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where in [`Self::text`] a replacement character stands for bytes that were invalid, ascending.
    pub(crate) fn replaced(&self) -> &[usize] {
        &self.replaced
    }

    fn utf8(&mut self, end: bool) -> usize {
        let mut used = 0;
        loop {
            let rest = &self.raw[used..];
            let error = match std::str::from_utf8(rest) {
                Ok(valid) => {
                    self.text.push_str(valid);
                    return self.raw.len();
                }
                Err(error) => error,
            };
            let valid = error.valid_up_to();
            self.text
                .push_str(std::str::from_utf8(&rest[..valid]).unwrap_or_default());
            let invalid = match error.error_len() {
                Some(length) => length,
                // The character may go on in the next piece.
                None if !end => return used + valid,
                None => rest.len() - valid,
            };
            replace(&mut self.text, &mut self.replaced);
            used += valid + invalid;
        }
    }

    fn utf16(&mut self, unit: fn([u8; 2]) -> u16, end: bool) -> usize {
        let mut units: Vec<u16> = self
            .raw
            .chunks_exact(2)
            .map(|pair| unit([pair[0], pair[1]]))
            .collect();
        // The second half of a pair of surrogates may come with the next piece.
        if !end
            && units
                .last()
                .is_some_and(|last| (0xd800..0xdc00).contains(last))
        {
            units.pop();
        }
        let used = units.len() * 2;
        for char in char::decode_utf16(units) {
            match char {
                Ok(char) => self.text.push(char),
                Err(_) => replace(&mut self.text, &mut self.replaced),
            }
        }
        if end && used < self.raw.len() {
            replace(&mut self.text, &mut self.replaced);
            return self.raw.len();
        }
        used
    }
}

fn replace(text: &mut String, replaced: &mut Vec<usize>) {
    replaced.push(text.len());
    text.push(char::REPLACEMENT_CHARACTER);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes `step` at a time, then the end.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn decode(bytes: &[u8], charset: Charset) -> (String, usize) {
        let mut decoder = Decoder::new(Slow(bytes, 3), charset);
        let (mut text, mut replaced) = (String::new(), 0);
        while decoder.next_piece().unwrap() {
            text.push_str(decoder.text());
            replaced += decoder.replaced().len();
        }
        (text, replaced)
    }

    #[test]
    fn invalid_bytes_are_replaced_and_counted() {
        assert_eq!(
            decode(b"a\xffb\xc3", Charset::Utf8),
            ("a\u{fffd}b\u{fffd}".into(), 2)
        );
        assert_eq!(
            decode("\u{fffd}".as_bytes(), Charset::Utf8),
            ("\u{fffd}".into(), 0)
        );
        assert_eq!(
            decode(b"a\0\x00\xd8b\0c", Charset::Utf16Le),
            ("a\u{fffd}b\u{fffd}".into(), 2)
        );
        assert_eq!(
            decode(b"\xd8\x00", Charset::Utf16Be),
            ("\u{fffd}".into(), 1)
        );
        assert_eq!(decode(b"caf\xe9", Charset::Latin1), ("caf\u{e9}".into(), 0));
    }

    #[test]
    fn a_character_that_two_pieces_share_is_whole() {
        let chunk = usize::try_from(CHUNK).unwrap();
        let text = format!("{}\u{1f600}end", "x".repeat(chunk - 1));
        assert_eq!(decode(text.as_bytes(), Charset::Utf8), (text.clone(), 0));
        let text = format!("{}\u{1f600}end", "x".repeat(chunk / 2 - 1));
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(&bytes, Charset::Utf16Be), (text, 0));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_as_std_decodes_them(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decode(&bytes, Charset::Utf8).0, String::from_utf8_lossy(&bytes).into_owned());
        }

        #[test]
        fn any_text_comes_back_from_utf_16(text in any::<String>()) {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            prop_assert_eq!(decode(&bytes, Charset::Utf16Le), (text, 0));
        }
    }
}
