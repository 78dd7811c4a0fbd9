//! The session log, `sessions/<id>/<epoch>.jsonl`: one record a line (boxmaker seed, sections 5 and 6).

use serde::{Deserialize, Serialize};

use crate::class::DataClass;
use crate::ids::{CallId, Epoch, Hash32, SessionId, Timestamp};

/// One call that the model asked for, exactly as the server returned it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The server's id of the call.
    pub id: String,
    /// The name the model used.
    pub name: String,
    /// The model's JSON, unparsed.
    pub arguments: String,
}

/// One line of the session log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the fields are the seed's, named for what they hold"
)]
pub enum LogRecord {
    /// The first line of an epoch.
    SessionStart {
        time: Timestamp,
        session: SessionId,
        epoch: Epoch,
        slot: u32,
        baseline: Hash32,
    },
    /// What the owner wrote.
    User { time: Timestamp, content: String },
    /// What the model answered.
    Assistant {
        time: Timestamp,
        content: Option<String>,
        reasoning_content: Option<String>,
        tool_calls: Vec<ToolCall>,
    },
    /// What a tool returned, with its labels.
    ToolResult {
        time: Timestamp,
        call: CallId,
        tool_call_id: String,
        content: String,
        class: DataClass,
        untrusted: bool,
        truncated: bool,
    },
    /// The server reused less of its cache than it should have.
    CacheLoss {
        time: Timestamp,
        expected: u64,
        got: u64,
    },
    /// The last line of an epoch.
    EpochEnd {
        time: Timestamp,
        next: Epoch,
        summary: String,
    },
}
