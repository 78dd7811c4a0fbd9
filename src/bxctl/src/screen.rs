//! Where output goes: what standard output and standard error are, how wide they are, and whether they take colours.
//! The only place that writes to them.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::os::fd::AsFd;

use confine::fold::fold;

/// What a text is about; on a terminal a colour, elsewhere nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// The title of a column or part.
    Title,
    /// Allowed, sound, full.
    Good,
    /// Not as it should be, but no refusal.
    Warning,
    /// Refused, failed, broken.
    Bad,
}

impl Tone {
    /// The text in this tone's colour, or as it is.
    #[must_use]
    pub fn paint(self, text: &str, colour: bool) -> String {
        let code = match self {
            Self::Title => "1",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31",
            Self::Plain => return text.to_owned(),
        };
        if colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// One output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Whether a terminal is behind it.
    pub terminal: bool,
    /// Whether to colour.
    pub colour: bool,
    /// Columns that tables may use.
    pub width: usize,
}

/// The columns of a table when nobody says otherwise.
pub const WIDTH: usize = 80;

impl Stream {
    fn of(stream: &(impl io::IsTerminal + AsFd)) -> Self {
        let terminal = stream.is_terminal();
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        // no-color.org: any value that is not empty turns colours off.
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        // A terminal that was never given a size says 0.
        let size = rustix::termios::tcgetwinsize(stream)
            .ok()
            .filter(|size| terminal && size.ws_col > 0);
        Self {
            terminal,
            colour: terminal && !dumb && set("NO_COLOR").is_none(),
            width: size
                .map_or(WIDTH, |size| usize::from(size.ws_col))
                .clamp(60, 200),
        }
    }

    /// The text as a terminal gets it. What is no terminal gets it as it is: there a line is one message.
    fn folded<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.terminal {
            fold(text, self.width).into()
        } else {
            text.into()
        }
    }
}

/// Standard output and standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Results.
    pub out: Stream,
    /// Remarks and errors.
    pub err: Stream,
}

impl Screen {
    /// The streams of this process.
    #[must_use]
    pub fn standard() -> Self {
        Self {
            out: Stream::of(&io::stdout()),
            err: Stream::of(&io::stderr()),
        }
    }

    /// Writes to standard output, at once.
    ///
    /// # Errors
    /// As write(2).
    pub fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Writes one JSON document as a line; on a terminal with hidden characters as escapes that mean the same.
    ///
    /// # Errors
    /// As write(2).
    pub fn json(&self, document: &impl serde::Serialize) -> io::Result<()> {
        let text = serde_json::to_string(document)?;
        self.json_text(&text)
    }

    /// The same for JSON that is text already.
    ///
    /// # Errors
    /// As write(2).
    pub fn json_text(&self, text: &str) -> io::Result<()> {
        if self.out.terminal {
            self.print(&(crate::visible::json(text) + "\n"))
        } else {
            self.print(&format!("{text}\n"))
        }
    }

    /// Writes sentences to standard output; a terminal gets them in lines of its width.
    ///
    /// # Errors
    /// As write(2).
    pub fn say(&self, text: &str) -> io::Result<()> {
        self.print(&self.out.folded(text))
    }

    /// Says on standard error what failed, hidden characters as escapes.
    pub fn failure(&self, text: &str) {
        let name = Tone::Bad.paint("bxctl", self.err.colour);
        self.remark(&format!("{name}: {}\n", crate::visible::text(text)));
    }

    /// Writes to standard error; a terminal gets it in lines of its width. If that cannot be written either, nobody can
    /// be told.
    pub fn remark(&self, text: &str) {
        let text = self.err.folded(text);
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_is_a_colour_only_when_asked_for() {
        assert_eq!(Tone::Bad.paint("no", true), "\x1b[31mno\x1b[0m");
        assert_eq!(Tone::Bad.paint("no", false), "no");
        assert_eq!(Tone::Plain.paint("x", true), "x");
    }
}
