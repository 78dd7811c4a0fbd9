//! A call that asks, from its question to the answer (policy.md section 6): recorded before it is shown, bound to the
//! exact bytes of its arguments, answered once. What an answer lets run is decided again, in `calls`.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use policy::SessionView;
use proto::broker::RecordEntry;
use proto::client::{ApprovalsReply, Question, ToolRequest, ToolResponse};
use proto::role::Empty;
use proto::{
    Answer, Approval, ApprovalEvent, ApprovalId, CallId, DenyReason, ErrorCode, GrantId, Hash32,
    Labels, Message, SessionId, Timestamp, ToolName, WireError,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use sha2::{Digest as _, Sha256};

use crate::broker::{Broker, internal, stopping, unknown_session};
use crate::calls::{Call, Unanswered};
use crate::control::ControlError;
use crate::questions::{NoQuestion, Said, Waiter};
use crate::refusal::Refusal;
use crate::report;
use crate::running::gone;
use crate::start::PEER;

/// How often a question looks at the clock, which may be set while it waits.
const LOOK: Duration = Duration::from_secs(1);

/// A call that needs the owner's word.
pub(crate) struct Asks {
    pub(crate) tool: ToolName,
    pub(crate) grant: GrantId,
    pub(crate) labels: Labels,
    pub(crate) why: String,
    pub(crate) view: SessionView,
}

/// The owner's yes to one call.
pub(crate) struct Given {
    /// The question.
    pub(crate) approval: ApprovalId,
    /// The grant that asked.
    pub(crate) grant: GrantId,
    /// Who said it.
    pub(crate) by: &'static str,
}

/// What came of a question.
pub(crate) enum Put {
    /// The call is to be decided again, with this.
    Approved(Given),
    /// It is not going to run.
    Over(ToolResponse),
}

/// Who made the call, and how that one is told that it waits.
pub(crate) struct Caller<'a> {
    pub(crate) stream: &'a UnixStream,
    /// Sends an answer that is not the last; whether it was sent.
    pub(crate) tell: &'a dyn Fn(ToolResponse) -> bool,
    /// Called when a wait for the owner begins (`true`) and ends.
    pub(crate) waits: &'a dyn Fn(bool),
}

/// Why a question waits no more.
enum End {
    Said(Said),
    Expired,
    CallerGone,
    Stopping,
}

impl Broker {
    /// Asks the owner about a call and waits for what becomes of it. The session's turn must not be held.
    pub(crate) fn put(
        &self,
        request: &ToolRequest,
        call: CallId,
        asks: Asks,
        caller: &Caller<'_>,
    ) -> Result<Put, Unanswered> {
        let policy = self.policy();
        let current = Call {
            session: &request.session,
            id: call,
            tool: &request.tool,
            arguments: &request.arguments,
            taint: asks.view.taint,
            generation: policy.generation(),
        };
        let over = |refusal| self.deny(&current, refusal).map(Put::Over);
        let refuse = |reason, agent: &str, owner: String| {
            let grant = Some(asks.grant.clone());
            over(Refusal::of_question(
                reason, grant, &asks.tool, agent, owner,
            ))
        };
        let expiry = policy.config().approvals.expiry;
        let asked = self.now();
        let expires = later(asked, expiry);
        let deadline = Instant::now() + expiry;
        let reserved = self
            .questions
            .reserve(&request.session, |approval| Question {
                approval,
                session: request.session.clone(),
                call,
                tool: asks.tool.clone(),
                arguments: request.arguments.clone(),
                grant: asks.grant.clone(),
                taint: asks.view.taint,
                untrusted: asks.view.untrusted,
                labels: asks.labels,
                why: asks.why.clone(),
                asked,
                expires,
            });
        let waiter = match reserved {
            Ok(waiter) => waiter,
            Err(error @ NoQuestion::Wait(_)) => return Err(Unanswered::Error(internal(error))),
            Err(error) => {
                let agent = "too many questions wait for the owner; try again";
                return refuse(DenyReason::LimitReached, agent, error.to_string());
            }
        };
        let record = |event| self.record_approval(waiter.id(), &request.session, call, event);
        let asked = ApprovalEvent::Asked {
            tool: asks.tool.clone(),
            grant: asks.grant.clone(),
            arguments: Hash32::new(Sha256::digest(request.arguments.as_bytes()).into()),
            expires,
        };
        match record(asked) {
            Ok(_) => {}
            Err(ControlError::Closed) => {
                return Err(Unanswered::Error(internal(ControlError::Closed)));
            }
            Err(error) => {
                let agent = "the question could not be recorded; nothing ran";
                return refuse(DenyReason::AuditUnavailable, agent, error.to_string());
            }
        }
        waiter.show();
        let told = (caller.tell)(ToolResponse::PendingApproval {
            approval: waiter.id().clone(),
            expires,
        });
        (caller.waits)(true);
        let end = self.wait(&waiter, caller.stream, told, (expires, deadline));
        (caller.waits)(false);
        let end = end.map_err(|error| Unanswered::Error(internal(error)))?;
        let ended = |event| {
            // The next start closes what cannot be closed now.
            if let Err(error) = record(event) {
                let id = waiter.id();
                report(format_args!(
                    "the end of question {id} is not recorded: {error}"
                ));
            }
        };
        match end {
            End::Said(Said::Answered(Answer::Approved)) => Ok(Put::Approved(Given {
                approval: waiter.id().clone(),
                grant: asks.grant.clone(),
                by: PEER,
            })),
            End::Said(Said::Answered(Answer::Refused)) => {
                let owner = format!("{PEER} refused question {}", waiter.id());
                let agent = "the owner was asked and said no";
                refuse(DenyReason::ApprovalRefused, agent, owner)
            }
            End::Expired => {
                ended(ApprovalEvent::Expired {});
                let owner = format!("nobody answered question {} in time", waiter.id());
                let agent = "the owner was asked and did not answer in time";
                refuse(DenyReason::ApprovalExpired, agent, owner)
            }
            End::CallerGone => {
                ended(ApprovalEvent::Withdrawn {});
                Err(Unanswered::Gone)
            }
            End::Said(Said::SessionEnded) => {
                ended(ApprovalEvent::Withdrawn {});
                Err(Unanswered::Error(unknown_session(&request.session)))
            }
            End::Stopping => {
                ended(ApprovalEvent::Expired {});
                Err(Unanswered::Error(stopping()))
            }
        }
    }

