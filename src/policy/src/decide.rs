//! brokerd's decision: checks 2 to 12 of policy.md section 2, in their order, on one call of one session.
//!
//! Each check keeps the grants that pass it; the one that leaves none names the reason. The checks of later parts of
//! the format (5 capabilities, 9 counts) have nothing to check, because loading refuses their words.

use proto::audit::DecisionRecord;
use proto::grant::{AfterUntrusted, Mode};
use proto::{DataClass, DenyReason, GrantId, Labels, Timestamp, ToolName};

use crate::arguments;
use crate::call::Call;
use crate::checks::{self, Stop};
use crate::denial::Denial;
use crate::labels::labels;
use crate::paths::Binding;
use crate::policy::{Entry, GrantEntry, Policy, Tool};

/// What a decision needs to know of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionView {
    /// The highest class of data that the session has seen; never below private in a real session.
    pub taint: DataClass,
    /// Whether the session has read untrusted text.
    pub untrusted: bool,
}

/// A call that may run. Only [`decide`] makes one, or the answer to its [`Question`]; it cannot be copied, and recording it consumes it.
///
/// ```compile_fail,E0451
/// // Nobody else can make one: its fields are private.
/// fn forge(tool: proto::ToolName, grant: proto::GrantId, labels: proto::Labels) -> policy::Decision {
///     policy::Decision { tool, grant, labels, detail: String::new(), approver: None }
/// }
/// ```
///
/// ```compile_fail,E0277
/// // Nobody can copy one.
/// fn clone<T: Clone>() {}
/// clone::<policy::Decision>();
/// ```
///
/// ```compile_fail,E0277
/// // Nobody can read one from bytes.
/// fn read<T: serde::de::DeserializeOwned>() {}
/// read::<policy::Decision>();
/// ```
///
/// ```compile_fail,E0277
/// // Nobody can have one out of nothing.
/// fn nothing<T: Default>() {}
/// nothing::<policy::Decision>();
/// ```
///
/// ```compile_fail,E0382
/// // Nobody can record one twice.
/// fn twice(decision: policy::Decision) {
///     decision.into_record();
///     decision.into_record();
/// }
/// ```
///
/// The same acts on a type that allows them, so that the refusals above are about the type:
///
/// ```
/// fn clone<T: Clone>() {}
/// clone::<policy::Denial>();
/// fn read<T: serde::de::DeserializeOwned>() {}
/// read::<proto::Labels>();
/// fn nothing<T: Default>() {}
/// nothing::<proto::config::Config>();
/// fn once(decision: policy::Decision) {
///     decision.into_record();
/// }
/// ```
#[derive(Debug)]
#[must_use = "a decision that is not recorded has no effect"]
pub struct Decision {
    tool: ToolName,
    grant: GrantId,
    labels: Labels,
    detail: String,
    approver: Option<String>,
}

/// What was decided of a call that no check refused.
#[derive(Debug)]
#[must_use = "a decision that is not recorded has no effect"]
pub enum Decided {
    /// It may run.
    Runs(Decision),
    /// It may run if the owner says so.
    Asks(Question),
}

impl Decided {
    /// The grant that was taken.
    #[must_use]
    pub const fn grant(&self) -> &GrantId {
        match self {
            Self::Runs(decision) => decision.grant(),
            Self::Asks(question) => question.grant(),
        }
    }

    /// What the result is to be labelled.
    #[must_use]
    pub const fn labels(&self) -> Labels {
        match self {
            Self::Runs(decision) => decision.labels(),
            Self::Asks(question) => question.labels(),
        }
    }
}

