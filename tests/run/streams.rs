//! The streams of a run: every byte both ways, and of a terminal or a socket no more than its bytes.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

use boxmaker_tests::plain::USER;

use crate::place::{Ended, Who, places};

#[test]
fn megabytes_pass_both_ways() {
    for place in places("megabytes_pass_both_ways") {
        let bytes: Vec<u8> = (0..8_000_000_u32)
            .map(|number| (number % 251) as u8)
            .collect();
        let mut child = place
            .command(&[])
            .arg("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let sent = bytes.clone();
        let writer = thread::spawn(move || input.write_all(&sent));
        let mut got = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut got).unwrap();
        writer.join().unwrap().unwrap();
        assert!(child.wait().unwrap().success());
        assert!(got == bytes, "{} of {}", got.len(), bytes.len());
    }
}

#[test]
fn both_outputs_are_kept_apart_and_nothing_of_boxmakers_is_in_the_first() {
    for place in places("both_outputs_are_kept_apart") {
        let ended = place.shell(&[], "echo one; echo two >&2");
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), "one\n"));
        assert!(ended.err.ends_with("two\n"), "{ended:?}");
        assert!(ended.err.starts_with("boxmaker: confinement "), "{ended:?}");
    }
}

/// What a stream is inside: of a file or a socket it has a pipe, or it could do more with it than read and write.
#[test]
fn files_and_sockets_stay_with_boxmaker_and_their_bytes_pass() {
    for place in places("files_and_sockets_stay_with_boxmaker") {
        let run = |words: &[&str], stdin: Stdio| {
            let mut command = place.command(&[]);
            Ended::of(command.args(words).stdin(stdin).output().unwrap()).out
        };
        let socket = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (&ours).write_all(b"over a socket\n").unwrap();
            Stdio::from(OwnedFd::from(theirs))
        };
        let file = || Stdio::from(File::open(place.path("files/note")).unwrap());
        let itself = ["readlink", "/proc/self/fd/0"];
        assert!(run(&itself, socket()).starts_with("pipe:["));
        assert_eq!(run(&["cat"], socket()), "over a socket\n");
        assert!(run(&itself, file()).starts_with("pipe:["));
        assert_eq!(run(&["cat"], file()), "a note\n");
        // The twin: the null device is itself.
        assert_eq!(run(&itself, Stdio::null()), "/dev/null\n");
    }
}

#[test]
fn the_mode_of_a_file_that_is_a_stream_cannot_be_changed() {
    for place in places("the_mode_of_a_file_that_is_a_stream") {
        let mode = || fs::metadata(place.path("files/note")).unwrap().mode() & 0o777;
        let before = mode();
        let script = "import os; os.fchmod(0, 0o777)";
        let stdin = || Stdio::from(File::open(place.path("files/note")).unwrap());
        let mut command = place.command(&[]);
        command.args(["/usr/bin/python3", "-c", script]);
        command.stdin(stdin()).stdout(Stdio::null());
        let ended = Ended::of(command.output().unwrap());
        // Of the pipe it may be; that is its own.
        assert_eq!(mode(), before, "{ended:?}");
        // The twin: with the file in hand its owner can.
        if place.who == Who::Plain && rustix::process::geteuid().is_root() {
            let mut command = Command::new("/usr/bin/python3");
            command
                .args(["-c", script])
                .uid(USER)
                .gid(USER)
                .stdin(stdin());
            assert!(command.status().unwrap().success());
            assert_eq!(mode(), 0o777);
        }
    }
}

#[test]
fn no_descriptor_of_the_caller_but_its_streams_is_inside() {
    for place in places("no_descriptor_of_the_caller_but_its_streams") {
        let kept = File::open("/etc/hostname").unwrap();
        rustix::io::fcntl_setfd(&kept, rustix::io::FdFlags::empty()).unwrap();
        let ended = place.shell(&[], "cd /proc/self/fd; echo *");
        // The shell holds the directory open while it lists it.
        assert!(
            ["0 1 2 3\n", "0 1 2\n"].contains(&ended.out.as_str()),
            "{ended:?}"
        );
    }
}
