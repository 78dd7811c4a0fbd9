//! The messages between brokerd and the supervisor; their fixtures stand with the others in `message/`.

use proto::audit::{Arguments, DecisionRecord, ExitCause, OutcomeStatus, SessionEvent};
use proto::broker::{
    Abort, Commit, Committed, Exited, Finish, History, HistoryEntry, PolicyGeneration, Prepare,
    Prepared, Record, RecordEntry, Recorded, RefuseReason, Refused,
};
use proto::{Approval, DataClass, DenyReason, Envelope, Labels, Message};

use crate::samples::{
    ARGUMENTS, CALL, EXITED, PRIVATE, TICKET, USAGE, approval, approvals, full, grant, later,
    partial, session, time, tool,
};

/// The part of the table that is said between brokerd and the supervisor.
pub(crate) fn table() -> Vec<(&'static str, Envelope)> {
    let record = |entry| Envelope::new(20, Message::Record(Record { entry }));
    let refused = |reason, detail: &str, ticket| {
        let detail = detail.into();
        Envelope::new(
            30,
            Message::Refused(Refused {
                reason,
                detail,
                ticket,
            }),
        )
    };
    let commit = |decision| {
        let commit = Commit {
            ticket: TICKET,
            decision,
            session_taint: DataClass::Private,
            labels: PRIVATE,
            detail: "grant notes.read covers path".into(),
        };
        Envelope::new(31, Message::Commit(commit))
    };
    vec![
        (
            "policy",
            Envelope::new(4, Message::Policy(PolicyGeneration { generation: 1 })),
        ),
        (
            "history",
            Envelope::partial(5, Message::History(History { entries: history() })),
        ),
        (
            "history.last",
            Envelope::new(
                5,
                Message::History(History {
                    entries: Vec::new(),
                }),
            ),
        ),
        (
            "record.decision",
            record(RecordEntry::Decision {
                session: session(),
                call: CALL,
                tool: "rm -rf".into(),
                arguments: Arguments::Text("{}".into()),
                session_taint: DataClass::Private,
                decision: DecisionRecord::Denied {
                    reason: DenyReason::UnknownTool,
                    grant: None,
                },
                detail: "no tool file names it".into(),
                generation: 1,
                ticket: None,
            }),
        ),
        (
            "record.session",
            record(RecordEntry::Session {
                session: session(),
                event: SessionEvent::Opened,
                by: "bxctl".into(),
            }),
        ),
        (
            "record.denials",
            record(RecordEntry::Denials {
                session: session(),
                tool: "fs_read".into(),
                reason: DenyReason::NoGrant,
                count: 992,
                first: time(),
                last: later(),
            }),
        ),
        (
            "record.approval.asked",
            record(RecordEntry::Approval(of_approval(0))),
        ),
        (
            "record.approval.answered",
            record(RecordEntry::Approval(of_approval(1))),
        ),
        (
            "record.approval.expired",
            record(RecordEntry::Approval(of_approval(3))),
        ),
        (
            "record.approval.withdrawn",
            record(RecordEntry::Approval(of_approval(4))),
        ),
        ("record.unknown", record(RecordEntry::Unknown { of: 17 })),
        (
            "recorded",
            Envelope::new(20, Message::Recorded(Recorded { seq: 17 })),
        ),
        (
            "prepare",
            Envelope::new(
                30,
                Message::Prepare(Prepare {
                    session: session(),
                    call: CALL,
                    tool: tool(),
                    grant: grant(),
                    generation: 1,
                    arguments: ARGUMENTS.into(),
                }),
            ),
        ),
        (
            "prepared",
            Envelope::new(
                30,
                Message::Prepared(Prepared {
                    ticket: TICKET,
                    confinement: full(),
                }),
            ),
        ),
        (
            "prepared.partial",
            Envelope::new(
                30,
                Message::Prepared(Prepared {
                    ticket: TICKET,
                    confinement: partial(),
                }),
            ),
        ),
        (
            "refused.stale_generation",
            refused(
                RefuseReason::StaleGeneration,
                "generation 1, this is 2",
                None,
            ),
        ),
        (
            "refused.denied",
            refused(
                RefuseReason::Denied(DenyReason::ConfinementTooWeak),
                "partial, full is required",
                Some(TICKET),
            ),
        ),
        (
            "commit.allowed",
            commit(DecisionRecord::Allowed { grant: grant() }),
        ),
        ("commit.approved", commit(approved())),
        (
            "committed",
            Envelope::new(
                31,
                Message::Committed(Committed {
                    ticket: TICKET,
                    seq: 18,
                }),
            ),
        ),
        (
            "abort",
            Envelope::new(32, Message::Abort(Abort { ticket: TICKET })),
        ),
        (
            "exited",
            Envelope::new(
                33,
                Message::Exited(Exited {
                    ticket: TICKET,
                    exit: Some(EXITED),
                    cause: ExitCause::Exited,
                    usage: USAGE,
                }),
            ),
        ),
        (
            "finish",
            Envelope::new(
                34,
                Message::Finish(Finish {
                    ticket: TICKET,
                    status: OutcomeStatus::Result,
                    class: DataClass::Private,
                    untrusted: false,
                    truncated: false,
                    bytes: 1204,
                }),
            ),
        ),
    ]
}

fn of_approval(index: usize) -> Approval {
    approvals().remove(index).1
}

pub(crate) fn approved() -> DecisionRecord {
    DecisionRecord::Approved {
        grant: grant(),
        approver: "owner".into(),
        post: Some("post-9".into()),
    }
}

pub(crate) fn history() -> Vec<HistoryEntry> {
    vec![
        HistoryEntry::Session {
            time: time(),
            session: session(),
            event: SessionEvent::Opened,
        },
        HistoryEntry::Decision {
            seq: 18,
            time: time(),
            session: session(),
            call: CALL,
            tool: "fs_read".into(),
            session_taint: DataClass::Private,
            decision: DecisionRecord::Allowed { grant: grant() },
            labels: Some(PRIVATE),
        },
        HistoryEntry::Denials {
            time: later(),
            session: session(),
            count: 992,
        },
        HistoryEntry::Outcome {
            of: 18,
            time: later(),
            session: session(),
            labels: Labels {
                class: DataClass::Secret,
                untrusted: true,
            },
        },
        HistoryEntry::Approval {
            time: later(),
            approval: approval(),
            session: session(),
            call: CALL,
            event: of_approval(0).event,
        },
    ]
}