/// A call that needs the owner's word. Only [`decide`] makes one, it cannot be copied, and only
/// [`Question::approved`] makes a [`Decision`] of it.
///
/// ```compile_fail,E0603
/// // Nobody else can make one, nor take the decision out: its field is private.
/// fn forge(decision: policy::Decision) -> policy::Question {
///     policy::Question(decision)
/// }
/// ```
///
/// ```compile_fail,E0277
/// // Nobody can copy one.
/// fn clone<T: Clone>() {}
/// clone::<policy::Question>();
/// ```
///
/// ```compile_fail,E0599
/// // Nobody can record one that was not answered.
/// fn record(question: policy::Question) {
///     question.into_record();
/// }
/// ```
///
/// ```compile_fail,E0382
/// // Nobody can use one answer twice.
/// fn twice(question: policy::Question) {
///     let one = question.approved("bxctl");
///     let two = question.approved("bxctl");
/// }
/// ```
///
/// The same with one answer, so that the refusals above are about the type:
///
/// ```
/// fn once(question: policy::Question) -> proto::DecisionRecord {
///     question.approved("bxctl").into_record()
/// }
/// ```
#[derive(Debug)]
#[must_use = "a question that is not put has no effect"]
pub struct Question(Decision);

impl Question {
    /// The tool.
    #[must_use]
    pub const fn tool(&self) -> &ToolName {
        self.0.tool()
    }

    /// The grant that asks.
    #[must_use]
    pub const fn grant(&self) -> &GrantId {
        self.0.grant()
    }

    /// What the result is to be labelled.
    #[must_use]
    pub const fn labels(&self) -> Labels {
        self.0.labels()
    }

    /// Why the owner is asked.
    #[must_use]
    pub fn detail(&self) -> &str {
        self.0.detail()
    }

    /// The decision, once `approver` has said yes to these very arguments; whether somebody did is the caller's to
    /// know.
    pub fn approved(self, approver: &str) -> Decision {
        Decision {
            approver: Some(approver.to_owned()),
            ..self.0
        }
    }
}

impl Decision {
    /// The tool that may run.
    #[must_use]
    pub const fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// The grant that was taken.
    #[must_use]
    pub const fn grant(&self) -> &GrantId {
        &self.grant
    }

    /// What the result is to be labelled.
    #[must_use]
    pub const fn labels(&self) -> Labels {
        self.labels
    }

    /// What the owner should know of the reason.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// What stands in the record of this decision.
    #[must_use]
    pub fn into_record(self) -> DecisionRecord {
        let grant = self.grant;
        match self.approver {
            None => DecisionRecord::Allowed { grant },
            Some(approver) => DecisionRecord::Approved {
                grant,
                approver,
                post: None,
            },
        }
    }
}

/// Decides one call of `tool`, with `arguments` as they were received, at `now`. A call that asks is decided again, by
/// the same checks on the state of that moment, when it is answered.
///
/// # Errors
/// The refusal, with the reason of the first check of policy.md section 2 that failed.
pub fn decide(
    policy: &Policy,
    session: SessionView,
    tool: &str,
    arguments: &str,
    now: Timestamp,
) -> Result<Decided, Denial> {
    let Some(entry) = policy.entry(tool) else {
        let storable = arguments::parse(arguments).is_ok();
        let known = policy.tools().map(Tool::name);
        return Err(Denial::unknown_tool(tool, storable, known));
    };
    let arguments =
        arguments::parse(arguments).map_err(|error| Denial::unreadable(tool, &error))?;
    let call = Call::new(&entry.tool, &arguments);
    let mut field = Field::new(entry, session);

    // 4. A tool that only deny grants name is named, and goes on to be denied by them.
    if !entry.grants.is_empty() {
        field.keep(DenyReason::GrantExpired, |candidate| {
            checks::expired(candidate.grant, now)
        })?;
    } else if entry.denies.is_empty() {
        return Err(field.refuse(DenyReason::NoGrant, None));
    }
    // 6. First what denies the call whatever grant it would run under.
    if let Some(deny) = checks::denied(entry, &call, None) {
        return Err(field.refuse(DenyReason::DeniedByGrant, Some(deny)));
    }
    if entry.grants.is_empty() {
        return Err(field.refuse(DenyReason::NoGrant, None));
    }
    field.keep(DenyReason::DeniedByGrant, |candidate| {
        checks::denied(entry, &call, Some(candidate.grant)).map(Stop::DeniedBy)
    })?;
    // 7.
    field.keep(DenyReason::NoGrant, |candidate| {
        match checks::covered(&call, candidate.grant) {
            Ok(bindings) => {
                candidate.bindings = bindings;
                None
            }
            Err(stop) => Some(stop),
        }
    })?;
    // 8.
    field.keep(DenyReason::TaintTooHigh, |candidate| {
        let accepts = candidate.grant.file().max_taint;
        (accepts < Some(session.taint)).then_some(Stop::Taint)
    })?;
    // 10.
    checks::arguments(&call).map_err(|error| Denial::bad_argument(tool, &error))?;
    // 11.
    field.keep(DenyReason::UntrustedContext, |candidate| {
        let grant = candidate.grant;
        let governed = session.untrusted && grant.has_side_effects(&entry.tool);
        let allowed = grant.file().after_untrusted == Some(AfterUntrusted::Allow);
        (governed && !allowed).then_some(Stop::Untrusted)
    })?;
    // The least demanding grant is taken; of equal ones the first by id.
    let taken = field.left().min_by_key(|left| left.grant.file().mode);
    let taken = taken.ok_or_else(|| field.refuse(DenyReason::NoGrant, None))?;
    let labels = labels(entry, &taken.bindings);
    let asks = taken.grant.file().mode != Mode::Auto;
    let decision = Decision {
        tool: entry.tool.name().clone(),
        grant: taken.grant.id().clone(),
        labels,
        detail: format!(
            "grant {} {}; its result is {}, {}",
            taken.grant.id(),
            if asks {
                "covers the call and asks"
            } else {
                "covers the call"
            },
            labels.class,
            if labels.untrusted {
                "untrusted"
            } else {
                "trusted"
            },
        ),
        approver: None,
    };
    // 12.
    Ok(if asks {
        Decided::Asks(Question(decision))
    } else {
        Decided::Runs(decision)
    })
}

