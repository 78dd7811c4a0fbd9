//! What a file is, by its first bytes. Pure.

use super::decode::Charset;

/// First bytes at an offset, and what they say.
const MAGIC: &[(usize, &[u8], &str)] = &[
    (0, b"\x7fELF", "ELF program or library"),
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF87a", "GIF image"),
    (0, b"GIF89a", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (8, b"WAVE", "WAV sound"),
    (8, b"AVI ", "AVI video"),
    (4, b"ftyp", "MP4 or QuickTime video, or HEIF image"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM video"),
    (0, b"OggS", "Ogg sound or video"),
    (0, b"fLaC", "FLAC sound"),
    (0, b"ID3", "MP3 sound"),
    (0, b"II*\0", "TIFF image"),
    (0, b"MM\0*", "TIFF image"),
    (0, b"\0\0\x01\0", "ICO image"),
    (0, b"%PDF-", "PDF document"),
    (
        0,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "old Office document",
    ),
    (
        0,
        b"PK\x03\x04",
        "zip archive, or an Office document, e-book or Java archive made of one",
    ),
    (0, b"PK\x05\x06", "empty zip archive"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\0", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (257, b"ustar", "tar archive"),
    (0, b"SQLite format 3\0", "SQLite database"),
    (0, b"\0asm", "WebAssembly module"),
    (
        0,
        b"\xca\xfe\xba\xbe",
        "Java class or universal Mach-O program",
    ),
    (0, b"MZ", "Windows program"),
    (0, b"\xff\xfe\0\0", "UTF-32 text, little-endian"),
    (0, b"\0\0\xfe\xff", "UTF-32 text, big-endian"),
];

/// The encoding that the first bytes declare.
pub(crate) fn byte_order_mark(sample: &[u8]) -> Option<Charset> {
    // The UTF-32 mark begins with the UTF-16 one.
    if sample.starts_with(b"\xff\xfe\0\0") {
        return None;
    }
    [Charset::Utf8, Charset::Utf16Le, Charset::Utf16Be]
        .into_iter()
        .find(|charset| sample.starts_with(charset.mark()))
}

/// What a file is that is no text, or `None` for text.
///
/// Text holds no NUL and few control characters. A format whose first bytes could begin a text is believed only if the
/// sample is no UTF-8.
pub(crate) fn binary(sample: &[u8]) -> Option<&'static str> {
    let known = MAGIC
        .iter()
        .find(|(offset, bytes, _)| {
            sample
                .get(*offset..)
                .is_some_and(|rest| rest.starts_with(bytes))
        })
        .map(|(.., what)| *what);
    let odd = sample.contains(&0) || mostly_control(sample);
    match known {
        Some(what) if odd || !is_utf8_so_far(sample) => Some(what),
        None if odd => Some("binary data of an unknown kind"),
        _ => None,
    }
}

fn mostly_control(sample: &[u8]) -> bool {
    let control = sample
        .iter()
        .filter(|byte| {
            matches!(byte, 0..=0x1f | 0x7f)
                && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0c | 0x1b)
        })
        .count();
    control * 20 > sample.len()
}

/// Whether nothing but the end of the sample, which may cut a character, is wrong.
fn is_utf8_so_far(sample: &[u8]) -> bool {
    match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_in_any_of_its_encodings() {
        for sample in [
            &b""[..],
            b"plain\n",
            "gr\u{fc}\u{df}e".as_bytes(),
            b"caf\xe9 in latin1, with enough text around it",
            b"\x1b[31mcolour\x1b[0m",
            b"BZh is how a note may begin",
            b"MZ too",
            b"%PDF-1.7 is a header",
        ] {
            assert_eq!(binary(sample), None, "{sample:?}");
        }
    }

    #[test]
    fn known_formats_are_named() {
        assert_eq!(binary(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), Some("PNG image"));
        assert_eq!(
            binary(b"\x7fELF\x02\x01\x01\0"),
            Some("ELF program or library")
        );
        assert_eq!(
            binary(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
            Some("PDF document")
        );
        assert_eq!(binary(b"RIFF\x10\0\0\0WEBPVP8 "), Some("WebP image"));
    }

    #[test]
    fn a_nul_or_many_control_characters_are_no_text() {
        assert_eq!(binary(b"a\0b"), Some("binary data of an unknown kind"));
        assert_eq!(
            binary(b"\x01\x02\x03ab"),
            Some("binary data of an unknown kind")
        );
    }

    #[test]
    fn a_character_cut_by_the_end_of_the_sample_is_no_fault() {
        assert!(is_utf8_so_far(b"a\xc3"));
        assert!(!is_utf8_so_far(b"a\xc3 "));
    }

    #[test]
    fn marks_are_told_apart() {
        assert_eq!(byte_order_mark(b"\xef\xbb\xbfa"), Some(Charset::Utf8));
        assert_eq!(byte_order_mark(b"\xff\xfea\0"), Some(Charset::Utf16Le));
        assert_eq!(byte_order_mark(b"\xfe\xff\0a"), Some(Charset::Utf16Be));
        assert_eq!(byte_order_mark(b"\xff\xfe\0\0a\0\0\0"), None);
        assert_eq!(byte_order_mark(b"abc"), None);
    }
}
