//! A failed write or fsync closes the ledger for good, and the next start copes with what it left.

use std::io::ErrorKind;
use std::sync::Arc;

use super::*;
use crate::{AppendError, Ledger, OpenError};

/// A ledger with two durable lines, on a disk that takes orders.
fn opened(home: &Path) -> (Faulty, Ledger) {
    let disk = Faulty::default();
    let (ledger, _) = Ledger::open_on(Arc::new(disk.clone()), &paths(home), at(NOON)).unwrap();
    ledger.append_durable(entry("a")).unwrap();
    ledger.append_durable(entry("b")).unwrap();
    (disk, ledger)
}

fn reason(result: Result<impl Sized, AppendError>) -> String {
    match result.map(|_| ()) {
        Err(AppendError::Closed { reason }) => reason,
        other => panic!("not closed: {other:?}"),
    }
}

/// Everything is refused with `reason`, also after the disk is well again; then a new ledger finds `lines` sessions.
fn stays_closed(disk: &Faulty, ledger: Ledger, home: &Path, reason_given: &str, lines: &[&str]) {
    disk.order(|orders| *orders = Orders::default());
    assert_eq!(ledger.head().closed.as_deref(), Some(reason_given));
    assert_eq!(reason(ledger.append(entry("later"))), reason_given);
    assert_eq!(reason(ledger.append_durable(entry("later"))), reason_given);
    drop(ledger);
    let (ledger, _) = Ledger::open(&paths(home), at(NOON)).unwrap();
    assert_eq!(ledger.head().closed, None);
    ledger.append_durable(entry("again")).unwrap();
    let mut expected = lines.to_vec();
    expected.push("again");
    assert_eq!(told(&paths(home)), expected);
    sound(&paths(home));
}

#[test]
fn a_disk_that_does_not_fail_takes_every_line() {
    let home = scratch();
    let (_, ledger) = opened(home.path());
    assert_eq!(ledger.append(entry("c")).unwrap().seq, 2);
    assert_eq!(ledger.append_durable(entry("d")).unwrap().seq, 3);
    ledger.sync().unwrap();
    assert_eq!(ledger.head().closed, None);
    assert_eq!(told(&paths(home.path())), ["a", "b", "c", "d"]);
}

#[test]
fn a_failed_write_is_final() {
    let home = scratch();
    let (disk, ledger) = opened(home.path());
    let fault = WriteFault::Fails(ErrorKind::StorageFull);
    disk.order(|orders| orders.write = Some((".jsonl", fault)));
    let first = reason(ledger.append(entry("c")));
    let full = std::io::Error::from(ErrorKind::StorageFull);
    assert_eq!(
        first,
        format!("cannot write seq 2 to 2026-09-17.jsonl: {full}")
    );
    stays_closed(&disk, ledger, home.path(), &first, &["a", "b"]);
}

