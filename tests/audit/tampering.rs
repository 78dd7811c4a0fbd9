//! Whatever is done to the stored log, `bxctl audit verify` ends with 1 and names the first bad line.

use std::fs;

use ledger::{Entry, Line};
use proto::Hash32;

use crate::log::{Files, Home, Place, Stored, hash, joined, stored};

/// How many records the log has.
const RECORDS: usize = 16;

/// The place that is named once the day files are these.
fn named(home: &Home, files: &Files) -> (Place, String) {
    home.set_files(files);
    home.broken()
}

#[test]
fn the_log_as_it_was_written_is_sound() {
    let home = Home::with_log();
    let verdict = home.sound();
    assert_eq!(verdict["lines"], RECORDS);
    assert_eq!(verdict["files"], 3);
    assert_eq!(verdict["anchored"], RECORDS - 1);
    let lines = stored(&home.files());
    assert_eq!(verdict["head"], hash(&lines[RECORDS - 1].bytes).to_string());
    // Records of ends wait for the next that must be durable: the anchor names most lines, not all.
    assert!(home.anchored().len() < RECORDS);
    let output = home.verify(&[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.starts_with(b"sound: 16 records in 3 files\n"));
}

#[test]
fn every_flipped_byte_of_a_line_and_one_of_every_other_names_that_line() {
    let home = Home::with_log();
    let files = home.files();
    let lines = stored(&files);
    // In the middle of a day, not named by the anchor, with a line behind it.
    let whole = 7;
    assert!(!home.anchored().contains(&whole) && lines[whole].line == 2);
    for (seq, line) in lines.iter().enumerate() {
        let end = line.bytes.len();
        let places: Vec<usize> = match seq {
            seq if seq == whole => (0..=end).collect(),
            _ => vec![end * (seq + 1) / (RECORDS + 2), end],
        };
        for at in places {
            let mut changed = files.clone();
            changed.get_mut(&line.file).unwrap()[line.offset + at] ^= 1;
            let (place, reason) = named(&home, &changed);
            // The sequence is what the line itself says, which may be what was changed.
            assert_eq!(
                (place.file, place.line),
                (line.file.clone(), line.line),
                "byte {at} of record {seq}: {reason}"
            );
        }
    }
    home.set_files(&files);
    home.sound();
}

#[test]
fn a_person_is_told_the_place_too() {
    let home = Home::with_log();
    let files = home.files();
    let line = &stored(&files)[7];
    let mut changed = files.clone();
    changed.get_mut(&line.file).unwrap()[line.offset + 40] ^= 1;
    home.set_files(&changed);
    let text = home.told_as_broken();
    let place = format!("{}:{} (byte {}", line.file, line.line, line.offset);
    assert!(text.lines().next().unwrap().contains(&place), "{text}");
}

#[test]
fn a_removed_line_is_missed_where_it_stood() {
    let home = Home::with_log();
    let lines = stored(&home.files());
    for gone in 0..RECORDS {
        let mut left = lines.clone();
        let removed = left.remove(gone);
        let (place, reason) = named(&home, &joined(&left));
        let expected = match lines.get(gone + 1) {
            // What stands in its place now has a later sequence than must follow.
            Some(next) if next.file == removed.file => removed.place(gone + 1),
            Some(next) => next.place(gone + 1),
            // Nothing does; the anchor knows of it.
            None => removed.place(gone),
        };
        assert_eq!(place, expected, "record {gone}: {reason}");
    }
}

#[test]
fn a_removed_day_file_is_missed() {
    let home = Home::with_log();
    let files = home.files();
    let lines = stored(&files);
    let names: Vec<&String> = files.keys().collect();
    for (index, name) in names.iter().enumerate() {
        let mut left = files.clone();
        left.remove(*name);
        let (place, reason) = named(&home, &left);
        let expected = match names.get(index + 1) {
            Some(next) => {
                let seq = first_of(&lines, next);
                lines[seq].place(seq)
            }
            None => missing_after(&lines, first_of(&lines, name)),
        };
        assert_eq!(place, expected, "{name}: {reason}");
    }
}

/// The sequence of a file's first record.
fn first_of(lines: &[Stored], file: &str) -> usize {
    lines.iter().position(|line| line.file == file).unwrap()
}

/// Where the record `first` is missing, if nothing follows the one before it.
fn missing_after(lines: &[Stored], first: usize) -> Place {
    let before = &lines[first - 1];
    Place {
        line: before.line + 1,
        ..before.place(first)
    }
}

#[test]
fn swapped_files_are_named_at_the_first_of_them() {
    let home = Home::with_log();
    let files = home.files();
    let names: Vec<&String> = files.keys().collect();
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let (one, other) = (names[one], names[other]);
        let mut swapped = files.clone();
        swapped.insert(one.clone(), files[other].clone());
        swapped.insert(other.clone(), files[one].clone());
        let (place, reason) = named(&home, &swapped);
        assert_eq!((&place.file, place.line), (one, 1), "{reason}");
        assert!(reason.contains(other.as_str()), "{reason}");
    }
}

