//! What an agent or the owner asks brokerd, and what it answers (protocol.md sections 2 and 3).

use serde::{Deserialize, Serialize};

use crate::class::{DataClass, Labels};
use crate::confinement::Level;
use crate::ids::{ApprovalId, CallId, GrantId, SessionId, Timestamp, ToolName};
use crate::reason::DenyReason;
use crate::tool::ToolKind;

/// Asks for one tool call. An owner's own call carries `call` 0; brokerd allots the number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRequest {
    /// The session it belongs to.
    pub session: SessionId,
    /// Its number; above every earlier one of the session.
    pub call: CallId,
    /// The tool as the model named it.
    pub tool: String,
    /// The model's JSON object, carried unparsed.
    pub arguments: String,
}

/// The answer to a tool request; `pending_approval` is never the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolResponse {
    /// The owner is being asked.
    PendingApproval {
        /// The question's id.
        approval: ApprovalId,
        /// When it lapses.
        expires: Timestamp,
    },
    /// The tool ended with status 0.
    Result {
        /// What it wrote.
        content: String,
        /// Its class.
        class: DataClass,
        /// Whether it may steer the model.
        untrusted: bool,
        /// Whether it was cut.
        truncated: bool,
        /// The level its sandbox reached.
        confinement: Level,
    },
    /// The tool ran and failed; not a policy decision.
    Failed {
        /// What happened, with the end of its standard error.
        message: String,
        /// Its class.
        class: DataClass,
        /// Whether it may steer the model.
        untrusted: bool,
    },
    /// The call was refused and nothing ran.
    Denied {
        /// The check that failed.
        reason: DenyReason,
        /// What the caller may know of it.
        detail: String,
    },
}

/// One tool as `tools_list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSummary {
    /// Its name.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// How it gets its arguments.
    pub kind: ToolKind,
    /// Whether it changes anything.
    pub side_effect: bool,
    /// The JSON Schema of its arguments, as text.
    pub arguments: String,
}

/// The answer to `tools_list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsListReply {
    /// Every tool of the owner's files, by name.
    pub tools: Vec<ToolSummary>,
}

/// Opens a session, or resumes the one that is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionOpen {
    /// The session to resume; a new one, if absent.
    pub session: Option<SessionId>,
}

/// The answer to `session_open`, once its record is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionOpened {
    /// The session.
    pub session: SessionId,
    /// The highest call number it has used; 0 if none.
    pub last_call: CallId,
}

/// Names the session to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionEnd {
    /// The session.
    pub session: SessionId,
}

/// One session as `session_list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSummary {
    /// The session.
    pub session: SessionId,
    /// Whether it is open.
    pub open: bool,
    /// What it has been tainted with.
    pub taint: DataClass,
    /// Whether it has read untrusted text.
    pub untrusted: bool,
    /// Calls that were decided.
    pub calls: u64,
    /// Calls among them that were refused.
    pub denied: u64,
    /// The time of its last record.
    pub last: Timestamp,
}

/// The answer to `session_list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionListReply {
    /// Every session the log knows, the latest first, at most 1000.
    pub sessions: Vec<SessionSummary>,
}

/// One open question as `approvals` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Its id.
    pub approval: ApprovalId,
    /// The session of the call.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The arguments in full, as they were received: what an answer is bound to.
    pub arguments: String,
    /// The grant that asks.
    pub grant: GrantId,
    /// What the session has been tainted with.
    pub taint: DataClass,
    /// Whether the session has read untrusted text.
    pub untrusted: bool,
    /// What the result will be labelled.
    pub labels: Labels,
    /// Why the call needs an answer.
    pub why: String,
    /// When it was asked.
    pub asked: Timestamp,
    /// When it lapses.
    pub expires: Timestamp,
}

/// A part of the answer to `approvals`; the frame with `final: true` is the last, so that arguments of any length fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalsReply {
    /// Some open questions, the oldest first.
    pub approvals: Vec<Question>,
}

/// Names the question to answer with yes or, in `refuse`, with no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestion {
    /// The question.
    pub approval: ApprovalId,
}

/// The answer to `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusReply {
    /// When the supervisor started.
    pub since: Timestamp,
    /// The policy's generation.
    pub generation: u64,
    /// The roles it runs.
    pub roles: Vec<RoleStatus>,
    /// Files of the configuration that are not what was loaded any more, by their paths in it.
    pub changed: Vec<String>,
    /// Questions that wait for the owner.
    pub questions: u64,
    /// Sandboxes of tools that live now.
    pub sandboxes: u64,
    /// The log.
    pub audit: AuditStatus,
}

/// One role as `status` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleStatus {
    /// Its name.
    pub role: String,
    /// Its process id as the supervisor sees it; none while it is down.
    pub pid: Option<u32>,
    /// When it started last.
    pub since: Timestamp,
    /// How often it was started again.
    pub restarts: u64,
    /// The level its sandbox reached.
    pub level: Level,
}

/// The log as `status` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditStatus {
    /// The number of the next record.
    pub next: u64,
    /// The time of the last record, if there is one.
    pub last: Option<Timestamp>,
    /// How many records are behind the anchor: the first so many.
    pub anchored: u64,
    /// Its size: the bytes of all day files together.
    pub bytes: u64,
    /// The size beyond which nothing begins, `[audit] max_bytes`.
    pub max_bytes: u64,
    /// Whether nothing begins any more, because the next record would not fit.
    pub full: bool,
    /// Why nothing can be recorded, if nothing can.
    pub closed: Option<String>,
}
