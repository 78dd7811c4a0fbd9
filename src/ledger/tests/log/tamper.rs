//! Whatever is done to a stored log, verification names the first bad line and the ledger refuses to open there.

use std::collections::BTreeMap;
use std::fs;

use crate::logs::{Forged, Home, Stored, anchor_of, entry, joined, recovery, stored, three_days};
use ledger::{Broken, Entry, Line};
use proptest::prelude::*;
use proto::Hash32;

type Files = BTreeMap<String, Vec<u8>>;

/// Lays `files` down, and gives the place that both the verifier and the ledger name.
fn broken_with(home: &Home, files: &Files) -> Broken {
    home.set_files(files);
    let broken = home.broken();
    assert_eq!(home.refused(), broken);
    assert_eq!(&home.files(), files, "a refused log is not changed");
    broken
}

/// Anchors that name every line, and only the last.
fn anchors(lines: &[Stored]) -> [String; 2] {
    let all: Vec<_> = (0..)
        .zip(lines.iter().map(|line| &line.bytes[..]))
        .collect();
    [
        anchor_of(all.iter().copied()),
        anchor_of(all.last().copied()),
    ]
}

#[test]
fn an_untouched_log_is_sound_and_opens() {
    let home = three_days();
    let sound = home.sound();
    assert_eq!((sound.lines, sound.files, sound.kept), (9, 3, 0));
    assert_eq!((sound.anchored, &sound.torn), (Some(8), &None));
    assert_eq!(home.open().unwrap().1.lines, 9);
    let lines = stored(&home.files());
    for anchor in anchors(&lines) {
        home.set_anchor(anchor);
        assert_eq!(home.sound(), sound);
    }
}

#[test]
fn every_flipped_bit_and_every_byte_made_a_newline_names_its_line() {
    let home = three_days();
    let files = home.files();
    let lines = stored(&files);
    for anchor in anchors(&lines) {
        home.set_anchor(anchor);
        for line in &lines {
            let begin = usize::try_from(line.offset).unwrap();
            for at in begin..=begin + line.bytes.len() {
                let good = files[&line.file][at];
                for bad in (0..8).map(|bit| good ^ (1 << bit)).chain([b'\n']) {
                    if bad == good {
                        continue;
                    }
                    let mut changed = files[&line.file].clone();
                    changed[at] = bad;
                    fs::write(home.file(&line.file), &changed).unwrap();
                    let broken = home.broken();
                    assert!(
                        line.is_named_by(&broken),
                        "byte {at} of {} from {good} to {bad} is in line {}, but named is {broken}",
                        line.file,
                        line.line,
                    );
                    if bad == good ^ 1 {
                        assert_eq!(home.refused(), broken);
                    }
                }
            }
            fs::write(home.file(&line.file), &files[&line.file]).unwrap();
        }
        home.sound();
    }
}

#[test]
fn a_removed_line_is_missed_where_it_stood() {
    let home = three_days();
    let lines = stored(&home.files());
    for anchor in anchors(&lines) {
        home.set_anchor(anchor);
        for gone in 0..lines.len() {
            let mut left = lines.clone();
            let removed = left.remove(gone);
            let broken = broken_with(&home, &joined(&left));
            // A line that was its file's last is missed at the next file's first.
            let expected = match lines.get(gone + 1) {
                Some(next) if next.file != removed.file => (next.file.as_str(), 1, 0),
                _ => (removed.file.as_str(), removed.line, removed.offset),
            };
            assert_eq!(
                (broken.file.as_str(), broken.line, broken.offset),
                expected,
                "{broken}"
            );
            let seq = if gone + 1 == lines.len() {
                gone
            } else {
                gone + 1
            };
            assert_eq!(broken.seq, Some(seq as u64));
        }
    }
}

