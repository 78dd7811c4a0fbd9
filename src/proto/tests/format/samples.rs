//! Small values that the tables share.

use std::str::FromStr;

use proto::audit::{ExitStatus, Usage};
use proto::{
    Answer, Approval, ApprovalEvent, ApprovalId, Asserted, CallId, Confinement, DataClass, Gap,
    GrantId, Hash32, Labels, Layer, Level, SessionId, Ticket, Timestamp, ToolName,
};

pub(crate) const TIME: &str = "2026-09-17T08:05:00.000Z";
pub(crate) const CALL: CallId = CallId(3);
pub(crate) const TICKET: Ticket = Ticket(41);
pub(crate) const ARGUMENTS: &str = r#"{"path":"/srv/notes/Zürich \"plan\".md"}"#;
pub(crate) const EXITED: ExitStatus = ExitStatus::Code(0);
pub(crate) const USAGE: Usage = Usage {
    wall_ms: 24,
    cpu_ms: Some(11),
    max_rss: Some(2148),
};
pub(crate) const PRIVATE: Labels = Labels {
    class: DataClass::Private,
    untrusted: false,
};

pub(crate) fn approval() -> ApprovalId {
    ApprovalId::new("a1").unwrap()
}

/// What can happen to a question, by the end of a fixture's name.
pub(crate) fn approvals() -> Vec<(&'static str, Approval)> {
    let answered = |answer, post: Option<&str>| ApprovalEvent::Answered {
        answer,
        by: "bxctl".into(),
        post: post.map(str::to_owned),
    };
    let asked = ApprovalEvent::Asked {
        tool: tool(),
        grant: grant(),
        arguments: hash(),
        expires: later(),
    };
    let of = |event| Approval {
        approval: approval(),
        session: session(),
        call: CALL,
        event,
    };
    vec![
        ("asked", of(asked)),
        ("answered.approved", of(answered(Answer::Approved, None))),
        (
            "answered.refused",
            of(answered(Answer::Refused, Some("post-9"))),
        ),
        ("expired", of(ApprovalEvent::Expired {})),
        ("withdrawn", of(ApprovalEvent::Withdrawn {})),
    ]
}

pub(crate) fn session() -> SessionId {
    SessionId::new("s-2026-1").unwrap()
}

pub(crate) fn tool() -> ToolName {
    ToolName::new("fs_read").unwrap()
}

pub(crate) fn grant() -> GrantId {
    GrantId::new("notes.read").unwrap()
}

pub(crate) fn time() -> Timestamp {
    Timestamp::from_str(TIME).unwrap()
}

pub(crate) fn later() -> Timestamp {
    Timestamp::from_millis(time().as_millis() + 59_999)
}

pub(crate) fn hash() -> Hash32 {
    Hash32::new(std::array::from_fn(|index| u8::try_from(index).unwrap()))
}

/// A sandbox in which every layer holds.
pub(crate) fn full() -> Confinement {
    Confinement {
        level: Level::Full,
        layers: Layer::ALL.to_vec(),
        asserted: vec![Asserted {
            layer: Layer::Seccomp,
            what: "x32".into(),
        }],
        gaps: Vec::new(),
        waived: Vec::new(),
        landlock_abi: 7,
        plan: hash(),
    }
}

/// A sandbox on a kernel without Landlock's TCP rules, which the owner waived.
pub(crate) fn partial() -> Confinement {
    Confinement {
        level: Level::Partial,
        layers: vec![Layer::Mount, Layer::Seccomp],
        asserted: Vec::new(),
        gaps: vec![Gap {
            layer: Layer::LandlockNet,
            reason: "kernel ABI 2 has no TCP rules".into(),
        }],
        waived: vec![Layer::LandlockNet],
        landlock_abi: 2,
        plan: hash(),
    }
}
