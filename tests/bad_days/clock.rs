//! A clock that was set back between two runs: the log's last record is of a time that is still to come. A clock that is set
//! back while boxmaker runs is tried where it can be given: `src/ledger/tests/log/writing.rs`, `src/brokerd/src/state/tests.rs`.

use std::time::{Duration, SystemTime};

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::Home;
use ledger::{Entry, Ledger, Timestamp};
use proto::audit::SessionEvent;

use crate::homes::{echoes, grant, home, read, reads, serves, told, up};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn in_days(days: u32) -> Timestamp {
    (SystemTime::now() + DAY * days).into()
}

/// Appends a record as a supervisor does whose clock is right.
fn record(home: &Home, time: Timestamp) {
    let (ledger, _) = Ledger::open(&home.paths(), Box::new(move || time)).unwrap();
    let session = "earlier".parse().unwrap();
    let by = "bxctl".to_owned();
    let event = SessionEvent::Opened;
    ledger
        .append_durable(Entry::Session { session, event, by })
        .unwrap();
}

#[test]
fn time_that_a_clock_takes_back_is_not_taken_back_for_records_and_grants() {
    if skipped_without_root("time_that_a_clock_takes_back") {
        return;
    }
    let home = home();
    let expires = format!(
        "expires = \"{}\"\nconstraints.paths = [\"read:@FILES@/notes\"]\n",
        in_days(10)
    );
    grant(&home, "notes", "fs_read", &expires);
    serves(&home);
    assert!(!home.stderr().contains("the clock"), "{}", home.stderr());

    let last = in_days(30);
    record(&home, last);
    let seen = home.lines().len();
    let system = up(&home);
    let said = home.stderr();
    assert!(
        said.contains(&format!("the last record is of {last}")),
        "{said}"
    );
    assert!(said.contains("mend the clock"), "{said}");
    // The grant has expired once and for all; what never expires goes on.
    let denied = read(&home);
    let told_caller = String::from_utf8(denied.stderr).unwrap();
    assert_eq!(denied.status.code(), Some(1), "{told_caller}");
    assert!(told_caller.contains("grant_expired"), "{told_caller}");
    echoes(&home);
    let status = told(&home, &["status"]);
    assert!(status.contains("the last in 29 days"), "{status}");
    assert!(status.contains("the clock went back"), "{status}");
    assert!(system.stop().success());

    let lines = home.lines();
    assert!(lines.len() > seen + 4, "{}", lines.len());
    assert!(lines[seen..].iter().all(|line| line.time == last));
    home.sound();

    // The way out that was named: another log.
    for part in ["audit", "anchor"] {
        let place = home.home().join(part);
        std::fs::rename(&place, home.directory().join(part)).unwrap();
    }
    let system = up(&home);
    reads(&home);
    assert!(!told(&home, &["status"]).contains("the clock"));
    assert!(system.stop().success());
    home.sound();
}
