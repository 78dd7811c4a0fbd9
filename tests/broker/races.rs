//! Paths that become other files between what was judged and what is used.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::Brokerd;
use proto::DenyReason;
use proto::audit::ExitStatus;

use crate::calls::{Broker, at, writing};
use crate::homes::{CODE, NOTE, home};

#[test]
fn a_file_that_becomes_a_link_after_prepare_is_read_as_it_was_resolved() {
    if skipped_without_root("a_file_that_becomes_a_link_after_prepare_is_read_as_it_was_resolved") {
        return;
    }
    let mut broker = Broker::up();
    let (note, code) = (
        broker.home.path("notes/a.md"),
        broker.home.path("vault/code.txt"),
    );
    let standing = broker.prepare("fs_read", "notes", &at(&note));
    fs::rename(&note, broker.home.path("notes/was.md")).unwrap();
    symlink(&code, &note).unwrap();
    let ran = broker.run(standing);
    assert_eq!(ran.stdout, NOTE, "{}", ran.stderr);
    // The next one sees the link, and is refused.
    assert_eq!(
        broker.denied("fs_read", "notes", &at(&note)),
        DenyReason::PathOutside
    );
}

#[test]
fn a_folder_that_becomes_a_link_after_prepare_is_written_as_it_was_resolved() {
    if skipped_without_root("a_folder_that_becomes_a_link_after_prepare_is_written") {
        return;
    }
    let mut broker = Broker::up();
    let folder = broker.home.folder("out/folder");
    let new = format!("{folder}/new.md");
    let standing = broker.prepare("fs_write", "out", &writing(&new, "x"));
    fs::rename(&folder, broker.home.path("out/was")).unwrap();
    symlink("../vault", &folder).unwrap();
    let ran = broker.run(standing);
    assert_eq!(ran.exited.exit, Some(ExitStatus::Code(0)), "{}", ran.stderr);
    assert_eq!(
        fs::read_to_string(broker.home.path("out/was/new.md")).unwrap(),
        "x"
    );
    assert!(!Path::new(&broker.home.path("vault/new.md")).exists());
    let refused = broker.denied("fs_write", "out", &writing(&new, "x"));
    assert_eq!(refused, DenyReason::PathOutside);
}

#[test]
fn a_file_that_becomes_a_link_after_prepare_is_not_written_through() {
    if skipped_without_root("a_file_that_becomes_a_link_after_prepare_is_not_written_through") {
        return;
    }
    let mut broker = Broker::up();
    let file = broker.home.file("out/a.md", "before");
    for (mode, swapped) in [("replace", true), ("append", true), ("append", false)] {
        let _ = fs::remove_file(&file);
        broker.home.file("out/a.md", "before");
        let arguments =
            serde_json::json!({ "path": file, "content": "+", "mode": mode }).to_string();
        let standing = broker.prepare("fs_write", "out", &arguments);
        if swapped {
            fs::remove_file(&file).unwrap();
            symlink(broker.home.path("vault/code.txt"), &file).unwrap();
        }
        let ran = broker.run(standing);
        let code = fs::read_to_string(broker.home.path("vault/code.txt")).unwrap();
        assert_eq!(code, CODE, "{mode}");
        if !swapped {
            assert_eq!(ran.exited.exit, Some(ExitStatus::Code(0)), "{}", ran.stderr);
            assert_eq!(fs::read_to_string(&file).unwrap(), "before+");
        }
    }
}

#[test]
fn a_granted_root_that_becomes_a_link_is_not_used() {
    if skipped_without_root("a_granted_root_that_becomes_a_link_is_not_used") {
        return;
    }
    let mut broker = Broker::up();
    let (notes, was) = (broker.home.path("notes"), broker.home.path("was"));
    let code = at(&format!("{notes}/code.txt"));
    fs::rename(&notes, &was).unwrap();
    symlink("vault", &notes).unwrap();
    assert_eq!(
        broker.denied("fs_read", "notes", &code),
        DenyReason::PathOutside
    );
    fs::remove_file(&notes).unwrap();
    fs::rename(&was, &notes).unwrap();
    let ran = broker.call("fs_read", "notes", &at(&format!("{notes}/a.md")));
    assert_eq!(ran.stdout, NOTE, "{}", ran.stderr);
}

#[test]
fn a_folder_that_flips_to_a_link_and_back_never_shows_the_vault() {
    if skipped_without_root("a_folder_that_flips_to_a_link_and_back_never_shows_the_vault") {
        return;
    }
    let home = home(Brokerd::Relay);
    home.file("notes/flip/code.txt", NOTE);
    let mut broker = Broker::up_in(home);
    let [flip, folder, link] = ["notes/flip", "notes/folder", "notes/link"]
        .map(|name| PathBuf::from(broker.home.path(name)));
    symlink("../vault", &link).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for (away, to) in [(&folder, &link), (&link, &folder)] {
                    fs::rename(&flip, away).unwrap();
                    fs::rename(to, &flip).unwrap();
                }
            }
        });
        let _stop = Stop(&done);
        let path = at(&format!("{}/code.txt", flip.display()));
        for _ in 0..40 {
            let prepare = broker.request("fs_read", "notes", &path);
            let Ok(standing) = broker.try_prepare(prepare) else {
                continue;
            };
            let ran = broker.run(standing);
            assert!(
                ran.stdout == NOTE || ran.stdout.is_empty(),
                "{}",
                ran.stdout
            );
            assert!(!ran.stderr.contains(CODE.trim()), "{}", ran.stderr);
        }
    });
    let ran = broker.call(
        "fs_read",
        "notes",
        &at(&format!("{}/code.txt", flip.display())),
    );
    assert_eq!(ran.stdout, NOTE, "{}", ran.stderr);
}

/// Ends the flipping also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
