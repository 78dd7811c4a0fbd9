//! Many equal denials, and the orderly end that records what was counted.

use proto::audit::{ExitCause, ExitStatus, OutcomeStatus};
use proto::broker::RecordEntry;
use proto::client::ToolResponse;
use proto::role::Empty;
use proto::{DenyReason, ErrorCode, Message, Ticket};

use crate::supervisor::{ELSEWHERE, NOTE, Supervisor, session};

#[test]
fn a_thousand_equal_denials_are_eight_records_and_one_that_counts() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.session("s");
    for number in 0..1000 {
        client.call("s", "show", ELSEWHERE);
        if number < 8 {
            let (id, entry) = supervisor.record();
            assert!(matches!(entry, RecordEntry::Decision { .. }), "{entry:?}");
            supervisor.recorded(id, number);
        }
        assert!(matches!(
            client.response(),
            ToolResponse::Denied {
                reason: DenyReason::NoGrant,
                ..
            }
        ));
    }
    let recorded = supervisor.stop();
    let [
        RecordEntry::Denials {
            session: of,
            tool,
            reason,
            count,
            first,
            last,
        },
    ] = recorded.as_slice()
    else {
        panic!("{recorded:?}");
    };
    assert_eq!((of, tool.as_str()), (&session("s"), "show"));
    assert_eq!((*reason, *count), (DenyReason::NoGrant, 992));
    assert!(first <= last);
}

#[test]
fn stop_with_nothing_in_progress_records_nothing() {
    let supervisor = Supervisor::ready();
    assert_eq!(supervisor.stop(), vec![]);
}

#[test]
fn stop_gives_running_calls_up_and_records_their_outcome() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.session("s");
    client.call("s", "show", NOTE);
    let sandbox = supervisor.run_call(7, 2);
    supervisor.say(500, Message::Stop(Empty {}));
    assert_eq!(supervisor.abort(), Ticket(7));
    supervisor.exited(sandbox, ExitCause::Aborted, Some(ExitStatus::Signal(9)));
    let (id, finish) = supervisor.finish();
    assert_eq!(finish.status, OutcomeStatus::Failed);
    supervisor.recorded(id, 3);
    let ToolResponse::Failed { message, .. } = client.response() else {
        panic!("no failure");
    };
    assert_eq!(message, "stopped: boxmaker is stopping");
    supervisor.ended().unwrap();
}

#[test]
fn stop_commits_no_call_that_was_being_prepared() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.session("s");
    client.call("s", "show", NOTE);
    let (id, _) = supervisor.prepare();
    supervisor.say(500, Message::Stop(Empty {}));
    supervisor.heard();
    supervisor.prepared(id, 7);
    assert_eq!(supervisor.abort(), Ticket(7));
    assert_eq!(client.error().code, ErrorCode::Internal);
    supervisor.ended().unwrap();
}

#[test]
fn a_call_after_stop_is_refused_on_a_connection_that_was_open() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.session("s");
    let mut busy = supervisor.session("t");
    // Keeps the orderly end waiting.
    busy.call("t", "show", NOTE);
    let sandbox = supervisor.run_call(7, 2);
    supervisor.say(500, Message::Stop(Empty {}));
    assert_eq!(supervisor.abort(), Ticket(7));
    client.call("s", "show", NOTE);
    let error = client.error();
    assert_eq!(error.code, ErrorCode::Internal);
    assert!(error.detail.contains("stopping"), "{}", error.detail);
    supervisor.exited(sandbox, ExitCause::Aborted, Some(ExitStatus::Signal(9)));
    let (id, _) = supervisor.finish();
    supervisor.recorded(id, 3);
    supervisor.ended().unwrap();
}
