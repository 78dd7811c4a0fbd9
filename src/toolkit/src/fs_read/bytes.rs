//! A range of bytes as hexadecimal or base64 text.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::ReadError;
use crate::failure::SystemError;
use crate::visible::visible_path;

/// How bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Two digits a byte, 32 bytes a line.
    Hex,
    /// RFC 4648 section 4 with padding, 57 bytes a line.
    Base64,
}

/// The most bytes of one answer.
const MOST: u64 = 65_536;

/// Shows at most `limit` bytes from byte `first`, counted from 0, and says in a last line if there are more.
///
/// # Errors
/// Reading failed, or there is no such byte.
pub(super) fn show(
    path: &Path,
    mut file: File,
    (first, limit): (u64, Option<u64>),
    form: Form,
) -> Result<String, ReadError> {
    let failed = |error| SystemError::from_io("read", path, &error);
    let wanted = limit.unwrap_or(MOST).min(MOST);
    let mut bytes = Vec::new();
    // No file has a byte past i64::MAX, and the kernel refuses to seek there.
    if i64::try_from(first).is_ok() {
        file.seek(SeekFrom::Start(first)).map_err(failed)?;
        // One more than wanted tells whether the file goes on.
        (&mut file)
            .take(wanted + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    }
    if bytes.is_empty() {
        let has = file.metadata().map_err(failed)?.len();
        if first == 0 {
            return Ok("[fs_read: the file is empty]\n".to_owned());
        }
        return Err(ReadError::PastEnd {
            path: visible_path(path),
            offset: first,
            has,
            unit: "bytes",
        });
    }
    let more = bytes.len() as u64 > wanted;
    if more {
        bytes.pop();
    }
    let mut text = match form {
        Form::Hex => lines(&bytes, 32, hex),
        Form::Base64 => lines(&bytes, 57, base64),
    };
    if more {
        let next = first + bytes.len() as u64;
        text.push_str(&format!(
            "[fs_read: bytes {first} to {} shown, more follow: offset = {next}]\n",
            next - 1
        ));
    }
    Ok(text)
}

fn lines(bytes: &[u8], width: usize, write: fn(&[u8], &mut String)) -> String {
    let mut text = String::new();
    for line in bytes.chunks(width) {
        write(line, &mut text);
        text.push('\n');
    }
    text
}

fn hex(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
}

fn base64(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= group.len() {
                let value = bits >> (18 - 6 * digit) & 0x3f;
                text.push(char::from(DIGITS[value as usize]));
            } else {
                text.push('=');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648_section_10() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in pairs {
            let mut text = String::new();
            base64(plain.as_bytes(), &mut text);
            assert_eq!(text, encoded);
        }
        let mut text = String::new();
        base64(b"\xfb\xef\xff", &mut text);
        assert_eq!(text, "++//");
    }

    #[test]
    fn lines_of_base64_join_to_the_encoding_of_the_whole() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut whole = String::new();
        base64(&bytes, &mut whole);
        assert_eq!(lines(&bytes, 57, base64).replace('\n', ""), whole);
    }

    #[test]
    fn hex_has_two_digits_a_byte() {
        assert_eq!(lines(b"\x00\x0f\xff", 2, hex), "000f\nff\n");
    }
}
