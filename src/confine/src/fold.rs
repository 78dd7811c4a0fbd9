//! Text for people, broken to the width of a terminal. Knows nothing of what the text says; what goes elsewhere than to
//! a terminal is not broken, so that a line of a log or a pipe stays one message.

use std::ops::Range;

/// How many columns of a terminal a line takes: its characters, without the escapes that colour them.
#[must_use]
pub fn columns(line: &str) -> usize {
    let mut count = 0;
    let mut coloured = false;
    for c in line.chars() {
        match c {
            '\x1b' => coloured = true,
            'm' if coloured => coloured = false,
            _ if coloured => {}
            _ => count += 1,
        }
    }
    count
}

/// `text` with each line that takes more than `width` columns broken at spaces; what follows is indented by two more than
/// the line. A word longer than that, a path for example, stays whole, and so does what stands between two backquotes
/// and fits into a line: somebody will copy it.
#[must_use]
pub fn fold(text: &str, width: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            folded.push('\n');
        }
        if columns(line) <= width {
            folded.push_str(line);
        } else {
            fold_line(line, width, &mut folded);
        }
    }
    folded
}

fn fold_line(line: &str, width: usize, folded: &mut String) {
    let words = line.trim_start_matches(' ');
    let (begin, _) = line.split_at(line.len() - words.len());
    let indent = begin.to_owned() + "  ";
    folded.push_str(begin);
    let mut used = columns(begin);
    let mut fresh = true;
    for part in parts(words, width.saturating_sub(columns(&indent))) {
        let word = &words[part];
        let room = used + usize::from(!fresh) + columns(word);
        if !fresh && room > width {
            folded.push('\n');
            folded.push_str(&indent);
            used = columns(&indent) + columns(word);
        } else {
            if !fresh {
                folded.push(' ');
            }
            used = room;
        }
        folded.push_str(word);
        fresh = false;
    }
}

/// What is not broken: words, and backquoted words of at most `most` columns together.
fn parts(words: &str, most: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(found) = words[at..].find([' ', '`']) {
        let found = at + found;
        at = found + 1;
        if words[found..].starts_with('`') {
            let quoted = words[at..].find('`').map(|end| at + end + 1);
            if let Some(end) = quoted.filter(|end| columns(&words[found..*end]) <= most) {
                at = end;
            }
        } else {
            parts.push(start..found);
            start = at;
        }
    }
    parts.push(start..words.len());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_at_spaces_and_goes_on_further_in() {
        let text = "one: two three four\n  five six seven eight\nnine\n";
        assert_eq!(
            fold(text, 14),
            "one: two three\n  four\n  five six\n    seven\n    eight\nnine\n"
        );
        assert_eq!(fold(text, 80), text);
    }

    #[test]
    fn a_long_word_stays_whole_and_only_itself_goes_over_the_edge() {
        let path = format!("/srv/{}", "deep/".repeat(10));
        assert_eq!(
            fold(&format!("cannot open {path}: no such file"), 20),
            format!("cannot open\n  {path}:\n  no such file")
        );
    }

    #[test]
    fn what_is_quoted_is_not_broken_unless_it_cannot_fit() {
        assert_eq!(
            fold("say `bxctl audit show` now", 20),
            "say\n  `bxctl audit show`\n  now"
        );
        assert_eq!(
            fold("say `bxctl audit show --session one` now", 20),
            "say `bxctl audit\n  show --session\n  one` now"
        );
        assert_eq!(
            fold("a lone ` is a word like any other", 20),
            "a lone ` is a word\n  like any other"
        );
    }

    #[test]
    fn colours_take_no_room() {
        let text = "\x1b[31mbxctl\x1b[0m: one two";
        assert_eq!(columns(text), 14);
        assert_eq!(fold(text, 14), text);
        assert_eq!(fold(text, 13), "\x1b[31mbxctl\x1b[0m: one\n  two");
    }

    #[test]
    fn nothing_but_blanks_is_lost() {
        let text = "a `b c` d  e \u{4e16}\u{754c} f ".repeat(9);
        for width in 0..60 {
            let words: Vec<String> = fold(&text, width)
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            assert_eq!(
                words,
                text.split_whitespace().collect::<Vec<_>>(),
                "{width}"
            );
        }
    }
}
