//! A log whose last record was cut by a crash: sound as long as the anchor does not name that record, broken if it does.

use crate::log::{Home, stored};

/// A log, its last line cut at every byte, and whether the anchor still names it.
fn cut_everywhere(anchor_names_it: bool, check: impl Fn(&Home, usize)) {
    let home = Home::with_log();
    let files = home.files();
    let lines = stored(&files);
    let last = lines.last().unwrap();
    if !anchor_names_it {
        let anchor = home.anchor();
        let before = anchor.trim_end().rfind('\n').unwrap() + 1;
        home.set_anchor(&anchor[..before]);
    }
    // Up to the whole record, which lacks its newline and nothing else.
    for length in 0..=last.bytes.len() {
        let mut cut = files.clone();
        let file = cut.get_mut(&last.file).unwrap();
        file.truncate(last.offset + length);
        home.set_files(&cut);
        check(&home, length);
    }
    home.set_files(&files);
    home.sound();
}

#[test]
fn a_record_cut_at_any_byte_is_torn_and_the_log_sound_if_the_anchor_does_not_name_it() {
    cut_everywhere(false, |home, length| {
        let verdict = home.sound();
        assert_eq!(verdict["lines"], 15);
        let torn = &verdict["torn"];
        assert_eq!(torn.is_null(), length == 0, "{verdict}");
        if length > 0 {
            assert_eq!(torn["file"], "2026-09-21.jsonl");
            assert_eq!(torn["length"], length);
        }
    });
}

#[test]
fn a_record_cut_at_any_byte_is_named_if_the_anchor_names_it() {
    cut_everywhere(true, |home, length| {
        let (place, reason) = home.broken();
        assert_eq!((place.file.as_str(), place.line), ("2026-09-21.jsonl", 5));
        assert_eq!(place.seq, Some(15), "{length} bytes: {reason}");
    });
}
