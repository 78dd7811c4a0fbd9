//! The standard descriptors of what the supervisor starts: pipes, the thread that writes a tool's input, and the
//! threads that show a role's output. Knows no policy.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;

/// The most bytes of one line of a role's output that are shown together.
const MOST_LINE: usize = 4096;

/// A pipe: the end to read from, and the end to write to.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) read: OwnedFd,
    pub(crate) write: OwnedFd,
}

impl Pipe {
    /// A new pipe, both ends closed on exec.
    ///
    /// # Errors
    /// As pipe2(2).
    pub(crate) fn new() -> io::Result<Self> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { read, write })
    }
}

/// `/dev/null`, to read from.
///
/// # Errors
/// As open(2).
pub(crate) fn nothing() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
}

/// Writes `input` to a started tool from a thread of its own, so that a tool that reads nothing holds up nobody, and
/// closes it. A tool that does not read to the end is no error.
///
/// # Errors
/// The thread could not be started; the tool reads end of file then.
pub(crate) fn feed(to: OwnedFd, input: String) -> io::Result<()> {
    let write = move || {
        // Standard ignores SIGPIPE at the start of every program, so a closed end is an error here, and none to report.
        let _ = File::from(to).write_all(input.as_bytes());
    };
    let thread = thread::Builder::new().name("tool input".to_owned());
    thread.spawn(write).map(drop)
}

/// Shows what `role` writes to `from`, line by line on standard error, in a thread of its own until the end.
///
/// # Errors
/// The thread could not be started.
pub(crate) fn show(role: &'static str, from: OwnedFd) -> io::Result<()> {
    let copy = move || {
        let mut lines = Lines::new(role);
        let mut from = File::from(from);
        let mut buffer = [0; 4096];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => lines.take(&buffer[..count], &mut io::stderr().lock()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        lines.end(&mut io::stderr().lock());
    };
    let thread = thread::Builder::new().name(format!("{role} output"));
    thread.spawn(copy).map(drop)
}

/// Cuts a stream of bytes into lines with the role's name before each.
struct Lines {
    role: &'static str,
    line: Vec<u8>,
}

impl Lines {
    const fn new(role: &'static str) -> Self {
        let line = Vec::new();
        Self { role, line }
    }

    /// A standard error that cannot be written to stops nothing: there is no other place to say so.
    fn take(&mut self, bytes: &[u8], to: &mut impl Write) {
        for byte in bytes {
            if *byte == b'\n' {
                self.line(to);
            } else {
                self.line.push(*byte);
                if self.line.len() >= MOST_LINE {
                    self.line(to);
                }
            }
        }
    }

    fn end(&mut self, to: &mut impl Write) {
        if !self.line.is_empty() {
            self.line(to);
        }
    }

    fn line(&mut self, to: &mut impl Write) {
        let text = visible(&String::from_utf8_lossy(&self.line));
        // A role may have said its own name, as it does where nobody says it for it.
        let named = text
            .strip_prefix(self.role)
            .and_then(|rest| rest.strip_prefix(": "));
        let _ = writeln!(to, "{}: {}", self.role, named.unwrap_or(&text));
        self.line.clear();
    }
}

/// `text` with every character that could move the cursor, change colours or reorder text written as its code.
pub(crate) fn visible(text: &str) -> String {
    let bidi = |c: char| matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || bidi(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(parts: &[&[u8]]) -> String {
        let mut to = Vec::new();
        let mut lines = Lines::new("brokerd");
        for part in parts {
            lines.take(part, &mut to);
        }
        lines.end(&mut to);
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn every_line_has_the_name_of_its_role_wherever_the_reads_were_cut() {
        assert_eq!(shown(&[b"a", b"b\nc\n"]), "brokerd: ab\nbrokerd: c\n");
        assert_eq!(shown(&[b"no newline"]), "brokerd: no newline\n");
        assert_eq!(shown(&[]), "");
    }

    #[test]
    fn a_line_that_begins_with_the_name_of_its_role_does_not_get_it_twice() {
        assert_eq!(
            shown(&[b"brokerd: cannot start\nbrokerd:x\nbrokerd\n"]),
            "brokerd: cannot start\nbrokerd: brokerd:x\nbrokerd: brokerd\n"
        );
    }

    #[test]
    fn control_characters_are_made_visible_and_a_long_line_is_cut() {
        assert_eq!(
            shown(&[b"\x1b[31m red\r\n"]),
            "brokerd: \\u{1b}[31m red\\u{d}\n"
        );
        assert_eq!(visible("a\u{202e}b é"), "a\\u{202e}b é");
        let long = vec![b'x'; MOST_LINE + 1];
        assert_eq!(shown(&[&long]).lines().count(), 2);
    }

    #[test]
    fn a_tool_that_reads_gets_its_input_whole_and_one_that_does_not_holds_up_nobody() {
        let long = "x".repeat(1 << 20);
        let pipe = Pipe::new().unwrap();
        feed(pipe.write, long.clone()).unwrap();
        let mut got = String::new();
        File::from(pipe.read).read_to_string(&mut got).unwrap();
        assert_eq!(got, long);

        let unread = Pipe::new().unwrap();
        feed(unread.write, long).unwrap();
        drop(unread.read);
    }
}
