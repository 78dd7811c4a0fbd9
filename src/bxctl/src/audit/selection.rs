//! Which records of the log are shown: the filters of `bxctl audit show`, and each call joined with its end. Pure:
//! lines go in, in the order of the log.

use std::collections::BTreeMap;

use proto::audit::{Decision, OutcomeStatus};
use proto::{ApprovalEvent, Entry, Line, SessionId, Timestamp};

use crate::cli::{OutcomeWord, ShowWords};
use crate::moment::{self, TimeError};

/// What a record must be to be shown; everything that is absent holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    session: Option<SessionId>,
    tool: Option<String>,
    outcome: Option<OutcomeWord>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    limit: Option<u64>,
}

impl Filter {
    /// The filter that the words ask for.
    ///
    /// # Errors
    /// A time is none.
    pub fn new(words: &ShowWords, now: Timestamp) -> Result<Self, TimeError> {
        let time = |word: &Option<String>| {
            word.as_ref()
                .map(|text| moment::parse(text, now))
                .transpose()
        };
        Ok(Self {
            session: words.session.clone(),
            tool: words.tool.clone(),
            outcome: words.outcome,
            since: time(&words.since)?,
            until: time(&words.until)?,
            limit: words.limit,
        })
    }

    fn in_time(&self, time: Timestamp) -> bool {
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }

    fn of(&self, session: Option<&SessionId>, tool: Option<&str>) -> bool {
        self.session
            .as_ref()
            .is_none_or(|wanted| session == Some(wanted))
            && self
                .tool
                .as_deref()
                .is_none_or(|wanted| tool == Some(wanted))
    }
}

/// One record, with its end if it is a call that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The record.
    pub line: Line,
    /// The `outcome` of the call.
    pub end: Option<Line>,
}

/// The records that passed a filter so far. With a limit it holds no more than that many.
#[derive(Debug)]
pub struct Selection {
    filter: Filter,
    rows: BTreeMap<u64, Row>,
    /// Calls of which only the end tells whether they are wanted.
    open: BTreeMap<u64, Line>,
}

impl Selection {
    /// Nothing yet.
    #[must_use]
    pub const fn new(filter: Filter) -> Self {
        Self {
            filter,
            rows: BTreeMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// Looks at the next line of the log.
    pub fn take(&mut self, line: Line) {
        let seq = line.seq;
        let wanted = match &line.entry {
            Entry::Outcome(outcome) => {
                let (of, status) = (outcome.of, outcome.status);
                if let Some(row) = self.rows.get_mut(&of) {
                    row.end = Some(line);
                } else if let Some(decision) = self.open.remove(&of)
                    && self.filter.outcome == Some(word(status))
                {
                    self.rows.insert(
                        of,
                        Row {
                            line: decision,
                            end: Some(line),
                        },
                    );
                    self.cut();
                }
                return;
            }
            _ if !self.filter.in_time(line.time) => return,
            Entry::Decision(decision) => {
                if !self
                    .filter
                    .of(Some(&decision.session), Some(&decision.tool))
                {
                    return;
                }
                match self.decided(decision) {
                    Some(wanted) => wanted,
                    None => {
                        self.open.insert(seq, line);
                        return;
                    }
                }
            }
            Entry::Denials { session, tool, .. } => {
                self.filter.of(Some(session), Some(tool))
                    && matches!(self.filter.outcome, None | Some(OutcomeWord::Denied))
            }
            Entry::Approval(approval) => {
                let tool = match &approval.event {
                    ApprovalEvent::Asked { tool, .. } => Some(tool.as_str()),
                    _ => None,
                };
                self.filter.of(Some(&approval.session), tool) && self.filter.outcome.is_none()
            }
            Entry::Session { session, .. } => {
                self.filter.of(Some(session), None) && self.filter.outcome.is_none()
            }
            Entry::Role { .. } | Entry::Policy { .. } | Entry::Recovery { .. } => {
                self.filter.of(None, None) && self.filter.outcome.is_none()
            }
        };
        if wanted {
            self.rows.insert(seq, Row { line, end: None });
            self.cut();
        }
    }

    /// Whether the decision alone tells that the call is wanted; `None` if its end must tell.
    fn decided(&self, decision: &Decision) -> Option<bool> {
        let allowed = decision.decision.granted().is_some();
        match self.filter.outcome {
            None => Some(true),
            Some(OutcomeWord::Allowed) => Some(allowed),
            Some(OutcomeWord::Denied) => Some(!allowed),
            Some(_) if !allowed => Some(false),
            Some(_) => None,
        }
    }

    fn cut(&mut self) {
        while self
            .filter
            .limit
            .is_some_and(|limit| self.rows.len() as u64 > limit)
        {
            self.rows.pop_first();
        }
    }

    /// What passed, the oldest first.
    #[must_use]
    pub fn finish(self) -> Vec<Row> {
        self.rows.into_values().collect()
    }
}

const fn word(status: OutcomeStatus) -> OutcomeWord {
    match status {
        OutcomeStatus::Result => OutcomeWord::Result,
        OutcomeStatus::Failed => OutcomeWord::Failed,
        OutcomeStatus::Unknown => OutcomeWord::Unknown,
    }
}

#[cfg(test)]
mod tests;
