//! What the one writer puts on the disk, and that there is one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::logs::{Home, Stored, entries, entry, hash, mode, stored};
use ledger::{AppendError, Ledger, LockError, OpenError, ReadError, Report, VerifyError};
use proptest::prelude::*;
use proto::{Hash32, Timestamp};

/// Checks the stored bytes against the rules, with none of the ledger's code.
fn chained(lines: &[Stored]) {
    let mut prev = Hash32::ZERO;
    let mut latest = Timestamp::from_millis(0);
    for (seq, line) in (0u64..).zip(lines) {
        let value: serde_json::Value = serde_json::from_slice(&line.bytes).unwrap();
        assert_eq!(value["seq"], seq);
        assert_eq!(value["prev"], prev.to_string());
        let time: Timestamp = value["time"].as_str().unwrap().parse().unwrap();
        assert!(time >= latest);
        assert_eq!(line.file, format!("{}.jsonl", &time.to_string()[..10]));
        (prev, latest) = (hash(&line.bytes), time);
    }
}

#[test]
fn every_line_stands_chained_in_the_file_of_its_day_and_behind_the_anchor() {
    let home = crate::logs::three_days();
    let lines = stored(&home.files());
    assert_eq!(lines.len(), 9);
    chained(&lines);
    let names: Vec<_> = home.files().into_keys().collect();
    assert_eq!(
        names,
        ["2026-09-17.jsonl", "2026-09-18.jsonl", "2026-09-21.jsonl"]
    );
    let all = (0..).zip(lines.iter().map(|line| &line.bytes[..]));
    assert_eq!(
        String::from_utf8(home.anchor()).unwrap(),
        crate::logs::anchor_of(all)
    );
}

