//! The supervisor's own memory of questions: which were asked, which were answered, and what each answer is good for.
//!
//! brokerd asks and brokerd says what the owner answered, so a compromised one can lie about both. Here it is held to
//! what the log says: an answer is to a question that was recorded, comes once and in time, and lets run that one call
//! with those exact arguments. So a lie stands in the log, durable, before it has an effect.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::{
    Answer, Approval, ApprovalEvent, ApprovalId, CallId, GrantId, Hash32, SessionId, Timestamp,
    ToolName,
};

/// The most questions that are open at one time (policy.md section 6).
const MOST_OPEN: usize = 256;
/// The most approvals that wait for their commit; an older one gives way.
const MOST_APPROVED: usize = 256;
/// How long an approval can be used: the call is decided, prepared and committed at once.
const USE_WITHIN: Duration = Duration::from_secs(60);

/// Why an event of a question is not recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApprovalError {
    /// The grant is no grant of the tool that asks.
    #[error("grant {grant} is no grant of {tool} that asks")]
    NoAsk {
        /// The tool.
        tool: ToolName,
        /// The grant.
        grant: GrantId,
    },
    /// As many questions as may be are open.
    #[error("{MOST_OPEN} questions are open, and no more may be")]
    Full,
    /// The id is in use.
    #[error("question {0} was asked already")]
    Asked(ApprovalId),
    /// Nobody can have answered that.
    #[error("{0:?} is no peer that can answer a question")]
    Peer(String),
    /// No chat is connected.
    #[error("no post can carry an answer")]
    Post,
    /// There is no such question of this call, or it is over.
    #[error("question {0} of this call is not open")]
    NotOpen(ApprovalId),
    /// It is too late.
    #[error("question {0} has expired")]
    Late(ApprovalId),
}

/// Why an approved decision is not committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no answer in the log lets call {call} of session {session} run under grant {grant} with these arguments, or it was \
     used or given up"
)]
pub(crate) struct NotApproved {
    session: SessionId,
    call: CallId,
    grant: GrantId,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The session.
    pub(crate) session: SessionId,
    /// The call.
    pub(crate) call: CallId,
    /// The tool.
    pub(crate) tool: ToolName,
    /// The grant that asks.
    pub(crate) grant: GrantId,
    /// SHA-256 of the arguments.
    pub(crate) arguments: Hash32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Its record is being stored.
    Asking,
    /// It can be answered.
    Open,
    /// The record of an answer is being stored.
    Answering,
    /// It was asked in an earlier life of brokerd, where nobody waits any more: it can only expire.
    Over,
}

#[derive(Debug, Clone)]
struct Question {
    subject: Subject,
    expires: Timestamp,
    state: State,
}

#[derive(Debug)]
struct Approved {
    subject: Subject,
    by: String,
    until: Timestamp,
}

/// The questions that are open, and the approvals that were not used yet.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    open: BTreeMap<ApprovalId, Question>,
    approved: Vec<Approved>,
}

impl Approvals {
    /// Takes one event of the log in; the events must come in order.
    pub(crate) fn read(&mut self, approval: &Approval) {
        match &approval.event {
            ApprovalEvent::Asked {
                tool,
                grant,
                arguments,
                expires,
            } => {
                let subject = Subject {
                    session: approval.session.clone(),
                    call: approval.call,
                    tool: tool.clone(),
                    grant: grant.clone(),
                    arguments: *arguments,
                };
                let question = Question {
                    subject,
                    expires: *expires,
                    state: State::Over,
                };
                self.open.insert(approval.approval.clone(), question);
            }
            ApprovalEvent::Answered { .. }
            | ApprovalEvent::Expired {}
            | ApprovalEvent::Withdrawn {} => {
                self.open.remove(&approval.approval);
            }
        }
    }

