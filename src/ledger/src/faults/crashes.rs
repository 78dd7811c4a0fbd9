//! A process killed at any byte of a start or of an append, and again during the recovery from that: the next start
//! copes, nothing that was durable is lost, and the log verifies.

use std::sync::Arc;

use proptest::prelude::*;
use proto::Hash32;
use sha2::{Digest, Sha256};

use super::*;
use crate::Ledger;

/// Opens on a disk that dies after `budget` bytes and acts, and appends `entries` durably until it does. Gives the
/// names that were durable, and whether the start came through.
fn life(paths: &Paths, time: &str, budget: Option<u64>, names: &[String]) -> (Vec<String>, bool) {
    let disk = Faulty::default();
    disk.order(|orders| orders.budget = budget);
    let Ok((ledger, _)) = Ledger::open_on(Arc::new(disk), paths, at(time)) else {
        assert!(budget.is_some(), "a start on a whole disk");
        return (Vec::new(), false);
    };
    let durable = names
        .iter()
        .take_while(|name| ledger.append_durable(entry(name)).is_ok())
        .cloned()
        .collect();
    (durable, true)
}

fn copy(from: &Path, to: &Path) {
    let (from, to) = (paths(from), paths(to));
    fs::create_dir_all(&to.audit).unwrap();
    for entry in fs::read_dir(&from.audit).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.audit.join(entry.file_name())).unwrap();
    }
    fs::copy(&from.anchor, &to.anchor).unwrap();
}

/// After a last start on a whole disk: sound, and everything durable is told in order.
fn ends_well(paths: &Paths, time: &str, durable: &[String]) {
    life(paths, time, None, &["end".to_owned()]);
    let sound = sound(paths);
    assert_eq!(sound.torn, None);
    assert_eq!(sound.anchored, Some(sound.lines - 1));
    let mut prev = Hash32::ZERO;
    let mut lines = 0;
    for line in crate::read(paths) {
        let line = line.unwrap();
        assert_eq!(
            (line.seq, line.prev),
            (lines, prev),
            "what is read is the chain"
        );
        let bytes = serde_json::to_vec(&line).unwrap();
        (prev, lines) = (crate::open::digest(&bytes), lines + 1);
    }
    assert_eq!(lines, sound.lines);
    recoveries_tell_the_bytes(paths);
    let told = told(paths);
    let mut rest = told.iter();
    for name in durable.iter().chain(["end".to_owned()].iter()) {
        assert!(rest.any(|it| it == name), "{name} is missing in {told:?}");
    }
}

/// Every recovery entry says what stands in the files, by bytes and not by the ledger's word.
fn recoveries_tell_the_bytes(paths: &Paths) {
    for line in crate::read(paths) {
        if let Entry::Recovery {
            file,
            offset,
            length,
            sha256,
        } = line.unwrap().entry
        {
            let bytes = fs::read(paths.audit.join(file)).unwrap();
            let begin = usize::try_from(offset).unwrap();
            let end = begin + usize::try_from(length).unwrap();
            let digest: [u8; 32] = Sha256::digest(&bytes[begin..end]).into();
            assert_eq!(sha256, Hash32::new(digest));
            assert_eq!(bytes[end], b'\n');
        }
    }
}

/// Every budget until a start comes through, each on a copy of `home`; hands each dead home on.
fn every_death(home: &Path, time: &str, mut then: impl FnMut(&Path)) {
    for budget in 0.. {
        let dead = scratch();
        copy(home, dead.path());
        let (_, opened) = life(&paths(dead.path()), time, Some(budget), &[]);
        then(dead.path());
        if opened {
            return;
        }
    }
}

/// A home with `whole` durable lines and a torn one behind them, cut to its first `length` bytes; none is too short.
fn torn(whole: usize, length: usize) -> Option<tempfile::TempDir> {
    let home = scratch();
    let names: Vec<_> = (0..whole).map(|index| format!("whole-{index}")).collect();
    life(&paths(home.path()), NOON, None, &names);
    let file = paths(home.path()).audit.join("2026-09-17.jsonl");
    let before = fs::metadata(&file).map_or(0, |data| data.len());
    let anchor = fs::read(paths(home.path()).anchor).unwrap();
    life(&paths(home.path()), NOON, None, &["torn".to_owned()]);
    let mut bytes = fs::read(&file).unwrap();
    let end = usize::try_from(before).unwrap() + length;
    let fits = end < bytes.len();
    bytes.truncate(end);
    fs::write(&file, &bytes).unwrap();
    fs::write(paths(home.path()).anchor, anchor).unwrap();
    fits.then_some(home)
}

