//! The audit log, `audit/YYYY-MM-DD.jsonl`: one [`Line`] a line (formats.md section 5).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::approval::Approval;
use crate::class::{DataClass, Labels};
use crate::confinement::Confinement;
use crate::ids::{CallId, GrantId, Hash32, SessionId, Timestamp};
use crate::reason::DenyReason;

/// One line of the log. `prev` is the SHA-256 of the stored bytes of the line before, without its
/// newline; the first line ever has [`Hash32::ZERO`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Counts from 0 without gaps, across day files.
    pub seq: u64,
    /// Never before the time of the line before.
    pub time: Timestamp,
    /// Hash of the line before.
    pub prev: Hash32,
    /// What happened.
    pub entry: Entry,
}

/// What was decided, as brokerd says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", deny_unknown_fields)]
pub enum DecisionRecord {
    /// A grant covers the call.
    Allowed {
        /// The grant that was taken.
        grant: GrantId,
    },
    /// The owner said yes.
    Approved {
        /// The grant that was taken.
        grant: GrantId,
        /// Who answered.
        approver: String,
        /// The post that carried the answer, if it came through a chat.
        post: Option<String>,
    },
    /// The call was refused.
    Denied {
        /// The check that failed.
        reason: DenyReason,
        /// The grant that stood in the way, if one did.
        grant: Option<GrantId>,
    },
}

impl DecisionRecord {
    /// The grant it names, if it lets the call run.
    #[must_use]
    pub fn granted(&self) -> Option<&GrantId> {
        match self {
            Self::Allowed { grant } | Self::Approved { grant, .. } => Some(grant),
            Self::Denied { .. } => None,
        }
    }
}

/// The arguments of a call as the log holds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Arguments {
    /// In full.
    Text(String),
    /// The same text as in an earlier decision of the session.
    SameAs {
        /// The `seq` of the line that holds it.
        same_as: u64,
    },
    /// Too hostile to store: not UTF-8 JSON, too long or too deep (policy.md section 2, check 3).
    Digest {
        /// Length in bytes.
        length: u64,
        /// SHA-256 of the bytes.
        sha256: Hash32,
    },
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    /// The tool ended with status 0.
    Result,
    /// It ended otherwise, was stopped, or never started.
    Failed,
    /// Nobody saw the end: brokerd or the supervisor died in between.
    Unknown,
}

/// Why a tool's sandbox is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    /// The tool ended by itself.
    Exited,
    /// The stage could not start it.
    NotStarted,
    /// Its time was up.
    Timeout,
    /// It passed its memory limit.
    Memory,
    /// brokerd or its caller gave it up.
    Aborted,
    /// Pid 1 of the sandbox ended, and everything in it, and nobody had asked for that.
    Lost,
}

/// The status of a process that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ExitStatus {
    /// It called `exit` with this status, 0 to 255.
    Code(u8),
    /// This signal ended it.
    Signal(u8),
}

/// What the supervisor measured of a finished call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// From the start of the tool to the empty sandbox, in milliseconds.
    pub wall_ms: u64,
    /// User and system time of every process inside, in milliseconds; none when pid 1 was killed before it could say.
    pub cpu_ms: Option<u64>,
    /// The largest resident set of one process inside, in KiB; none when pid 1 was killed before it could say.
    pub max_rss: Option<u64>,
}

/// What happened to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEvent {
    /// It was opened for the first time.
    Opened,
    /// It was opened again.
    Resumed,
    /// It was ended.
    Ended,
}

/// What happened to a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum RoleEvent {
    /// It is about to start in a sandbox that was measured.
    Started {
        /// What holds.
        confinement: Confinement,
    },
    /// It ended.
    Ended {
        /// Its status, if it is known.
        exit: Option<ExitStatus>,
    },
    /// It ended too often and is not started again. Braces, because serde takes unknown fields with a variant that
    /// has none.
    GivenUp {},
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// A call was decided; stored before any effect.
    Decision(Box<Decision>),
    /// A call ended.
    Outcome(Outcome),
    /// The owner was asked, answered, or can be answered no more.
    Approval(Approval),
    /// A session was opened, resumed or ended.
    Session {
        /// The session.
        session: SessionId,
        /// What happened.
        event: SessionEvent,
        /// The peer that asked for it, for example `bxctl`.
        by: String,
    },
    /// A role was started, ended or was given up.
    Role {
        /// The role, for example `brokerd`.
        role: String,
        /// Its process id as the supervisor sees it, if it had one.
        pid: Option<u32>,
        /// What happened.
        event: Box<RoleEvent>,
    },
    /// A generation of the policy was loaded.
    Policy {
        /// Its number, from 1 in each life of a supervisor.
        generation: u64,
        /// SHA-256 of each file by its path below the configuration directory.
        files: BTreeMap<String, Hash32>,
    },
    /// Many equal denials in one minute.
    Denials {
        /// The session.
        session: SessionId,
        /// The tool.
        tool: String,
        /// The reason they share.
        reason: DenyReason,
        /// How many there were beyond those with a record of their own.
        count: u64,
        /// When the first of them was.
        first: Timestamp,
        /// When the last of them was.
        last: Timestamp,
    },
    /// A torn last line was found and kept.
    Recovery {
        /// The day file it stands in.
        file: String,
        /// Where its bytes begin.
        offset: u64,
        /// How many bytes it has, without the newline that ends it now.
        length: u64,
        /// SHA-256 of those bytes.
        sha256: Hash32,
    },
}

/// The record of one decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The tool as the caller named it.
    pub tool: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// The session's taint when it was decided.
    pub session_taint: DataClass,
    /// What was decided.
    pub decision: DecisionRecord,
    /// What its result will be labelled, if it runs.
    pub labels: Option<Labels>,
    /// What the owner should know of the reason.
    pub detail: String,
    /// The policy's generation.
    pub generation: u64,
    /// What was measured before the tool started; none for a denial before launch.
    pub confinement: Option<Confinement>,
}

/// The record of one call's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The `seq` of its decision.
    pub of: u64,
    /// The session.
    pub session: SessionId,
    /// How it ended.
    pub status: OutcomeStatus,
    /// The class its result was labelled with.
    pub class: DataClass,
    /// Whether its result was marked untrusted.
    pub untrusted: bool,
    /// Whether the result was cut.
    pub truncated: bool,
    /// Bytes of the result that the caller got.
    pub bytes: u64,
    /// Why the sandbox is empty; none when nobody saw it.
    pub cause: Option<ExitCause>,
    /// The tool's status; none when it was not seen.
    pub exit: Option<ExitStatus>,
    /// What it used; none when it was not seen.
    pub usage: Option<Usage>,
}
