//! What brokerd knows of each session: whether it is open, what it is tainted with, what was decided in it.
//!
//! Pure: times are arguments and nothing is read or written. The same methods serve the history that the supervisor
//! replays and what happens from then on, so a restart arrives at the state that was there before (protocol.md
//! section 1).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proto::audit::SessionEvent;
use proto::broker::HistoryEntry;
use proto::client::SessionSummary;
use proto::{
    Approval, ApprovalEvent, ApprovalId, CallId, DataClass, DecisionRecord, Labels, SessionId,
    Timestamp,
};

use crate::questions::number;

/// The most sessions that one `session_list_reply` names (protocol.md section 2).
const LISTED: usize = 1000;

/// What an allowed decision whose labels are not known is taken to have delivered: the worst.
const WORST: Labels = Labels {
    class: DataClass::Secret,
    untrusted: true,
};

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    /// Whether calls may be made in it.
    pub(crate) open: bool,
    /// The highest of `private` and every class that was delivered in it.
    pub(crate) taint: DataClass,
    /// Whether an untrusted result was delivered in it.
    pub(crate) untrusted: bool,
    /// The highest call number that was used.
    pub(crate) last_call: CallId,
    calls: u64,
    /// How many calls were refused in it.
    pub(crate) denied: u64,
    last: Timestamp,
}

/// Every session, and the decisions whose outcome nobody has seen yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sessions {
    sessions: BTreeMap<SessionId, Session>,
    running: BTreeMap<u64, (SessionId, Labels)>,
    latest: Option<Timestamp>,
    asked: BTreeMap<ApprovalId, (SessionId, CallId)>,
    last_question: u64,
}

impl Sessions {
    /// The time that decisions are made at: the later of the wall clock and the last time seen, so that it never
    /// goes back (architecture.md section 6).
    pub(crate) fn now(&mut self, wall: Timestamp) -> Timestamp {
        let now = self.latest.map_or(wall, |latest| latest.max(wall));
        self.latest = Some(now);
        now
    }

    /// The session, if the log or this run knows it.
    #[must_use]
    pub(crate) fn get(&self, session: &SessionId) -> Option<&Session> {
        self.sessions.get(session)
    }

    /// The session, if calls may be made in it.
    #[must_use]
    pub(crate) fn open(&self, session: &SessionId) -> Option<&Session> {
        self.get(session).filter(|session| session.open)
    }

    /// The number of the next call of an open session; it counts as used from now on. `None` if it is not open.
    pub(crate) fn allot(&mut self, session: &SessionId) -> Option<CallId> {
        let session = self.sessions.get_mut(session).filter(|known| known.open)?;
        session.last_call = CallId(session.last_call.0.checked_add(1)?);
        Some(session.last_call)
    }

    /// A name that no session has, made of the time `now`.
    ///
    /// # Errors
    /// Never for a [`Timestamp`], whose digits are what a session id may hold.
    pub(crate) fn fresh(&self, now: Timestamp) -> Result<SessionId, proto::InvalidId> {
        let digits: String = now
            .to_string()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let (day, rest) = digits.split_at(8.min(digits.len()));
        let (time, millis) = rest.split_at(6.min(rest.len()));
        let mut id = SessionId::new(format!("{day}-{time}-{millis}"))?;
        let mut count = 1;
        while self.sessions.contains_key(&id) {
            count += 1;
            id = SessionId::new(format!("{day}-{time}-{millis}-{count}"))?;
        }
        Ok(id)
    }

    /// What opening this session is: its first opening, or another one.
    #[must_use]
    pub(crate) fn opening(&self, session: &SessionId) -> SessionEvent {
        if self.sessions.contains_key(session) {
            SessionEvent::Resumed
        } else {
            SessionEvent::Opened
        }
    }

    /// A session was opened, resumed or ended.
    pub(crate) fn session(&mut self, session: &SessionId, event: SessionEvent, time: Timestamp) {
        self.touch(session, time).open = event != SessionEvent::Ended;
    }

    /// A call was refused.
    pub(crate) fn denied(&mut self, session: &SessionId, call: CallId, time: Timestamp) {
        let known = self.touch(session, time);
        known.calls += 1;
        known.denied += 1;
        known.last_call = known.last_call.max(call);
    }

    /// Calls were refused of which only the number is known.
    pub(crate) fn denials(&mut self, session: &SessionId, count: u64, time: Timestamp) {
        let known = self.touch(session, time);
        known.calls = known.calls.saturating_add(count);
        known.denied = known.denied.saturating_add(count);
    }