/// The grants of the tool that might let the call run, by id, and where those that do not have stopped.
struct Field<'a> {
    entry: &'a Entry,
    session: SessionView,
    candidates: Vec<Candidate<'a>>,
}

struct Candidate<'a> {
    grant: &'a GrantEntry,
    bindings: Vec<Binding>,
    stop: Option<Stop<'a>>,
}

impl<'a> Field<'a> {
    fn new(entry: &'a Entry, session: SessionView) -> Self {
        let candidate = |grant: &'a std::sync::Arc<GrantEntry>| Candidate {
            grant: grant.as_ref(),
            bindings: Vec::new(),
            stop: None,
        };
        Self {
            entry,
            session,
            candidates: entry.grants.iter().map(candidate).collect(),
        }
    }

    fn left(&self) -> impl Iterator<Item = &Candidate<'a>> {
        self.candidates.iter().filter(|c| c.stop.is_none())
    }

    /// Stops the candidates for which `test` says where, and refuses for `reason` if that leaves none.
    fn keep(
        &mut self,
        reason: DenyReason,
        mut test: impl FnMut(&mut Candidate<'a>) -> Option<Stop<'a>>,
    ) -> Result<(), Denial> {
        // Auto before ask, then by id: the record names the grant that came closest.
        let mut closest: Option<&'a GrantEntry> = None;
        let mut left = false;
        for candidate in &mut self.candidates {
            if candidate.stop.is_some() {
                continue;
            }
            candidate.stop = test(candidate);
            left |= candidate.stop.is_none();
            let grant = candidate.grant;
            if closest.is_none_or(|closest| grant.file().mode < closest.file().mode) {
                closest = Some(grant);
            }
        }
        if left {
            return Ok(());
        }
        let named = match reason {
            DenyReason::NoGrant => None,
            DenyReason::DeniedByGrant => self.candidates.iter().find_map(|c| match &c.stop {
                Some(Stop::DeniedBy(deny)) => Some(*deny),
                _ => None,
            }),
            _ => closest.map(GrantEntry::id),
        };
        Err(self.refuse(reason, named))
    }

    fn refuse(&self, reason: DenyReason, grant: Option<&GrantId>) -> Denial {
        let stops = self.candidates.iter();
        let stops = stops.filter_map(|c| Some((c.grant, c.stop.as_ref()?)));
        let tool = self.entry.tool.name().as_str();
        Denial::stopped(reason, tool, grant, Some(self.session.taint), stops)
    }
}