    /// Judges an event that brokerd wants recorded; what is admitted must be followed by [`Approvals::stored`].
    /// `asks` says whether a grant of that tool asks.
    pub(crate) fn admit(
        &mut self,
        approval: &Approval,
        now: Timestamp,
        peers: &[&str],
        asks: impl FnOnce(&ToolName, &GrantId) -> bool,
    ) -> Result<(), ApprovalError> {
        let id = &approval.approval;
        if let ApprovalEvent::Asked { tool, grant, .. } = &approval.event {
            if !asks(tool, grant) {
                return Err(ApprovalError::NoAsk {
                    tool: tool.clone(),
                    grant: grant.clone(),
                });
            }
            if self.open.contains_key(id) {
                return Err(ApprovalError::Asked(id.clone()));
            }
            if self.open.len() >= MOST_OPEN {
                return Err(ApprovalError::Full);
            }
            self.read(approval);
            self.set(id, State::Asking);
            return Ok(());
        }
        let question = self
            .open
            .get_mut(id)
            .filter(|question| {
                question.subject.session == approval.session
                    && question.subject.call == approval.call
            })
            .ok_or_else(|| ApprovalError::NotOpen(id.clone()))?;
        match &approval.event {
            ApprovalEvent::Answered { by, post, .. } => {
                if question.state != State::Open {
                    return Err(ApprovalError::NotOpen(id.clone()));
                }
                if !peers.contains(&by.as_str()) {
                    return Err(ApprovalError::Peer(by.chars().take(64).collect()));
                }
                if post.is_some() {
                    return Err(ApprovalError::Post);
                }
                if question.expires <= now {
                    return Err(ApprovalError::Late(id.clone()));
                }
                question.state = State::Answering;
            }
            ApprovalEvent::Expired {} if matches!(question.state, State::Open | State::Over) => {
                self.open.remove(id);
            }
            ApprovalEvent::Withdrawn {} if question.state == State::Open => {
                self.open.remove(id);
            }
            _ => return Err(ApprovalError::NotOpen(id.clone())),
        }
        Ok(())
    }

    /// The record of an admitted event was made durable at `now`, or could not be.
    pub(crate) fn stored(&mut self, approval: &Approval, durable: bool, now: Timestamp) {
        let id = &approval.approval;
        match (&approval.event, durable) {
            (ApprovalEvent::Asked { .. }, true) | (ApprovalEvent::Answered { .. }, false) => {
                self.set(id, State::Open);
            }
            (ApprovalEvent::Asked { .. }, false) => drop(self.open.remove(id)),
            (ApprovalEvent::Answered { answer, by, .. }, true) => {
                let Some(question) = self.open.remove(id) else {
                    return;
                };
                if *answer == Answer::Approved {
                    self.approve(question.subject, by.clone(), now);
                }
            }
            (ApprovalEvent::Expired {} | ApprovalEvent::Withdrawn {}, _) => {}
        }
    }

    fn set(&mut self, id: &ApprovalId, state: State) {
        if let Some(question) = self.open.get_mut(id) {
            question.state = state;
        }
    }

    fn approve(&mut self, subject: Subject, by: String, now: Timestamp) {
        if self.approved.len() >= MOST_APPROVED {
            self.approved.remove(0);
        }
        let within = u64::try_from(USE_WITHIN.as_millis()).unwrap_or(u64::MAX);
        let until = Timestamp::from_millis(now.as_millis().saturating_add(within));
        self.approved.push(Approved { subject, by, until });
    }

    /// Uses the approval of `subject` that `approver` gave. It cannot be used again.
    pub(crate) fn take(
        &mut self,
        subject: &Subject,
        approver: &str,
        now: Timestamp,
    ) -> Result<(), NotApproved> {
        self.approved.retain(|approved| now <= approved.until);
        let found = self
            .approved
            .iter()
            .position(|approved| approved.subject == *subject && approved.by == approver);
        match found {
            Some(index) => {
                self.approved.remove(index);
                Ok(())
            }
            None => Err(NotApproved {
                session: subject.session.clone(),
                call: subject.call,
                grant: subject.grant.clone(),
            }),
        }
    }

    /// How many questions can be answered at `now`.
    pub(crate) fn waiting(&self, now: Timestamp) -> u64 {
        let open =
            |question: &&Question| matches!(question.state, State::Open) && question.expires > now;
        self.open.values().filter(open).count() as u64
    }

    /// brokerd is gone: nobody waits for an answer any more, and no answer is good for anything.
    pub(crate) fn nobody_waits(&mut self) {
        self.approved.clear();
        for question in self.open.values_mut() {
            question.state = State::Over;
        }
    }
}

#[cfg(test)]
mod tests;