#[test]
fn an_interrupted_write_is_tried_again() {
    struct Once(std::sync::atomic::AtomicBool);
    impl Sink for Once {
        fn write(&self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.swap(true, std::sync::atomic::Ordering::Relaxed) {
                Ok(bytes.len())
            } else {
                Err(ErrorKind::Interrupted.into())
            }
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }
    crate::disk::write_whole(&Once(false.into()), b"line").unwrap();
}

#[test]
fn a_write_short_by_any_count_is_final_and_its_torn_line_is_recovered() {
    let length = {
        let home = scratch();
        let (_, ledger) = opened(home.path());
        let file = paths(home.path()).audit.join("2026-09-17.jsonl");
        let before = fs::metadata(&file).unwrap().len();
        ledger.append(entry("c")).unwrap();
        usize::try_from(fs::metadata(&file).unwrap().len() - before).unwrap()
    };
    for count in 0..length {
        let home = scratch();
        let (disk, ledger) = opened(home.path());
        disk.order(|orders| orders.write = Some((".jsonl", WriteFault::Short(count))));
        let first = reason(ledger.append_durable(entry("c")));
        assert!(
            first.ends_with(&format!(
                "only {count} of {length} bytes were written, as on a full disk"
            )),
            "{first}"
        );
        stays_closed(&disk, ledger, home.path(), &first, &["a", "b"]);
        assert_eq!(sound(&paths(home.path())).kept, u64::from(count > 0));
    }
}

#[test]
fn a_failed_fsync_is_final_though_the_line_may_be_there() {
    let home = scratch();
    let (disk, ledger) = opened(home.path());
    disk.order(|orders| orders.sync = Some(ErrorKind::InvalidData));
    let first = reason(ledger.append_durable(entry("c")));
    assert!(
        first.starts_with("cannot make 2026-09-17.jsonl durable"),
        "{first}"
    );
    stays_closed(&disk, ledger, home.path(), &first, &["a", "b", "c"]);
}

#[test]
fn an_anchor_that_cannot_be_written_closes_the_ledger_and_is_mended_at_the_next_start() {
    for fault in [
        WriteFault::Fails(ErrorKind::StorageFull),
        WriteFault::Short(9),
    ] {
        let home = scratch();
        let (disk, ledger) = opened(home.path());
        disk.order(|orders| orders.write = Some(("anchor", fault)));
        let first = reason(ledger.append_durable(entry("c")));
        assert!(first.starts_with("cannot write the anchor"), "{first}");
        stays_closed(&disk, ledger, home.path(), &first, &["a", "b", "c"]);
        assert_eq!(sound(&paths(home.path())).anchored, Some(3));
    }
}

#[test]
fn a_day_file_that_cannot_be_made_closes_the_ledger() {
    let home = scratch();
    let disk = Faulty::default();
    let day = Arc::new(Mutex::new(17));
    let clock = Arc::clone(&day);
    let (ledger, _) = Ledger::open_on(
        Arc::new(disk.clone()),
        &paths(home.path()),
        Box::new(move || {
            let text = format!("2026-09-{}T12:00:00.000Z", clock.lock().unwrap());
            text.parse().unwrap()
        }),
    )
    .unwrap();
    ledger.append_durable(entry("a")).unwrap();
    *day.lock().unwrap() = 18;
    disk.order(|orders| orders.budget = Some(0));
    let first = reason(ledger.append(entry("b")));
    assert!(first.starts_with("cannot make 2026-09-18.jsonl"), "{first}");
    stays_closed(&disk, ledger, home.path(), &first, &["a"]);
}

#[test]
fn entries_that_cannot_be_stored_are_refused_and_the_ledger_stays_open() {
    let home = scratch();
    let (_, ledger) = opened(home.path());
    let recovery = Entry::Recovery {
        file: "2026-09-17.jsonl".to_owned(),
        offset: 0,
        length: 1,
        sha256: proto::Hash32::ZERO,
    };
    assert_eq!(ledger.append(recovery), Err(AppendError::Reserved));
    let role = |length| Entry::Session {
        session: SessionId::new("s").unwrap(),
        event: SessionEvent::Opened,
        by: "x".repeat(length),
    };
    let fixed = {
        let line = proto::Line {
            seq: 2,
            time: NOON.parse().unwrap(),
            prev: proto::Hash32::ZERO,
            entry: role(0),
        };
        serde_json::to_vec(&line).unwrap().len()
    };
    let length = crate::MAX_LINE + 1;
    assert_eq!(
        ledger.append_durable(role(length - fixed)),
        Err(AppendError::TooLong { length })
    );
    assert_eq!(
        ledger.append_durable(role(length - fixed - 1)).unwrap().seq,
        2
    );
    drop(ledger);
    assert_eq!(sound(&paths(home.path())).lines, 3);
}

#[test]
fn a_line_longer_than_any_record_is_named_without_reading_it_whole() {
    let home = scratch();
    drop(opened(home.path()));
    let file = paths(home.path()).audit.join("2026-09-17.jsonl");
    let mut bytes = fs::read(&file).unwrap();
    bytes.resize(bytes.len() + crate::MAX_LINE + 1, b'x');
    fs::write(&file, &bytes).unwrap();
    match Ledger::open(&paths(home.path()), at(NOON)) {
        Err(OpenError::Broken(broken)) => {
            assert_eq!(broken.line, 3);
            assert!(broken.reason.contains("longer than"), "{broken}");
        }
        other => panic!("{other:?}"),
    }
    bytes.pop();
    fs::write(&file, &bytes).unwrap();
    assert!(sound(&paths(home.path())).torn.is_some());
}

#[test]
fn a_thread_that_panics_with_the_ledger_closes_it() {
    let home = scratch();
    struct Panics;
    impl Sink for Panics {
        fn write(&self, _: &[u8]) -> io::Result<usize> {
            panic!("in the middle of a write")
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }
    struct PanicDisk(Faulty);
    impl Disk for PanicDisk {
        fn directory(&self, path: &Path) -> io::Result<()> {
            self.0.directory(path)
        }
        fn create(&self, path: &Path) -> io::Result<Arc<dyn Sink>> {
            self.0.create(path)
        }
        fn append(&self, path: &Path) -> io::Result<Arc<dyn Sink>> {
            if path.ends_with("anchor") {
                self.0.append(path)
            } else {
                Ok(Arc::new(Panics))
            }
        }
        fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
            self.0.replace(path, bytes)
        }
    }
    drop(opened(home.path()));
    let disk = Arc::new(PanicDisk(Faulty::default()));
    let (ledger, _) = Ledger::open_on(disk, &paths(home.path()), at(NOON)).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| ledger.append(entry("c")));
        assert!(thread.join().is_err());
    });
    assert_eq!(
        reason(ledger.append(entry("d"))),
        "a thread panicked while it wrote"
    );
}
