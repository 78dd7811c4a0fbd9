//! A refusal in the two forms that it has: what its record says to the owner, and what the caller is told. The second
//! holds nothing that a prober could use.

use policy::Denial;
use proto::{Arguments, DecisionRecord, DenyReason, GrantId, Hash32, Ticket, ToolName};
use sha2::{Digest as _, Sha256};

/// Characters of a tool's name in a record (protocol.md section 3: no tool has a longer one).
const RECORDED_NAME: usize = 64;

/// A refusal, whoever made it.
pub(crate) struct Refusal {
    pub(crate) reason: DenyReason,
    pub(crate) grant: Option<GrantId>,
    pub(crate) agent: String,
    pub(crate) owner: String,
    pub(crate) storable: bool,
    pub(crate) ticket: Option<Ticket>,
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        Self {
            reason: denial.reason,
            grant: denial.grant,
            agent: denial.agent,
            owner: denial.owner,
            storable: denial.storable,
            ticket: None,
        }
    }
}

impl Refusal {
    /// One that was made after `policy` had let the call pass, so that its arguments are known to be storable.
    pub(crate) fn after(
        reason: DenyReason,
        record: &DecisionRecord,
        tool: &ToolName,
        owner: impl Into<String>,
        ticket: Option<Ticket>,
    ) -> Self {
        Self {
            reason,
            grant: record.granted().cloned(),
            agent: said(tool.as_str(), reason),
            owner: owner.into(),
            storable: true,
            ticket,
        }
    }

    /// One that came of a question, or of not being able to ask it; `agent` is what the caller may know.
    pub(crate) fn of_question(
        reason: DenyReason,
        grant: Option<GrantId>,
        tool: &ToolName,
        agent: &str,
        owner: String,
    ) -> Self {
        Self {
            reason,
            grant,
            agent: format!("tool {tool}: {agent}"),
            owner,
            storable: true,
            ticket: None,
        }
    }
}

/// A tool's name as a record holds it.
pub(crate) fn named(tool: &str) -> String {
    if tool.is_empty() {
        return "(none)".to_owned();
    }
    tool.chars().take(RECORDED_NAME).collect()
}

/// Arguments as the record of a denial holds them.
pub(crate) fn recorded_arguments(arguments: &str, storable: bool) -> Arguments {
    if storable {
        return Arguments::Text(arguments.to_owned());
    }
    Arguments::Digest {
        length: arguments.len() as u64,
        sha256: Hash32::new(Sha256::digest(arguments.as_bytes()).into()),
    }
}

/// A refusal in the form that those of `policy` have.
pub(crate) fn said(tool: &str, reason: DenyReason) -> String {
    let tool: String = named(tool).chars().flat_map(char::escape_debug).collect();
    format!("tool {tool}: {}", told(reason))
}

/// What a caller is told of a refusal that the supervisor made. Its own words are the owner's: they name paths.
const fn told(reason: DenyReason) -> &'static str {
    match reason {
        DenyReason::PathOutside => {
            "a path leads out of what was granted; the same call will not pass again"
        }
        DenyReason::ConfinementTooWeak => {
            "this host cannot confine the tool as the grant requires; the same call will not pass again"
        }
        DenyReason::DeniedByGrant => {
            "the owner denies this call; the same call will not pass again"
        }
        DenyReason::LimitReached => "too many calls are in progress; try again",
        DenyReason::LaunchFailed => "its sandbox could not be built; nothing ran",
        DenyReason::AuditUnavailable => "the decision could not be recorded; nothing ran",
        _ => "the supervisor refused it; the same call will not pass again",
    }
}
