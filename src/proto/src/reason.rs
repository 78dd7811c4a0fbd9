//! Why a call was refused: the words of policy.md section 2, in the order of the checks.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The reason of a denial; each value is the answer of exactly one check.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum DenyReason {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl DenyReason {
            /// Every reason, in the order of the checks.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The reason as it stands on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

reasons! {
    /// The tool is in no tool file.
    UnknownTool = "unknown_tool",
    /// The arguments are no acceptable JSON object, or do not satisfy the tool's schema.
    BadArguments = "bad_arguments",
    /// No grant covers the call.
    NoGrant = "no_grant",
    /// Every grant of the tool has expired.
    GrantExpired = "grant_expired",
    /// The call names no capability that it may use.
    CapabilityDenied = "capability_denied",
    /// A deny grant touches the call.
    DeniedByGrant = "denied_by_grant",
    /// The session's taint is above what the grants accept.
    TaintTooHigh = "taint_too_high",
    /// A count or ceiling is used up.
    LimitReached = "limit_reached",
    /// The session has read untrusted text and the grant does not accept that.
    UntrustedContext = "untrusted_context",
    /// The owner said no.
    ApprovalRefused = "approval_refused",
    /// Nobody answered in time, or nobody is there to ask.
    ApprovalExpired = "approval_expired",
    /// A path leads out of what was granted.
    PathOutside = "path_outside",
    /// The measured confinement is below what the grant requires.
    ConfinementTooWeak = "confinement_too_weak",
    /// The sandbox could not be built: a program is missing or a step of the stage failed.
    LaunchFailed = "launch_failed",
    /// A secret that the grant injects cannot be had.
    SecretUnresolved = "secret_unresolved",
    /// The record could not be made durable.
    AuditUnavailable = "audit_unavailable",
}

impl fmt::Display for DenyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
