//! `boxmaker explain`: the plan of one call, by the same way as `prepare` takes, in words or as JSON, and what this host
//! makes of it for whoever asks. No tool is started, and no session is known: what taint and approvals would say is not
//! asked.

use confine::plan::Plan;
use policy::{Denial, Policy, SessionView, decide, permit};
use proto::{Confinement, DataClass, DenyReason, GrantId, Hash32, ToolName};
use serde::Serialize;

use crate::broker::clock;
use crate::design::{Design, Refusal, design};
use crate::doctor::Trial;
use crate::load::{Directories, LoadFailure, load};

/// What is to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The tool.
    pub(crate) tool: ToolName,
    /// The grant; the one that brokerd would take in a new session, if none is named.
    pub(crate) grant: Option<GrantId>,
    /// The arguments, a JSON object.
    pub(crate) arguments: String,
    /// Whether the answer is JSON.
    pub(crate) json: bool,
}

/// Why nothing is explained.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExplainError {
    /// The configuration was not loaded.
    #[error(transparent)]
    Config(#[from] LoadFailure),
    /// This user may not look at what the call is about.
    #[error(
        "permission denied: {0}\n  run boxmaker explain as root, or as the user whose files these are"
    )]
    Forbidden(String),
    /// The call would be refused.
    #[error(
        "this call would be refused, {reason}: {detail}\n  change the call or the grant, or name a grant with --grant"
    )]
    Refused {
        /// The check that fails.
        reason: DenyReason,
        /// Why, for the owner.
        detail: String,
    },
    /// The plan has no JSON.
    #[error("the plan cannot be written down: {0}")]
    Json(#[from] serde_json::Error),
}

impl From<Denial> for ExplainError {
    fn from(denial: Denial) -> Self {
        Self::Refused {
            reason: denial.reason,
            detail: denial.owner,
        }
    }
}

impl From<Refusal> for ExplainError {
    fn from(refusal: Refusal) -> Self {
        let Refusal {
            reason,
            detail,
            forbidden,
        } = refusal;
        if forbidden {
            Self::Forbidden(detail)
        } else {
            Self::Refused { reason, detail }
        }
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    tool: &'a ToolName,
    grant: &'a GrantId,
    hash: Hash32,
    plan: &'a Plan,
    /// What was measured here; none if the sandbox cannot be built.
    confinement: Option<&'a Confinement>,
    /// Why it cannot.
    failure: Option<&'a str>,
}

/// Explains one call, as text that ends in a newline.
///
/// # Errors
/// As [`ExplainError`].
pub(crate) fn explain(
    directories: &Directories,
    question: &Question,
) -> Result<String, ExplainError> {
    let loaded = load(directories, 1)?;
    let grant = match &question.grant {
        Some(grant) => grant.clone(),
        None => taken(&loaded.policy, question)?,
    };
    let Question {
        tool, arguments, ..
    } = question;
    let permit = permit(&loaded.policy, tool, &grant, arguments, clock())?;
    let Design { plan, trees, .. } = design(&loaded, permit)?;
    let hash = plan.hash()?;
    let config = loaded.policy.config().clone();
    let trial = Trial::of(directories, config, plan.clone(), trees);
    if question.json {
        let answer = Answer {
            tool,
            grant: &grant,
            hash,
            plan: &plan,
            confinement: trial.outcome().ok(),
            failure: trial.outcome().err(),
        };
        return Ok(serde_json::to_string(&answer)? + "\n");
    }
    let words = confine::describe::describe(&plan);
    let who = match rustix::process::geteuid() {
        root if root.is_root() => "root".to_owned(),
        user => format!("uid {}", user.as_raw()),
    };
    Ok(format!(
        "tool {tool}, grant {grant}, plan {hash}\n{}\n\nMeasured here, as {who}\n{}",
        words.trim_end(),
        trial.words()
    ))
}

/// The grant that brokerd would take in a session that has seen nothing.
fn taken(policy: &Policy, question: &Question) -> Result<GrantId, ExplainError> {
    let session = SessionView {
        taint: DataClass::Private,
        untrusted: false,
    };
    let tool = question.tool.as_str();
    let decision = decide(policy, session, tool, &question.arguments, clock())?;
    Ok(decision.grant().clone())
}
