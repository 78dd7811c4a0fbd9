//! The envelope and every kind of message that travels in one (boxmaker seed, section 4; formats.md section 2).

use serde::{Deserialize, Serialize};

use crate::VERSION;
use crate::broker::{
    Abort, Commit, Committed, Exited, Finish, History, PolicyGeneration, Prepare, Prepared, Record,
    Recorded, Refused,
};
use crate::client::{
    AnswerQuestion, ApprovalsReply, SessionEnd, SessionListReply, SessionOpen, SessionOpened,
    StatusReply, ToolRequest, ToolResponse, ToolsListReply,
};
use crate::role::{Empty, RoleStart};

/// One message with what it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The protocol version, [`VERSION`].
    pub v: u32,
    /// Chosen by who asks; every frame of the answer carries it.
    pub id: u64,
    /// Whether this is the last frame of the request or answer.
    pub r#final: bool,
    /// The message.
    pub msg: Message,
}

/// What went wrong between two peers; never a policy decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The frame is not one.
    BadFrame,
    /// The envelope's version is not [`VERSION`].
    BadVersion,
    /// The message is not one that this listener takes.
    BadMessage,
    /// The session is not open, or not this socket's.
    UnknownSession,
    /// No open question has this id: it was answered, has lapsed, or never was.
    UnknownApproval,
    /// The call's number does not rise.
    BadCall,
    /// The peer failed.
    Internal,
}

/// An error between two peers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireError {
    /// What kind.
    pub code: ErrorCode,
    /// What happened, the rule, and what to do.
    pub detail: String,
}

/// Every kind of message. Each listener takes its own pair's kinds only; any other is `bad_message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    content = "body",
    rename_all = "snake_case",
    deny_unknown_fields
)]
#[expect(missing_docs, reason = "each kind is documented at its body")]
pub enum Message {
    Error(WireError),
    Ok(Empty),

    ToolRequest(ToolRequest),
    ToolResponse(ToolResponse),
    ToolsList(Empty),
    ToolsListReply(ToolsListReply),
    SessionOpen(SessionOpen),
    SessionOpened(SessionOpened),
    SessionList(Empty),
    SessionListReply(SessionListReply),
    SessionEnd(SessionEnd),
    Approvals(Empty),
    ApprovalsReply(ApprovalsReply),
    Approve(AnswerQuestion),
    Refuse(AnswerQuestion),
    Status(Empty),
    StatusReply(StatusReply),

    RoleStart(RoleStart),
    Ready(Empty),
    Ping(Empty),
    Pong(Empty),
    Stop(Empty),

    Policy(PolicyGeneration),
    History(History),
    Record(Record),
    Recorded(Recorded),
    Prepare(Prepare),
    Prepared(Prepared),
    Refused(Refused),
    Commit(Commit),
    Committed(Committed),
    Abort(Abort),
    Exited(Exited),
    Finish(Finish),
}

impl Message {
    /// How many descriptors come with the message; a frame with another number is an error.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        match self {
            Self::RoleStart(start) => start.sockets.len(),
            Self::Policy(_) => 1,
            Self::Prepared(_) => 2,
            _ => 0,
        }
    }

    /// The message's kind as it stands on the wire.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Error(_) => "error",
            Self::Ok(_) => "ok",
            Self::ToolRequest(_) => "tool_request",
            Self::ToolResponse(_) => "tool_response",
            Self::ToolsList(_) => "tools_list",
            Self::ToolsListReply(_) => "tools_list_reply",
            Self::SessionOpen(_) => "session_open",
            Self::SessionOpened(_) => "session_opened",
            Self::SessionList(_) => "session_list",
            Self::SessionListReply(_) => "session_list_reply",
            Self::SessionEnd(_) => "session_end",
            Self::Approvals(_) => "approvals",
            Self::ApprovalsReply(_) => "approvals_reply",
            Self::Approve(_) => "approve",
            Self::Refuse(_) => "refuse",
            Self::Status(_) => "status",
            Self::StatusReply(_) => "status_reply",
            Self::RoleStart(_) => "role_start",
            Self::Ready(_) => "ready",
            Self::Ping(_) => "ping",
            Self::Pong(_) => "pong",
            Self::Stop(_) => "stop",
            Self::Policy(_) => "policy",
            Self::History(_) => "history",
            Self::Record(_) => "record",
            Self::Recorded(_) => "recorded",
            Self::Prepare(_) => "prepare",
            Self::Prepared(_) => "prepared",
            Self::Refused(_) => "refused",
            Self::Commit(_) => "commit",
            Self::Committed(_) => "committed",
            Self::Abort(_) => "abort",
            Self::Exited(_) => "exited",
            Self::Finish(_) => "finish",
        }
    }
}

/// Why bytes are not an envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct DecodeError {
    /// `bad_version` or `bad_message`.
    pub code: ErrorCode,
    /// The envelope's id, as far as it could be read; the error that answers it carries it.
    pub id: Option<u64>,
    /// What is wrong.
    pub detail: String,
}

/// What is read of an envelope that is not one, to answer it properly.
#[derive(Deserialize)]
struct Glimpse {
    v: Option<u64>,
    id: Option<u64>,
}

impl Envelope {
    /// A request or event, or the last frame of an answer.
    #[must_use]
    pub const fn new(id: u64, msg: Message) -> Self {
        Self {
            v: VERSION,
            id,
            r#final: true,
            msg,
        }
    }

    /// A frame of an answer that others follow.
    #[must_use]
    pub const fn partial(id: u64, msg: Message) -> Self {
        Self {
            v: VERSION,
            id,
            r#final: false,
            msg,
        }
    }

    /// Reads an envelope from the body of a frame.
    ///
    /// # Errors
    /// `bad_version` if it says another version, `bad_message` for everything else: no UTF-8, no JSON, an
    /// unknown kind, an unknown or missing field, a bad value.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        match serde_json::from_slice::<Self>(body) {
            Ok(envelope) if envelope.v == VERSION => Ok(envelope),
            Ok(envelope) => Err(bad_version(u64::from(envelope.v), Some(envelope.id))),
            Err(error) => match serde_json::from_slice::<Glimpse>(body) {
                Ok(Glimpse { v: Some(v), id }) if v != u64::from(VERSION) => {
                    Err(bad_version(v, id))
                }
                glimpse => Err(DecodeError {
                    code: ErrorCode::BadMessage,
                    id: glimpse.ok().and_then(|glimpse| glimpse.id),
                    detail: format!("not a message: {}", presentable(&error)),
                }),
            },
        }
    }

    /// The envelope as the body of a frame; always the same bytes for the same envelope.
    ///
    /// # Errors
    /// The body would pass [`crate::frame::MAX_FRAME`].
    pub fn encode(&self) -> Result<Vec<u8>, crate::frame::FrameError> {
        let body = serde_json::to_vec(self).map_err(std::io::Error::from)?;
        crate::frame::header(body.len())?;
        Ok(body)
    }
}

/// The error without what a hostile peer could make of it: it quotes names and values of the body, so that uncut the
/// answer might not fit a frame, and unmasked a control character would reach the terminal of who reads it.
fn presentable(error: &serde_json::Error) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    error.to_string().chars().take(400).map(visible).collect()
}

fn bad_version(v: u64, id: Option<u64>) -> DecodeError {
    DecodeError {
        code: ErrorCode::BadVersion,
        id,
        detail: format!("protocol version {v}, this build speaks {VERSION}"),
    }
}
