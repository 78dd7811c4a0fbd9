//! What the supervisor says to whoever started it. A terminal gets lines of its width; in a log or a pipe a message stays
//! as it is. Nobody there to hear it stops nothing.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use confine::fold::fold;

/// The width where the terminal does not know its own.
const WIDTH: usize = 80;

/// Says `text` on standard error, with whose words they are before it.
pub(crate) fn remark(text: &str) {
    let mut err = io::stderr().lock();
    let text = folded(&err, &format!("boxmaker: {text}\n"));
    // Where the reader has gone there is nobody to be told of it.
    let _ = err.write_all(text.as_bytes());
}

/// Writes a line on standard error as it is, for programs.
pub(crate) fn plain(text: &str) {
    // As above.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says `text` on standard output, at once.
pub(crate) fn announce(text: &str) {
    let mut out = io::stdout().lock();
    let text = folded(&out, &format!("{text}\n"));
    // As above.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn folded(stream: &(impl IsTerminal + AsFd), text: &str) -> String {
    if !stream.is_terminal() {
        return text.to_owned();
    }
    let size = rustix::termios::tcgetwinsize(stream).ok();
    // A terminal that was never given a size says 0.
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    fold(text, if columns == 0 { WIDTH } else { columns.max(40) })
}