#[test]
fn a_removed_day_file_is_missed() {
    let home = three_days();
    let files = home.files();
    let names: Vec<_> = files.keys().cloned().collect();
    for (index, name) in names.iter().enumerate() {
        let mut left = files.clone();
        left.remove(name);
        let broken = broken_with(&home, &left);
        match names.get(index + 1) {
            Some(next) => {
                assert_eq!((&broken.file, broken.line), (next, 1));
                assert!(broken.reason.contains("are missing"), "{broken}");
            }
            None => {
                assert_eq!((&broken.file, broken.line), (&names[index - 1], 4));
                assert!(broken.reason.contains("the anchor names seq 8"), "{broken}");
            }
        }
    }
    let broken = broken_with(&home, &Files::new());
    assert_eq!((broken.file.as_str(), broken.line), ("anchor", 9));
}

#[test]
fn an_emptied_day_file_is_missed() {
    let home = three_days();
    let files = home.files();
    for name in files.keys() {
        let mut left = files.clone();
        left.insert(name.clone(), Vec::new());
        broken_with(&home, &left);
    }
}

#[test]
fn swapped_files_are_named_at_the_first_of_them() {
    let home = three_days();
    let files = home.files();
    let names: Vec<_> = files.keys().cloned().collect();
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let mut swapped = files.clone();
        swapped.insert(names[one].clone(), files[&names[other]].clone());
        swapped.insert(names[other].clone(), files[&names[one]].clone());
        let broken = broken_with(&home, &swapped);
        assert_eq!((&broken.file, broken.line), (&names[one], 1));
        assert!(broken.reason.contains(&names[other]), "{broken}");
    }
}

#[test]
fn swapped_and_doubled_lines_are_named() {
    let home = three_days();
    let lines = stored(&home.files());
    for index in 0..lines.len() - 1 {
        if lines[index].file == lines[index + 1].file {
            let mut swapped = lines.clone();
            swapped.swap(index, index + 1);
            let broken = broken_with(&home, &joined(&swapped));
            assert!(lines[index].is_named_by(&broken), "{broken}");
        }
        let mut doubled = lines.clone();
        doubled.insert(index, lines[index].clone());
        let broken = broken_with(&home, &joined(&doubled));
        assert_eq!(
            (&broken.file, broken.line),
            (&lines[index].file, lines[index].line + 1)
        );
    }
}

#[test]
fn a_log_whose_last_lines_were_cut_ends_before_its_anchor() {
    let home = three_days();
    let lines = stored(&home.files());
    for anchor in anchors(&lines) {
        home.set_anchor(anchor);
        for left in 1..lines.len() {
            let broken = broken_with(&home, &joined(&lines[..left]));
            assert_eq!(broken.seq, Some(left as u64));
            let last = &lines[left - 1];
            assert_eq!((&broken.file, broken.line), (&last.file, last.line + 1));
            assert_eq!(broken.offset, last.offset + last.bytes.len() as u64 + 1);
        }
    }
}

/// The lines from `first` on with an entry replaced there and every hash made right again.
fn rewritten(lines: &[Stored], first: usize) -> Vec<Stored> {
    let mut prev: Option<Hash32> = None;
    let mut result = lines.to_vec();
    for (index, stored) in result.iter_mut().enumerate() {
        let mut line: Line = serde_json::from_slice(&stored.bytes).unwrap();
        if index == first {
            line.entry = entry("forged");
        }
        line.prev = prev.unwrap_or(Hash32::ZERO);
        stored.bytes = serde_json::to_vec(&line).unwrap();
        prev = Some(crate::logs::hash(&stored.bytes));
    }
    result
}

#[test]
fn lines_rewritten_with_new_hashes_do_not_match_the_anchor() {
    let home = three_days();
    let lines = stored(&home.files());
    let [every, last] = anchors(&lines);
    for first in 0..lines.len() {
        let forged = rewritten(&lines, first);
        home.set_anchor(&every);
        let broken = broken_with(&home, &joined(&forged));
        assert_eq!(
            (&broken.file, broken.line),
            (&lines[first].file, lines[first].line)
        );
        assert!(
            broken.reason.contains("not the one in the anchor"),
            "{broken}"
        );

        home.set_anchor(&last);
        let broken = broken_with(&home, &joined(&forged));
        assert_eq!(broken.seq, Some(lines.len() as u64 - 1));

        // The twin: with an anchor of its own it is a log like any other.
        let [own, _] = anchors(&forged);
        home.set_anchor(own);
        home.sound();
    }
}

