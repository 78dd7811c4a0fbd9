//! What brokerd and the supervisor say to each other over brokerd's control socket (protocol.md sections 1 and 4 to 6).

use serde::{Deserialize, Serialize};

use crate::approval::{Approval, ApprovalEvent};
use crate::audit::{DecisionRecord, ExitCause, ExitStatus, OutcomeStatus, Usage};
use crate::class::{DataClass, Labels};
use crate::confinement::Confinement;
use crate::ids::{ApprovalId, CallId, GrantId, SessionId, Ticket, Timestamp, ToolName};
use crate::reason::DenyReason;

/// A generation of the policy; its descriptor is one sealed memory file with every configuration file in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyGeneration {
    /// Its number.
    pub generation: u64,
}

/// A part of the verified log; the frame with `final: true` is the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Some entries, in the order of the log.
    pub entries: Vec<HistoryEntry>,
}

/// What brokerd rebuilds its state from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum HistoryEntry {
    /// A session was opened, resumed or ended.
    Session {
        /// When.
        time: Timestamp,
        /// Which.
        session: SessionId,
        /// What happened.
        event: crate::audit::SessionEvent,
    },
    /// A call was decided.
    Decision {
        /// Its number in the log.
        seq: u64,
        /// When.
        time: Timestamp,
        /// The session.
        session: SessionId,
        /// The call.
        call: CallId,
        /// The tool as the caller named it.
        tool: String,
        /// The session's taint then.
        session_taint: DataClass,
        /// What was decided.
        decision: DecisionRecord,
        /// What its result is labelled.
        labels: Option<Labels>,
    },
    /// Many equal denials.
    Denials {
        /// When the last of them was.
        time: Timestamp,
        /// The session.
        session: SessionId,
        /// How many.
        count: u64,
    },
    /// A call ended.
    Outcome {
        /// The decision it ends.
        of: u64,
        /// When.
        time: Timestamp,
        /// The session.
        session: SessionId,
        /// What its result was labelled.
        labels: Labels,
    },
    /// The owner was asked, answered, or can be answered no more.
    Approval {
        /// When.
        time: Timestamp,
        /// The question.
        approval: ApprovalId,
        /// The session of the call.
        session: SessionId,
        /// The call.
        call: CallId,
        /// What happened.
        event: ApprovalEvent,
    },
}

/// Asks the supervisor for a sandbox for one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The grant the decision took.
    pub grant: GrantId,
    /// The generation it was decided under.
    pub generation: u64,
    /// The arguments as they were received.
    pub arguments: String,
}

/// The sandbox stands and was measured; descriptors: the tool's standard output and standard error, to read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// Names it from now on.
    pub ticket: Ticket,
    /// What was measured.
    pub confinement: Confinement,
}

/// Why no sandbox was prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(
    tag = "because",
    content = "reason",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum RefuseReason {
    /// The generation is not the supervisor's: decide again.
    StaleGeneration,
    /// The supervisor's own check refused.
    Denied(DenyReason),
}

/// The answer when no sandbox was prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// Why.
    pub reason: RefuseReason,
    /// What the owner should know of it.
    pub detail: String,
    /// Names the refused sandbox, so that the record of the denial carries what was measured of it.
    pub ticket: Option<Ticket>,
}

/// Records the decision and starts the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// The sandbox.
    pub ticket: Ticket,
    /// `allowed` or `approved`, with the grant that was prepared.
    pub decision: DecisionRecord,
    /// The session's taint.
    pub session_taint: DataClass,
    /// What the result will be labelled.
    pub labels: Labels,
    /// What the owner should know of the decision.
    pub detail: String,
}

/// The decision is durable and the tool is being started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committed {
    /// The sandbox.
    pub ticket: Ticket,
    /// The number of the decision in the log.
    pub seq: u64,
}

/// Gives a sandbox up, before or after its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abort {
    /// The sandbox.
    pub ticket: Ticket,
}

/// The sandbox of a committed call is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exited {
    /// The sandbox.
    pub ticket: Ticket,
    /// The tool's status, if it ran.
    pub exit: Option<ExitStatus>,
    /// Why it is empty.
    pub cause: ExitCause,
    /// What it used.
    pub usage: Usage,
}

/// Closes a call whose `exited` was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    /// The sandbox.
    pub ticket: Ticket,
    /// `result` or `failed`.
    pub status: OutcomeStatus,
    /// The class of what the caller gets.
    pub class: DataClass,
    /// Whether it may steer the model.
    pub untrusted: bool,
    /// Whether it was cut.
    pub truncated: bool,
    /// Its bytes.
    pub bytes: u64,
}

/// Asks the supervisor to append one entry that brokerd may author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// What to append.
    pub entry: RecordEntry,
}

/// The entries that brokerd may author (protocol.md section 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordEntry {
    /// A call was refused.
    Decision {
        /// The session.
        session: SessionId,
        /// The call.
        call: CallId,
        /// The tool as the caller named it, cut after 64 characters.
        tool: String,
        /// Its arguments.
        arguments: crate::audit::Arguments,
        /// The session's taint.
        session_taint: DataClass,
        /// Always `denied`.
        decision: DecisionRecord,
        /// What the owner should know of the reason.
        detail: String,
        /// The generation it was decided under.
        generation: u64,
        /// The refused sandbox, if there was one.
        ticket: Option<Ticket>,
    },
    /// The owner is about to be asked, answered, or can be answered no more.
    Approval(Approval),
    /// A session was opened, resumed or ended.
    Session {
        /// The session.
        session: SessionId,
        /// What happened.
        event: crate::audit::SessionEvent,
        /// The peer that asked for it.
        by: String,
    },
    /// Many equal denials in one minute.
    Denials {
        /// The session.
        session: SessionId,
        /// The tool as the caller named it, cut after 64 characters.
        tool: String,
        /// The reason they share.
        reason: DenyReason,
        /// How many.
        count: u64,
        /// When the first of them was.
        first: Timestamp,
        /// When the last of them was.
        last: Timestamp,
    },
    /// Closes a decision of an earlier run whose end nobody saw.
    Unknown {
        /// The decision.
        of: u64,
    },
}

/// The entry is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Its number.
    pub seq: u64,
}
