//! `commit` and `finish`: the record before the start, the start, the end, and its record (protocol.md section 5).

use std::sync::Arc;

use proto::audit::{Decision, ExitCause, ExitStatus, Outcome, OutcomeStatus, Usage};
use proto::broker::{Commit, Committed as CommittedMessage, Exited, Finish, Recorded};
use proto::grant::Mode;
use proto::{DecisionRecord, Entry, ErrorCode, Message, Ticket};

use super::Life;
use super::call::{Call, Committed, Ended, Prepared, TicketError};
use super::record::{cut, stored};
use crate::approvals::Subject;
use crate::books::{OpenDecision, digest};
use crate::sandbox::ToolSandbox;
use crate::{in_full, lock, voice};

/// The most characters of the name of an approver or a post, so that the replay of a record fits a frame.
pub(super) const MOST_APPROVER: usize = 256;

impl Life {
    pub(super) fn commit(self: &Arc<Self>, id: u64, commit: Commit) {
        let refuse = |detail: &dyn ToString| {
            self.line.refuse(id, ErrorCode::BadMessage, detail);
        };
        let Some(grant) = commit.decision.granted() else {
            return refuse(&"commit takes a decision that lets the call run; record takes denials");
        };
        if let Err(rule) = bounded(&commit.decision) {
            return refuse(&rule);
        }
        let may = |call: &Call| self.may_commit(call, &commit.decision);
        match self.tickets.begin_commit(commit.ticket, grant, may) {
            Ok(prepared) => {
                let life = Arc::clone(self);
                self.workers
                    .spawn("call", move || life.run(id, commit, prepared));
            }
            Err(error) => refuse(&error),
        }
    }

    /// Whether the grant of `call` lets it run as `decision` says. An approval is used up by this.
    fn may_commit(&self, call: &Call, decision: &DecisionRecord) -> Result<(), TicketError> {
        let grant = self.core.loaded.policy.grant(&call.grant);
        let asks = grant.is_none_or(|grant| grant.file().mode != Mode::Auto);
        match decision {
            DecisionRecord::Approved { approver, .. } if asks => {
                let subject = Subject {
                    session: call.session.clone(),
                    call: call.call,
                    tool: call.tool.clone(),
                    grant: call.grant.clone(),
                    arguments: digest(call.arguments.as_bytes()),
                };
                let now = self.core.now();
                Ok(lock(&self.core.approvals).take(&subject, approver, now)?)
            }
            DecisionRecord::Approved { .. } => Err(TicketError::NotAsking(call.grant.clone())),
            _ if asks => Err(TicketError::Unasked(call.grant.clone())),
            _ => Ok(()),
        }
    }

    /// Records the decision, starts the tool, waits for its end, and says so.
    fn run(&self, id: u64, commit: Commit, prepared: Prepared<ToolSandbox>) {
        let ticket = commit.ticket;
        let Some((committed, sandbox)) = self.store(id, commit, prepared) else {
            return;
        };
        let seq = committed.seq;
        let message = CommittedMessage { ticket, seq };
        let told = self.line.answer(id, Message::Committed(message));
        let (exit, cause, usage) = if told && self.tickets.may_start(ticket) {
            self.start(ticket, sandbox)
        } else {
            drop(sandbox);
            (None, ExitCause::Aborted, NOTHING)
        };
        let ended = Ended {
            committed,
            exit,
            cause,
            usage,
        };
        self.tickets.ended(ticket, ended);
        self.line.say(Message::Exited(Exited {
            ticket,
            exit,
            cause,
            usage,
        }));
    }

    /// Makes the decision durable. Without that the sandbox is killed and brokerd gets an error.
    fn store(
        &self,
        id: u64,
        commit: Commit,
        prepared: Prepared<ToolSandbox>,
    ) -> Option<(Committed, ToolSandbox)> {
        let Prepared {
            call,
            confinement,
            sandbox,
        } = prepared;
        let arguments = call.arguments.clone();
        let (arguments, text) = stored(&lock(&self.core.books), &call.session, arguments);
        let entry = Entry::Decision(Box::new(Decision {
            session: call.session.clone(),
            call: call.call,
            tool: call.tool.as_str().to_owned(),
            arguments,
            session_taint: commit.session_taint,
            decision: commit.decision,
            labels: Some(commit.labels),
            detail: cut(commit.detail),
            generation: call.generation,
            confinement: Some(confinement),
        }));
        match self.core.ledger.begin(entry) {
            Ok(appended) => {
                let seq = appended.seq;
                let mut books = lock(&self.core.books);
                if let Some((session, text)) = text {
                    books.remember(&session, &text, seq);
                }
                let open = OpenDecision {
                    session: call.session.clone(),
                    labels: commit.labels,
                };
                books.committed(seq, open);
                drop(books);
                Some((Committed { call, seq }, sandbox))
            }
            Err(error) => {
                drop(sandbox);
                self.tickets.forget(commit.ticket);
                self.line.refuse(id, ErrorCode::Internal, &error);
                None
            }
        }
    }

