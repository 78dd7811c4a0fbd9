//! Questions that nobody answers: they lapse, and what is left in the log says how.

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::processes::until;
use proto::{DenyReason, ErrorCode};

use crate::owner::{MARK, Peer, answer, decided, home, marks, questions, refusal, up, words};

#[test]
fn a_question_that_nobody_answers_in_time_is_refused() {
    if skipped_without_root("a_question_that_nobody_answers_in_time_is_refused") {
        return;
    }
    let home = home("200ms");
    let system = up(&home);
    let caller = Peer::new(&home);
    let id = caller.asks();
    assert_eq!(caller.denied(), DenyReason::ApprovalExpired);
    assert_eq!(answer(&home, &id, true), Err(ErrorCode::UnknownApproval));
    assert_eq!(marks(&home), "");
    assert_eq!(words(&home), ["a1 asked", "a1 expired"]);
    assert_eq!(refusal(&home), DenyReason::ApprovalExpired);
    assert!(system.stop().success());
    home.sound();
}

#[test]
fn a_caller_that_hangs_up_withdraws_its_question_and_nothing_runs() {
    if skipped_without_root("a_caller_that_hangs_up_withdraws_its_question") {
        return;
    }
    let home = home("10m");
    let system = up(&home);
    let caller = Peer::new(&home);
    let id = caller.asks();
    drop(caller);
    until("it is withdrawn", || words(&home).len() == 2);
    assert_eq!(words(&home), ["a1 asked", "a1 withdrawn"]);
    assert_eq!(questions(&home), []);
    assert_eq!(answer(&home, &id, true), Err(ErrorCode::UnknownApproval));
    // The next caller has a question of its own.
    let caller = Peer::new(&home);
    let id = caller.asks();
    assert_eq!(id.as_str(), "a2");
    assert_eq!(answer(&home, &id, true), Ok(()));
    assert_eq!(caller.content(), MARK);
    assert_eq!(marks(&home), MARK);
    assert!(system.stop().success());
    home.sound();
}

#[test]
fn questions_expire_when_brokerd_or_the_supervisor_ends_in_any_way() {
    if skipped_without_root("questions_expire_when_brokerd_or_the_supervisor_ends") {
        return;
    }
    let home = home("10m");
    let mut system = up(&home);
    let caller = Peer::new(&home);
    let brokerds = caller.asks();
    let times = home.times_up();
    system.brokerd(&home).kill();
    caller.cut_off();
    system.wait_up(&home, times);
    assert_eq!(words(&home), ["a1 asked", "a1 expired"]);
    assert_eq!(
        answer(&home, &brokerds, true),
        Err(ErrorCode::UnknownApproval)
    );

    let caller = Peer::new(&home);
    let supervisors = caller.asks();
    assert_eq!(supervisors.as_str(), "a2");
    system.kill();
    caller.cut_off();
    drop(system);
    let system = up(&home);
    assert_eq!(words(&home)[2..], ["a2 asked", "a2 expired"]);
    assert_eq!(
        answer(&home, &supervisors, true),
        Err(ErrorCode::UnknownApproval)
    );

    let caller = Peer::new(&home);
    assert_eq!(caller.asks().as_str(), "a3");
    assert!(system.stop().success());
    caller.cut_off();
    assert_eq!(words(&home)[4..], ["a3 asked", "a3 expired"]);
    assert_eq!((marks(&home).as_str(), decided(&home)), ("", vec![]));

    let system = up(&home);
    assert_eq!(words(&home).len(), 6);
    let caller = Peer::new(&home);
    let id = caller.asks();
    assert_eq!(answer(&home, &id, true), Ok(()));
    assert_eq!(caller.content(), MARK);
    assert!(system.stop().success());
    home.sound();
}
