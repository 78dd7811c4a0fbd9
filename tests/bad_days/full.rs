//! A home on a disk that fills in the middle of a run: calls are refused with the reason, everything can still be looked
//! at, and with room and a restart it goes on.

use std::fs::{self, File};
use std::io::Write;

use boxmaker_tests::binaries::{skipped_without_root, skipped_without_user_namespaces};
use boxmaker_tests::mounts::in_own_mounts;
use boxmaker_tests::system::Home;

use crate::homes::{USER, home, plain_home, read, reads, told, up};

#[test]
fn a_home_that_fills_can_be_looked_at_and_goes_on_with_room_and_a_restart() {
    if skipped_without_root("a_home_that_fills_can_be_looked_at") {
        return;
    }
    in_own_mounts(|| {
        let home = home();
        home.mount("home", "tmpfs", c"size=256k,mode=0755");
        full_and_back(&home);
    });
}

#[test]
fn a_plain_users_home_that_fills_can_be_looked_at_and_goes_on_with_room_and_a_restart() {
    let name = "a_plain_users_home_that_fills_can_be_looked_at";
    // Root mounts the small disk; the plain user has the rest.
    if skipped_without_root(name) || skipped_without_user_namespaces(name) {
        return;
    }
    in_own_mounts(|| {
        let home = plain_home();
        let options = std::ffi::CString::new(format!("size=256k,mode=0755,uid={USER},gid={USER}"));
        home.mount("home", "tmpfs", &options.unwrap());
        full_and_back(&home);
    });
}

/// Takes all the room that is left.
fn fill(home: &Home) {
    let mut file = File::create(home.home().join("filler")).unwrap();
    let mut pages = 0;
    while file.write_all(&[0; 4096]).is_ok() {
        pages += 1;
        assert!(pages < 128, "it has no end");
    }
}

/// Reads until the rest of the log's last page is used up, and says how often that succeeded, and how it ended.
fn reads_until_refused(home: &Home) -> (usize, String) {
    for count in 0..32 {
        let output = read(home);
        if !output.status.success() {
            return (count, String::from_utf8(output.stderr).unwrap());
        }
    }
    panic!("a page has no end");
}

fn full_and_back(home: &Home) {
    let system = up(home);
    reads(home);
    fill(home);
    let (more, said) = reads_until_refused(home);
    assert!(said.contains("the audit log is closed"), "{more}: {said}");
    assert!(said.contains("as on a full disk"), "{said}");
    // Once closed it stays so, and each call is told.
    let again = read(home);
    let said = String::from_utf8(again.stderr).unwrap();
    assert_eq!(again.status.code(), Some(1), "{said}");
    assert!(said.contains("the audit log is closed"), "{said}");

    let status = told(home, &["status"]);
    assert!(
        status.contains("audit log   closed, no call can run"),
        "{status}"
    );
    assert!(status.contains("as on a full disk"), "{status}");
    assert!(status.contains("make room on its disk"), "{status}");
    let json: serde_json::Value = serde_json::from_str(&told(home, &["status", "--json"])).unwrap();
    let closed = json["audit"]["closed"].as_str().unwrap();
    assert!(closed.contains("bytes were written"), "{json}");
    assert_eq!(json["sandboxes"], 0, "{json}");
    for (words, says) in [
        (&["grants"][..], "notes"),
        (&["tools"], "fs_read"),
        (&["sessions"], "private"),
        (&["pending"], ""),
        (&["audit", "show"], "fs_read"),
        (&["audit", "verify"], "sound: "),
        (&["check"], "ok: "),
    ] {
        let told = told(home, words);
        assert!(told.contains(says), "{words:?}: {told}");
    }
    home.sound();

    fs::remove_file(home.home().join("filler")).unwrap();
    // A write that failed is final: what the disk has of it is found out by a start.
    assert!(!read(home).status.success());
    let (times, before) = (home.times_up(), home.stderr().len());
    system.stop();
    let mut system = home.start();
    system.wait_up(home, times);
    reads(home);
    let said = home.stderr().split_off(before);
    assert!(said.contains("ended in a torn line"), "{said}");
    assert!(told(home, &["status"]).contains("audit log   open"));
    assert!(system.stop().success());
    home.sound();
}
