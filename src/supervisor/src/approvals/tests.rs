//! What brokerd may record of a question, and which call an answer lets run.

use super::*;

const PEERS: &[&str] = &["bxctl"];

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn id(text: &str) -> ApprovalId {
    ApprovalId::new(text).unwrap()
}

fn subject() -> Subject {
    Subject {
        session: SessionId::new("s").unwrap(),
        call: CallId(3),
        tool: ToolName::new("touch").unwrap(),
        grant: GrantId::new("asks").unwrap(),
        arguments: Hash32::ZERO,
    }
}

fn event(name: &str, event: ApprovalEvent) -> Approval {
    Approval {
        approval: id(name),
        session: subject().session,
        call: subject().call,
        event,
    }
}

fn asked(name: &str) -> Approval {
    let Subject {
        tool,
        grant,
        arguments,
        ..
    } = subject();
    let asked = ApprovalEvent::Asked {
        tool,
        grant,
        arguments,
        expires: at(1000),
    };
    event(name, asked)
}

fn answered(name: &str, answer: Answer) -> Approval {
    let answered = ApprovalEvent::Answered {
        answer,
        by: "bxctl".to_owned(),
        post: None,
    };
    event(name, answered)
}

fn admit(approvals: &mut Approvals, approval: &Approval, now: u64) -> Result<(), ApprovalError> {
    approvals.admit(approval, at(now), PEERS, |tool, grant| {
        (tool.as_str(), grant.as_str()) == ("touch", "asks")
    })
}

/// Has an event admitted and stored.
fn say(approvals: &mut Approvals, approval: &Approval, now: u64) -> Result<(), ApprovalError> {
    admit(approvals, approval, now)?;
    approvals.stored(approval, true, at(now));
    Ok(())
}

fn approved() -> Approvals {
    let mut approvals = Approvals::default();
    say(&mut approvals, &asked("a1"), 1).unwrap();
    say(&mut approvals, &answered("a1", Answer::Approved), 2).unwrap();
    approvals
}

fn used(approvals: &mut Approvals, subject: &Subject) -> bool {
    approvals.take(subject, "bxctl", at(3)).is_ok()
}

#[test]
fn an_approval_lets_its_own_call_run_once() {
    let mut approvals = approved();
    assert!(used(&mut approvals, &subject()));
    assert!(!used(&mut approvals, &subject()));
}

#[test]
fn an_approval_is_for_one_session_call_tool_grant_and_text() {
    let own = subject();
    for other in [
        Subject {
            session: SessionId::new("t").unwrap(),
            ..own.clone()
        },
        Subject {
            call: CallId(4),
            ..own.clone()
        },
        Subject {
            tool: ToolName::new("other").unwrap(),
            ..own.clone()
        },
        Subject {
            grant: GrantId::new("other").unwrap(),
            ..own.clone()
        },
        Subject {
            arguments: Hash32::new([1; 32]),
            ..own.clone()
        },
    ] {
        let mut approvals = approved();
        assert!(!used(&mut approvals, &other), "{other:?}");
        assert!(used(&mut approvals, &own));
    }
    let mut approvals = approved();
    assert!(approvals.take(&own, "somebody", at(3)).is_err());
    assert!(used(&mut approvals, &own));
}

#[test]
fn an_approval_that_is_not_used_at_once_is_good_for_nothing() {
    let minute = 60_000;
    assert!(approved().take(&subject(), "bxctl", at(2 + minute)).is_ok());
    let late = approved().take(&subject(), "bxctl", at(3 + minute));
    assert!(late.is_err());
    let mut approvals = approved();
    approvals.nobody_waits();
    assert!(!used(&mut approvals, &subject()));
}

#[test]
fn nothing_runs_before_the_answer_is_durable_or_after_a_no() {
    let mut approvals = Approvals::default();
    say(&mut approvals, &asked("a1"), 1).unwrap();
    assert!(!used(&mut approvals, &subject()));
    let yes = answered("a1", Answer::Approved);
    admit(&mut approvals, &yes, 2).unwrap();
    assert!(!used(&mut approvals, &subject()));
    // The same answer while the first is being stored is a second one.
    assert_eq!(
        admit(&mut approvals, &yes, 2),
        Err(ApprovalError::NotOpen(id("a1")))
    );
    approvals.stored(&yes, false, at(2));
    assert!(!used(&mut approvals, &subject()));
    say(&mut approvals, &yes, 2).unwrap();
    assert!(used(&mut approvals, &subject()));

    let mut approvals = Approvals::default();
    say(&mut approvals, &asked("a1"), 1).unwrap();
    say(&mut approvals, &answered("a1", Answer::Refused), 2).unwrap();
    assert!(!used(&mut approvals, &subject()));
    assert_eq!(
        say(&mut approvals, &yes, 2),
        Err(ApprovalError::NotOpen(id("a1")))
    );
}

