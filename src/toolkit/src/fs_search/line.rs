//! One line of a result: what of a long one is shown. Pure.

/// Characters of one line that are shown.
pub(super) const LINE: usize = 400;
/// Bytes before the match that are shown of a line that is longer.
const BEFORE: usize = 100;

/// The line without its end, or the part of it around byte `at`, with what is left out counted in bytes. Bytes that are no
/// UTF-8 become U+FFFD.
pub(super) fn shown(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (whole, used) = text(line);
    if used == line.len() {
        return whole;
    }
    let mut from = at.saturating_sub(BEFORE).min(line.len());
    // Not in the middle of a character.
    while from > 0 && line.get(from).is_some_and(|byte| byte & 0xc0 == 0x80) {
        from -= 1;
    }
    let (part, used) = text(&line[from..]);
    let mut shown = String::new();
    if from > 0 {
        shown.push_str(&format!("[{from} bytes …]"));
    }
    shown.push_str(&part);
    let after = line.len() - from - used;
    if after > 0 {
        shown.push_str(&format!("[… {after} bytes]"));
    }
    shown
}

/// At most [`LINE`] characters of `bytes`, and how many bytes that were.
fn text(bytes: &[u8]) -> (String, usize) {
    let (mut text, mut count, mut used) = (String::new(), 0, 0);
    for chunk in bytes.utf8_chunks() {
        let room = LINE - count;
        let valid = chunk.valid();
        let end = valid
            .char_indices()
            .nth(room)
            .map_or(valid.len(), |(at, _)| at);
        text.push_str(&valid[..end]);
        count += valid[..end].chars().count();
        used += end;
        if end < valid.len() || (count == LINE && !chunk.invalid().is_empty()) {
            break;
        }
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            count += 1;
            used += chunk.invalid().len();
        }
    }
    (text, used)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_line_is_shown_without_its_end() {
        assert_eq!(shown(b"a b\n", 2), "a b");
        assert_eq!(shown(b"a b\r\n", 0), "a b");
        assert_eq!(shown(b"a\rb", 0), "a\rb");
        assert_eq!(shown(b"\n", 0), "");
        assert_eq!(shown(b"a\xffb\xc3\n", 0), "a\u{fffd}b\u{fffd}");
        let exact = "ü".repeat(LINE);
        assert_eq!(shown(exact.as_bytes(), 700), exact);
    }

    #[test]
    fn a_long_line_is_shown_around_its_match_and_the_rest_is_counted() {
        let line = format!("{}match{}\n", "a".repeat(5000), "b".repeat(6000));
        let text = shown(line.as_bytes(), 5000);
        assert!(text.starts_with("[4900 bytes …]aaa"), "{text}");
        assert!(text.contains("amatchb"), "{text}");
        assert!(text.ends_with("b[… 5705 bytes]"), "{text}");
        let text = shown(line.as_bytes(), 0);
        assert!(text.starts_with("aaaa") && text.ends_with("a[… 10605 bytes]"));
        let text = shown("ü".repeat(1000).as_bytes(), 1000);
        assert!(text.starts_with("[900 bytes …]ü") && text.ends_with("ü[… 300 bytes]"));
    }

    proptest! {
        #[test]
        fn no_line_shows_more_than_its_share(
            line in proptest::collection::vec(any::<u8>(), 0..1500), at in 0_usize..1500
        ) {
            let text = shown(&line, at.min(line.len()));
            prop_assert!(text.chars().count() <= LINE + 40);
        }

        #[test]
        fn a_part_of_ascii_is_found_again(line in "[a-z]{401,900}", at in 0_usize..401) {
            let text = shown(line.as_bytes(), at);
            let text = text.split_once(" bytes …]").map_or(text.as_str(), |(_, rest)| rest);
            let text = text.split_once("[… ").map_or(text, |(rest, _)| rest);
            prop_assert!(line.contains(text));
            prop_assert!(text.contains(&line[at..at + 1]));
        }
    }
}
