//! Which known word an unknown one was meant to be. For messages about the owner's files only: nothing is ever read as
//! if it were its nearest word.

/// The word of `words` that `text` most likely was meant to be: at most two letters that are wrong, missing, too many or
/// swapped with their neighbour, in words of up to four letters at most one. Of equally near ones the first.
#[must_use]
pub fn nearest<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text: Vec<char> = text.chars().collect();
    let near = words.into_iter().filter_map(|word| {
        let letters: Vec<char> = word.chars().collect();
        let most = if letters.len().min(text.len()) <= 4 {
            1
        } else {
            2
        };
        // Before the table is filled, which costs the product of both lengths.
        if letters.len().abs_diff(text.len()) > most {
            return None;
        }
        let distance = distance(&text, &letters);
        (distance <= most).then_some((distance, word))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// How many letters have to be changed, put in, left out or swapped with their neighbour to make `one` into `other`, no
/// letter twice.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, wanted) in other.iter().enumerate() {
            let changed = above[column] + usize::from(letter != wanted);
            let mut least = changed.min(above[column + 1] + 1).min(line[column] + 1);
            let swapped =
                row > 0 && column > 0 && one[row - 1] == *wanted && other[column - 1] == *letter;
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut above, line);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_one_or_two_letters_finds_its_word_and_another_word_does_not() {
        let words = ["tool", "mode", "max_taint", "expires", "confinement"];
        for (text, want) in [
            ("max_taint", Some("max_taint")),
            ("max_tint", Some("max_taint")),
            ("maxtaint", Some("max_taint")),
            ("max-taint", Some("max_taint")),
            ("max_tiant", Some("max_taint")),
            ("mx_tant", Some("max_taint")),
            ("m_tant", None),
            ("confinment", Some("confinement")),
            ("expire", Some("expires")),
            ("expirse", Some("expires")),
            ("Mode", Some("mode")),
            ("mdoe", Some("mode")),
            ("mods", Some("mode")),
            ("moods", None),
            ("code", Some("mode")),
            ("role", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(text, words), want, "{text:?}");
        }
    }

    #[test]
    fn the_nearest_of_several_is_taken_and_of_equal_ones_the_first() {
        assert_eq!(nearest("fs_red", ["fs_rod", "fs_read"]), Some("fs_rod"));
        assert_eq!(nearest("fs_red", ["fs_reads", "fs_read"]), Some("fs_read"));
        assert_eq!(nearest("fs_red", []), None);
    }
}
