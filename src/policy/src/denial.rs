//! What a refusal says, and to whom (policy.md section 2): the caller learns the reason, the tool and the argument;
//! the owner learns where each grant stopped. The two texts are made apart, so that neither can leak into the other.

use proto::audit::DecisionRecord;
use proto::{DataClass, DenyReason, GrantId, ToolName};

use crate::arguments::ArgumentsError;
use crate::call::{Uncovered, Why};
use crate::checks::Stop;
use crate::nearest::nearest;
use crate::policy::GrantEntry;
use crate::schema::{BadArgument, did_you_mean};

/// Of how many grants the owner is told where they stopped; a record must fit a frame.
const MAX_EXPLAINED: usize = 32;

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The check that failed.
    pub reason: DenyReason,
    /// The grant that stood in the way, if one did: the deny grant, or the one that came closest.
    pub grant: Option<GrantId>,
    /// What the caller may know. No pattern, no granted path, no id of a grant, and nothing of the disk.
    pub agent: String,
    /// Why, for the owner: each grant of the tool and where it stopped.
    pub owner: String,
    /// Whether the arguments passed check 3, so that a record may hold them; if not, it holds their length and hash.
    pub storable: bool,
}

impl Denial {
    /// What stands in the record of this decision.
    #[must_use]
    pub fn record(&self) -> DecisionRecord {
        DecisionRecord::Denied {
            reason: self.reason,
            grant: self.grant.clone(),
        }
    }

    /// `note` is for caller and owner; `stops` are for the owner alone.
    fn new(reason: DenyReason, tool: &str, note: Option<&str>, stops: &[String]) -> Self {
        let note = note.unwrap_or(phrase(reason));
        let tool: String = tool.chars().take(64).flat_map(char::escape_debug).collect();
        let mut owner = format!("tool {tool}: {note}");
        for stop in stops.iter().take(MAX_EXPLAINED) {
            owner.push_str("; ");
            owner.push_str(stop);
        }
        if stops.len() > MAX_EXPLAINED {
            let more = stops.len() - MAX_EXPLAINED;
            owner.push_str(&format!("; and {more} more grants"));
        }
        Self {
            reason,
            grant: None,
            agent: format!("tool {tool}: {note}; the same call will not pass again"),
            owner,
            storable: true,
        }
    }

    /// `known` are the tools that there are, which every caller may list.
    pub(crate) fn unknown_tool<'a>(
        tool: &str,
        storable: bool,
        known: impl Iterator<Item = &'a ToolName>,
    ) -> Self {
        let meant = nearest(tool, known.map(ToolName::as_str));
        let note = format!("{}{}", phrase(DenyReason::UnknownTool), did_you_mean(meant));
        Self {
            storable,
            ..Self::new(DenyReason::UnknownTool, tool, Some(&note), &[])
        }
    }

    pub(crate) fn unreadable(tool: &str, error: &ArgumentsError) -> Self {
        Self {
            storable: false,
            ..Self::new(
                DenyReason::BadArguments,
                tool,
                Some(&error.to_string()),
                &[],
            )
        }
    }

    pub(crate) fn bad_argument(tool: &str, error: &BadArgument) -> Self {
        Self::new(
            DenyReason::BadArguments,
            tool,
            Some(&error.to_string()),
            &[],
        )
    }

    /// A refusal by grants; `grant` is the one that the record names.
    pub(crate) fn stopped<'a>(
        reason: DenyReason,
        tool: &str,
        grant: Option<&GrantId>,
        taint: Option<DataClass>,
        stops: impl Iterator<Item = (&'a GrantEntry, &'a Stop<'a>)> + Clone,
    ) -> Self {
        let uncovered = stops.clone().find_map(|(_, stop)| match stop {
            Stop::Uncovered(uncovered) if reason == DenyReason::NoGrant => Some(uncovered),
            _ => None,
        });
        let note = uncovered.map(told);
        // What the note says is not said of each grant again: a rule that holds under every grant, and the argument.
        let known = uncovered.map(|uncovered| uncovered.argument);
        let stops: Vec<String> = stops
            .filter(|(_, stop)| !(note.is_some() && is_misspelt(stop)))
            .map(|(grant, stop)| {
                let why = explain(grant, stop, taint, known);
                format!("grant {}: {why}", grant.id())
            })
            .collect();
        Self {
            grant: grant.cloned(),
            ..Self::new(reason, tool, note.as_deref(), &stops)
        }
    }
}

/// The words that a reason has for everyone.
const fn phrase(reason: DenyReason) -> &'static str {
    match reason {
        DenyReason::UnknownTool => "there is no such tool",
        DenyReason::BadArguments => "the arguments are not acceptable",
        DenyReason::GrantExpired => "every grant of this tool has expired",
        DenyReason::DeniedByGrant => "the owner denies this call",
        DenyReason::TaintTooHigh => "the session has read data too sensitive for this call",
        DenyReason::UntrustedContext => "the session has read untrusted text",
        // Any other check is not made by this crate.
        _ => "no grant covers this call",
    }
}

/// What the caller may know of a path that is not covered: a rule that holds under every grant, or nothing.
fn told(uncovered: &Uncovered<'_>) -> String {
    let argument = uncovered.argument;
    match &uncovered.why {
        Why::Misspelt(why) => format!("argument `{argument}` is not acceptable: {why}"),
        _ => format!("argument `{argument}` is covered by no grant"),
    }
}

/// Whether the call itself breaks a rule of spelling.
const fn is_misspelt(stop: &Stop<'_>) -> bool {
    matches!(
        stop,
        Stop::Uncovered(Uncovered {
            why: Why::Misspelt(_),
            ..
        })
    )
}

/// Where a grant stopped, in words for the owner, who knows already that it is about the argument `known`.
fn explain(
    grant: &GrantEntry,
    stop: &Stop<'_>,
    taint: Option<DataClass>,
    known: Option<&str>,
) -> String {
    match stop {
        Stop::Expired(end) => format!("it expired at {end}"),
        Stop::DeniedBy(deny) => format!("deny grant {deny} overrides it"),
        Stop::Uncovered(Uncovered { argument, why }) if known == Some(argument) => why.to_string(),
        Stop::Uncovered(Uncovered { argument, why }) => format!("argument `{argument}`: {why}"),
        Stop::Taint => match (taint, grant.file().max_taint) {
            (Some(taint), Some(max)) => {
                format!("the session is at {taint} and max_taint is {max}")
            }
            _ => "it states no max_taint".to_owned(),
        },
        Stop::Untrusted => "after_untrusted is deny".to_owned(),
        Stop::AllowsNothing => "it does not allow this tool".to_owned(),
    }
}
