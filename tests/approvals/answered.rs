//! Questions that the owner answers.

use boxmaker_tests::binaries::skipped_without_root;
use proto::audit::OutcomeStatus;
use proto::{
    ApprovalEvent, ApprovalId, Arguments, DataClass, DecisionRecord, DenyReason, ErrorCode, Hash32,
};
use sha2::{Digest, Sha256};

use crate::owner::{
    MARK, Peer, answer, decided, events, home, marks, questions, refusal, up, words,
};

#[test]
fn an_approved_call_runs_once_with_the_bytes_that_were_shown() {
    if skipped_without_root("an_approved_call_runs_once_with_the_bytes_that_were_shown") {
        return;
    }
    let home = home("10m");
    let system = up(&home);
    let caller = Peer::new(&home);
    let id = caller.asks();
    let shown = questions(&home);
    assert_eq!(shown.len(), 1);
    assert_eq!(
        (&shown[0].approval, shown[0].arguments.as_str()),
        (&id, MARK)
    );
    assert_eq!((marks(&home).as_str(), decided(&home).len()), ("", 0));

    assert_eq!(answer(&home, &id, true), Ok(()));
    assert_eq!(caller.content(), MARK);
    assert_eq!(marks(&home), MARK);
    // One answer is for one question and one run.
    assert_eq!(answer(&home, &id, true), Err(ErrorCode::UnknownApproval));
    assert_eq!(answer(&home, &id, false), Err(ErrorCode::UnknownApproval));

    let log = events(&home);
    assert_eq!(words(&home), ["a1 asked", "a1 answeredapproved"]);
    let ApprovalEvent::Asked { arguments, .. } = &log[0].1.event else {
        panic!("{log:?}");
    };
    assert_eq!(*arguments, Hash32::new(Sha256::digest(MARK).into()));
    let decided = decided(&home);
    let [(seq, decision)] = decided.as_slice() else {
        panic!("{decided:?}");
    };
    // The answer stands in the log before the decision that it lets run.
    assert!(log[1].0 < *seq);
    assert_eq!(decision.arguments, Arguments::Text(MARK.to_owned()));
    assert_eq!(decision.call, log[0].1.call);
    assert!(
        matches!(&decision.decision, DecisionRecord::Approved { approver, .. } if approver == "bxctl")
    );
    let outcomes = home.outcomes();
    assert_eq!(outcomes.len(), 1);
    assert_eq!(
        (outcomes[0].of, outcomes[0].status),
        (*seq, OutcomeStatus::Result)
    );
    assert!(system.stop().success());
    assert_eq!(marks(&home), MARK);
    home.sound();
}

#[test]
fn a_refused_call_runs_nothing() {
    if skipped_without_root("a_refused_call_runs_nothing") {
        return;
    }
    let home = home("10m");
    let system = up(&home);
    let caller = Peer::new(&home);
    let id = caller.asks();
    assert_eq!(answer(&home, &id, false), Ok(()));
    assert_eq!(caller.denied(), DenyReason::ApprovalRefused);
    assert_eq!(marks(&home), "");
    assert_eq!(answer(&home, &id, true), Err(ErrorCode::UnknownApproval));
    assert_eq!(words(&home), ["a1 asked", "a1 answeredrefused"]);
    assert_eq!(refusal(&home), DenyReason::ApprovalRefused);
    assert!(system.stop().success());
    home.sound();
}

#[test]
fn an_answer_to_no_question_is_none_and_the_open_one_waits_for_its_own() {
    if skipped_without_root("an_answer_to_no_question_is_none") {
        return;
    }
    let home = home("10m");
    let _system = up(&home);
    let (one, other) = (Peer::new(&home), Peer::new(&home));
    let first = one.asks();
    other.call("mark", r#"{"text":"other"}"#);
    let second = other.pending();
    for wrong in ["a3", "a0", "b1", "a01"] {
        let wrong = ApprovalId::new(wrong).unwrap();
        assert_eq!(answer(&home, &wrong, true), Err(ErrorCode::UnknownApproval));
    }
    assert_eq!(questions(&home).len(), 2);
    assert_eq!(marks(&home), "");
    assert_eq!(answer(&home, &second, true), Ok(()));
    assert_eq!(other.content(), r#"{"text":"other"}"#);
    assert_eq!(marks(&home), r#"{"text":"other"}"#);
    assert_eq!(answer(&home, &first, false), Ok(()));
    assert_eq!(one.denied(), DenyReason::ApprovalRefused);
    home.sound();
}

#[test]
fn a_session_that_was_tainted_meanwhile_is_decided_again() {
    if skipped_without_root("a_session_that_was_tainted_meanwhile_is_decided_again") {
        return;
    }
    let home = home("10m");
    let _system = up(&home);
    let caller = Peer::new(&home);
    let id = caller.asks();
    let other = Peer::new(&home);
    other.call(
        "fs_read",
        &serde_json::json!({ "path": home.path("vault/code.txt") }).to_string(),
    );
    assert_eq!(other.content(), "7391\n");
    assert_eq!(questions(&home)[0].taint, DataClass::Private);
    assert_eq!(answer(&home, &id, true), Ok(()));
    assert_eq!(caller.denied(), DenyReason::TaintTooHigh);
    assert_eq!(marks(&home), "");
    assert_eq!(words(&home), ["a1 asked", "a1 answeredapproved"]);
    assert_eq!(refusal(&home), DenyReason::TaintTooHigh);
    home.sound();
}
