//! What all threads share, and the owner's side of sessions: opened, listed, ended (protocol.md section 2). Calls are
//! in `calls`.
//!
//! Locks are taken in this order: `opening`, the turn of one session, `sessions`. No thread waits for the supervisor
//! while it holds `sessions`, so that `session_list` always answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use policy::Policy;
use proto::audit::SessionEvent;
use proto::broker::RecordEntry;
use proto::client::{SessionListReply, SessionOpen, SessionOpened, ToolSummary, ToolsListReply};
use proto::role::Empty;
use proto::{CallId, ErrorCode, Message, SessionId, Timestamp, WireError};

use crate::control::{Control, ControlError, unexpected};
use crate::denials::{Counted, Denials};
use crate::questions::Questions;
use crate::report;
use crate::start::PEER;
use crate::state::Sessions;

/// Everything that the threads of brokerd share.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) control: Control,
    policy: RwLock<Arc<Policy>>,
    sessions: Mutex<Sessions>,
    // One call of a session is decided after the other, from the look at its state to the commit.
    turns: Mutex<BTreeMap<SessionId, Arc<Mutex<()>>>>,
    opening: Mutex<()>,
    denials: Mutex<Denials>,
    pub(crate) questions: Questions,
    began: Instant,
    running: Mutex<Running>,
    idle: Condvar,
}

#[derive(Debug, Default)]
struct Running {
    calls: usize,
    stopping: bool,
}

/// Held while a call is being worked on and answered; an orderly end waits for it.
pub(crate) struct InProgress<'broker>(&'broker Broker);

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        lock(&self.0.running).calls -= 1;
        self.0.idle.notify_all();
    }
}

impl Broker {
    pub(crate) fn new(control: Control, policy: Policy, sessions: Sessions) -> Self {
        let questions = Questions::after(sessions.last_question());
        Self {
            control,
            questions,
            policy: RwLock::new(Arc::new(policy)),
            sessions: Mutex::new(sessions),
            turns: Mutex::default(),
            opening: Mutex::default(),
            denials: Mutex::default(),
            began: Instant::now(),
            running: Mutex::default(),
            idle: Condvar::new(),
        }
    }

    /// The policy of this moment.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on calls are decided by `policy`.
    pub(crate) fn replace_policy(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// The state of all sessions; to be held for a moment only.
    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        lock(&self.sessions)
    }

