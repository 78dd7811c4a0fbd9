//! Where the owner looks after a denial: one sentence for each reason, as a table that can be read alone.

use proto::DenyReason;

/// What to do about a denial for `reason`.
#[must_use]
pub(super) const fn way_out(reason: DenyReason) -> &'static str {
    match reason {
        DenyReason::UnknownTool => {
            "`bxctl tools` lists the tools; a tool is a file in tools/ of the configuration"
        }
        DenyReason::BadArguments => "`bxctl tools` shows what arguments the tool takes",
        DenyReason::NoGrant => {
            "`bxctl grants` shows what is granted; a grant is a file in grants/ of the configuration"
        }
        DenyReason::GrantExpired => {
            "`bxctl grants` shows when grants expire; `expires` stands in the grant's file"
        }
        DenyReason::CapabilityDenied => "`bxctl grants` shows which grants must be named",
        DenyReason::DeniedByGrant => {
            "`bxctl grants` shows the deny grants; they override every other grant"
        }
        DenyReason::TaintTooHigh => {
            "`bxctl sessions` shows the session's taint, which never falls; without --session a call has a new session"
        }
        DenyReason::LimitReached => {
            "`bxctl status` counts the calls in progress, of any session: try again when one has ended; a session that had too many refused (`denials` in [session] of config.toml) takes none, a new one does"
        }
        DenyReason::UntrustedContext => {
            "the session has read untrusted text and the grant says after_untrusted = \"deny\"; a new session has read none"
        }
        DenyReason::ApprovalRefused => "the owner said no to this call",
        DenyReason::ApprovalExpired => {
            "`bxctl pending` shows the calls that wait and `bxctl approve` answers; `expiry` in [approvals] of config.toml says how long they wait"
        }
        DenyReason::PathOutside => {
            "the path leads out of what is granted: look where its links lead, and at `bxctl grants`"
        }
        DenyReason::ConfinementTooWeak => {
            "`boxmaker doctor` says what this host lacks and how to get it; if less will do, write confinement = \"partial\" above [constraints] in the grant's file"
        }
        DenyReason::LaunchFailed => {
            "`bxctl audit show --json` has the step that failed; `bxctl check` looks at the tool's profile and program, `boxmaker explain TOOL` prints the sandbox that was meant"
        }
        DenyReason::SecretUnresolved => "the grant names a secret that cannot be had",
        DenyReason::AuditUnavailable => {
            "`bxctl status` says why nothing can be recorded; without a record nothing runs"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_out_leads_where_the_reason_can_be_seen() {
        let full = way_out(DenyReason::LimitReached);
        // What is full is the host, so another session meets the same.
        assert!(
            full.contains("try again") && !full.contains("--session"),
            "{full}"
        );
        let failed = way_out(DenyReason::LaunchFailed);
        assert!(failed.contains("`bxctl audit show --json`"), "{failed}");
    }
}