/// The cuts worth trying: one byte, some, and a whole record that lacks only its newline.
fn cuts(whole: usize) -> [usize; 3] {
    let last = (1..)
        .take_while(|length| torn(whole, *length).is_some())
        .last();
    [1, 40, last.unwrap()]
}

#[test]
fn a_first_life_killed_at_any_byte_loses_nothing_durable() {
    let names: Vec<_> = (0..3).map(|index| format!("line-{index}")).collect();
    for budget in 0.. {
        let home = scratch();
        let paths = paths(home.path());
        let (durable, _) = life(&paths, NOON, Some(budget), &names);
        ends_well(&paths, NOON, &durable);
        if durable.len() == names.len() {
            return;
        }
    }
}

#[test]
fn a_recovery_killed_at_any_byte_is_finished_by_the_next_start() {
    for whole in [0, 1, 2] {
        let durable: Vec<_> = (0..whole).map(|index| format!("whole-{index}")).collect();
        for length in cuts(whole) {
            for time in [NOON, "2026-09-18T12:00:00.000Z"] {
                let home = torn(whole, length).unwrap();
                every_death(home.path(), time, |dead| {
                    ends_well(&paths(dead), "2026-09-19T12:00:00.000Z", &durable);
                });
            }
        }
    }
}

#[test]
fn a_recovery_of_a_recovery_killed_at_any_byte_is_finished_by_the_next_start() {
    // A whole record without its newline is the hard case: once it has one, only what follows tells what it is.
    for whole in [0, 1] {
        let durable: Vec<_> = (0..whole).map(|index| format!("whole-{index}")).collect();
        let home = torn(whole, cuts(whole)[2]).unwrap();
        let ended = scratch();
        copy(home.path(), ended.path());
        life(&paths(ended.path()), NOON, None, &[]);
        let (begun, whole_entry) = (log_length(home.path()), log_length(ended.path()));
        let mut deaths = 0;
        every_death(home.path(), NOON, |dead| {
            // Each death of the second start costs a start of its own, so of the first start's take the telling ones:
            // the entry not begun, begun, half, all but whole, and whole with the anchor half.
            let length = log_length(dead);
            let half = (begun + whole_entry) / 2;
            deaths += 1;
            if length < begun + 4 || length == half || whole_entry - length == 1 || deaths % 32 == 0
            {
                every_death(dead, NOON, |twice| ends_well(&paths(twice), NOON, &durable));
            }
        });
    }
}

fn log_length(home: &Path) -> u64 {
    let file = paths(home).audit.join("2026-09-17.jsonl");
    fs::metadata(file).unwrap().len()
}

/// One life of a supervisor: its clock, when the disk dies, what it appends.
fn lives() -> impl Strategy<Value = Vec<(u64, Option<u64>, usize)>> {
    let budget = prop_oneof![3 => (0u64..700).prop_map(Some), 1 => Just(None)];
    prop::collection::vec((10u64..20, budget, 0usize..4), 1..9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn many_lives_each_killed_somewhere_lose_nothing_durable(lives in lives()) {
        let home = scratch();
        let paths = paths(home.path());
        let mut durable = Vec::new();
        let mut latest = 10;
        for (number, (day, budget, count)) in lives.iter().enumerate() {
            let names: Vec<_> = (0..*count).map(|index| format!("life-{number}-{index}")).collect();
            // Clocks jump both ways; the log's times do not.
            let (told, _) = life(&paths, &format!("2026-09-{day}T12:00:00.000Z"), *budget, &names);
            durable.extend(told);
            latest = latest.max(*day);
        }
        ends_well(&paths, &format!("2026-09-{latest}T13:00:00.000Z"), &durable);
    }
}
