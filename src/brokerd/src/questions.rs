//! The questions to the owner that wait for an answer. Knows who waits and how each is woken; what is recorded of them
//! and what an answer lets run are `asking`'s.
//!
//! A question is shown only once its record is durable, and an answer counts only once its own is; the states between
//! keep a second answer, an expiry and a hang-up from crossing with it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use proto::client::Question;
use proto::{Answer, ApprovalId, CallId, SessionId, Timestamp};

use crate::bell::Bell;
use crate::broker::lock;

/// The most open questions of one session (policy.md section 6).
pub(crate) const PER_SESSION: usize = 64;

/// The most open questions in all.
pub(crate) const IN_ALL: usize = 256;

/// Why no question can be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoQuestion {
    /// As many as may be are open in the session.
    #[error("{PER_SESSION} questions of this session wait for the owner, and no more may")]
    SessionFull,
    /// As many as may be are open.
    #[error("{IN_ALL} questions wait for the owner, and no more may")]
    Full,
    /// eventfd(2) failed, or an id is none.
    #[error("cannot wait for an answer: {0}")]
    Wait(#[source] io::Error),
}

/// Why a question does not wait any more, as whoever waits learns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The owner answered, and that is durable.
    Answered(Answer),
    /// The session was ended.
    SessionEnded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its record is not durable yet: nobody may see it.
    Recording,
    Open,
    /// The record of an answer is not durable yet.
    Answering,
    Said(Said),
}

#[derive(Debug)]
struct Open {
    question: Question,
    state: State,
    bell: Arc<Bell>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    open: BTreeMap<u64, Open>,
}

/// Every question that waits.
#[derive(Debug, Default)]
pub(crate) struct Questions(Mutex<Inner>);

/// Waits for the answer to one question. Dropping it takes the question away.
#[derive(Debug)]
pub(crate) struct Waiter<'questions> {
    questions: &'questions Questions,
    number: u64,
    id: ApprovalId,
    bell: Arc<Bell>,
}

impl Questions {
    /// Without questions; the next is number `last` + 1.
    pub(crate) fn after(last: u64) -> Self {
        Self(Mutex::new(Inner {
            last,
            open: BTreeMap::new(),
        }))
    }

    /// Takes a place for the question that `make` makes of its id. Nobody sees it before [`Waiter::show`].
    pub(crate) fn reserve(
        &self,
        session: &SessionId,
        make: impl FnOnce(ApprovalId) -> Question,
    ) -> Result<Waiter<'_>, NoQuestion> {
        let bell = Arc::new(Bell::new().map_err(NoQuestion::Wait)?);
        let mut inner = lock(&self.0);
        if inner.open.len() >= IN_ALL {
            return Err(NoQuestion::Full);
        }
        let of_session = |open: &&Open| open.question.session == *session;
        if inner.open.values().filter(of_session).count() >= PER_SESSION {
            return Err(NoQuestion::SessionFull);
        }
        let number = inner.last.saturating_add(1);
        let id = id(number).map_err(|error| NoQuestion::Wait(io::Error::other(error)))?;
        inner.last = number;
        let open = Open {
            question: make(id.clone()),
            state: State::Recording,
            bell: Arc::clone(&bell),
        };
        inner.open.insert(number, open);
        Ok(Waiter {
            questions: self,
            number,
            id,
            bell,
        })
    }

    /// Every question that can be answered, the oldest first.
    pub(crate) fn list(&self) -> Vec<Question> {
        let inner = lock(&self.0);
        let open = inner.open.values().filter(|open| open.state == State::Open);
        open.map(|open| open.question.clone()).collect()
    }

    /// Takes a question to be answered at `now`, so that nobody else does; whose call it is about. `None` if it cannot
    /// be answered. [`Questions::end_answer`] must follow.
    pub(crate) fn begin_answer(
        &self,
        id: &ApprovalId,
        now: Timestamp,
    ) -> Option<(SessionId, CallId)> {
        let mut inner = lock(&self.0);
        let open = inner
            .open
            .values_mut()
            .find(|open| open.question.approval == *id)?;
        if open.state != State::Open || open.question.expires <= now {
            return None;
        }
        open.state = State::Answering;
        Some((open.question.session.clone(), open.question.call))
    }

    /// The answer that was begun is durable, or could not be made so and was none.
    pub(crate) fn end_answer(&self, id: &ApprovalId, answer: Option<Answer>) {
        let mut inner = lock(&self.0);
        let mut found = inner.open.values_mut();
        if let Some(open) = found.find(|open| open.question.approval == *id) {
            open.state = answer.map_or(State::Open, |answer| State::Said(Said::Answered(answer)));
            open.bell.ring();
        }
    }

    /// Nobody can answer the open questions of this session any more.
    pub(crate) fn end_session(&self, session: &SessionId) {
        let mut inner = lock(&self.0);
        for open in inner.open.values_mut() {
            if open.question.session == *session && open.state == State::Open {
                open.state = State::Said(Said::SessionEnded);
                open.bell.ring();
            }
        }
    }

    /// Wakes everybody who waits.
    pub(crate) fn wake(&self) {
        for open in lock(&self.0).open.values() {
            open.bell.ring();
        }
    }
}

impl Waiter<'_> {
    /// The question's id.
    pub(crate) const fn id(&self) -> &ApprovalId {
        &self.id
    }

    /// Rings when there is something new.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// From now on the question can be answered.
    pub(crate) fn show(&self) {
        if let Some(open) = lock(&self.questions.0).open.get_mut(&self.number) {
            open.state = State::Open;
        }
    }

    /// What was said, if anything was.
    pub(crate) fn said(&self) -> Option<Said> {
        match lock(&self.questions.0).open.get(&self.number)?.state {
            State::Said(said) => Some(said),
            _ => None,
        }
    }

    /// Takes the question away, unless it was answered or is being answered. Whether it is away.
    pub(crate) fn close(&self) -> bool {
        let mut inner = lock(&self.questions.0);
        let closes = inner
            .open
            .get(&self.number)
            .is_none_or(|open| matches!(open.state, State::Open | State::Recording));
        if closes {
            inner.open.remove(&self.number);
        }
        closes
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        lock(&self.questions.0).open.remove(&self.number);
    }
}

/// The id of question `number`: short enough to be typed, and never given twice in one log.
fn id(number: u64) -> Result<ApprovalId, proto::InvalidId> {
    ApprovalId::new(format!("a{number}"))
}

/// The number of a question, from its id; 0 for one that brokerd did not name.
pub(crate) fn number(id: &ApprovalId) -> u64 {
    let digits = id.as_str().strip_prefix('a');
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
