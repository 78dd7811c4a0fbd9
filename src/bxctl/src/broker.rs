//! The connection to brokerd over `run/bxctl/broker.sock`: one question, its answer. Knows no command.

mod error;

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ipc::{Connection, RecvError, SendError};
use proto::client::{AnswerQuestion, Question, StatusReply, ToolRequest, ToolResponse};
use proto::client::{SessionEnd, SessionListReply, SessionOpen, SessionOpened};
use proto::frame::FrameError;
use proto::role::Empty;
use proto::{Answer, ApprovalId, Envelope, Message, SessionId};

pub use self::error::BrokerError;
use crate::place;

/// How long brokerd may take for an answer that waits for no tool: its own restart and an fsync fit in.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open line to brokerd.
#[derive(Debug)]
pub struct Broker {
    connection: Connection,
    asked: u64,
    patience: Duration,
}

impl Broker {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// [`BrokerError`] says why there is nobody, and what to do.
    pub fn connect(path: &Path) -> Result<Self, BrokerError> {
        let path = path.to_owned();
        match Connection::connect(&path) {
            Ok(connection) => Ok(Self {
                connection,
                asked: 0,
                patience: PATIENCE,
            }),
            Err(source) => Err(match source.kind() {
                io::ErrorKind::NotFound => BrokerError::Absent { path },
                io::ErrorKind::ConnectionRefused => BrokerError::Deserted { path },
                io::ErrorKind::PermissionDenied => {
                    let help = place::who_may(&path);
                    BrokerError::Forbidden { path, help }
                }
                _ => BrokerError::Connect { path, source },
            }),
        }
    }

