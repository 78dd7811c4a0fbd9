//! Makes text of unknown origin safe to show: characters that move the cursor, change the order of the text or
//! cannot be seen become escapes. Knows nothing of where the text comes from.

use std::fmt::Write as _;

/// Whether a character has an effect on a terminal, or none that can be seen: controls (C0, DEL, C1), line and
/// paragraph separators, bidi marks, embeddings and isolates, and the other format characters of Unicode 16 that
/// have no glyph.
fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Joiners change how neighbours are drawn (Persian, emoji) and nothing else; text keeps them, names do not.
const fn joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn escape(c: char, to: &mut String) {
    match c {
        '\n' => to.push_str("\\n"),
        '\r' => to.push_str("\\r"),
        '\t' => to.push_str("\\t"),
        c if u32::from(c) < 0x80 => {
            // Writing to a String cannot fail.
            let _ = write!(to, "\\x{:02x}", u32::from(c));
        }
        c => {
            let _ = write!(to, "\\u{{{:x}}}", u32::from(c));
        }
    }
}

/// One line: every hidden character becomes an escape such as `\x1b`, `\n` or `\u{202e}`.
#[must_use]
pub fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) {
            escape(c, &mut shown);
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Running text: as [`line()`], but line feeds, tabs and joiners stay what they are.
#[must_use]
pub fn text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) && !matches!(c, '\n' | '\t') && !joiner(c) {
            escape(c, &mut shown);
        } else {
            shown.push(c);
        }
    }
    shown
}

/// JSON that means the same: hidden characters, which valid JSON has in strings only, become a `\u` with four hexadecimal
/// digits for each unit of UTF-16. Line feeds between documents stay.
#[must_use]
pub fn json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        if hidden(c) && c != '\n' {
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// How many columns of a terminal a character takes; 2 for the wide scripts and emoji, 0 for combining marks.
#[must_use]
pub const fn columns(c: char) -> usize {
    match c {
        '\u{0300}'..='\u{036f}'
        | '\u{200c}'
        | '\u{200d}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115e}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// How many columns a text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// A number of bytes in the largest unit of which there is at least one, rounded down to tenths: `980 bytes`, `1.5 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(power) = bytes
        .checked_ilog2()
        .map(|bits| bits / 10)
        .filter(|power| *power > 0)
    else {
        return count(bytes, "byte");
    };
    let unit = UNITS[power as usize - 1];
    let tenths = (u128::from(bytes) * 10) >> (10 * power);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} {unit}"),
        (whole, tenth) => format!("{whole}.{tenth} {unit}"),
    }
}

/// A number of something: `1 file`, `2 files`.
#[must_use]
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    // What does not fit is more than anything that is counted.
    let number = number.try_into().unwrap_or(u64::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_as_it_is() {
        for plain in ["notes.txt", "Grüße, 世界", "a b", "\\x1b", "👩‍💻"] {
            assert_eq!(text(plain), plain);
        }
        assert_eq!(line("Grüße, 世界"), "Grüße, 世界");
    }

    #[test]
    fn terminal_sequences_become_visible() {
        assert_eq!(line("\x1b[2J\x07"), "\\x1b[2J\\x07");
        assert_eq!(line("a\x7f\u{9b}31m"), "a\\x7f\\u{9b}31m");
    }

    #[test]
    fn bidi_and_invisible_characters_become_visible() {
        assert_eq!(line("txt.\u{202e}exe"), "txt.\\u{202e}exe");
        assert_eq!(text("a\u{2066}b\u{2069}"), "a\\u{2066}b\\u{2069}");
        assert_eq!(text("\u{feff}x\u{e0041}"), "\\u{feff}x\\u{e0041}");
    }

    #[test]
    fn a_line_has_no_line_feed_and_a_text_keeps_it() {
        assert_eq!(line("a\n\tb\r"), "a\\n\\tb\\r");
        assert_eq!(text("a\n\tb\r\n"), "a\n\tb\\r\n");
        assert_eq!(line("a\u{200d}b"), "a\\u{200d}b");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({"a": "\u{9b}x\u{202e}\u{e0041}\u{7f}\n"});
        let raw = serde_json::to_string(&value).unwrap();
        let safe = json(&raw);
        assert!(raw.chars().any(hidden));
        assert!(!safe.chars().any(hidden));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&safe).unwrap(),
            value
        );
        assert_eq!(json("{}\n"), "{}\n");
    }

    #[test]
    fn one_of_something_is_no_plural() {
        assert_eq!(count(0_u64, "file"), "0 files");
        assert_eq!(count(1_u64, "file"), "1 file");
        assert_eq!(count(2_usize, "more time"), "2 more times");
    }

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        assert_eq!(width("世a"), 3);
        assert_eq!(width("e\u{301}"), 1);
    }
}
