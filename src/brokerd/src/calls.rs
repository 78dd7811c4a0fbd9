//! One call from its request to its commit: decided by `policy`, prepared by the supervisor, or refused and recorded
//! (protocol.md sections 3 to 5). What happens from the commit on is in `running`.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use policy::{Decided, Decision, Question, SessionView};
use proto::broker::{Commit, Prepare, RecordEntry, RefuseReason};
use proto::client::{ToolRequest, ToolResponse};
use proto::{
    CallId, DataClass, DecisionRecord, DenyReason, ErrorCode, Labels, Level, Message, SessionId,
    Ticket, ToolName, WireError,
};

use crate::asking::{Asks, Caller, Given, Put};
use crate::broker::{Broker, internal, lock, stopping, unknown_session};
use crate::control::{ControlError, ExitWatch, unexpected};
use crate::denials::Verdict;
use crate::refusal::{Refusal, named, recorded_arguments, said};
use crate::report;
use crate::running::gone;

/// How often a call is decided when the policy changes under it.
const DECIDED: usize = 3;

/// Why a call has no `tool_response`.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// It is answered with an error.
    Error(WireError),
    /// Nobody is there to read an answer.
    Gone,
}

/// A call that was named and numbered.
pub(crate) struct Call<'request> {
    pub(crate) session: &'request SessionId,
    pub(crate) id: CallId,
    pub(crate) tool: &'request str,
    pub(crate) arguments: &'request str,
    pub(crate) taint: DataClass,
    pub(crate) generation: u64,
}

/// A call whose sandbox stands and has run nothing.
struct PreparedCall {
    ticket: Ticket,
    stdout: OwnedFd,
    stderr: OwnedFd,
    level: Level,
    record: DecisionRecord,
    tool: ToolName,
    labels: Labels,
    detail: String,
    max_output: usize,
}

/// A call whose decision is durable and whose tool is being started.
pub(crate) struct CommittedCall<'broker> {
    pub(crate) session: SessionId,
    pub(crate) seq: u64,
    pub(crate) ticket: Ticket,
    pub(crate) watch: ExitWatch<'broker>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) level: Level,
    pub(crate) labels: Labels,
    pub(crate) max_output: usize,
}

/// Why a call that was decided has no sandbox.
enum NotPrepared {
    /// The supervisor has another generation of the policy; with the refusal for when it is not tried again.
    Stale(Refusal),
    Refused(Refusal),
    Failed(WireError),
}

/// What became of a call by the end of its turn.
enum Turn<'broker> {
    Answered(ToolResponse),
    Committed(Box<CommittedCall<'broker>>),
    Asks(Box<Asks>),
}

impl Broker {
    /// Carries an owner's own call through, and gives the answer once it may be sent.
    pub(crate) fn call(
        &self,
        request: &ToolRequest,
        caller: &Caller<'_>,
    ) -> Result<ToolResponse, Unanswered> {
        let session = &request.session;
        let closed = || Unanswered::Error(unknown_session(session));
        if self.sessions().open(session).is_none() {
            return Err(closed());
        }
        if request.call != CallId(0) {
            return Err(Unanswered::Error(WireError {
                code: ErrorCode::BadCall,
                detail: format!(
                    "call {}: an owner's own call carries 0 and is given its number",
                    request.call
                ),
            }));
        }
        let turn = self.turn(session);
        let mut number = None;
        let mut given = None;
        loop {
            let taken = lock(&turn);
            if self.control.stopping() {
                return Err(Unanswered::Error(stopping()));
            }
            let id = match number {
                Some(id) => id,
                None => self.sessions().allot(session).ok_or_else(closed)?,
            };
            number = Some(id);
            let outcome = self.take_turn(request, id, given.as_ref(), caller.stream)?;
            drop(taken);
            match outcome {
                Turn::Answered(response) => return Ok(response),
                Turn::Committed(call) => return self.follow(*call, caller.stream),
                // Other calls of the session go on while the owner thinks.
                Turn::Asks(asks) => match self.put(request, id, *asks, caller)? {
                    Put::Approved(approval) => given = Some(approval),
                    Put::Over(response) => return Ok(response),
                },
            }
        }
    }

