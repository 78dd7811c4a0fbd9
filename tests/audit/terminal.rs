//! How boxmaker says what is wrong: in lines of the width of a terminal, whole where there is none, and without falling
//! over its own words where nobody reads them.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use boxmaker_tests::binaries::binary;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A command that fails with a long sentence: there is no such configuration.
fn wrong() -> Command {
    let mut command = Command::new(binary("boxmaker"));
    command
        .args(["explain", "show", "--config", "/nowhere/at/all"])
        .args(["--home", "/nowhere/at/all/either"]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// What a terminal of 60 columns gets of the command's standard error.
fn on_terminal(mut command: Command) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: 60,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = File::options().read(true).write(true).open(name).unwrap();
    let mut child = command.stderr(theirs).spawn().unwrap();
    // The command holds the last other end; reading ends, with EIO, when the child has gone.
    drop(command);
    let mut got = Vec::new();
    let mut part = [0; 4096];
    let mut ours = File::from(ours);
    while let Ok(count @ 1..) = ours.read(&mut part) {
        got.extend_from_slice(&part[..count]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(2));
    String::from_utf8(got).unwrap().replace("\r\n", "\n")
}

#[test]
fn a_terminal_gets_lines_of_its_width_and_a_pipe_gets_them_whole() {
    let whole = wrong().stderr(Stdio::piped()).output().unwrap();
    assert_eq!(whole.status.code(), Some(2));
    let whole = String::from_utf8(whole.stderr).unwrap();
    assert!(whole.starts_with("boxmaker: the configuration"), "{whole}");
    assert!(whole.lines().any(|line| line.len() > 60), "{whole}");
    let folded = on_terminal(wrong());
    assert!(folded.lines().all(|line| line.len() <= 60), "{folded}");
    // Nothing is lost, and no path is broken.
    let words =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    assert_eq!(words(&folded), words(&whole));
}

#[test]
fn where_nobody_reads_what_is_said_the_status_is_the_same() {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    drop(theirs);
    let status = wrong().stderr(ours).status().unwrap();
    assert_eq!(status.code(), Some(2));
}