#[test]
fn a_stored_line_is_these_bytes() {
    let home = Home::new();
    home.ledger().append_durable(entry("first")).unwrap();
    let zeros = "0".repeat(64);
    let expected = format!(
        "{{\"seq\":0,\"time\":\"2026-09-17T12:00:00.000Z\",\"prev\":\"{zeros}\",\
         \"entry\":{{\"type\":\"session\",\"session\":\"first\",\"event\":\"opened\",\"by\":\"bxctl\"}}}}\n"
    );
    let bytes = fs::read(home.file("2026-09-17.jsonl")).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

#[test]
fn a_second_opener_is_told_who_holds_the_log_and_what_to_do() {
    let home = Home::new();
    let ledger = home.ledger();
    let Err(OpenError::Lock(error @ LockError::Held { .. })) = home.open() else {
        panic!("opened twice");
    };
    let text = error.to_string();
    let audit = home.paths().audit;
    for part in [
        audit.to_str().unwrap(),
        &format!("held by process {}", std::process::id()),
        "stop that one first, or use another home",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // A name that an earlier holder left is not the holder's.
    let mut child = std::process::Command::new("/usr/bin/true").spawn().unwrap();
    child.wait().unwrap();
    fs::write(home.file("lock"), format!("{:<10}\n", child.id())).unwrap();
    let Err(OpenError::Lock(LockError::Held { pid: None, .. })) = home.open() else {
        panic!("a dead process was named");
    };
    // The first is not disturbed, and reading needs no lock.
    ledger.append_durable(entry("first")).unwrap();
    assert_eq!(home.sound().lines, 1);
    assert_eq!(home.read().len(), 1);
    drop(ledger);
    assert_eq!(home.open().unwrap().1.lines, 1);
}

#[test]
fn files_are_readable_by_the_group_and_nobody_else() {
    let home = Home::new();
    home.ledger().append_durable(entry("first")).unwrap();
    let paths = home.paths();
    assert_eq!(mode(&paths.audit), 0o750);
    for path in [paths.anchor.clone(), home.file("2026-09-17.jsonl")] {
        assert_eq!(mode(&path), 0o640, "{}", path.display());
    }
}

#[test]
fn the_lock_is_closed_to_readers_also_one_that_was_open_to_them() {
    let home = Home::new();
    drop(home.ledger());
    let lock = home.file("lock");
    assert_eq!(mode(&lock), 0o600);
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).unwrap();
    drop(home.ledger());
    assert_eq!(mode(&lock), 0o600);
}

#[test]
fn a_clock_that_goes_back_takes_neither_the_time_nor_the_file_with_it() {
    let home = Home::new();
    let ledger = home.ledger();
    let append = |clock| {
        home.set_clock(clock);
        ledger.append(entry("line")).unwrap().time.to_string()
    };
    assert_eq!(
        append("2026-09-17T12:00:00.000Z"),
        "2026-09-17T12:00:00.000Z"
    );
    assert_eq!(
        append("2026-09-18T00:00:00.000Z"),
        "2026-09-18T00:00:00.000Z"
    );
    assert_eq!(
        append("2026-09-17T23:00:00.000Z"),
        "2026-09-18T00:00:00.000Z"
    );
    assert_eq!(
        ledger.head().time.unwrap().to_string(),
        "2026-09-18T00:00:00.000Z"
    );
    drop(ledger);
    home.set_clock("1999-01-01T00:00:00.000Z");
    let appended = home.ledger().append(entry("reopened")).unwrap();
    assert_eq!(
        (appended.seq, appended.time.to_string().as_str()),
        (3, "2026-09-18T00:00:00.000Z")
    );
    assert_eq!(home.files().len(), 2);
    chained(&stored(&home.files()));
    assert_eq!(home.sound().lines, 4);
}

#[test]
fn dropping_the_ledger_leaves_every_line_behind_the_anchor() {
    let home = Home::new();
    let ledger = home.ledger();
    ledger.append_durable(entry("first")).unwrap();
    ledger.append(entry("second")).unwrap();
    ledger.append(entry("third")).unwrap();
    assert_eq!(home.sound().anchored, Some(0));
    assert_eq!(ledger.head().next, 3);
    drop(ledger);
    assert_eq!(home.sound().anchored, Some(2));
}

#[test]
fn sync_puts_the_lines_appended_before_it_behind_the_anchor() {
    let home = Home::new();
    let ledger = home.ledger();
    ledger.sync().unwrap();
    ledger.append_durable(entry("first")).unwrap();
    ledger.append(entry("second")).unwrap();
    ledger.sync().unwrap();
    assert_eq!(home.sound().anchored, Some(1));
}

#[test]
fn an_empty_file_of_a_later_day_is_taken_when_its_day_comes() {
    let home = Home::new();
    home.ledger().append_durable(entry("first")).unwrap();
    // As a crash leaves it between the making of a file and its first line.
    fs::write(home.file("2026-09-18.jsonl"), "").unwrap();
    home.ledger().append_durable(entry("same-day")).unwrap();
    home.set_clock("2026-09-18T12:00:00.000Z");
    home.ledger().append_durable(entry("next-day")).unwrap();
    assert_eq!(home.sound().lines, 3);
    let lines: Vec<_> = stored(&home.files())
        .into_iter()
        .map(|line| line.file)
        .collect();
    assert_eq!(
        lines,
        ["2026-09-17.jsonl", "2026-09-17.jsonl", "2026-09-18.jsonl"]
    );
}

#[test]
fn links_in_the_place_of_files_are_not_followed() {
    let home = Home::new();
    home.ledger().append_durable(entry("first")).unwrap();
    for path in [home.file("2026-09-17.jsonl"), home.paths().anchor] {
        let aside = home.directory.path().join("aside");
        fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        assert!(matches!(
            ledger::verify(&home.paths()),
            Err(VerifyError::File(error)) if error.path == path
        ));
        assert!(matches!(
            home.open(),
            Err(OpenError::File(error)) if error.path == path
        ));
        fs::rename(&aside, &path).unwrap();
        home.open().unwrap();
    }
}

#[test]
fn a_log_that_does_not_exist_cannot_be_verified_and_reads_as_empty() {
    let home = Home::new();
    let error = ledger::verify(&home.paths()).unwrap_err();
    assert!(matches!(error, VerifyError::Missing { .. }));
    assert!(
        error.to_string().contains("there is no audit log in"),
        "{error}"
    );
    assert_eq!(home.read(), []);
    home.ledger();
    assert_eq!(home.sound().lines, 0);
}

#[test]
fn a_home_that_does_not_exist_is_an_error_that_names_it() {
    let home = Home::new();
    let mut paths = home.paths();
    paths.audit = home.directory.path().join("none/audit");
    let Err(OpenError::File(error)) = Ledger::open(&paths, home.clock()) else {
        panic!("opened");
    };
    assert_eq!((error.step, &error.path), ("make", &paths.audit));
}

#[test]
fn reading_stops_at_the_first_bad_line() {
    let home = crate::logs::three_days();
    assert_eq!(home.read().len(), 9);
    let mut files = home.files();
    let lines = stored(&files);
    let at = usize::try_from(lines[4].offset).unwrap() + 7;
    files.get_mut(&lines[4].file).unwrap()[at] = b'9';
    home.set_files(&files);
    let read: Vec<_> = ledger::read(&home.paths()).collect();
    let good = read.iter().take_while(|line| line.is_ok()).count();
    assert_eq!(
        (good, read.len()),
        (3, 4),
        "the last good one was not settled yet"
    );
    let Some(Err(ReadError::Broken(broken))) = read.last() else {
        panic!("{read:?}");
    };
    assert!(lines[4].is_named_by(broken));
}

#[test]
fn many_threads_leave_one_sound_chain_and_readers_see_a_sound_one_at_any_moment() {
    let home = Home::new();
    let ledger = home.ledger();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let verifier = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(Ordering::Relaxed) {
                home.sound();
                rounds += 1;
            }
            rounds
        });
        let writers: Vec<_> = (0..16)
            .map(|thread| {
                let ledger = &ledger;
                scope.spawn(move || {
                    (0..8)
                        .map(|index| {
                            let name = format!("thread-{thread}-{index}");
                            let appended = ledger.append_durable(entry(&name)).unwrap();
                            (appended.seq, name)
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let mut told: BTreeMap<u64, String> = BTreeMap::new();
        for writer in writers {
            told.extend(writer.join().unwrap());
        }
        done.store(true, Ordering::Relaxed);
        assert!(verifier.join().unwrap() > 0);
        let read: BTreeMap<u64, String> = home
            .read()
            .into_iter()
            .map(|line| match line.entry {
                ledger::Entry::Session { session, .. } => (line.seq, session.to_string()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(read.len(), 128);
        assert_eq!(read, told);
    });
    chained(&stored(&home.files()));
}

#[test]
fn a_log_that_begins_while_it_is_verified_is_sound_at_every_moment() {
    for _ in 0..20 {
        let home = Home::new();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let verifier = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    match ledger::verify(&home.paths()) {
                        Ok(Report::Sound(_)) | Err(VerifyError::Missing { .. }) => {}
                        other => panic!("{other:?}"),
                    }
                }
            });
            let ledger = home.ledger();
            for _ in 0..20 {
                ledger.append_durable(entry("line")).unwrap();
            }
            done.store(true, Ordering::Relaxed);
            verifier.join().unwrap();
        });
        assert_eq!(home.sound().lines, 20);
    }
}

#[derive(Debug, Clone)]
enum Act {
    Append(usize),
    AppendDurable(usize),
    Sync,
    Clock(u64),
    Reopen,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0usize..4).prop_map(Act::Append),
        3 => (0usize..4).prop_map(Act::AppendDurable),
        1 => Just(Act::Sync),
        2 => (0u64..5 * 86_400_000).prop_map(Act::Clock),
        1 => Just(Act::Reopen),
    ];
    prop::collection::vec(act, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_appended_at_whatever_time_is_read_back_in_order(acts in acts()) {
        let home = Home::new();
        let mut ledger = home.ledger();
        let mut expected = Vec::new();
        let mut durable = 0;
        let start: Timestamp = "2026-09-15T00:00:00.000Z".parse().unwrap();
        for act in acts {
            match act {
                Act::Append(index) => {
                    let appended = ledger.append(entries()[index].clone()).unwrap();
                    prop_assert_eq!(appended.seq, expected.len() as u64);
                    expected.push((entries()[index].clone(), appended.time));
                }
                Act::AppendDurable(index) => {
                    let appended = ledger.append_durable(entries()[index].clone()).unwrap();
                    expected.push((entries()[index].clone(), appended.time));
                    durable = expected.len();
                }
                Act::Sync => {
                    ledger.sync().unwrap();
                    durable = expected.len();
                }
                Act::Clock(millis) => {
                    let time = Timestamp::from_millis(start.as_millis() + millis);
                    home.set_clock(&time.to_string());
                }
                Act::Reopen => {
                    drop(ledger);
                    ledger = home.ledger();
                    durable = expected.len();
                }
            }
            let Report::Sound(sound) = home.verify() else {
                panic!("broken");
            };
            prop_assert_eq!(sound.lines, expected.len() as u64);
            prop_assert!(sound.anchored.map_or(0, |seq| seq as usize + 1) >= durable);
        }
        let read: Vec<_> = home.read().into_iter().map(|line| (line.entry, line.time)).collect();
        prop_assert_eq!(read, expected);
        chained(&stored(&home.files()));
    }
}