#[test]
fn a_log_without_its_anchor_is_refused_and_an_empty_one_opens_without() {
    let home = three_days();
    fs::remove_file(home.paths().anchor).unwrap();
    let broken = broken_with(&home, &home.files());
    assert_eq!(broken.file, "anchor");
    assert!(broken.reason.contains("is missing"), "{broken}");

    home.set_anchor("");
    let broken = broken_with(&home, &home.files());
    assert!(broken.reason.contains("names no line"), "{broken}");

    fs::remove_file(home.paths().anchor).unwrap();
    home.set_files(&Files::new());
    assert_eq!(home.sound().lines, 0);
    home.ledger();
}

#[test]
fn every_flipped_bit_of_the_anchor_is_named_but_that_which_tears_its_last_line() {
    let home = three_days();
    let anchor = home.anchor();
    let before_last = 7;
    for at in 0..anchor.len() {
        for bit in 0..8 {
            let mut changed = anchor.clone();
            changed[at] ^= 1 << bit;
            home.set_anchor(&changed);
            if at == anchor.len() - 1 {
                assert_eq!(home.sound().anchored, Some(before_last));
            } else {
                home.broken();
            }
        }
    }
    home.set_anchor(&anchor);
    home.sound();
}

#[test]
fn an_anchor_cut_anywhere_behind_its_first_line_is_only_behind() {
    let home = three_days();
    let anchor = home.anchor();
    let first = anchor.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in 0..anchor.len() {
        home.set_anchor(&anchor[..length]);
        if length < first {
            home.refused();
        } else {
            home.sound();
            assert_eq!(home.open().unwrap().1.lines, 9);
            let sound = home.sound();
            assert_eq!((sound.anchored, sound.kept), (Some(8), 0));
        }
    }
}

#[test]
fn a_file_whose_name_is_no_day_is_named_and_other_names_are_left_alone() {
    let home = three_days();
    for name in ["2026-09-17.jsonl.gz", "notes.txt"] {
        fs::write(home.file(name), "x").unwrap();
    }
    home.sound();
    fs::write(home.file("2026-02-30.jsonl"), "").unwrap();
    assert_eq!(home.broken().file, "2026-02-30.jsonl");
    assert_eq!(home.refused().file, "2026-02-30.jsonl");
}

const DAY: &str = "2026-09-17";
const NOON: &str = "2026-09-17T12:00:00.000Z";

#[test]
fn a_time_that_goes_back_is_named_and_one_that_stands_still_is_not() {
    for (second, sound) in [(NOON, true), ("2026-09-17T11:59:59.999Z", false)] {
        let mut log = Forged::default();
        log.push(NOON, entry("a")).push(second, entry("b"));
        let home = log.home();
        if sound {
            home.sound();
        } else {
            let broken = home.broken();
            assert_eq!((broken.line, broken.seq), (2, Some(1)));
            assert!(
                broken.reason.contains("before that of the line before"),
                "{broken}"
            );
        }
    }
}

#[test]
fn a_line_in_another_days_file_is_named() {
    let mut log = Forged::default();
    log.push(NOON, entry("a"));
    let late = serde_json::to_vec(&log.line("2026-09-18T00:00:00.000Z", entry("b"))).unwrap();
    log.push_bytes(DAY, &late);
    let broken = log.home().broken();
    assert_eq!(broken.line, 2);
    assert!(
        broken.reason.contains("belongs into 2026-09-18.jsonl"),
        "{broken}"
    );
}