    fn start(
        &self,
        ticket: Ticket,
        sandbox: ToolSandbox,
    ) -> (Option<ExitStatus>, ExitCause, Usage) {
        match sandbox.start() {
            Ok(running) => {
                self.tickets.running(ticket, running.killer());
                let ended = running.wait();
                if let Some(detail) = &ended.detail {
                    voice::remark(&format!("ticket {ticket}: {detail}"));
                }
                (ended.exit, ended.cause, ended.usage)
            }
            Err(error) => {
                voice::remark(&format!(
                    "ticket {ticket} was not started: {}",
                    in_full(&error)
                ));
                (None, ExitCause::NotStarted, NOTHING)
            }
        }
    }

    pub(super) fn finish(&self, id: u64, finish: Finish) {
        let refuse = |detail: &dyn ToString| {
            self.line.refuse(id, ErrorCode::BadMessage, detail);
        };
        if let Some(exit) = self.tickets.exit_of(finish.ticket)
            && let Err(rule) = agrees(finish.status, exit)
        {
            return refuse(&rule);
        }
        let ended = match self.tickets.finish(finish.ticket) {
            Ok(ended) => ended,
            Err(error) => return refuse(&error),
        };
        let seq = ended.committed.seq;
        let entry = Entry::Outcome(Outcome {
            of: seq,
            session: ended.committed.call.session,
            status: finish.status,
            class: finish.class,
            untrusted: finish.untrusted,
            truncated: finish.truncated,
            bytes: finish.bytes,
            cause: Some(ended.cause),
            exit: ended.exit,
            usage: Some(ended.usage),
        });
        match self.core.ledger.append(entry) {
            Ok(appended) => {
                lock(&self.core.books).finished(seq);
                let seq = appended.seq;
                self.line.answer(id, Message::Recorded(Recorded { seq }));
            }
            Err(error) => drop(self.line.refuse(id, ErrorCode::Internal, &error)),
        }
    }
}

/// The usage of a tool that never ran.
const NOTHING: Usage = Usage {
    wall_ms: 0,
    cpu_ms: None,
    max_rss: None,
};

/// A decision says who approved, in a few words.
fn bounded(decision: &DecisionRecord) -> Result<(), String> {
    let long = |text: &str| text.chars().count() > MOST_APPROVER;
    match decision {
        DecisionRecord::Approved { approver, post, .. }
            if long(approver) || post.as_deref().is_some_and(long) =>
        {
            Err(format!(
                "approver and post have at most {MOST_APPROVER} characters"
            ))
        }
        _ => Ok(()),
    }
}

/// A result is the end of a tool that was seen to end with status 0; anything else failed. `unknown` is for ends that
/// nobody saw.
fn agrees(status: OutcomeStatus, exit: Option<ExitStatus>) -> Result<(), &'static str> {
    match (status, exit) {
        (OutcomeStatus::Failed, _) | (OutcomeStatus::Result, Some(ExitStatus::Code(0))) => Ok(()),
        (OutcomeStatus::Result, _) => Err("only a tool that ended with status 0 has a result"),
        (OutcomeStatus::Unknown, _) => Err("the end of this call was seen: it is no unknown one"),
    }
}

#[cfg(test)]
mod tests {
    use proto::GrantId;

    use super::*;

    #[test]
    fn a_result_is_what_ended_with_status_0_and_a_seen_end_is_not_unknown() {
        let ended = Some(ExitStatus::Code(0));
        assert_eq!(agrees(OutcomeStatus::Result, ended), Ok(()));
        assert_eq!(agrees(OutcomeStatus::Failed, ended), Ok(()));
        assert!(agrees(OutcomeStatus::Unknown, ended).is_err());
        for exit in [None, Some(ExitStatus::Code(1)), Some(ExitStatus::Signal(9))] {
            assert_eq!(agrees(OutcomeStatus::Failed, exit), Ok(()));
            assert!(agrees(OutcomeStatus::Result, exit).is_err());
        }
    }

    #[test]
    fn the_words_of_an_approval_are_bounded() {
        let approved = |approver: usize, post: usize| DecisionRecord::Approved {
            grant: GrantId::new("notes").unwrap(),
            approver: "x".repeat(approver),
            post: Some("x".repeat(post)),
        };
        assert!(bounded(&approved(MOST_APPROVER, MOST_APPROVER)).is_ok());
        assert!(bounded(&approved(MOST_APPROVER + 1, 0)).is_err());
        assert!(bounded(&approved(0, MOST_APPROVER + 1)).is_err());
    }
}