#[test]
fn a_log_whose_last_lines_were_cut_is_missed_where_it_ends_now() {
    let home = Home::with_log();
    let files = home.files();
    let lines = stored(&files);
    for cut in 1..RECORDS {
        let left = RECORDS - cut;
        let (place, reason) = named(&home, &joined(&lines[..left]));
        assert_eq!(place, missing_after(&lines, left), "{cut}: {reason}");
    }
    // Nothing is left: the anchor's last line is what no record answers to.
    let (place, reason) = named(&home, &Files::new());
    let last = home.anchored().len() as u64;
    assert_eq!(
        (place.file.as_str(), place.line),
        ("anchor", last),
        "{reason}"
    );
    // The twin of all this: a log that was never longer.
    let anchor = home.anchor();
    let shorter: String = anchor.split_inclusive('\n').take(3).collect();
    let left = home.anchored()[2] + 1;
    home.set_anchor(&shorter);
    home.set_files(&joined(&lines[..left]));
    assert_eq!(home.sound()["lines"], left);
}

/// The lines with another record at `first`, and every hash from there on made right again.
fn rewritten(lines: &[Stored], first: usize) -> Vec<Stored> {
    let mut result = lines.to_vec();
    let mut prev = match first.checked_sub(1) {
        Some(before) => hash(&lines[before].bytes),
        None => Hash32::ZERO,
    };
    for (seq, stored) in result.iter_mut().enumerate().skip(first) {
        let mut line: Line = serde_json::from_slice(&stored.bytes).unwrap();
        if seq == first {
            line.entry = forged();
        }
        line.prev = prev;
        stored.bytes = serde_json::to_vec(&line).unwrap();
        prev = hash(&stored.bytes);
    }
    result
}

fn forged() -> Entry {
    let text = r#"{"type":"session","session":"s-9","event":"opened","by":"bxctl"}"#;
    serde_json::from_str(text).unwrap()
}

#[test]
fn lines_rewritten_with_new_hashes_are_named_at_the_first_that_the_anchor_knows() {
    let home = Home::with_log();
    let lines = stored(&home.files());
    let anchor = home.anchor();
    let anchored = home.anchored();
    for first in 0..RECORDS {
        let forged = rewritten(&lines, first);
        home.set_anchor(&anchor);
        let (place, reason) = named(&home, &joined(&forged));
        let known = *anchored.iter().find(|seq| **seq >= first).unwrap();
        assert_eq!(place, lines[known].place(known), "{first}: {reason}");
        // The twin: with an anchor that was rewritten as well nobody could tell.
        let own: String = anchored
            .iter()
            .map(|seq| format!("{seq} {}\n", hash(&forged[*seq].bytes)))
            .collect();
        home.set_anchor(&own);
        assert_eq!(home.sound()["lines"], RECORDS);
    }
}

#[test]
fn a_log_without_its_anchor_is_broken() {
    let home = Home::with_log();
    let anchor = home.anchor();
    fs::remove_file(home.paths().anchor).unwrap();
    let (place, reason) = home.broken();
    assert_eq!((place.file.as_str(), place.line), ("anchor", 1), "{reason}");
    home.set_anchor(&anchor);
    home.sound();
}

#[test]
fn what_cannot_be_read_is_neither_sound_nor_broken() {
    let home = Home::with_log();
    let day = home.paths().audit.join("2026-09-18.jsonl");
    let anchor = home.paths().anchor;
    for path in [&day, &anchor] {
        let bytes = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        for words in [&[][..], &["--json"]] {
            let output = home.verify(words);
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(output.stdout.is_empty(), "{output:?}");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(told.contains(name), "{told}");
        }
        fs::remove_dir(path).unwrap();
        fs::write(path, bytes).unwrap();
        home.sound();
    }
    let output = Home::empty().verify(&[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no audit log"));
}