#[test]
fn a_line_that_is_not_exactly_a_record_is_named_although_hashes_and_anchor_agree() {
    let text = |log: &Forged| serde_json::to_string(&log.line(NOON, entry("b"))).unwrap();
    type Change = fn(String) -> String;
    let changes: [(&str, Change); 6] = [
        ("unknown field", |line| line.replacen('{', "{\"x\":1,", 1)),
        ("doubled field", |line| line.replacen('{', "{\"seq\":1,", 1)),
        ("doubled type", |line| {
            line.replacen("{\"type\"", "{\"type\":\"role\",\"type\"", 1)
        }),
        ("bytes behind it", |line| line + "0"),
        ("a float", |line| {
            line.replacen("\"seq\":1", "\"seq\":1.0", 1)
        }),
        ("nothing", |_| String::new()),
    ];
    for (what, change) in changes {
        let mut log = Forged::default();
        log.push(NOON, entry("a"));
        let line = change(text(&log));
        log.push_bytes(DAY, line.as_bytes());
        log.push(NOON, entry("c"));
        let broken = log.home().broken();
        assert_eq!(broken.line, 2, "{what}: {broken}");
        assert!(broken.reason.contains("not a record"), "{what}: {broken}");
    }
    let mut log = Forged::default();
    log.push(NOON, entry("a"));
    let line = text(&log);
    log.push_bytes(DAY, line.as_bytes()).push(NOON, entry("c"));
    log.home().sound();
}

#[test]
fn bytes_outside_the_chain_need_a_recovery_entry_that_fits_them_right_behind() {
    let torn = br#"{"seq":1,"time":"2026-09-1"#;
    let file = "2026-09-17.jsonl";
    let with = |entries: &[Entry]| {
        let mut log = Forged::default();
        log.push(NOON, entry("a")).push_outside(DAY, torn);
        for entry in entries {
            log.push(NOON, entry.clone());
        }
        log.home()
    };
    let mut log = Forged::default();
    let offset = log.push(NOON, entry("a")).offset(DAY);
    let good = recovery(file, offset, torn);
    assert_eq!(with(&[good.clone(), entry("b")]).sound().kept, 1);

    let mut longer = torn.to_vec();
    longer.push(b'\n');
    let mut other = torn.to_vec();
    other[0] = b'[';
    for (what, entries) in [
        ("another offset", vec![recovery(file, offset + 1, torn)]),
        (
            "another file",
            vec![recovery("2026-09-16.jsonl", offset, torn)],
        ),
        ("another length", vec![recovery(file, offset, &longer)]),
        ("another hash", vec![recovery(file, offset, &other)]),
        ("none", vec![entry("b")]),
        ("too late", vec![entry("b"), good.clone()]),
    ] {
        let broken = with(&entries).broken();
        assert_eq!(
            (broken.line, broken.offset),
            (2, offset),
            "{what}: {broken}"
        );
    }
    let broken = with(&[good.clone(), good]).broken();
    assert_eq!(broken.line, 4);
    assert!(
        broken.reason.contains("does not stand before it"),
        "{broken}"
    );
}

#[test]
fn a_line_without_newline_is_bad_if_another_file_follows() {
    let home = three_days();
    let mut files = home.files();
    let first = files.get_mut("2026-09-17.jsonl").unwrap();
    first.pop();
    let broken = broken_with(&home, &files);
    assert_eq!((broken.file.as_str(), broken.line), ("2026-09-17.jsonl", 3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_splice_of_an_anchored_log_is_sound(
        cut in any::<prop::sample::Index>(),
        removed in 0usize..400,
        from in any::<prop::sample::Index>(),
        copied in 0usize..400,
        file in any::<prop::sample::Index>(),
    ) {
        let home = three_days();
        let files = home.files();
        let name = file.get(&files.keys().cloned().collect::<Vec<_>>()).clone();
        let bytes = &files[&name];
        let source: Vec<u8> = files.values().flatten().copied().collect();
        let (cut, from) = (cut.index(bytes.len()), from.index(source.len()));
        let mut spliced = bytes[..cut].to_vec();
        spliced.extend(&source[from..source.len().min(from + copied)]);
        spliced.extend(&bytes[bytes.len().min(cut + removed)..]);
        prop_assume!(&spliced != bytes);
        let mut changed = files.clone();
        changed.insert(name, spliced);
        broken_with(&home, &changed);
    }
}
