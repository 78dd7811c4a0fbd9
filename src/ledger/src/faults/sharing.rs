//! Threads that wait at the same time share an fsync, and share its failure.

use std::io::ErrorKind;
use std::sync::Arc;
use std::thread;

use super::*;
use crate::{AppendError, Appended, Ledger};

const THREADS: u64 = 16;

/// A ledger with one durable line, and how many fsyncs that took.
fn opened(home: &Path) -> (Faulty, Ledger, u64) {
    let disk = Faulty::default();
    let (ledger, _) = Ledger::open_on(Arc::new(disk.clone()), &paths(home), at(NOON)).unwrap();
    ledger.append_durable(entry("first")).unwrap();
    let synced = disk.order(|orders| orders.synced);
    (disk, ledger, synced)
}

/// Appends from many threads at once; no fsync ends before all of them have written.
fn together(disk: &Faulty, ledger: &Ledger) -> Vec<Result<Appended, AppendError>> {
    disk.order(|orders| orders.sync_after = orders.written + THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|index| {
                scope.spawn(move || ledger.append_durable(entry(&format!("thread-{index}"))))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

#[test]
fn sixteen_threads_that_wait_together_need_two_fsyncs() {
    let home = scratch();
    let (disk, ledger, before) = opened(home.path());
    let mut seqs: Vec<u64> = together(&disk, &ledger)
        .into_iter()
        .map(|appended| appended.unwrap().seq)
        .collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=THREADS).collect::<Vec<_>>());
    // One by the first to come, for whoever had written when it began, and one for all the others.
    let shared = disk.order(|orders| orders.synced) - before;
    assert!((1..=2).contains(&shared), "{shared} fsyncs");
    drop(ledger);
    let sound = sound(&paths(home.path()));
    assert_eq!((sound.lines, sound.anchored), (THREADS + 1, Some(THREADS)));
}

#[test]
fn one_thread_alone_needs_one_fsync_for_each_line() {
    let home = scratch();
    let (disk, ledger, before) = opened(home.path());
    for index in 0..THREADS {
        ledger
            .append_durable(entry(&format!("line-{index}")))
            .unwrap();
    }
    assert_eq!(disk.order(|orders| orders.synced) - before, THREADS);
    ledger.sync().unwrap();
    assert_eq!(disk.order(|orders| orders.synced) - before, THREADS);
}

#[test]
fn a_failed_fsync_fails_everyone_who_waits_for_it() {
    let home = scratch();
    let (disk, ledger, before) = opened(home.path());
    disk.order(|orders| orders.sync = Some(ErrorKind::InvalidData));
    let results = together(&disk, &ledger);
    let reason = ledger.head().closed.unwrap();
    for result in results {
        let reason = reason.clone();
        assert_eq!(result, Err(AppendError::Closed { reason }));
    }
    // The kernel tells a failure once; a second fsync could have said that all is well.
    assert_eq!(disk.order(|orders| orders.synced) - before, 1);
}

#[test]
fn a_write_that_fails_during_an_fsync_fails_those_who_wait_for_the_fsync() {
    let home = scratch();
    let (disk, ledger, _) = opened(home.path());
    disk.order(|orders| orders.sync_after = orders.written + 2);
    thread::scope(|scope| {
        let waits = scope.spawn(|| ledger.append_durable(entry("waits")));
        disk.until(|orders| orders.waiting == 1);
        let fault = WriteFault::Fails(ErrorKind::StorageFull);
        disk.order(|orders| orders.write = Some((".jsonl", fault)));
        let failed = ledger.append(entry("fails")).unwrap_err();
        disk.order(|orders| orders.sync_after = 0);
        assert_eq!(waits.join().unwrap(), Err(failed));
    });
}

#[test]
fn a_new_day_waits_for_the_fsync_of_the_old_one() {
    let home = scratch();
    let disk = Faulty::default();
    // The day, and how often the clock was asked on that day.
    let clock = Arc::new((Mutex::new((17, 0)), Condvar::new()));
    let asked = Arc::clone(&clock);
    let (ledger, _) = Ledger::open_on(
        Arc::new(disk.clone()),
        &paths(home.path()),
        Box::new(move || {
            let mut clock = asked.0.lock().unwrap();
            clock.1 += 1;
            asked.1.notify_all();
            format!("2026-09-{}T12:00:00.000Z", clock.0)
                .parse()
                .unwrap()
        }),
    )
    .unwrap();
    ledger.append_durable(entry("first")).unwrap();
    disk.order(|orders| orders.sync_after = orders.written + 2);
    thread::scope(|scope| {
        let old = scope.spawn(|| ledger.append_durable(entry("old")));
        disk.until(|orders| orders.waiting == 1);
        *clock.0.lock().unwrap() = (18, 0);
        let new = scope.spawn(|| ledger.append_durable(entry("new")));
        let (day, limit) = (clock.0.lock().unwrap(), Duration::from_secs(30));
        let waited = clock.1.wait_timeout_while(day, limit, |day| day.1 == 0);
        assert!(!waited.unwrap().1.timed_out());
        // Time for a second fsync to begin, if one were to; too little time could only hide one.
        let (orders, grace) = (disk.0.0.lock().unwrap(), Duration::from_millis(300));
        drop(
            disk.0
                .1
                .wait_timeout_while(orders, grace, |orders| orders.waiting < 2),
        );
        disk.order(|orders| orders.sync_after = 0);
        assert_eq!(old.join().unwrap().unwrap().seq, 1);
        assert_eq!(new.join().unwrap().unwrap().seq, 2);
    });
    // Two at a time could hide a failure: the kernel tells it to one of them.
    assert_eq!(disk.order(|orders| orders.most_waiting), 1);
    drop(ledger);
    let sound = sound(&paths(home.path()));
    assert_eq!((sound.lines, sound.files), (3, 2));
}

#[test]
fn a_new_day_begins_when_the_lines_of_the_old_one_are_durable() {
    for pending in [false, true] {
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
        ledger.append_durable(entry("durable")).unwrap();
        if pending {
            ledger.append(entry("pending")).unwrap();
        }
        let before = disk.order(|orders| orders.synced);
        *day.lock().unwrap() = 18;
        let appended = ledger.append(entry("new")).unwrap();
        // A later fsync of the new file would not reach the old one.
        let synced = disk.order(|orders| orders.synced) - before;
        assert_eq!(synced, u64::from(pending));
        assert_eq!(
            sound(&paths(home.path())).anchored,
            appended.seq.checked_sub(1)
        );
    }
}
