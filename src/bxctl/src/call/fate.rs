//! What became of a call that has no answer: as much as the log says for certain, and no more.

use std::fmt;
use std::path::Path;

use proto::audit::{DecisionRecord, OutcomeStatus};
use proto::client::SessionOpened;
use proto::{ApprovalEvent, ApprovalId, Entry};

use crate::audit::recent;

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its tool was not started, and will not be.
    NothingRan {
        /// The number of the decision that refused it, if there is one.
        denied: Option<u64>,
        /// The question that it waited for, and whether the owner said something too late.
        question: Option<(ApprovalId, bool)>,
    },
    /// A decision let its tool start.
    Ran {
        /// The number of the decision.
        seq: u64,
        /// How it ended, if that is recorded.
        end: Option<OutcomeStatus>,
    },
    /// The log cannot be read, or does not say yet.
    NotKnown,
}

/// Looks for the call of `tool` that was made after `opened`. What the log does not hold counts as not done only if it
/// is `settled`: nothing of the call can be decided any more.
pub(super) fn of(
    audit: &Path,
    opened: &SessionOpened,
    tool: &str,
    question: Option<&ApprovalId>,
    settled: bool,
) -> Fate {
    let Some(entries) = recent::since_opened(audit, &opened.session) else {
        return Fate::NotKnown;
    };
    let calls = recent::decisions(&entries, tool, opened.last_call);
    let answered = |id: &ApprovalId| {
        entries.iter().any(|(_, entry)| {
            matches!(entry, Entry::Approval(approval)
                if approval.approval == *id && matches!(approval.event, ApprovalEvent::Answered { .. }))
        })
    };
    let withdrawn = |id: &ApprovalId| {
        entries.iter().any(|(_, entry)| {
            matches!(entry, Entry::Approval(approval)
                if approval.approval == *id
                    && matches!(approval.event, ApprovalEvent::Withdrawn {} | ApprovalEvent::Expired {}))
        })
    };
    let nothing = |denied| Fate::NothingRan {
        denied,
        question: question.map(|id| (id.clone(), answered(id))),
    };
    match calls.as_slice() {
        [] if settled || question.is_some_and(withdrawn) => nothing(None),
        [(seq, decision)] => match decision.decision {
            DecisionRecord::Denied { .. } => nothing(Some(*seq)),
            DecisionRecord::Allowed { .. } | DecisionRecord::Approved { .. } => {
                let end = entries.iter().find_map(|(_, entry)| match entry {
                    Entry::Outcome(outcome) if outcome.of == *seq => Some(outcome.status),
                    _ => None,
                });
                Fate::Ran { seq: *seq, end }
            }
        },
        // Of several calls of one tool in one session nobody can say which it was.
        _ => Fate::NotKnown,
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingRan { denied, question } => {
                match question {
                    Some((id, false)) => write!(to, "question {id} is withdrawn and ")?,
                    Some((id, true)) => {
                        write!(to, "the answer to question {id} came too late and ")?
                    }
                    None => {}
                }
                match denied {
                    Some(seq) => write!(to, "nothing ran: record {seq} refuses the call"),
                    None => write!(to, "nothing ran: no record lets the call run"),
                }
            }
            Self::Ran { seq, end } => match end {
                Some(OutcomeStatus::Result) => write!(
                    to,
                    "the call ran (record {seq}) and had a result, which did not arrive"
                ),
                Some(OutcomeStatus::Failed) => write!(
                    to,
                    "the call ran (record {seq}) and failed or was stopped: it may have done a part"
                ),
                Some(OutcomeStatus::Unknown) => write!(
                    to,
                    "the call ran (record {seq}) and nobody saw its end: it may have done all, a part or nothing"
                ),
                None => write!(
                    to,
                    "the call ran (record {seq}) and is being stopped: it may have done a part"
                ),
            },
            Self::NotKnown => write!(to, "whether the call ran is not known here"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proto::{CallId, Line};

    use super::*;
    use crate::audit::sample;

    fn opened(session: &str, last_call: u64) -> SessionOpened {
        SessionOpened {
            session: session.parse().unwrap(),
            last_call: CallId(last_call),
        }
    }

    fn stored(more: &[&str]) -> tempfile::TempDir {
        let audit = tempfile::tempdir().unwrap();
        let mut text = String::new();
        let mut lines = sample::lines();
        let last = lines.last().unwrap().clone();
        lines.extend((last.seq + 1..).zip(more).map(|(seq, entry)| Line {
            seq,
            entry: serde_json::from_str(entry).unwrap(),
            ..last.clone()
        }));
        for line in lines {
            text.push_str(&serde_json::to_string(&line).unwrap());
            text.push('\n');
        }
        fs::write(audit.path().join("2026-09-17.jsonl"), text).unwrap();
        audit
    }

    #[test]
    fn a_call_in_the_log_is_told_with_its_record() {
        let audit = stored(&[]);
        let fate = |session: &str, after, tool| {
            of(audit.path(), &opened(session, after), tool, None, false)
        };
        assert_eq!(
            fate("s-1", 1, "fs_read"),
            Fate::NothingRan {
                denied: Some(5),
                question: None
            }
        );
        let failed = Some(OutcomeStatus::Failed);
        assert_eq!(
            fate("s-2", 0, "fs_write"),
            Fate::Ran {
                seq: 7,
                end: failed
            }
        );
        assert_eq!(fate("s-2", 1, "fs_list"), Fate::Ran { seq: 8, end: None });
        assert_eq!(fate("s-1", 0, "fs_read"), Fate::NotKnown, "two calls match");
    }

    #[test]
    fn a_call_that_is_not_in_the_log_did_not_run_once_nothing_can_follow() {
        let audit = stored(&[]);
        let fate = |session: &str, settled| {
            of(audit.path(), &opened(session, 9), "fs_read", None, settled)
        };
        assert_eq!(fate("s-2", false), Fate::NotKnown);
        let nothing = Fate::NothingRan {
            denied: None,
            question: None,
        };
        assert_eq!(fate("s-2", true), nothing);
        // Its opening is out of reach, so its end may be too.
        assert_eq!(fate("s-3", true), Fate::NotKnown);
    }

    #[test]
    fn a_question_that_is_over_settles_its_call() {
        let event = |event: &str| {
            format!(
                r#"{{"type":"approval","approval":"a4","session":"s-2","call":3,"event":{event}}}"#
            )
        };
        let id: ApprovalId = "a4".parse().unwrap();
        let fate = |events: &[&str]| {
            let audit = stored(events);
            of(audit.path(), &opened("s-2", 2), "mark", Some(&id), false)
        };
        assert_eq!(fate(&[]), Fate::NotKnown);
        let withdrawn = fate(&[&event(r#"{"state":"withdrawn"}"#)]);
        assert_eq!(
            withdrawn.to_string(),
            "question a4 is withdrawn and nothing ran: no record lets the call run"
        );
    }
}