    /// The stream that this line is on.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        self.connection.stream()
    }

    /// The same line, on which an answer that waits for no tool may take as long as `patience`.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Opens a session, or resumes the one that is named.
    ///
    /// # Errors
    /// As [`BrokerError`].
    pub fn open(&mut self, session: Option<SessionId>) -> Result<SessionOpened, BrokerError> {
        match self.ask(Message::SessionOpen(SessionOpen { session }))? {
            Message::SessionOpened(opened) => Ok(opened),
            other => Err(unexpected("session_open", &other)),
        }
    }

    /// Ends a session.
    ///
    /// # Errors
    /// As [`BrokerError`].
    pub fn end(&mut self, session: SessionId) -> Result<(), BrokerError> {
        match self.ask(Message::SessionEnd(SessionEnd { session }))? {
            Message::Ok(Empty {}) => Ok(()),
            other => Err(unexpected("session_end", &other)),
        }
    }

    /// Every session that the log knows.
    ///
    /// # Errors
    /// As [`BrokerError`].
    pub fn sessions(&mut self) -> Result<SessionListReply, BrokerError> {
        match self.ask(Message::SessionList(Empty {}))? {
            Message::SessionListReply(reply) => Ok(reply),
            other => Err(unexpected("session_list", &other)),
        }
    }

    /// Every open question, the oldest first.
    ///
    /// # Errors
    /// As [`BrokerError`].
    pub fn approvals(&mut self) -> Result<Vec<Question>, BrokerError> {
        let kind = "approvals";
        let id = self.send(Message::Approvals(Empty {}), Some(self.patience))?;
        let mut approvals = Vec::new();
        loop {
            let envelope = self.answer_to(kind, id)?;
            match envelope.msg {
                Message::ApprovalsReply(reply) => approvals.extend(reply.approvals),
                other => return Err(unexpected(kind, &other)),
            }
            if envelope.r#final {
                return Ok(approvals);
            }
        }
    }

    /// Answers one question.
    ///
    /// # Errors
    /// As [`BrokerError`].
    pub fn answer(&mut self, approval: &ApprovalId, answer: Answer) -> Result<(), BrokerError> {
        let named = AnswerQuestion {
            approval: approval.clone(),
        };
        let (kind, message) = match answer {
            Answer::Approved => ("approve", Message::Approve(named)),
            Answer::Refused => ("refuse", Message::Refuse(named)),
        };
        match self.ask(message)? {
            Message::Ok(Empty {}) => Ok(()),
            other => Err(unexpected(kind, &other)),
        }
    }

    /// What runs.
    ///
    /// # Errors
    /// As [`BrokerError`].
    pub fn status(&mut self) -> Result<StatusReply, BrokerError> {
        match self.ask(Message::Status(Empty {}))? {
            Message::StatusReply(reply) => Ok(reply),
            other => Err(unexpected("status", &other)),
        }
    }

    /// Makes one call and waits for its end, however long the tool takes; `waiting` sees every answer before the last.
    ///
    /// # Errors
    /// As [`BrokerError`]; a denial is an answer and no error.
    pub fn call(
        &mut self,
        request: ToolRequest,
        waiting: impl Fn(&ToolResponse),
    ) -> Result<ToolResponse, BrokerError> {
        let kind = "tool_request";
        let id = self.send(Message::ToolRequest(request), None)?;
        loop {
            let envelope = self.answer_to(kind, id)?;
            match envelope.msg {
                Message::ToolResponse(response) if envelope.r#final => return Ok(response),
                Message::ToolResponse(response) => waiting(&response),
                other => return Err(unexpected(kind, &other)),
            }
        }
    }

    fn ask(&mut self, message: Message) -> Result<Message, BrokerError> {
        let kind = message.kind();
        let id = self.send(message, Some(self.patience))?;
        Ok(self.answer_to(kind, id)?.msg)
    }

    fn send(&mut self, message: Message, patience: Option<Duration>) -> Result<u64, BrokerError> {
        let kind = message.kind();
        self.asked += 1;
        let failed = |source| BrokerError::Send { kind, source };
        self.connection
            .stream()
            .set_read_timeout(patience)
            .map_err(|error| failed(SendError::Frame(error.into())))?;
        let sent = self.connection.send(&Envelope::new(self.asked, message));
        sent.map_err(|source| match source {
            // A peer that turned the connection away has said why before it closed.
            SendError::Frame(FrameError::Io(_)) => match self.answer_to(kind, self.asked) {
                Err(refused @ BrokerError::Refused { .. }) => refused,
                _ => failed(source),
            },
            source => failed(source),
        })?;
        Ok(self.asked)
    }

    fn answer_to(&self, kind: &'static str, id: u64) -> Result<Envelope, BrokerError> {
        let received = self.connection.receive().map_err(|source| {
            if timed_out(&source) {
                BrokerError::Slow {
                    kind,
                    seconds: self.patience.as_secs(),
                }
            } else {
                BrokerError::Receive { kind, source }
            }
        })?;
        let envelope = received.ok_or(BrokerError::Closed { kind })?.envelope;
        match envelope.msg {
            // An error about a frame that could not be read carries id 0.
            Message::Error(error) if envelope.id == id || envelope.id == 0 => {
                Err(BrokerError::Refused { kind, error })
            }
            ref other if envelope.id != id => Err(unexpected(kind, other)),
            _ => Ok(envelope),
        }
    }
}

fn timed_out(error: &RecvError) -> bool {
    use ipc::wire::WireError as Wire;
    match error {
        RecvError::Wire(Wire::Frame(FrameError::Io(error))) => {
            matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            )
        }
        _ => false,
    }
}

fn unexpected(kind: &'static str, got: &Message) -> BrokerError {
    BrokerError::Unexpected {
        kind,
        got: got.kind(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_broker_that_turns_a_connection_away_is_heard() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("broker.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut broker = Broker::connect(&path).unwrap();
        let away = proto::WireError {
            code: proto::ErrorCode::Internal,
            detail: "64 connections are open".to_owned(),
        };
        let (stream, _) = listener.accept().unwrap();
        let theirs = Connection::new(stream);
        theirs
            .send(&Envelope::new(0, Message::Error(away)))
            .unwrap();
        drop(theirs);
        let error = broker.status().unwrap_err();
        assert!(
            matches!(&error, BrokerError::Refused { kind: "status", error } if error.detail.starts_with("64")),
            "{error}"
        );
    }
}
