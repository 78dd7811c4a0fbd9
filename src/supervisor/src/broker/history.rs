//! The replay of the log to a starting brokerd: which lines it gets, and in what form (protocol.md section 1).

use proto::broker::{History, HistoryEntry};
use proto::{Entry, Labels, Line};

/// The most entries of one frame; each is below 5 KiB, so a frame stays below its bound.
const BATCH: usize = 200;

/// What brokerd learns of `line`, if anything.
pub(crate) fn entry(line: Line) -> Option<HistoryEntry> {
    let (seq, time) = (line.seq, line.time);
    match line.entry {
        Entry::Session { session, event, .. } => Some(HistoryEntry::Session {
            time,
            session,
            event,
        }),
        Entry::Decision(decision) => Some(HistoryEntry::Decision {
            seq,
            time,
            session: decision.session,
            call: decision.call,
            tool: decision.tool,
            session_taint: decision.session_taint,
            decision: decision.decision,
            labels: decision.labels,
        }),
        Entry::Denials { session, count, .. } => Some(HistoryEntry::Denials {
            time,
            session,
            count,
        }),
        Entry::Outcome(outcome) => Some(HistoryEntry::Outcome {
            of: outcome.of,
            time,
            session: outcome.session,
            labels: Labels {
                class: outcome.class,
                untrusted: outcome.untrusted,
            },
        }),
        Entry::Approval(asked) => Some(HistoryEntry::Approval {
            time,
            approval: asked.approval,
            session: asked.session,
            call: asked.call,
            event: asked.event,
        }),
        Entry::Role { .. } | Entry::Policy { .. } | Entry::Recovery { .. } => None,
    }
}

/// Hands the history to `send`, frame by frame, with whether it is the last; there is always a last one.
///
/// # Errors
/// Whatever reading a line or `send` answers.
pub(crate) fn replay<E>(
    lines: impl Iterator<Item = Result<Line, E>>,
    mut look: impl FnMut(&Line),
    mut send: impl FnMut(History, bool) -> Result<(), E>,
) -> Result<(), E> {
    let mut entries = Vec::new();
    for line in lines {
        let line = line?;
        look(&line);
        if let Some(entry) = entry(line) {
            if entries.len() == BATCH {
                let entries = std::mem::take(&mut entries);
                send(History { entries }, false)?;
            }
            entries.push(entry);
        }
    }
    send(History { entries }, true)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::convert::Infallible;

    use proto::audit::{Decision, Outcome, OutcomeStatus, RoleEvent, SessionEvent};
    use proto::{
        Arguments, CallId, DataClass, DecisionRecord, GrantId, Hash32, SessionId, Timestamp,
    };

    use super::*;

    const LABELS: Labels = Labels {
        class: DataClass::Secret,
        untrusted: true,
    };

    fn line(seq: u64, entry: Entry) -> Line {
        Line {
            seq,
            time: Timestamp::from_millis(seq),
            prev: Hash32::ZERO,
            entry,
        }
    }

    pub(crate) fn decision_line(seq: u64, session: &str) -> Line {
        let decision = Decision {
            session: SessionId::new(session).unwrap(),
            call: CallId(1),
            tool: "fs_read".to_owned(),
            arguments: Arguments::Text("{}".to_owned()),
            session_taint: DataClass::Private,
            decision: DecisionRecord::Allowed {
                grant: GrantId::new("notes").unwrap(),
            },
            labels: Some(LABELS),
            detail: String::new(),
            generation: 1,
            confinement: None,
        };
        line(seq, Entry::Decision(Box::new(decision)))
    }

    pub(crate) fn outcome_line(seq: u64, of: u64, session: &str) -> Line {
        let outcome = Outcome {
            of,
            session: SessionId::new(session).unwrap(),
            status: OutcomeStatus::Result,
            class: LABELS.class,
            untrusted: LABELS.untrusted,
            truncated: false,
            bytes: 0,
            cause: None,
            exit: None,
            usage: None,
        };
        line(seq, Entry::Outcome(outcome))
    }

    fn frames(lines: Vec<Line>) -> Vec<(usize, bool)> {
        let mut frames = Vec::new();
        let lines = lines.into_iter().map(Ok::<_, Infallible>);
        let send = |history: History, last| {
            frames.push((history.entries.len(), last));
            Ok(())
        };
        let Ok(()) = replay(lines, |_| {}, send);
        frames
    }

    #[test]
    fn an_empty_log_is_one_last_frame() {
        assert_eq!(frames(Vec::new()), [(0, true)]);
    }

    #[test]
    fn frames_are_bounded_and_only_the_last_says_so() {
        let lines = |count| (0..count).map(|seq| decision_line(seq, "s")).collect();
        assert_eq!(frames(lines(200)), [(200, true)]);
        assert_eq!(frames(lines(201)), [(200, false), (1, true)]);
        assert_eq!(frames(lines(450)), [(200, false), (200, false), (50, true)]);
    }

    #[test]
    fn sessions_decisions_and_outcomes_are_replayed_and_what_the_supervisor_did_is_not() {
        let session = Entry::Session {
            session: SessionId::new("s").unwrap(),
            event: SessionEvent::Opened,
            by: "bxctl".to_owned(),
        };
        assert!(matches!(
            entry(line(1, session)),
            Some(HistoryEntry::Session { .. })
        ));
        let decision = entry(decision_line(2, "s"));
        assert!(matches!(
            decision,
            Some(HistoryEntry::Decision {
                seq: 2,
                labels: Some(LABELS),
                ..
            })
        ));
        let outcome = entry(outcome_line(3, 2, "s"));
        assert!(matches!(
            outcome,
            Some(HistoryEntry::Outcome {
                of: 2,
                labels: LABELS,
                ..
            })
        ));
        let asked = proto::Approval {
            approval: proto::ApprovalId::new("a1").unwrap(),
            session: SessionId::new("s").unwrap(),
            call: CallId(1),
            event: proto::ApprovalEvent::Withdrawn {},
        };
        assert!(matches!(
            entry(line(3, Entry::Approval(asked))),
            Some(HistoryEntry::Approval { .. })
        ));
        let role = Entry::Role {
            role: "brokerd".to_owned(),
            pid: None,
            event: Box::new(RoleEvent::GivenUp {}),
        };
        assert_eq!(entry(line(4, role)), None);
    }

    #[test]
    fn the_largest_frame_of_history_fits() {
        let mut long = decision_line(u64::MAX, &"s".repeat(64));
        if let Entry::Decision(decision) = &mut long.entry {
            // The worst that a record may hold: a control character takes six bytes of JSON.
            decision.tool = "\u{1}".repeat(64);
            decision.decision = DecisionRecord::Approved {
                grant: GrantId::new("g".repeat(64)).unwrap(),
                approver: "\u{1}".repeat(super::super::commit::MOST_APPROVER),
                post: Some("\u{1}".repeat(super::super::commit::MOST_APPROVER)),
            };
        }
        let entries = vec![entry(long).unwrap(); BATCH];
        let message = proto::Message::History(History { entries });
        assert!(proto::Envelope::new(0, message).encode().is_ok());
    }
}
