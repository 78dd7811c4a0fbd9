//! What the log holds of a question to the owner: asked, answered, expired, withdrawn (policy.md section 6).

use serde::{Deserialize, Serialize};

use crate::ids::{ApprovalId, CallId, GrantId, Hash32, SessionId, Timestamp, ToolName};

/// What the owner said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The call may run.
    Approved,
    /// It may not.
    Refused,
}

/// What happened to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum ApprovalEvent {
    /// It is about to be shown.
    Asked {
        /// The tool.
        tool: ToolName,
        /// The grant that asks.
        grant: GrantId,
        /// SHA-256 of the arguments as they were received, byte for byte.
        arguments: Hash32,
        /// When it lapses.
        expires: Timestamp,
    },
    /// The owner answered.
    Answered {
        /// What.
        answer: Answer,
        /// The peer that the answer came from, for example `bxctl`.
        by: String,
        /// The post that carried the answer, if it came through a chat.
        post: Option<String>,
    },
    /// Nobody answered in time, or boxmaker ended before somebody did. Braces, because serde takes unknown fields
    /// with a variant that has none.
    Expired {},
    /// The caller went away, or its session was ended.
    Withdrawn {},
}

/// One event of one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The question.
    pub approval: ApprovalId,
    /// The session of the call.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// What happened.
    pub event: ApprovalEvent,
}
