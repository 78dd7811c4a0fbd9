//! The ceiling of refused calls in one session.

use proto::broker::{HistoryEntry, RecordEntry};
use proto::client::ToolResponse;
use proto::role::Empty;
use proto::{DenyReason, Message, Timestamp};

use crate::supervisor::{Client, ELSEWHERE, NOTE, Supervisor, files, session};

/// A brokerd whose sessions may have three calls refused.
fn up(history: &[HistoryEntry]) -> Supervisor {
    let mut files = files();
    let config = b"session.denials = 3\n".to_vec();
    files.0.insert("config.toml".to_owned(), config);
    let supervisor = Supervisor::start(&["bxctl"], &files, history);
    assert_eq!(supervisor.next().msg, Message::Ready(Empty {}));
    supervisor
}

fn refused(client: &mut Client) -> DenyReason {
    match client.response() {
        ToolResponse::Denied { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// Has `count` calls refused, each with a record of its own.
fn deny(supervisor: &Supervisor, client: &mut Client, name: &str, count: u64) {
    for seq in 0..count {
        client.call(name, "show", ELSEWHERE);
        let (id, entry) = supervisor.record();
        assert!(matches!(entry, RecordEntry::Decision { .. }), "{entry:?}");
        supervisor.recorded(id, seq);
        assert_eq!(refused(client), DenyReason::NoGrant);
    }
}

#[test]
fn past_the_ceiling_every_call_is_refused_and_one_record_counts_them() {
    let supervisor = up(&[]);
    let mut client = supervisor.session("s");
    deny(&supervisor, &mut client, "s", 3);
    for (tool, arguments) in [("show", NOTE), ("show", ELSEWHERE), ("invented", "{}")] {
        client.call("s", tool, arguments);
        assert_eq!(refused(&mut client), DenyReason::LimitReached);
    }
    // The twin: the same call in another session is prepared and runs.
    let mut other = supervisor.session("t");
    other.call("t", "show", NOTE);
    let sandbox = supervisor.run_call(7, 9);
    supervisor.end_call(sandbox);
    assert!(matches!(other.response(), ToolResponse::Result { .. }));

    let recorded = supervisor.stop();
    let [
        RecordEntry::Denials {
            tool,
            reason,
            count,
            ..
        },
    ] = recorded.as_slice()
    else {
        panic!("{recorded:?}");
    };
    let counted = (tool.as_str(), *reason, *count);
    assert_eq!(counted, ("*", DenyReason::LimitReached, 3));
}

#[test]
fn below_the_ceiling_a_granted_call_still_runs() {
    let supervisor = up(&[]);
    let mut client = supervisor.session("s");
    deny(&supervisor, &mut client, "s", 2);
    client.call("s", "show", NOTE);
    let sandbox = supervisor.run_call(7, 9);
    supervisor.end_call(sandbox);
    assert!(matches!(client.response(), ToolResponse::Result { .. }));
}

#[test]
fn a_restart_remembers_what_was_refused() {
    let denials = |count| HistoryEntry::Denials {
        time: Timestamp::from_millis(2),
        session: session("s"),
        count,
    };
    for (count, spent) in [(2, false), (3, true)] {
        let supervisor = up(&[denials(count)]);
        let mut client = supervisor.session("s");
        client.call("s", "show", NOTE);
        if spent {
            assert_eq!(refused(&mut client), DenyReason::LimitReached);
        } else {
            let sandbox = supervisor.run_call(7, 9);
            supervisor.end_call(sandbox);
            assert!(matches!(client.response(), ToolResponse::Result { .. }));
        }
    }
}
