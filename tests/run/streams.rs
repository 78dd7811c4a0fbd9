//! The streams of a run: every byte both ways, and of a terminal or a socket no more than its bytes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;

use crate::place::{Ended, places};

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

/// What a stream is inside: a socket of the caller's is not handed on, a file and a pipe are.
#[test]
fn a_socket_stays_with_boxmaker_and_its_bytes_pass() {
    for place in places("a_socket_stays_with_boxmaker") {
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
        // The twin: a file is the file itself.
        assert!(!run(&itself, file()).starts_with("pipe:["));
        assert_eq!(run(&["cat"], file()), "a note\n");
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