#[test]
fn an_answer_is_to_a_question_that_was_recorded_and_comes_in_time() {
    let mut approvals = Approvals::default();
    let yes = answered("a1", Answer::Approved);
    let not_open = Err(ApprovalError::NotOpen(id("a1")));
    assert_eq!(say(&mut approvals, &yes, 1), not_open);
    // One whose record is not stored yet cannot have been shown.
    admit(&mut approvals, &asked("a1"), 1).unwrap();
    assert_eq!(say(&mut approvals, &yes, 1), not_open);
    approvals.stored(&asked("a1"), true, at(1));
    let other = Approval {
        call: CallId(4),
        ..yes.clone()
    };
    assert_eq!(say(&mut approvals, &other, 1), not_open);
    assert_eq!(
        say(&mut approvals, &yes, 1000),
        Err(ApprovalError::Late(id("a1")))
    );
    assert_eq!(say(&mut approvals, &yes, 999), Ok(()));
    assert_eq!(say(&mut approvals, &yes, 999), not_open);
}

#[test]
fn an_answer_comes_from_a_peer_that_exists() {
    let from = |by: &str, post: Option<&str>| {
        let answered = ApprovalEvent::Answered {
            answer: Answer::Approved,
            by: by.to_owned(),
            post: post.map(str::to_owned),
        };
        event("a1", answered)
    };
    let mut approvals = Approvals::default();
    say(&mut approvals, &asked("a1"), 1).unwrap();
    assert_eq!(
        say(&mut approvals, &from("gatewayd", None), 2),
        Err(ApprovalError::Peer("gatewayd".to_owned()))
    );
    assert_eq!(
        say(&mut approvals, &from("bxctl", Some("p")), 2),
        Err(ApprovalError::Post)
    );
    assert_eq!(say(&mut approvals, &from("bxctl", None), 2), Ok(()));
}

#[test]
fn only_a_grant_that_asks_is_asked_about_and_no_more_than_256_at_a_time() {
    let mut approvals = Approvals::default();
    let mut other = asked("a1");
    if let ApprovalEvent::Asked { grant, .. } = &mut other.event {
        *grant = GrantId::new("auto").unwrap();
    }
    let error = say(&mut approvals, &other, 1).unwrap_err();
    assert!(matches!(error, ApprovalError::NoAsk { .. }), "{error}");
    for number in 0..MOST_OPEN {
        say(&mut approvals, &asked(&format!("a{number}")), 1).unwrap();
    }
    assert_eq!(
        say(&mut approvals, &asked("a0"), 1),
        Err(ApprovalError::Asked(id("a0")))
    );
    assert_eq!(
        say(&mut approvals, &asked("more"), 1),
        Err(ApprovalError::Full)
    );
    say(&mut approvals, &event("a0", ApprovalEvent::Withdrawn {}), 1).unwrap();
    assert_eq!(say(&mut approvals, &asked("more"), 1), Ok(()));
}

#[test]
fn a_question_of_an_earlier_life_can_only_expire() {
    let mut read = Approvals::default();
    read.read(&asked("a1"));
    read.read(&asked("a2"));
    read.read(&answered("a2", Answer::Approved));
    let mut lived = Approvals::default();
    say(&mut lived, &asked("a1"), 1).unwrap();
    lived.nobody_waits();
    for mut approvals in [read, lived] {
        for late in [
            answered("a1", Answer::Approved),
            event("a1", ApprovalEvent::Withdrawn {}),
            event("a2", ApprovalEvent::Expired {}),
        ] {
            let error = say(&mut approvals, &late, 2);
            assert_eq!(error, Err(ApprovalError::NotOpen(late.approval)));
        }
        assert!(!used(&mut approvals, &subject()));
        let expired = event("a1", ApprovalEvent::Expired {});
        assert_eq!(say(&mut approvals, &expired, 2), Ok(()));
        assert_eq!(
            say(&mut approvals, &expired, 2),
            Err(ApprovalError::NotOpen(id("a1")))
        );
    }
}