    /// A call was allowed by the decision `seq`; its result will carry `labels`.
    pub(crate) fn allowed(
        &mut self,
        session: &SessionId,
        call: CallId,
        seq: u64,
        labels: Labels,
        time: Timestamp,
    ) {
        let known = self.touch(session, time);
        known.calls += 1;
        known.last_call = known.last_call.max(call);
        self.running.insert(seq, (session.clone(), labels));
    }

    /// The result of the decision `seq` is about to be delivered, or was: its session has read what carries `labels`.
    pub(crate) fn delivered(
        &mut self,
        session: &SessionId,
        seq: u64,
        labels: Labels,
        time: Timestamp,
    ) {
        self.running.remove(&seq);
        let known = self.touch(session, time);
        known.taint = known.taint.max(labels.class);
        known.untrusted |= labels.untrusted;
    }

    /// Takes one entry of the log.
    pub(crate) fn replay(&mut self, entry: &HistoryEntry) {
        match entry {
            HistoryEntry::Session {
                time,
                session,
                event,
            } => self.session(session, *event, *time),
            HistoryEntry::Decision {
                seq,
                time,
                session,
                call,
                decision,
                labels,
                ..
            } => match decision {
                DecisionRecord::Denied { .. } => self.denied(session, *call, *time),
                DecisionRecord::Allowed { .. } | DecisionRecord::Approved { .. } => {
                    self.allowed(session, *call, *seq, labels.unwrap_or(WORST), *time);
                }
            },
            HistoryEntry::Denials {
                time,
                session,
                count,
            } => self.denials(session, *count, *time),
            HistoryEntry::Outcome {
                of,
                time,
                session,
                labels,
            } => self.delivered(session, *of, *labels, *time),
            HistoryEntry::Approval {
                time,
                approval,
                session,
                call,
                event,
            } => {
                let known = self.touch(session, *time);
                known.last_call = known.last_call.max(*call);
                self.last_question = self.last_question.max(number(approval));
                match event {
                    ApprovalEvent::Asked { .. } => {
                        let subject = (session.clone(), *call);
                        self.asked.insert(approval.clone(), subject);
                    }
                    ApprovalEvent::Answered { .. }
                    | ApprovalEvent::Expired {}
                    | ApprovalEvent::Withdrawn {} => drop(self.asked.remove(approval)),
                }
            }
        }
    }

    /// After the last entry of the log: every allowed decision without an outcome counts as delivered with the labels
    /// of its record. Gives the numbers of those decisions, which are to be closed as `unknown`.
    pub(crate) fn close_unknown(&mut self) -> Vec<u64> {
        let running = std::mem::take(&mut self.running);
        for (session, labels) in running.values() {
            if let Some(known) = self.sessions.get_mut(session) {
                known.taint = known.taint.max(labels.class);
                known.untrusted |= labels.untrusted;
            }
        }
        running.into_keys().collect()
    }

    /// After the last entry of the log: the questions that nobody answered and nobody waits for any more, which are to
    /// be closed as expired.
    pub(crate) fn close_questions(&mut self) -> Vec<Approval> {
        let asked = std::mem::take(&mut self.asked).into_iter();
        asked
            .map(|(approval, (session, call))| Approval {
                approval,
                session,
                call,
                event: ApprovalEvent::Expired {},
            })
            .collect()
    }

    /// The highest number of a question that the log knows.
    #[must_use]
    pub(crate) const fn last_question(&self) -> u64 {
        self.last_question
    }

    /// Every session for `session_list`, the latest first.
    #[must_use]
    pub(crate) fn list(&self) -> Vec<SessionSummary> {
        let mut list: Vec<_> = self.sessions.iter().collect();
        list.sort_by_key(|(id, session)| (Reverse(session.last), *id));
        list.truncate(LISTED);
        list.into_iter()
            .map(|(id, session)| SessionSummary {
                session: id.clone(),
                open: session.open,
                taint: session.taint,
                untrusted: session.untrusted,
                calls: session.calls,
                denied: session.denied,
                last: session.last,
            })
            .collect()
    }

    fn touch(&mut self, session: &SessionId, time: Timestamp) -> &mut Session {
        self.now(time);
        // An entry without an opening before it cannot come out of a verified log; such a session stays closed.
        let known = self
            .sessions
            .entry(session.clone())
            .or_insert_with(|| Session {
                open: false,
                taint: DataClass::Private,
                untrusted: false,
                last_call: CallId(0),
                calls: 0,
                denied: 0,
                last: time,
            });
        known.last = known.last.max(time);
        known
    }
}

#[cfg(test)]
mod tests;
