//! Envelopes over a [`Wire`]: what arrives is a message of this protocol with exactly its descriptors, or an error.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use proto::frame::{FrameError, MAX_FRAME};
use proto::message::DecodeError;
use proto::{Envelope, ErrorCode, Message, WireError as ErrorBody};

use crate::wire::{Frame, Wire, WireError};

/// Why nothing could be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The message names another number of descriptors than it was given.
    #[error("{kind} carries {named} descriptors, {given} were given")]
    Count {
        /// The message's kind.
        kind: &'static str,
        /// What the message says.
        named: usize,
        /// What the caller gave.
        given: usize,
    },
    /// The frame could not be written.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Why no message arrived. Everything that came with it is closed.
#[derive(Debug, thiserror::Error)]
pub enum RecvError {
    /// The frame or its descriptors are wrong, or the stream failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The body is not an envelope.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The message names another number of descriptors than came.
    #[error("{kind} carries {named} descriptors, {came} came")]
    Count {
        /// The message's kind.
        kind: &'static str,
        /// The envelope's id.
        id: u64,
        /// What the message says.
        named: usize,
        /// What came.
        came: usize,
    },
}

impl RecvError {
    /// The `error` message that tells the peer, before the connection is closed: what is wrong, the rule, the way out.
    #[must_use]
    pub fn reply(&self) -> Envelope {
        let (id, code) = match self {
            Self::Wire(_) => (0, ErrorCode::BadFrame),
            Self::Decode(error) => (error.id.unwrap_or(0), error.code),
            Self::Count { id, .. } => (*id, ErrorCode::BadFrame),
        };
        Envelope::new(
            id,
            Message::Error(ErrorBody {
                code,
                detail: format!("{self}; {}", self.rule()),
            }),
        )
    }

    /// What the peer should have sent, and what it can do.
    fn rule(&self) -> String {
        let rule = match self {
            Self::Wire(WireError::Frame(_)) => {
                return format!(
                    "a frame is a length of 4 bytes, big-endian, from 1 to {MAX_FRAME}, and that many bytes: connect \
                     again and send that"
                );
            }
            Self::Wire(WireError::TooManyDescriptors | WireError::MisplacedDescriptors)
            | Self::Count { .. } => {
                "descriptors come with the first byte of a frame, as many as its kind carries (docs/formats.md, section \
                 1): connect again and send those"
            }
            Self::Decode(DecodeError {
                code: ErrorCode::BadVersion,
                ..
            }) => "both sides have to be of one build: install them together",
            Self::Decode(_) => {
                "docs/formats.md, sections 1 and 2, says what a message is and which kinds there are: connect again and \
                 send one of them"
            }
        };
        rule.to_owned()
    }
}

/// One message and the descriptors that came with it.
#[derive(Debug)]
pub struct Received {
    /// The message.
    pub envelope: Envelope,
    /// As many descriptors as the message names.
    pub descriptors: Vec<OwnedFd>,
}

/// A socket that carries envelopes.
#[derive(Debug)]
pub struct Connection {
    wire: Wire,
}

impl Connection {
    /// Wraps a connected stream.
    #[must_use]
    pub const fn new(stream: UnixStream) -> Self {
        Self {
            wire: Wire::new(stream),
        }
    }

    /// Two connected ends, both closed on exec.
    ///
    /// # Errors
    /// As socketpair(2).
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = Wire::pair()?;
        Ok((Self { wire: one }, Self { wire: other }))
    }

    /// Connects to the listener at `path`.
    ///
    /// # Errors
    /// As connect(2).
    pub fn connect(path: &std::path::Path) -> io::Result<Self> {
        Ok(Self::new(UnixStream::connect(path)?))
    }

    /// Another handle on the same end. Two threads that send must not do so at the same time: put one in a mutex.
    ///
    /// # Errors
    /// As fcntl(2) with `F_DUPFD_CLOEXEC`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            wire: self.wire.try_clone()?,
        })
    }

    /// The stream below, for timeouts and shutdown.
    #[must_use]
    pub const fn stream(&self) -> &UnixStream {
        self.wire.stream()
    }

    /// Sends a message that carries no descriptors.
    ///
    /// # Errors
    /// As [`SendError`].
    pub fn send(&self, envelope: &Envelope) -> Result<(), SendError> {
        self.send_with(envelope, &[])
    }

    /// Sends a message with its descriptors.
    ///
    /// # Errors
    /// As [`SendError`]; nothing was sent if the count or the size is wrong.
    pub fn send_with(
        &self,
        envelope: &Envelope,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SendError> {
        let named = envelope.msg.descriptors();
        if named != descriptors.len() {
            let kind = envelope.msg.kind();
            return Err(SendError::Count {
                kind,
                named,
                given: descriptors.len(),
            });
        }
        Ok(self.wire.send(&envelope.encode()?, descriptors)?)
    }

    /// Waits for the next message; `None` at an orderly end of the stream.
    ///
    /// # Errors
    /// As [`RecvError`]; send [`RecvError::reply`] and close.
    pub fn receive(&self) -> Result<Option<Received>, RecvError> {
        let Some(Frame { body, descriptors }) = self.wire.receive()? else {
            return Ok(None);
        };
        let envelope = Envelope::decode(&body)?;
        let named = envelope.msg.descriptors();
        if named != descriptors.len() {
            let (kind, id) = (envelope.msg.kind(), envelope.id);
            return Err(RecvError::Count {
                kind,
                id,
                named,
                came: descriptors.len(),
            });
        }
        Ok(Some(Received {
            envelope,
            descriptors,
        }))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}
