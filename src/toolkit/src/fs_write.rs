//! `fs_write`: a file is replaced whole, created, or added to.

use std::fmt::Write as _;
use std::io::Write;

use serde::Deserialize;

use crate::failure::Failure;
use crate::input::{PathArgument, parse};
use crate::visible::visible_path;
use crate::write::{HeldSignals, Place, WriteError, atomic, in_place};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: PathArgument,
    content: String,
    #[serde(default)]
    mode: Mode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Replace,
    Create,
    Append,
}

pub(crate) fn run(input: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    let arguments: Arguments = parse(input)?;
    let text = write(&arguments)?;
    out.write_all(text.as_bytes()).map_err(Failure::Output)
}

fn write(arguments: &Arguments) -> Result<String, WriteError> {
    let place = Place::find(arguments.path.as_path())?;
    let content = arguments.content.as_bytes();
    let held = HeldSignals::hold()?;
    let done = match arguments.mode {
        Mode::Replace => atomic::replace(&place, content, || true),
        Mode::Create => atomic::create(&place, content),
        Mode::Append => in_place::append(&place, content),
    };
    held.release()?;
    let done = done?;
    let mut text = format!(
        "{} bytes written to {}: {}\n",
        content.len(),
        place.shown(),
        done.how
    );
    if place.linked() {
        let link = visible_path(arguments.path.as_path());
        let _ = writeln!(
            text,
            "[fs_write: {link} is a symbolic link, which stays; its target was written]"
        );
    }
    for note in done.notes {
        let _ = writeln!(text, "[fs_write: {note}]");
    }
    Ok(text)
}
