//! A torn last line is kept, ended and announced, and the chain goes on from the last whole record; a line that the
//! anchor names was whole once, so a log that lost it is refused.

use crate::logs::{Home, entries, entry, hash, recovery, stored, three_days};
use ledger::{Entry, Opened, Recovered, Torn};

const DAY: &str = "2026-09-17.jsonl";
const NEXT_DAY: &str = "2026-09-18.jsonl";

/// Cuts the last record of `home` at every byte, and has it opened at `time` with the anchor as it stood before.
fn cut_everywhere(home: &Home, anchor_before: &[u8], time: &str) {
    let files = home.files();
    let lines = stored(&files);
    let last = lines.last().unwrap();
    let before = lines.len() as u64 - 1;
    let begin = usize::try_from(last.offset).unwrap();
    let recovered_in = format!("{}.jsonl", &time[..10]);
    for length in 0..=last.bytes.len() {
        let mut cut = files.clone();
        cut.get_mut(&last.file).unwrap().truncate(begin + length);
        home.set_files(&cut);
        home.set_anchor(anchor_before);
        let torn = &last.bytes[..length];
        let sound = home.sound();
        assert_eq!(sound.lines, before);
        assert_eq!(
            sound.torn,
            (length > 0).then(|| Torn {
                file: last.file.clone(),
                offset: last.offset,
                length: length as u64,
            })
        );

        home.set_clock(time);
        let (ledger, opened) = home.open().unwrap();
        if length == 0 {
            assert_eq!((opened.recovered, opened.lines), (None, before));
            continue;
        }
        let expected = Opened {
            recovered: Some(Recovered {
                file: last.file.clone(),
                offset: last.offset,
                length: length as u64,
                sha256: hash(torn),
                seq: before,
            }),
            lines: before + 1,
        };
        assert_eq!(opened, expected, "{length} bytes");
        // The entry was durable and behind the anchor when the ledger was open.
        assert_eq!(home.sound().anchored, Some(before));
        ledger.append_durable(entry("after")).unwrap();
        drop(ledger);

        let sound = home.sound();
        assert_eq!((sound.lines, sound.kept, sound.torn), (before + 2, 1, None));
        let kept = &home.files()[&last.file][begin..];
        assert_eq!(&kept[..=length], [torn, b"\n"].concat(), "the bytes stay");
        let read = home.read();
        let announced = &read[usize::try_from(before).unwrap()];
        assert_eq!(announced.entry, recovery(&last.file, last.offset, torn));
        let chained = lines
            .len()
            .checked_sub(2)
            .map(|index| hash(&lines[index].bytes));
        assert_eq!(announced.prev, chained.unwrap_or(proto::Hash32::ZERO));
        assert_eq!(read.len() as u64, before + 2);
        assert_eq!(
            stored(&home.files()).last().unwrap().file,
            recovered_in,
            "the entry stands in the file of its own day"
        );
        assert_eq!(home.open().unwrap().1.recovered, None);
    }
}

/// Cuts the last record at every byte with the anchor that names it.
fn refused_everywhere(home: &Home) {
    let files = home.files();
    let lines = stored(&files);
    let last = lines.last().unwrap();
    let anchor = home.anchor();
    for length in 0..=last.bytes.len() {
        let mut cut = files.clone();
        let end = usize::try_from(last.offset).unwrap() + length;
        cut.get_mut(&last.file).unwrap().truncate(end);
        home.set_files(&cut);
        let broken = home.broken();
        assert!(last.is_named_by(&broken), "{length} bytes: {broken}");
        assert_eq!(broken.seq, Some(lines.len() as u64 - 1));
        assert_eq!(home.refused(), broken);
        assert_eq!(home.files(), cut);
        assert_eq!(home.anchor(), anchor);
    }
    home.set_files(&files);
    home.open().unwrap();
}

/// A log whose last record is `entry`, and its anchor before it.
fn ending_with(entry: Entry) -> (Home, Vec<u8>) {
    let home = Home::new();
    let ledger = home.ledger();
    for entry in entries() {
        ledger.append_durable(entry).unwrap();
    }
    let anchor = home.anchor();
    ledger.append_durable(entry).unwrap();
    drop(ledger);
    (home, anchor)
}

#[test]
fn a_last_record_cut_at_any_byte_is_recovered_on_the_same_day() {
    for last in entries() {
        let (home, anchor) = ending_with(last);
        cut_everywhere(&home, &anchor, "2026-09-17T23:59:59.999Z");
    }
}

