//! Names as a reader can trust them: a name that could pass for something else is quoted and escaped. Pure.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A name as it is, or, if it holds anything that is not plain visible text, in double quotes with escapes:
/// `\n \r \t \" \\`, `\xNN` for a control character or a byte that is no UTF-8, `\u{N}` for invisible characters.
pub(crate) fn visible(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if is_plain(text) => text.to_owned(),
        _ => quoted(name),
    }
}

/// [`visible`] for a path.
pub(crate) fn visible_path(path: &Path) -> String {
    visible(path.as_os_str().as_bytes())
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.contains(" -> ")
        && !text
            .chars()
            .any(|char| matches!(char, '"' | '\\') || hides(char))
}

/// Whether a reader would not see the character, or see others in another order because of it.
fn hides(char: char) -> bool {
    char.is_control()
        || (char.is_whitespace() && char != ' ')
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}

fn quoted(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    text.push('"');
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '"' | '\\' => {
                    text.push('\\');
                    text.push(char);
                }
                '\0'..='\u{7f}' if char.is_ascii_control() => {
                    text.push_str(&format!("\\x{:02x}", u32::from(char)));
                }
                _ if hides(char) => text.push_str(&format!("\\u{{{:x}}}", u32::from(char))),
                _ => text.push(char),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_name_stays_as_it_is() {
        for name in ["a.md", "two words", "über.txt", "日本", "..."] {
            assert_eq!(visible(name.as_bytes()), name);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(visible(b"a\nb"), r#""a\nb""#);
        assert_eq!(visible(b"\x1b[31m"), r#""\x1b[31m""#);
        assert_eq!(visible(b"\xff\xfe"), r#""\xff\xfe""#);
        assert_eq!(visible("a\u{202e}b".as_bytes()), r#""a\u{202e}b""#);
        assert_eq!(visible("a\u{a0}b".as_bytes()), r#""a\u{a0}b""#);
        assert_eq!(visible(b"end "), r#""end ""#);
        assert_eq!(visible(b"a -> b"), r#""a -> b""#);
        assert_eq!(visible(br#"a"b\c"#), r#""a\"b\\c""#);
    }

    proptest! {
        #[test]
        fn two_names_never_look_the_same(one in ".{0,6}", other in ".{0,6}") {
            prop_assert_eq!(visible(one.as_bytes()) == visible(other.as_bytes()), one == other);
        }

        #[test]
        fn no_bytes_bring_a_control_character_out(name in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(!visible(&name).chars().any(hides));
        }
    }
}