    /// Waits until the question is answered or over.
    fn wait(
        &self,
        waiter: &Waiter<'_>,
        caller: &UnixStream,
        mut there: bool,
        (expires, deadline): (Timestamp, Instant),
    ) -> Result<End, ControlError> {
        loop {
            waiter.bell().quiet();
            if let Some(said) = waiter.said() {
                return Ok(End::Said(said));
            }
            there = there && !gone(caller);
            let left = deadline.saturating_duration_since(Instant::now());
            let late = left.is_zero() || expires <= self.now();
            let end = if self.control.stopping() {
                Some(End::Stopping)
            } else if !there {
                Some(End::CallerGone)
            } else {
                late.then_some(End::Expired)
            };
            // An answer that is being recorded comes first, whatever it is.
            if let Some(end) = end
                && waiter.close()
            {
                return Ok(end);
            }
            let limit = if late { LOOK } else { LOOK.min(left) };
            let bell = PollFd::from_borrowed_fd(waiter.bell().as_fd(), PollFlags::IN);
            let mut polled = vec![bell];
            if there {
                polled.push(PollFd::new(caller, PollFlags::empty()));
            }
            let limit = Timespec {
                tv_sec: limit.as_secs().try_into().unwrap_or(1),
                tv_nsec: limit.subsec_nanos().into(),
            };
            match rustix::event::poll(&mut polled, Some(&limit)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(ControlError::Wait(errno.into())),
            }
        }
    }

    /// Answers an open question, and says so once that is durable.
    ///
    /// # Errors
    /// `unknown_approval` if it is not open, `internal` if the answer could not be recorded: it was none then.
    pub(crate) fn answer(&self, id: &ApprovalId, answer: Answer) -> Result<Message, WireError> {
        let now = self.now();
        let (session, call) = self
            .questions
            .begin_answer(id, now)
            .ok_or_else(|| WireError {
                code: ErrorCode::UnknownApproval,
                detail: format!(
                    "question {id} is not open: it was answered, is over, or never was"
                ),
            })?;
        let event = ApprovalEvent::Answered {
            answer,
            by: PEER.to_owned(),
            post: None,
        };
        let recorded = self.record_approval(id, &session, call, event);
        self.questions
            .end_answer(id, recorded.is_ok().then_some(answer));
        recorded.map_err(internal)?;
        Ok(Message::Ok(Empty {}))
    }

    /// The open questions, each in a message of its own, because a frame holds no two of the longest arguments.
    pub(crate) fn list_questions(&self) -> Vec<Message> {
        let part = |approvals| Message::ApprovalsReply(ApprovalsReply { approvals });
        let mut parts: Vec<Message> = self
            .questions
            .list()
            .into_iter()
            .map(|question| part(vec![question]))
            .collect();
        if parts.is_empty() {
            parts.push(part(Vec::new()));
        }
        parts
    }

    fn record_approval(
        &self,
        approval: &ApprovalId,
        session: &SessionId,
        call: CallId,
        event: ApprovalEvent,
    ) -> Result<u64, ControlError> {
        self.control.record(RecordEntry::Approval(Approval {
            approval: approval.clone(),
            session: session.clone(),
            call,
            event,
        }))
    }
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(time.as_millis().saturating_add(by))
}
