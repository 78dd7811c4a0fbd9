//! Raw frames over a Unix stream socket, with descriptors by SCM_RIGHTS (unix(7), formats.md section 1).
//!
//! Descriptors travel with the first byte of the frame that names them. The kernel never joins the bytes of such a
//! message with what was sent after it, but it does with what was sent before; so the reader asks for the first byte
//! of a frame alone, and for no more than one frame. Whatever arrives at another place, or does not fit, is an error,
//! and everything received is closed.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use proto::frame::{self, FrameError, HEADER};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// The most descriptors that one frame may carry.
pub const MAX_DESCRIPTORS: usize = 16;

/// Why a frame did not arrive. After any of these the stream is out of step and must be closed.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The frame itself is wrong, or the stream failed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The control data did not fit: the sender passed too many descriptors, or this process may not open as many.
    #[error(
        "more descriptors came with one frame than the {MAX_DESCRIPTORS} allowed, or than this process may open"
    )]
    TooManyDescriptors,
    /// Descriptors came with a later byte than the first of a frame.
    #[error("descriptors came in the middle of a frame")]
    MisplacedDescriptors,
}

/// One frame as it arrived.
#[derive(Debug)]
pub struct Frame {
    /// Its bytes, at least one and at most [`frame::MAX_FRAME`].
    pub body: Vec<u8>,
    /// The descriptors that came with it, in the sender's order.
    pub descriptors: Vec<OwnedFd>,
}

/// One end of a Unix stream socket that carries frames.
#[derive(Debug)]
pub struct Wire {
    stream: UnixStream,
}

impl Wire {
    /// Wraps a connected stream.
    #[must_use]
    pub const fn new(stream: UnixStream) -> Self {
        Self { stream }
    }

    /// Two connected ends, both closed on exec.
    ///
    /// # Errors
    /// As socketpair(2).
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = UnixStream::pair()?;
        Ok((Self::new(one), Self::new(other)))
    }

    /// Another handle on the same end: one thread may receive while others send.
    ///
    /// # Errors
    /// As fcntl(2) with `F_DUPFD_CLOEXEC`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self::new(self.stream.try_clone()?))
    }

    /// The stream below.
    #[must_use]
    pub const fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Gives the stream back.
    #[must_use]
    pub fn into_stream(self) -> UnixStream {
        self.stream
    }

    /// Sends `body` as one frame, `descriptors` with its first byte.
    ///
    /// # Errors
    /// [`FrameError`] for a body that is empty or too long; nothing was sent. Any I/O error of the stream.
    ///
    /// # Panics
    /// Never; more than [`MAX_DESCRIPTORS`] descriptors are an `InvalidInput` error.
    pub fn send(&self, body: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), FrameError> {
        let head = frame::header(body.len())?;
        if descriptors.len() > MAX_DESCRIPTORS {
            let kind = io::ErrorKind::InvalidInput;
            return Err(io::Error::new(kind, "too many descriptors for one frame").into());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let total = HEADER + body.len();
        let mut sent = 0;
        while sent < total {
            let mut control = SendAncillaryBuffer::new(&mut space);
            if sent == 0 && !descriptors.is_empty() {
                // The buffer has room for MAX_DESCRIPTORS, checked above, so the push succeeds.
                control.push(SendAncillaryMessage::ScmRights(descriptors));
            }
            let parts = [
                IoSlice::new(head.get(sent..).unwrap_or_default()),
                IoSlice::new(&body[sent.saturating_sub(HEADER)..]),
            ];
            let flags = SendFlags::NOSIGNAL;
            match rustix::net::sendmsg(&self.stream, &parts, &mut control, flags) {
                Ok(count) => sent += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
        }
        Ok(())
    }

    /// Receives one frame and the descriptors that came with it; `None` at an orderly end of the stream.
    ///
    /// # Errors
    /// As [`WireError`]; every descriptor received so far is closed.
    pub fn receive(&self) -> Result<Option<Frame>, WireError> {
        let mut head = [0; HEADER];
        let mut descriptors = Vec::new();
        // The first byte alone, so that descriptors of a later byte cannot pass for its own.
        let (first, rest) = head.split_at_mut(1);
        if !self.fill(first, Some(&mut descriptors))? {
            return Ok(None);
        }
        if !self.fill(rest, None)? {
            return Err(FrameError::Truncated.into());
        }
        let mut body = vec![0; frame::body_length(head)?];
        if !self.fill(&mut body, None)? {
            return Err(FrameError::Truncated.into());
        }
        Ok(Some(Frame { body, descriptors }))
    }

    /// Fills `buffer`; `false` if the stream ended before its first byte. Descriptors are taken with the first
    /// byte and only if `descriptors` is given.
    fn fill(
        &self,
        buffer: &mut [u8],
        mut descriptors: Option<&mut Vec<OwnedFd>>,
    ) -> Result<bool, WireError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let mut space =
                [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut buffer[filled..])];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let got = match rustix::net::recvmsg(&self.stream, &mut parts, &mut control, flags) {
                Ok(got) => got,
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(FrameError::from(io::Error::from(errno)).into()),
            };
            let arrived: Vec<OwnedFd> = control
                .drain()
                .filter_map(|message| match message {
                    RecvAncillaryMessage::ScmRights(rights) => Some(rights),
                    _ => None,
                })
                .flatten()
                .collect();
            if got.flags.contains(ReturnFlags::CTRUNC) || arrived.len() > MAX_DESCRIPTORS {
                return Err(WireError::TooManyDescriptors);
            }
            match &mut descriptors {
                Some(taken) if filled == 0 => **taken = arrived,
                _ if arrived.is_empty() => {}
                _ => return Err(WireError::MisplacedDescriptors),
            }
            if got.bytes == 0 {
                return if filled == 0 {
                    Ok(false)
                } else {
                    Err(FrameError::Truncated.into())
                };
            }
            filled += got.bytes;
        }
        Ok(true)
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
