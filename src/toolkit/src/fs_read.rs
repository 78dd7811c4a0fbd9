//! `fs_read`: lines of a text file, or bytes of any file, as a stream and never more than one answer holds.

mod bytes;
mod lines;

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use serde::Deserialize;

use self::bytes::Form;
use crate::failure::{Failure, SystemError};
use crate::input::{PathArgument, parse};
use crate::read::decode::{Charset, Decoder};
use crate::read::{OpenError, kind, regular, sample};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A step failed.
    #[error(transparent)]
    System(#[from] SystemError),
    /// It is no file that can be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Lines are counted from 1.
    #[error("offset = 0 is no line: offset counts lines from 1")]
    OffsetZero,
    /// Nothing would be read.
    #[error("limit = 0 asks for nothing: leave limit out or give 1 or more")]
    LimitZero,
    /// The offset lies behind the last line or byte.
    #[error("offset = {offset} is past the end: {path} has {has} {unit}")]
    PastEnd {
        /// The path.
        path: String,
        /// What was asked for.
        offset: u64,
        /// What there is.
        has: u64,
        /// Lines or bytes.
        unit: &'static str,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: PathArgument,
    offset: Option<u64>,
    limit: Option<u64>,
    encoding: Option<Encoding>,
}

/// How the file's bytes become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Encoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "utf-16le")]
    Utf16Le,
    #[serde(rename = "utf-16be")]
    Utf16Be,
    #[serde(rename = "latin1")]
    Latin1,
    #[serde(rename = "hex")]
    Hex,
    #[serde(rename = "base64")]
    Base64,
}

pub(crate) fn run(input: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    let arguments: Arguments = parse(input)?;
    let text = read(&arguments)?;
    out.write_all(text.as_bytes()).map_err(Failure::Output)
}

fn read(arguments: &Arguments) -> Result<String, ReadError> {
    if arguments.limit == Some(0) {
        return Err(ReadError::LimitZero);
    }
    let path = arguments.path.as_path();
    let file = regular(path)?;
    match arguments.encoding {
        Some(Encoding::Hex) => bytes::show(path, file, range(arguments, 0), Form::Hex),
        Some(Encoding::Base64) => bytes::show(path, file, range(arguments, 0), Form::Base64),
        text => show_text(path, file, range(arguments, 1), text),
    }
}

/// First unit and number of units, if that was said.
fn range(arguments: &Arguments, first: u64) -> (u64, Option<u64>) {
    (arguments.offset.unwrap_or(first), arguments.limit)
}

fn show_text(
    path: &Path,
    mut file: File,
    (first, limit): (u64, Option<u64>),
    encoding: Option<Encoding>,
) -> Result<String, ReadError> {
    if first == 0 {
        return Err(ReadError::OffsetZero);
    }
    let sample = sample(path, &mut file)?;
    let mark = kind::byte_order_mark(&sample);
    let charset = match encoding {
        Some(Encoding::Latin1) => Charset::Latin1,
        Some(Encoding::Utf16Le) => Charset::Utf16Le,
        Some(Encoding::Utf16Be) => Charset::Utf16Be,
        Some(_) => Charset::Utf8,
        None => match mark {
            Some(mark) => mark,
            None => match kind::binary(&sample) {
                Some(what) => return describe(path, &file, what),
                None => Charset::Utf8,
            },
        },
    };
    // A mark of another encoding than the one that was asked for is part of the text.
    let skip = if mark == Some(charset) {
        charset.mark().len()
    } else {
        0
    };
    file.seek(SeekFrom::Start(skip as u64))
        .map_err(|error| SystemError::from_io("read", path, &error))?;
    lines::show(path, Decoder::new(file, charset), skip > 0, (first, limit))
}

fn describe(path: &Path, file: &File, what: &str) -> Result<String, ReadError> {
    let size = file
        .metadata()
        .map_err(|error| SystemError::from_io("examine", path, &error))?
        .len();
    Ok(format!(
        "[fs_read: not text: {what}, {size} bytes]\n\
         [fs_read: to read its bytes give encoding = \"hex\" or \"base64\", offset = first byte from 0, limit = number \
         of bytes; to read it as text all the same give encoding = \"utf-8\", \"utf-16le\", \"utf-16be\" or \
         \"latin1\"]\n"
    ))
}
