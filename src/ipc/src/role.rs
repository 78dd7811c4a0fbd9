//! The start of a role: its control socket is its standard input, everything else comes over it
//! (protocol.md section 1).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use proto::role::RoleStart;
use proto::{Envelope, Message};

use crate::connection::{Connection, RecvError, SendError};

/// Why a process did not become a role.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Standard input is no socket.
    #[error("standard input is no socket: a role is started by `boxmaker up`, not by hand")]
    NotStarted,
    /// Standard input could not be taken.
    #[error("cannot take standard input: {0}")]
    Io(#[from] io::Error),
    /// The first message did not arrive.
    #[error("no role_start: {0}")]
    Receive(#[from] RecvError),
    /// The supervisor closed the socket.
    #[error("the supervisor closed the control socket before role_start")]
    Closed,
    /// The first message was another one.
    #[error("expected role_start, got {0}")]
    Unexpected(&'static str),
    /// The supervisor wants another role than this binary is.
    #[error("started as {wanted}, but this binary is {own}")]
    WrongRole {
        /// What `role_start` says.
        wanted: String,
        /// What the binary is.
        own: &'static str,
    },
    /// Two sockets have one name.
    #[error("socket {0} was handed over twice")]
    Duplicate(String),
}

/// A role that got its start message.
#[derive(Debug)]
pub struct Started {
    /// The private line to the supervisor.
    pub control: Connection,
    /// `config.toml` as text.
    pub config: String,
    /// The id of `role_start`, for `ready`.
    pub id: u64,
    sockets: BTreeMap<String, OwnedFd>,
}

impl Started {
    /// Takes standard input for the control socket and waits for `role_start`.
    ///
    /// # Errors
    /// As [`StartError`]; every descriptor that came is closed.
    pub fn from_stdin(own: &'static str) -> Result<Self, StartError> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        if rustix::net::sockopt::socket_domain(&stdin).is_err() {
            return Err(StartError::NotStarted);
        }
        Self::from_stream(own, UnixStream::from(stdin))
    }

    /// The same over a given socket.
    ///
    /// # Errors
    /// As [`StartError`].
    pub fn from_stream(own: &'static str, stream: UnixStream) -> Result<Self, StartError> {
        let control = Connection::new(stream);
        let received = control.receive()?.ok_or(StartError::Closed)?;
        let id = received.envelope.id;
        let start = match received.envelope.msg {
            Message::RoleStart(start) => start,
            other => return Err(StartError::Unexpected(other.kind())),
        };
        if start.role != own {
            return Err(StartError::WrongRole {
                wanted: start.role,
                own,
            });
        }
        let mut sockets = BTreeMap::new();
        for (name, socket) in start.sockets.into_iter().zip(received.descriptors) {
            if sockets.insert(name.clone(), socket).is_some() {
                return Err(StartError::Duplicate(name));
            }
        }
        Ok(Self {
            control,
            config: start.config,
            id,
            sockets,
        })
    }

    /// Takes the listener behind which `peer` is; `None` if none of that name was handed over.
    pub fn listener(&mut self, peer: &str) -> Option<UnixListener> {
        self.sockets.remove(peer).map(UnixListener::from)
    }

    /// The names of the sockets that nobody took: a role that finds any refuses to start.
    #[must_use]
    pub fn unexpected(&self) -> Vec<String> {
        self.sockets.keys().cloned().collect()
    }
}

/// Sends `role_start` with its sockets.
///
/// # Errors
/// As [`SendError`].
pub fn start(
    control: &Connection,
    id: u64,
    role: &str,
    config: &str,
    sockets: &[(&str, BorrowedFd<'_>)],
) -> Result<(), SendError> {
    let (names, descriptors): (Vec<_>, Vec<_>) = sockets
        .iter()
        .map(|(name, socket)| ((*name).to_owned(), *socket))
        .unzip();
    let start = RoleStart {
        role: role.to_owned(),
        config: config.to_owned(),
        sockets: names,
    };
    control.send_with(&Envelope::new(id, Message::RoleStart(start)), &descriptors)
}
