//! The frame codec: a 4-byte big-endian length and that many bytes (boxmaker seed, section 4).

use std::io::{self, Read, Write};

/// The longest body of a frame, in bytes.
pub const MAX_FRAME: usize = 1_048_576;

/// The bytes of the length that stands before a body.
pub const HEADER: usize = 4;

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length is zero.
    #[error("frame with an empty body")]
    Empty,
    /// The length is above [`MAX_FRAME`].
    #[error("frame of {0} bytes, at most {MAX_FRAME} are allowed")]
    TooLong(u64),
    /// The stream ended inside a frame.
    #[error("stream ended inside a frame")]
    Truncated,
    /// The stream failed.
    #[error("stream failed: {0}")]
    Io(#[from] io::Error),
}

/// Reads the length of a frame from its four header bytes.
///
/// # Errors
/// [`FrameError::Empty`] and [`FrameError::TooLong`]; nothing was allocated.
pub fn body_length(header: [u8; HEADER]) -> Result<usize, FrameError> {
    let length = u32::from_be_bytes(header);
    match usize::try_from(length) {
        Ok(0) => Err(FrameError::Empty),
        Ok(length) if length <= MAX_FRAME => Ok(length),
        _ => Err(FrameError::TooLong(u64::from(length))),
    }
}

/// The header of a frame with a body of `length` bytes.
///
/// # Errors
/// [`FrameError::Empty`] and [`FrameError::TooLong`].
pub fn header(length: usize) -> Result<[u8; HEADER], FrameError> {
    match u32::try_from(length) {
        Ok(0) => Err(FrameError::Empty),
        Ok(short) if length <= MAX_FRAME => Ok(short.to_be_bytes()),
        _ => Err(FrameError::TooLong(length as u64)),
    }
}

/// Reads one body, or `None` at an orderly end of the stream (between two frames).
///
/// # Errors
/// As [`FrameError`]; after any error the stream is out of step and must be closed.
pub fn read(stream: &mut impl Read) -> Result<Option<Vec<u8>>, FrameError> {
    let mut first = [0; HEADER];
    let mut filled = 0;
    while filled < HEADER {
        match stream.read(&mut first[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(FrameError::Truncated),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut body = vec![0; body_length(first)?];
    stream
        .read_exact(&mut body)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => FrameError::Truncated,
            _ => error.into(),
        })?;
    Ok(Some(body))
}

/// Writes `body` as one frame.
///
/// # Errors
/// As [`FrameError`]; nothing is written for an empty or too long body.
pub fn write(stream: &mut impl Write, body: &[u8]) -> Result<(), FrameError> {
    let first = header(body.len())?;
    stream.write_all(&first)?;
    stream.write_all(body)?;
    Ok(())
}
