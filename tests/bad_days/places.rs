//! A home in which boxmaker cannot keep what it keeps: read-only, without room, held by another, or with something else in
//! its places.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::mounts::in_own_mounts;
use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};

use crate::homes::{home, log_bytes, reads, refused, serves, told, up};

/// Makes one file or directory read-only for as long as `work` takes.
fn read_only(path: &Path, work: impl FnOnce()) {
    mount_bind(path, path).unwrap();
    mount_remount(path, MountFlags::BIND | MountFlags::RDONLY, "").unwrap();
    work();
    unmount(path, UnmountFlags::DETACH).unwrap();
}

#[test]
fn a_home_that_is_read_only_can_be_looked_at_and_starts_nothing() {
    if skipped_without_root("a_home_that_is_read_only_can_be_looked_at") {
        return;
    }
    in_own_mounts(|| {
        let home = home();
        serves(&home);
        let before = log_bytes(&home);
        // The first file that would be written is named.
        for (closed, named) in [
            ("", "run/lock"),
            ("audit", "audit/lock"),
            ("anchor", "anchor"),
        ] {
            read_only(&home.home().join(closed), || {
                let told_at_start = refused(&home, 1);
                let expected = format!(
                    "cannot open {}: Read-only file system",
                    home.home().join(named).display()
                );
                assert!(told_at_start.contains(&expected), "{told_at_start}");
                assert!(
                    told_at_start.contains("mount it for writing"),
                    "{told_at_start}"
                );
                assert!(told_at_start.contains("--home"), "{told_at_start}");
                assert!(told(&home, &["audit", "verify"]).starts_with("sound: "));
                assert!(told(&home, &["audit", "show"]).contains("fs_read"));
                assert!(told(&home, &["grants"]).contains("notes"));
                assert!(told(&home, &["tools"]).contains("fs_read"));
            });
        }
        assert_eq!(log_bytes(&home), before);
        serves(&home);
    });
}

#[test]
fn a_home_without_room_starts_nothing_and_says_so() {
    if skipped_without_root("a_home_without_room_starts_nothing") {
        return;
    }
    in_own_mounts(|| {
        let home = home();
        home.mount("home", "tmpfs", c"size=256k,mode=0755");
        let filler = home.home().join("filler");
        assert!(
            fs::write(&filler, vec![0; 512 << 10]).is_err(),
            "it has an end"
        );
        let full = refused(&home, 1);
        assert!(full.contains("No space left on device"), "{full}");
        assert!(
            full.contains("nothing runs without a record: make room"),
            "{full}"
        );
        fs::remove_file(&filler).unwrap();
        serves(&home);
    });
}

#[test]
fn something_else_in_the_place_of_a_part_of_the_home_is_named() {
    if skipped_without_root("something_else_in_the_place_of_a_part_of_the_home") {
        return;
    }
    let home = home();
    serves(&home);
    let aside = home.directory().join("aside");
    let elsewhere = home.directory().join("elsewhere");
    fs::write(&elsewhere, "kept").unwrap();
    type Put = fn(&Path, &Path);
    let directory: Put = |_, place| fs::create_dir(place).unwrap();
    let file: Put = |_, place| fs::write(place, "").unwrap();
    let link: Put = |elsewhere, place| symlink(elsewhere, place).unwrap();
    for (part, put) in [
        ("run", file),
        ("run/lock", directory),
        ("run/lock", link),
        ("run/bxctl", file),
        ("audit", file),
        ("audit/lock", link),
        ("anchor", directory),
        ("anchor", link),
    ] {
        let place = home.home().join(part);
        fs::rename(&place, &aside).unwrap();
        put(&elsewhere, &place);
        let told = refused(&home, 1);
        assert!(
            told.contains(&place.display().to_string()),
            "{part}: {told}"
        );
        assert!(told.contains("move it away"), "{part}: {told}");
        if place.is_dir() && !place.is_symlink() {
            fs::remove_dir(&place).unwrap();
        } else {
            fs::remove_file(&place).unwrap();
        }
        fs::rename(&aside, &place).unwrap();
    }
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "kept");
    serves(&home);
}

#[test]
fn a_socket_whose_name_would_be_too_long_asks_for_a_shorter_home() {
    if skipped_without_root("a_socket_whose_name_would_be_too_long") {
        return;
    }
    let home = home();
    let deep = home.directory().join("d".repeat(100));
    // The home of the next start is a link that leads there; what counts is the name that it is started with.
    let output = std::process::Command::new(home.directory().join("bin/boxmaker"))
        .args(["up", "--home"])
        .arg(&deep)
        .arg("--config")
        .arg(home.directory().join("config"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("run/bxctl/broker.sock"), "{told}");
    assert!(told.contains("name a shorter home"), "{told}");
    serves(&home);
}

#[test]
fn a_second_up_on_one_home_is_refused_and_the_first_goes_on() {
    if skipped_without_root("a_second_up_on_one_home_is_refused") {
        return;
    }
    let home = home();
    let first = up(&home);
    reads(&home);
    let by = format!("is held by process {}", first.process.pid);
    let second = refused(&home, 1);
    assert!(second.contains(&by), "{second}");
    assert!(second.contains("stop that one first"), "{second}");
    assert!(second.contains("--home"), "{second}");
    reads(&home);
    // Somebody tidied up. The log has a lock of its own.
    fs::remove_file(home.home().join("run/lock")).unwrap();
    let third = refused(&home, 1);
    assert!(third.contains("the audit log in"), "{third}");
    assert!(third.contains(&by), "{third}");
    assert!(third.contains("stop that one first"), "{third}");
    reads(&home);
    assert!(first.stop().success());
    home.sound();
    serves(&home);
}
