//! `boxmaker up` on a torn log: it keeps the torn bytes, says so in a record and goes on, unless the anchor names the
//! record that is torn; then it refuses to start and changes nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use boxmaker_tests::binaries::{binary, skipped_without_root};
use ledger::{Entry, Line};
use rustix::process::{Pid, Signal, kill_process};

use crate::log::{Files, Home, hash, stored};

/// The supervisor of this home.
pub(crate) fn up(home: &Home) -> Command {
    // Whatever it was: what a group may write is no configuration.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    // A configuration that grants nothing.
    let config = home.home().with_file_name("config");
    fs::create_dir_all(&config).unwrap();
    let mut command = Command::new(binary("boxmaker"));
    command.arg("up").arg("--home").arg(home.home());
    command.arg("--config").arg(config);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Starts it, waits until it serves calls, ends it in order.
fn up_and_down(home: &Home) -> Output {
    let mut child = up(home).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut told).unwrap();
    if told.starts_with("boxmaker is up") {
        terminate(&child);
    }
    let output = child.wait_with_output().unwrap();
    assert!(told.starts_with("boxmaker is up"), "{told:?} {output:?}");
    output
}

fn terminate(child: &Child) {
    kill_process(Pid::from_child(child), Signal::TERM).unwrap();
}

/// The files with the last record cut to `length` bytes.
fn cut(files: &Files, length: usize) -> Files {
    let lines = stored(files);
    let last = lines.last().unwrap();
    let mut cut = files.clone();
    let file = cut.get_mut(&last.file).unwrap();
    file.truncate(last.offset + length);
    cut
}

/// The first byte, about half, all but one, all but the newline.
fn lengths(files: &Files) -> [usize; 4] {
    let whole = stored(files).last().unwrap().bytes.len();
    [1, whole / 2, whole - 1, whole]
}

#[test]
fn a_torn_record_is_kept_and_announced_if_the_anchor_does_not_name_it() {
    if skipped_without_root("a_torn_record_is_kept_and_announced") {
        return;
    }
    let whole = Home::with_log().files();
    for length in lengths(&whole) {
        let home = Home::with_log();
        let files = home.files();
        assert_eq!(files, whole, "the log is the same every time");
        let anchor = home.anchor();
        let before = anchor.trim_end().rfind('\n').unwrap() + 1;
        home.set_anchor(&anchor[..before]);
        let torn = cut(&files, length);
        home.set_files(&torn);

        let output = up_and_down(&home);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let bytes = if length == 1 { "byte" } else { "bytes" };
        let expected = format!("2026-09-21.jsonl ended in a torn line of {length} {bytes} at ");
        assert!(told.contains(&expected), "{told}");

        let verdict = home.sound();
        assert_eq!(
            (&verdict["kept"], &verdict["torn"]),
            (&1.into(), &().into())
        );
        let after = home.files();
        let day = "2026-09-21.jsonl";
        assert!(after[day].starts_with(&torn[day]), "the torn bytes stay");
        let last = stored(&files).pop().unwrap();
        let announced = Entry::Recovery {
            file: day.to_owned(),
            offset: last.offset as u64,
            length: length as u64,
            sha256: hash(&last.bytes[..length]),
        };
        let line = lines_after(&after, &torn).remove(0);
        assert_eq!((line.seq, line.entry), (15, announced));
    }
}

/// The records that stand behind the bytes of `before`.
fn lines_after(files: &Files, before: &Files) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, bytes) in files {
        let known = before.get(name).map_or(0, Vec::len);
        let fresh = String::from_utf8(bytes[known..].to_vec()).unwrap();
        let fresh = fresh.lines().filter(|line| !line.is_empty());
        lines.extend(fresh.map(|line| serde_json::from_str::<Line>(line).unwrap()));
    }
    lines
}

#[test]
fn a_torn_record_that_the_anchor_names_stops_the_start() {
    if skipped_without_root("a_torn_record_that_the_anchor_names") {
        return;
    }
    let home = Home::with_log();
    let (files, anchor) = (home.files(), home.anchor());
    for length in lengths(&files).into_iter().chain([0]) {
        let torn = cut(&files, length);
        home.set_files(&torn);
        let output = up(&home).stdout(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("2026-09-21.jsonl:5"), "{told}");
        assert_eq!((home.files(), home.anchor()), (torn, anchor.clone()));
        assert!(!home.home().join("run/bxctl/broker.sock").exists());
        home.broken();
    }
    // The twin: the whole log starts.
    home.set_files(&files);
    assert_eq!(up_and_down(&home).status.code(), Some(0));
    home.sound();
}

#[test]
fn a_changed_log_stops_the_start_at_the_line_that_verify_names() {
    if skipped_without_root("a_changed_log_stops_the_start") {
        return;
    }
    let home = Home::with_log();
    let files = home.files();
    for seq in [0, 7, 15] {
        let line = &stored(&files)[seq];
        let mut changed = files.clone();
        changed.get_mut(&line.file).unwrap()[line.offset + 30] ^= 1;
        home.set_files(&changed);
        let output = up(&home).stdout(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            told.contains(&format!("{}:{}", line.file, line.line)),
            "{told}"
        );
        assert_eq!(home.files(), changed);
    }
}
