//! From `role_start` to `ready`: the listener, the policy, and the state that the log says was there before
//! (protocol.md section 1).

use std::io;
use std::os::unix::net::UnixListener;

use ipc::role::Started;
use ipc::{Connection, Files, FilesError, RecvError, SendError};
use policy::{LoadError, Policy};
use proto::broker::{Record, RecordEntry};
use proto::role::Empty;
use proto::{Envelope, Message};

use crate::report;
use crate::state::Sessions;

/// The peer behind the one listener.
pub(crate) const PEER: &str = "bxctl";

/// Why brokerd did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The supervisor handed over no listener.
    #[error(
        "role_start carries no socket {PEER:?}: brokerd serves the owner's command line and nothing else"
    )]
    NoListener,
    /// It handed over sockets that brokerd does not know.
    #[error("role_start carries sockets that brokerd does not serve: {}", .0.join(", "))]
    UnexpectedSockets(Vec<String>),
    /// Nothing that could be read arrived.
    #[error("waiting for {waited}: {source}")]
    Receive {
        /// The message that was waited for.
        waited: &'static str,
        /// Why.
        source: RecvError,
    },
    /// The supervisor went away.
    #[error("the supervisor closed the control socket while brokerd waited for {0}")]
    Closed(&'static str),
    /// Another message arrived.
    #[error("waiting for {waited}: {got} came")]
    Unexpected {
        /// The message that was waited for.
        waited: &'static str,
        /// The one that came.
        got: &'static str,
    },
    /// Something could not be sent.
    #[error("cannot send {what} to the supervisor: {source}")]
    Send {
        /// The message.
        what: &'static str,
        /// Why.
        source: SendError,
    },
    /// The configuration could not be read from its sealed memory.
    #[error("policy: {0}")]
    Files(#[from] FilesError),
    /// The configuration is no policy.
    #[error("policy: {}", lines(.0))]
    Policy(Vec<LoadError>),
    /// A descriptor or a thread could not be had.
    #[error("{step}: {source}")]
    Io {
        /// What was being done.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Everything that is there when brokerd can serve; `ready` has not been sent.
pub(crate) struct Ready {
    pub(crate) control: Connection,
    pub(crate) listener: UnixListener,
    pub(crate) policy: Policy,
    pub(crate) sessions: Sessions,
    /// The first id that brokerd has not used on the control socket.
    pub(crate) next: u64,
}

/// Starts; `None` if the supervisor wanted an end instead.
///
/// # Errors
/// As [`StartError`].
pub(crate) fn start(mut started: Started) -> Result<Option<Ready>, StartError> {
    let listener = started.listener(PEER).ok_or(StartError::NoListener)?;
    let unexpected = started.unexpected();
    if !unexpected.is_empty() {
        return Err(StartError::UnexpectedSockets(unexpected));
    }
    let mut line = Line {
        control: started.control,
        next: 1,
    };
    let Some(policy) = line.policy()? else {
        return Ok(None);
    };
    let Some(mut sessions) = line.history()? else {
        return Ok(None);
    };
    for of in sessions.close_unknown() {
        let what = format!("decision {of}");
        if line.close(RecordEntry::Unknown { of }, &what)?.is_none() {
            return Ok(None);
        }
    }
    for expired in sessions.close_questions() {
        let what = format!("question {}", expired.approval);
        if line.close(RecordEntry::Approval(expired), &what)?.is_none() {
            return Ok(None);
        }
    }
    line.send(started.id, Message::Ready(Empty {}))?;
    Ok(Some(Ready {
        control: line.control,
        listener,
        policy,
        sessions,
        next: line.next,
    }))
}

/// Makes a policy of the sealed files that came with `policy`.
///
/// # Errors
/// [`StartError::Files`] and [`StartError::Policy`].
pub(crate) fn load(memory: std::os::fd::OwnedFd, generation: u64) -> Result<Policy, StartError> {
    let files = Files::unseal(memory)?;
    Policy::load(&files.0, generation).map_err(StartError::Policy)
}

/// The control socket while one thread has it to itself. Where a method gives `None`, the supervisor said `stop`.
struct Line {
    control: Connection,
    next: u64,
}

impl Line {
    fn policy(&mut self) -> Result<Option<Policy>, StartError> {
        let waited = "policy";
        let Some(mut received) = self.receive(waited)? else {
            return Ok(None);
        };
        match (received.envelope.msg, received.descriptors.pop()) {
            (Message::Policy(policy), Some(memory)) => load(memory, policy.generation).map(Some),
            (other, _) => Err(unexpected(waited, &other)),
        }
    }

    fn history(&mut self) -> Result<Option<Sessions>, StartError> {
        let waited = "history";
        let mut sessions = Sessions::default();
        loop {
            let Some(received) = self.receive(waited)? else {
                return Ok(None);
            };
            let last = received.envelope.r#final;
            match received.envelope.msg {
                Message::History(part) => {
                    part.entries.iter().for_each(|entry| sessions.replay(entry));
                }
                other => return Err(unexpected(waited, &other)),
            }
            if last {
                return Ok(Some(sessions));
            }
        }
    }

    /// Records the end of something of an earlier run.
    fn close(&mut self, entry: RecordEntry, what: &str) -> Result<Option<()>, StartError> {
        let waited = "recorded";
        let id = self.next;
        self.next += 1;
        self.send(id, Message::Record(Record { entry }))?;
        let Some(received) = self.receive(waited)? else {
            return Ok(None);
        };
        match received.envelope.msg {
            Message::Recorded(_) if received.envelope.id == id => {}
            // A log that takes no records is no reason to leave the owner without `status`; the session has the
            // labels already, and the next start closes what is left open.
            Message::Error(error) if received.envelope.id == id => {
                report(format_args!(
                    "{what} of an earlier run stays open: {}",
                    error.detail
                ));
            }
            other => return Err(unexpected(waited, &other)),
        }
        Ok(Some(()))
    }

    fn receive(&self, waited: &'static str) -> Result<Option<ipc::Received>, StartError> {
        loop {
            let received = self
                .control
                .receive()
                .map_err(|source| StartError::Receive { waited, source })?
                .ok_or(StartError::Closed(waited))?;
            match received.envelope.msg {
                Message::Ping(_) => self.send(received.envelope.id, Message::Pong(Empty {}))?,
                Message::Stop(_) => return Ok(None),
                _ => return Ok(Some(received)),
            }
        }
    }

    fn send(&self, id: u64, message: Message) -> Result<(), StartError> {
        let what = message.kind();
        self.control
            .send(&Envelope::new(id, message))
            .map_err(|source| StartError::Send { what, source })
    }
}

fn unexpected(waited: &'static str, got: &Message) -> StartError {
    let got = got.kind();
    StartError::Unexpected { waited, got }
}

fn lines(errors: &[LoadError]) -> String {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