    /// The denials of the last minute; to be held for a moment only.
    pub(crate) fn denials(&self) -> MutexGuard<'_, Denials> {
        lock(&self.denials)
    }

    /// The time that decisions are made at and records are counted by; it never goes back.
    pub(crate) fn now(&self) -> Timestamp {
        self.sessions().now(Timestamp::from(SystemTime::now()))
    }

    /// How long brokerd has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// What is held while a call of this session is decided.
    pub(crate) fn turn(&self, session: &SessionId) -> Arc<Mutex<()>> {
        Arc::clone(lock(&self.turns).entry(session.clone()).or_default())
    }

    /// Opens a session, or resumes it.
    ///
    /// # Errors
    /// `internal` if it could not be recorded.
    pub(crate) fn open_session(&self, open: SessionOpen) -> Result<Message, WireError> {
        let _opening = lock(&self.opening);
        let now = self.now();
        let session = match open.session {
            Some(session) => session,
            None => self.sessions().fresh(now).map_err(internal)?,
        };
        let turn = self.turn(&session);
        let _turn = lock(&turn);
        let event = self.sessions().opening(&session);
        self.record_session(&session, event).map_err(internal)?;
        let mut sessions = self.sessions();
        sessions.session(&session, event, now);
        let last_call = sessions
            .get(&session)
            .map_or(CallId(0), |known| known.last_call);
        drop(sessions);
        Ok(Message::SessionOpened(SessionOpened { session, last_call }))
    }

    /// Ends an open session. Calls that were committed before go on.
    ///
    /// # Errors
    /// `unknown_session` if it is not open, `internal` if its end could not be recorded.
    pub(crate) fn end_session(&self, session: &SessionId) -> Result<Message, WireError> {
        if self.sessions().open(session).is_none() {
            return Err(unknown_session(session));
        }
        let turn = self.turn(session);
        let _turn = lock(&turn);
        if self.sessions().open(session).is_none() {
            return Err(unknown_session(session));
        }
        let now = self.now();
        self.record_session(session, SessionEvent::Ended)
            .map_err(internal)?;
        self.sessions().session(session, SessionEvent::Ended, now);
        self.questions.end_session(session);
        Ok(Message::Ok(Empty {}))
    }

    /// Every session, the latest first.
    pub(crate) fn list_sessions(&self) -> Message {
        let sessions = self.sessions().list();
        Message::SessionListReply(SessionListReply { sessions })
    }

    /// Every tool of the owner's files.
    ///
    /// # Errors
    /// `internal` if a schema cannot be written as text.
    pub(crate) fn list_tools(&self) -> Result<Message, WireError> {
        let policy = self.policy();
        let tools: Result<Vec<_>, serde_json::Error> = policy
            .tools()
            .map(|tool| {
                let file = tool.file();
                Ok(ToolSummary {
                    name: tool.name().clone(),
                    description: file.description.clone(),
                    kind: file.kind,
                    side_effect: tool.has_side_effects(),
                    arguments: serde_json::to_string(&file.arguments)?,
                })
            })
            .collect();
        let tools = tools.map_err(internal)?;
        Ok(Message::ToolsListReply(ToolsListReply { tools }))
    }

    /// What the supervisor says of itself.
    ///
    /// # Errors
    /// `internal` if it said nothing of use.
    pub(crate) fn status(&self) -> Result<Message, WireError> {
        let question = Message::Status(Empty {});
        let asked = question.kind();
        match self.control.ask(question).map_err(internal)?.envelope.msg {
            status @ Message::StatusReply(_) => Ok(status),
            other => Err(internal(unexpected(asked, &other))),
        }
    }

    /// Begins a call; `None` once brokerd is stopping.
    pub(crate) fn begin_call(&self) -> Option<InProgress<'_>> {
        let mut running = lock(&self.running);
        if running.stopping {
            return None;
        }
        running.calls += 1;
        Some(InProgress(self))
    }

    /// Takes no new calls and gives up the ones in progress.
    pub(crate) fn stop_calls(&self) {
        lock(&self.running).stopping = true;
        self.control.stop_calls();
        self.questions.wake();
    }

    /// Waits until no call is in progress, for `most` at the longest.
    pub(crate) fn wait_idle(&self, most: Duration) {
        let running = lock(&self.running);
        let busy = |running: &mut Running| running.calls > 0;
        // How it ended does not matter: what is still in progress is closed as unknown by the next start.
        let _ = self.idle.wait_timeout_while(running, most, busy);
    }

    /// Records the denials that were counted in the minutes that have ended.
    pub(crate) fn record_due_denials(&self) {
        let due = self.denials().due(self.elapsed());
        self.record_denials(due);
    }

    /// Records all denials that were counted.
    pub(crate) fn flush_denials(&self) {
        let all = self.denials().flush();
        self.record_denials(all);
    }

    fn record_denials(&self, counted: Vec<Counted>) {
        for Counted {
            session,
            tool,
            reason,
            count,
            first,
            last,
        } in counted
        {
            let lost = format!("{count} denials ({reason}) of {tool} in session {session}");
            let recorded = self.control.record(RecordEntry::Denials {
                session,
                tool,
                reason,
                count,
                first,
                last,
            });
            if let Err(error) = recorded {
                report(format_args!("{lost} are not recorded: {error}"));
            }
        }
    }

    fn record_session(
        &self,
        session: &SessionId,
        event: SessionEvent,
    ) -> Result<u64, ControlError> {
        self.control.record(RecordEntry::Session {
            session: session.clone(),
            event,
            by: PEER.to_owned(),
        })
    }
}

/// The answer to a request that names a session in which no calls may be made.
pub(crate) fn unknown_session(session: &SessionId) -> WireError {
    WireError {
        code: ErrorCode::UnknownSession,
        detail: format!("session {session} is not open: open it with session_open first"),
    }
}

/// The answer to a call that comes too late.
pub(crate) fn stopping() -> WireError {
    internal("boxmaker is stopping: nothing ran")
}

/// The answer to a request that failed here or at the supervisor.
pub(crate) fn internal(error: impl std::fmt::Display) -> WireError {
    WireError {
        code: ErrorCode::Internal,
        detail: error.to_string(),
    }
}

/// Takes a lock. A thread that panicked holding one has ended its connection; what the lock guards is changed by
/// single assignments that do not panic, so it is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