#[test]
fn beyond_its_limit_a_log_takes_ends_and_nothing_that_begins() {
    let home = Home::new();
    let ledger = home.ledger();
    let first = ledger.begin(entry("first")).unwrap();
    let size = ledger.head().bytes;
    assert_eq!(
        size,
        home.files().values().map(Vec::len).sum::<usize>() as u64
    );
    ledger.limit(size + size / 2);
    assert_eq!(ledger.open_for_more(), Ok(()));
    let refused = ledger.begin(entry("second")).unwrap_err();
    let most = size + size / 2;
    assert_eq!(refused, AppendError::Full { bytes: size, most });
    // It stays so, also for what would fit; and what ends is taken.
    assert_eq!(ledger.open_for_more(), Err(refused.clone()));
    assert!(ledger.head().full);
    assert_eq!(
        ledger.append_durable(entry("end")).unwrap().seq,
        first.seq + 1
    );
    assert!(ledger.head().bytes > most);
    assert_eq!(home.sound().lines, 2);
    drop(ledger);

    // The next start counts what stands on the disk.
    let (ledger, _) = home.open().unwrap();
    assert_eq!(
        ledger.head().bytes,
        home.files().values().map(Vec::len).sum::<usize>() as u64
    );
    assert!(ledger.begin(entry("second")).is_ok());
}
