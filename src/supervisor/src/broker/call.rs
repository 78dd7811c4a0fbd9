//! A call by the step it has reached, each step a type of its own: prepared, committed, ended, refused.

use std::time::Duration;

use crate::approvals::NotApproved;
use proto::audit::{ExitCause, ExitStatus, Usage};
use proto::{CallId, Confinement, GrantId, SessionId, Ticket, ToolName};

/// The most calls that are between `prepare` and `finish` at one time.
pub(crate) const MOST_LIVE: usize = 64;
/// A sandbox that is not committed for this long is given up (protocol.md section 4).
pub(crate) const COMMIT_WITHIN: Duration = Duration::from_secs(10);

/// A sandbox that runs and can be stopped from another thread.
pub(crate) trait Stop {
    /// Kills everything in it; its end will carry `cause`.
    fn stop(&self, cause: ExitCause);
}

/// What a call is; the part of its record that `commit` cannot choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The session.
    pub(crate) session: SessionId,
    /// The call.
    pub(crate) call: CallId,
    /// The tool.
    pub(crate) tool: ToolName,
    /// The grant it was prepared under.
    pub(crate) grant: GrantId,
    /// The generation it was prepared under.
    pub(crate) generation: u64,
    /// Its arguments as they were received.
    pub(crate) arguments: String,
}

/// A call whose sandbox stands, was measured, and has run no tool code. Dropping it kills the sandbox.
#[derive(Debug)]
pub(crate) struct Prepared<S> {
    /// The call.
    pub(crate) call: Call,
    /// What was measured.
    pub(crate) confinement: Confinement,
    /// The sandbox with all that its start needs.
    pub(crate) sandbox: S,
}

/// A call whose decision is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The call.
    pub(crate) call: Call,
    /// The number of its decision in the log.
    pub(crate) seq: u64,
}

/// A call whose sandbox is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The call.
    pub(crate) committed: Committed,
    /// The tool's status, if it ran.
    pub(crate) exit: Option<ExitStatus>,
    /// Why it is empty.
    pub(crate) cause: ExitCause,
    /// What it used.
    pub(crate) usage: Usage,
}

/// A call whose sandbox was refused after it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedCall {
    /// The call.
    pub(crate) call: Call,
    /// What was measured of its sandbox, if it came that far.
    pub(crate) confinement: Option<Confinement>,
}

/// Why a message about a ticket is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TicketError {
    /// As many calls as may be are in progress.
    #[error("{MOST_LIVE} calls are in progress, and no more may be: finish or abort one first")]
    Full,
    /// brokerd is ending, or the supervisor is.
    #[error("no new call is taken: this connection is being closed")]
    Closed,
    /// There is no such ticket in that step.
    #[error(
        "ticket {0} is not prepared: it was committed, aborted or given up after {seconds} s, or never existed",
        seconds = COMMIT_WITHIN.as_secs()
    )]
    NotPrepared(Ticket),
    /// The commit names another grant.
    #[error("ticket {ticket} was prepared under grant {prepared}, and the decision names {named}")]
    OtherGrant {
        /// The ticket.
        ticket: Ticket,
        /// The grant of its prepare.
        prepared: GrantId,
        /// The grant of the decision.
        named: GrantId,
    },
    /// The grant asks, and the decision says that nobody was asked.
    #[error("grant {0} asks: only an approved decision is committed under it")]
    Unasked(GrantId),
    /// The grant does not ask, and the decision says that somebody was.
    #[error("grant {0} does not ask: only an allowed decision is committed under it")]
    NotAsking(GrantId),
    /// The log has no answer that lets the call run.
    #[error(transparent)]
    NotApproved(#[from] NotApproved),
    /// The call has not ended, or was finished already.
    #[error("ticket {0} has no end to record: finish comes once, and after exited")]
    NotEnded(Ticket),
    /// No refused sandbox has this ticket and is this call.
    #[error("ticket {0} names no refused sandbox of this call")]
    NotRefused(Ticket),
}