#[test]
fn a_last_record_cut_at_any_byte_is_recovered_on_a_later_day() {
    let (home, anchor) = ending_with(entry("last"));
    cut_everywhere(&home, &anchor, "2027-01-01T00:00:00.000Z");
}

#[test]
fn the_first_record_ever_cut_at_any_byte_is_recovered() {
    let home = Home::new();
    let ledger = home.ledger();
    let anchor = home.anchor();
    ledger.append_durable(entry("only")).unwrap();
    drop(ledger);
    cut_everywhere(&home, &anchor, "2026-09-17T13:00:00.000Z");
}

#[test]
fn the_first_record_of_a_day_cut_at_any_byte_is_recovered_though_the_clock_went_back() {
    let (home, _) = ending_with(entry("last"));
    let anchor = home.anchor();
    home.set_clock("2026-09-18T00:00:00.000Z");
    home.ledger().append_durable(entry("next-day")).unwrap();
    let files = home.files();
    assert!(files.contains_key(NEXT_DAY));
    // The clock says the 17th, but that file has a later one behind it and stays closed.
    let lines = stored(&files);
    let last = lines.last().unwrap();
    for length in 1..=last.bytes.len() {
        let mut cut = files.clone();
        cut.get_mut(NEXT_DAY).unwrap().truncate(length);
        home.set_files(&cut);
        home.set_anchor(&anchor);
        home.set_clock("2026-09-17T12:00:00.000Z");
        let opened = home.open().unwrap().1;
        assert!(opened.recovered.is_some());
        assert_eq!(home.files()[DAY], files[DAY]);
        assert_eq!(home.sound().kept, 1);
        assert_eq!(
            home.read().last().unwrap().time.to_string(),
            "2026-09-18T00:00:00.000Z"
        );
    }
}

#[test]
fn a_recovery_entry_cut_at_any_byte_is_recovered_itself() {
    let (home, anchor) = ending_with(entry("last"));
    let mut files = home.files();
    let whole = files[DAY].len();
    files.get_mut(DAY).unwrap().truncate(whole - 20);
    home.set_files(&files);
    home.set_anchor(&anchor);
    home.open().unwrap();
    let recovered = home.files();
    let begin = usize::try_from(stored(&recovered).last().unwrap().offset).unwrap();
    for end in begin..recovered[DAY].len() {
        let mut cut = recovered.clone();
        cut.get_mut(DAY).unwrap().truncate(end);
        home.set_files(&cut);
        home.set_anchor(&anchor);
        let opened = home.open().unwrap().1;
        assert!(opened.recovered.is_some(), "cut at {end}");
        home.ledger().append_durable(entry("after")).unwrap();
        let sound = home.sound();
        assert_eq!(
            (sound.lines, sound.kept),
            (6, 1),
            "one entry for both stretches"
        );
        assert_eq!(home.read().len(), 6);
        assert!(home.files()[DAY].starts_with(&cut[DAY]));
    }
}

#[test]
fn a_last_record_cut_at_any_byte_is_refused_if_the_anchor_names_it() {
    for last in entries() {
        refused_everywhere(&ending_with(last).0);
    }
    refused_everywhere(&three_days());
}

#[test]
fn every_changed_byte_of_kept_bytes_and_of_their_recovery_entry_is_found() {
    for missing in [1, 30] {
        let (home, anchor) = ending_with(entry("last"));
        let mut files = home.files();
        let whole = files[DAY].len();
        files.get_mut(DAY).unwrap().truncate(whole - missing);
        home.set_files(&files);
        home.set_anchor(&anchor);
        home.ledger().append_durable(entry("after")).unwrap();
        home.sound();
        let files = home.files();
        let lines = stored(&files);
        let (torn, announcing, after) = (&lines[4], &lines[5], &lines[6]);
        for at in torn.offset..after.offset {
            let at = usize::try_from(at).unwrap();
            for bit in 0..8 {
                let mut changed = files.clone();
                changed.get_mut(DAY).unwrap()[at] ^= 1 << bit;
                home.set_files(&changed);
                let broken = home.broken();
                assert!(
                    torn.is_named_by(&broken) || announcing.is_named_by(&broken),
                    "byte {at}, bit {bit}: {broken}"
                );
            }
        }
    }
}