    /// Decides and commits, refuses, or finds that the owner has to be asked. The session's turn is held, so that no
    /// other call of it is decided on a state that this one is about to change.
    fn take_turn(
        &self,
        request: &ToolRequest,
        id: CallId,
        given: Option<&Given>,
        caller: &UnixStream,
    ) -> Result<Turn<'_>, Unanswered> {
        let session = &request.session;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let policy = self.policy();
            let now = self.now();
            let (view, denied) = match self.sessions().open(session) {
                Some(known) => {
                    let view = SessionView {
                        taint: known.taint,
                        untrusted: known.untrusted,
                    };
                    (view, known.denied)
                }
                None => return Err(Unanswered::Error(unknown_session(session))),
            };
            let ceiling = policy.config().session.denials.get();
            if denied >= ceiling {
                return Ok(Turn::Answered(self.used_up(request, id, ceiling)));
            }
            let call = Call {
                session,
                id,
                tool: &request.tool,
                arguments: &request.arguments,
                taint: view.taint,
                generation: policy.generation(),
            };
            let decided = policy::decide(&policy, view, call.tool, call.arguments, now);
            let decision = match (decided, given) {
                (Ok(Decided::Runs(decision)), _) => decision,
                (Ok(Decided::Asks(question)), Some(given)) if *question.grant() == given.grant => {
                    question.approved(given.by)
                }
                (Ok(Decided::Asks(question)), Some(given)) => {
                    return self
                        .deny(&call, outlived(&question, given))
                        .map(Turn::Answered);
                }
                (Ok(Decided::Asks(question)), None) => {
                    return Ok(Turn::Asks(Box::new(Asks {
                        tool: question.tool().clone(),
                        grant: question.grant().clone(),
                        labels: question.labels(),
                        why: question.detail().to_owned(),
                        view,
                    })));
                }
                (Err(denial), _) => return self.deny(&call, denial.into()).map(Turn::Answered),
            };
            let max_output = policy
                .tool(decision.tool())
                .map_or(0, |tool| tool.file().max_output);
            match self.prepare(decision, &call, max_output) {
                Ok(prepared) => return self.commit(prepared, &call, caller),
                Err(NotPrepared::Stale(_)) if attempt < DECIDED => {}
                Err(NotPrepared::Stale(refusal) | NotPrepared::Refused(refusal)) => {
                    return self.deny(&call, refusal).map(Turn::Answered);
                }
                Err(NotPrepared::Failed(error)) => return Err(Unanswered::Error(error)),
            }
        }
    }

    /// Asks for the sandbox. The decision ends here, and its record is kept for the commit.
    fn prepare(
        &self,
        decision: Decision,
        call: &Call<'_>,
        max_output: u64,
    ) -> Result<PreparedCall, NotPrepared> {
        let tool = decision.tool().clone();
        let grant = decision.grant().clone();
        let labels = decision.labels();
        let detail = decision.detail().to_owned();
        let record = decision.into_record();
        let answer = self.control.prepare(Prepare {
            session: call.session.clone(),
            call: call.id,
            tool: tool.clone(),
            grant,
            generation: call.generation,
            arguments: call.arguments.to_owned(),
        });
        let refusal =
            |reason, owner: String, ticket| Refusal::after(reason, &record, &tool, owner, ticket);
        let received = match answer {
            Ok(received) => received,
            Err(ControlError::Closed) => {
                return Err(NotPrepared::Failed(internal(ControlError::Closed)));
            }
            Err(error) => {
                let refusal = refusal(DenyReason::LaunchFailed, error.to_string(), None);
                return Err(NotPrepared::Refused(refusal));
            }
        };
        let prepared = match received.envelope.msg {
            Message::Prepared(prepared) => prepared,
            Message::Refused(refused) => {
                let (detail, ticket) = (refused.detail, refused.ticket);
                return Err(match refused.reason {
                    RefuseReason::StaleGeneration => {
                        NotPrepared::Stale(refusal(DenyReason::LaunchFailed, detail, ticket))
                    }
                    RefuseReason::Denied(reason) => {
                        NotPrepared::Refused(refusal(reason, detail, ticket))
                    }
                });
            }
            other => {
                let error = unexpected("prepare", &other);
                return Err(NotPrepared::Failed(internal(error)));
            }
        };
        let streams: Result<[OwnedFd; 2], _> = received.descriptors.try_into();
        let [stdout, stderr] = streams.map_err(|_| {
            self.control.abort(prepared.ticket);
            NotPrepared::Failed(internal("prepared came without the tool's output"))
        })?;
        Ok(PreparedCall {
            ticket: prepared.ticket,
            stdout,
            stderr,
            level: prepared.confinement.level,
            record,
            tool,
            labels,
            detail,
            max_output: usize::try_from(max_output).unwrap_or(usize::MAX),
        })
    }

    fn commit(
        &self,
        prepared: PreparedCall,
        call: &Call<'_>,
        caller: &UnixStream,
    ) -> Result<Turn<'_>, Unanswered> {
        let ticket = prepared.ticket;
        if gone(caller) {
            self.control.abort(ticket);
            return Err(Unanswered::Gone);
        }
        if self.control.stopping() {
            self.control.abort(ticket);
            return Err(Unanswered::Error(stopping()));
        }
        let failed = |error: ControlError| Unanswered::Error(internal(error));
        let watch = self.control.watch(ticket).map_err(|error| {
            self.control.abort(ticket);
            failed(error)
        })?;
        let committed = self.control.commit(Commit {
            ticket,
            decision: prepared.record.clone(),
            session_taint: call.taint,
            labels: prepared.labels,
            detail: prepared.detail,
        });
        let (reason, owner) = match committed {
            Ok(Message::Committed(committed)) if committed.ticket == ticket => {
                let (session, labels) = (call.session.clone(), prepared.labels);
                let seq = committed.seq;
                let now = self.now();
                self.sessions().allowed(&session, call.id, seq, labels, now);
                return Ok(Turn::Committed(Box::new(CommittedCall {
                    session,
                    seq,
                    ticket,
                    watch,
                    stdout: prepared.stdout,
                    stderr: prepared.stderr,
                    level: prepared.level,
                    labels,
                    max_output: prepared.max_output,
                })));
            }
            Ok(Message::Refused(refused)) => match refused.reason {
                RefuseReason::Denied(reason) => (reason, refused.detail),
                RefuseReason::StaleGeneration => (DenyReason::LaunchFailed, refused.detail),
            },
            Ok(other) => {
                self.control.abort(ticket);
                return Err(failed(unexpected("commit", &other)));
            }
            Err(ControlError::Closed) => return Err(failed(ControlError::Closed)),
            // A supervisor that could append says what it refuses, for example a ticket whose time is over.
            Err(
                error @ ControlError::Answered {
                    code: ErrorCode::Internal,
                    ..
                },
            ) => (DenyReason::AuditUnavailable, error.to_string()),
            Err(error) => (DenyReason::LaunchFailed, error.to_string()),
        };
        self.control.abort(ticket);
        let refusal = Refusal::after(reason, &prepared.record, &prepared.tool, owner, None);
        self.deny(call, refusal).map(Turn::Answered)
    }

    /// Refuses a call of a session that had `ceiling` calls refused. It is counted and has no record of its own, or a
    /// caller that goes on would still fill the log.
    fn used_up(&self, request: &ToolRequest, id: CallId, ceiling: u64) -> ToolResponse {
        let (session, reason) = (&request.session, DenyReason::LimitReached);
        let now = self.now();
        let elapsed = self.elapsed();
        self.denials().count(session, reason, elapsed, now);
        self.sessions().denied(session, id, now);
        ToolResponse::Denied {
            reason,
            detail: format!(
                "this session had {ceiling} calls refused, and that is the most: none passes in it any more"
            ),
        }
    }

    /// Refuses a call. The answer is given only once the refusal is in the log, or counted for it.
    pub(crate) fn deny(
        &self,
        call: &Call<'_>,
        refusal: Refusal,
    ) -> Result<ToolResponse, Unanswered> {
        let Refusal {
            reason,
            grant,
            agent,
            owner,
            storable,
            ticket,
        } = refusal;
        let tool = named(call.tool);
        let now = self.now();
        let elapsed = self.elapsed();
        let verdict = self
            .denials()
            .note(call.session, &tool, reason, elapsed, now);
        if verdict == Verdict::Record {
            let recorded = self.control.record(RecordEntry::Decision {
                session: call.session.clone(),
                call: call.id,
                tool,
                arguments: recorded_arguments(call.arguments, storable),
                session_taint: call.taint,
                decision: DecisionRecord::Denied { reason, grant },
                detail: owner,
                generation: call.generation,
                ticket,
            });
            match recorded {
                Ok(_) => {}
                Err(ControlError::Closed) => {
                    return Err(Unanswered::Error(internal(ControlError::Closed)));
                }
                Err(error) => {
                    report(format_args!(
                        "call {} of session {} was refused ({reason}), and that is not recorded: {error}",
                        call.id, call.session
                    ));
                    return Ok(ToolResponse::Denied {
                        reason: DenyReason::AuditUnavailable,
                        detail: said(call.tool, DenyReason::AuditUnavailable),
                    });
                }
            }
        }
        self.sessions().denied(call.session, call.id, now);
        Ok(ToolResponse::Denied {
            reason,
            detail: agent,
        })
    }
}

/// The refusal of a call whose answer is to another question than is open now: the grant that asked covers it no more.
fn outlived(question: &Question, given: &Given) -> Refusal {
    let owner = format!(
        "question {} was about grant {}, which does not cover the call any more; grant {} does and asks anew",
        given.approval,
        given.grant,
        question.grant()
    );
    let grant = Some(given.grant.clone());
    let agent = "the owner's answer came too late for what has changed meanwhile; try again";
    Refusal::of_question(
        DenyReason::ApprovalExpired,
        grant,
        question.tool(),
        agent,
        owner,
    )
}
