//! What a terminal gets, and what a pipe gets instead.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::host::{Host, answering, ended};

const RESULT: &str = r#"{"status": "result", "content": "a\u001b[2J\u202eb\nc", "class": "private", "untrusted": true,
    "truncated": false, "confinement": "full"}"#;

/// Runs the command with a terminal of 100 columns for its standard output and returns what the terminal got.
fn on_terminal(command: &mut Command) -> String {
    seen(command, 100, |command, theirs| {
        command.stdout(theirs).stderr(Stdio::null())
    })
}

/// The same for standard error, on a terminal of 80 columns.
fn said_on_terminal(command: &mut Command) -> String {
    seen(command, 80, |command, theirs| {
        command.stdout(Stdio::null()).stderr(theirs)
    })
}

fn seen(
    command: &mut Command,
    columns: u16,
    attach: impl FnOnce(&mut Command, File) -> &mut Command,
) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = File::options().read(true).write(true).open(name).unwrap();
    let mut child = attach(command, theirs)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    // The command holds the last other end; reading ends, with EIO, when the child has gone.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut got = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = File::from(ours.try_clone().unwrap()).read(&mut part) {
        got.extend_from_slice(&part[..count]);
    }
    child.wait().unwrap();
    // The terminal's own output processing turns a line feed into two characters.
    String::from_utf8(got).unwrap().replace("\r\n", "\n")
}

#[test]
fn a_terminal_gets_hidden_characters_as_escapes_and_a_pipe_gets_them_raw() {
    let host = Host::new();
    let _seen = host.broker(answering(RESULT));
    assert_eq!(
        on_terminal(&mut host.command(&["call", "t"])),
        "a\\x1b[2J\\u{202e}b\nc\n"
    );
    assert_eq!(
        ended(&mut host.command(&["call", "t"])).out,
        "a\x1b[2J\u{202e}b\nc"
    );
}

#[test]
fn a_terminal_gets_errors_in_lines_of_its_width_and_a_pipe_gets_them_unbroken() {
    let host = Host::new();
    host.file(
        "grants/a.toml",
        "tool = \"fs_read\"\nmode = \"auto\"\nmax_tain = \"private\"\n",
    );
    let socket = host.socket();
    let socket = crate::host::text(&socket);
    for words in [
        &["sessions"][..],
        &["grants"],
        &["audit", "show", "--since", "yesterday"],
        &["call", "fs_read", "path"],
        &["call", "fs_read", "--session", "NO"],
        &["nothing"],
    ] {
        let folded = said_on_terminal(host.command(words).env("NO_COLOR", "1"));
        let whole = ended(&mut host.command(words)).err;
        for line in folded.lines() {
            let long = line.split(' ').any(|word| word.len() > 60);
            assert!(line.chars().count() <= 80 || long, "{words:?}: {line}");
        }
        let both = [&folded, &whole].map(|text| text.split_whitespace().collect::<Vec<_>>());
        assert_eq!(both[0], both[1], "{words:?}");
    }
    let folded = said_on_terminal(&mut host.command(&["audit", "show", "--since", "yesterday"]));
    assert!(folded.lines().count() > 1, "{folded}");
    let unbroken = ended(&mut host.command(&["audit", "show", "--since", "yesterday"])).err;
    assert_eq!(unbroken.lines().count(), 1, "{unbroken}");
    // A path is never broken.
    let folded = said_on_terminal(&mut host.command(&["sessions"]));
    assert!(folded.contains(socket), "{folded}");
}

#[test]
fn json_on_a_terminal_means_the_same_and_moves_nothing() {
    let host = Host::new();
    let _seen = host.broker(answering(RESULT));
    let shown = on_terminal(&mut host.command(&["call", "t", "--json"]));
    assert!(shown.contains(r"a\u001b[2J\u202eb\nc"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(json["content"], "a\u{1b}[2J\u{202e}b\nc");
}

#[test]
fn colours_are_for_terminals_and_for_those_who_want_them() {
    let host = Host::new();
    let sessions = r#"{"kind": "session_list_reply", "body": {"sessions": [{"session": "s-1", "open": true, "taint":
        "private", "untrusted": false, "calls": 1, "denied": 0, "last": "2020-01-01T00:00:00.000Z"}]}}"#;
    let _seen = host.broker(move |_| vec![serde_json::from_str(sessions).unwrap()]);
    assert!(on_terminal(&mut host.command(&["sessions"])).contains("\x1b[1msession\x1b[0m"));
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = on_terminal(host.command(&["sessions"]).env(name, value));
        assert!(plain.starts_with("session  state"), "{name}: {plain}");
    }
    assert!(on_terminal(host.command(&["sessions"]).env("NO_COLOR", "")).contains('\x1b'));
    assert!(
        ended(&mut host.command(&["sessions"]))
            .out
            .starts_with("session  state")
    );
}
