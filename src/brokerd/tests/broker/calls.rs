//! One call, step by step: what is recorded, what the caller gets, and in which order.

use proto::audit::{ExitCause, ExitStatus, OutcomeStatus};
use proto::broker::{RecordEntry, RefuseReason, Refused};
use proto::client::ToolResponse;
use proto::{
    Arguments, CallId, DataClass, DecisionRecord, DenyReason, ErrorCode, GrantId, Labels, Level,
    Message, Ticket, WireError,
};

use crate::supervisor::{Client, ELSEWHERE, KEY, NOTE, Supervisor, files, session};

fn grant(id: &str) -> GrantId {
    GrantId::new(id).unwrap()
}

fn begun() -> (Supervisor, Client) {
    let supervisor = Supervisor::ready();
    let client = supervisor.session("s");
    (supervisor, client)
}

fn denied(response: ToolResponse) -> (DenyReason, String) {
    match response {
        ToolResponse::Denied { reason, detail } => (reason, detail),
        other => panic!("expected a denial, got {other:?}"),
    }
}

#[test]
fn an_allowed_call_is_prepared_committed_finished_and_then_answered() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", NOTE);

    let (id, prepare) = supervisor.prepare();
    assert_eq!((prepare.session, prepare.call), (session("s"), CallId(1)));
    assert_eq!(prepare.tool.as_str(), "show");
    assert_eq!((prepare.grant, prepare.generation), (grant("notes"), 1));
    assert_eq!(prepare.arguments, NOTE);

    let mut sandbox = supervisor.prepared(id, 7);
    let (id, commit) = supervisor.commit();
    assert_eq!(commit.ticket, Ticket(7));
    let allowed = DecisionRecord::Allowed {
        grant: grant("notes"),
    };
    assert_eq!(commit.decision, allowed);
    assert_eq!(commit.session_taint, DataClass::Private);
    let labels = Labels {
        class: DataClass::Private,
        untrusted: false,
    };
    assert_eq!(commit.labels, labels);

    let ticket = sandbox.ticket;
    let committed = proto::broker::Committed { ticket, seq: 2 };
    supervisor.say(id, Message::Committed(committed));
    sandbox.writes(b"a note");
    supervisor.exited(sandbox, ExitCause::Exited, Some(ExitStatus::Code(0)));

    let (id, finish) = supervisor.finish();
    assert_eq!(finish.status, OutcomeStatus::Result);
    assert_eq!(
        (finish.class, finish.untrusted),
        (DataClass::Private, false)
    );
    assert_eq!((finish.truncated, finish.bytes), (false, 6));
    assert!(client.waits());
    supervisor.recorded(id, 3);
    assert_eq!(
        client.response(),
        ToolResponse::Result {
            content: "a note".into(),
            class: DataClass::Private,
            untrusted: false,
            truncated: false,
            confinement: Level::Full,
        }
    );
}

#[test]
fn a_denial_is_recorded_before_it_is_told() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", ELSEWHERE);
    let (id, entry) = supervisor.record();
    let RecordEntry::Decision {
        session: of,
        call,
        tool,
        arguments,
        session_taint,
        decision,
        generation,
        ticket,
        ..
    } = entry
    else {
        panic!("{entry:?}");
    };
    assert_eq!((of, call, tool.as_str()), (session("s"), CallId(1), "show"));
    assert_eq!(arguments, Arguments::Text(ELSEWHERE.into()));
    assert_eq!(session_taint, DataClass::Private);
    let DecisionRecord::Denied { reason, .. } = decision else {
        panic!("{decision:?}");
    };
    assert_eq!(reason, DenyReason::NoGrant);
    assert_eq!((generation, ticket), (1, None));

    assert!(client.waits());
    supervisor.recorded(id, 2);
    assert_eq!(denied(client.response()).0, DenyReason::NoGrant);
}

#[test]
fn a_denial_that_cannot_be_recorded_is_told_as_that() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", ELSEWHERE);
    let (id, _) = supervisor.record();
    let error = WireError {
        code: ErrorCode::Internal,
        detail: "the log is closed".into(),
    };
    supervisor.say(id, Message::Error(error));
    let (reason, detail) = denied(client.response());
    assert_eq!(reason, DenyReason::AuditUnavailable);
    assert_eq!(
        detail,
        "tool show: the decision could not be recorded; nothing ran"
    );
}

#[test]
fn arguments_too_hostile_to_store_are_recorded_by_their_digest() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", r#"{"path": 1, "path": 2}"#);
    let (id, entry) = supervisor.record();
    let RecordEntry::Decision { arguments, .. } = entry else {
        panic!("{entry:?}");
    };
    let Arguments::Digest { length, sha256 } = arguments else {
        panic!("{arguments:?}");
    };
    assert_eq!(length, 22);
    // printf '{"path": 1, "path": 2}' | sha256sum
    assert_eq!(
        sha256.to_string(),
        "2f51ec90ec2ae024715228ebbbdaacad24cf84f08e26f366695cd82d6223c347"
    );
    supervisor.recorded(id, 2);
    assert_eq!(denied(client.response()).0, DenyReason::BadArguments);
}

#[test]
fn a_long_tool_name_is_cut_in_the_record() {
    let (supervisor, mut client) = begun();
    for (name, recorded) in [
        ("ü".repeat(300), "ü".repeat(64)),
        (String::new(), "(none)".into()),
    ] {
        client.call("s", &name, NOTE);
        let (id, entry) = supervisor.record();
        let RecordEntry::Decision { tool, .. } = entry else {
            panic!("{entry:?}");
        };
        assert_eq!(tool, recorded);
        supervisor.recorded(id, 2);
        assert_eq!(denied(client.response()).0, DenyReason::UnknownTool);
    }
}

#[test]
fn a_secret_result_raises_the_session_before_anything_else_is_decided() {
    let (supervisor, mut client) = begun();
    let mut other = supervisor.client();

    client.call("s", "show", KEY);
    let sandbox = supervisor.run_call(7, 2);
    // Not delivered yet, so the session has not read it.
    other.call("s", "show", NOTE);
    let note = supervisor.run_call(8, 3);

    supervisor.exited(sandbox, ExitCause::Exited, Some(ExitStatus::Code(0)));
    let (id, finish) = supervisor.finish();
    assert_eq!((finish.class, finish.untrusted), (DataClass::Secret, true));
    supervisor.end_call(note);
    other.response();

    // The outcome is not recorded and the result not sent, but it may go out any moment.
    other.call("s", "show", NOTE);
    let (refused, entry) = supervisor.record();
    let RecordEntry::Decision {
        session_taint,
        decision: DecisionRecord::Denied { reason, .. },
        ..
    } = entry
    else {
        panic!("{entry:?}");
    };
    assert_eq!(
        (session_taint, reason),
        (DataClass::Secret, DenyReason::TaintTooHigh)
    );
    supervisor.recorded(refused, 4);
    assert_eq!(denied(other.response()).0, DenyReason::TaintTooHigh);
    assert!(client.waits());
    supervisor.recorded(id, 5);
    client.response();

    // Another session is as it was.
    let mut fresh = supervisor.session("t");
    fresh.call("t", "show", NOTE);
    supervisor.prepare();
}

#[test]
fn calls_of_one_session_are_decided_one_after_the_other() {
    let (supervisor, mut client) = begun();
    let mut other = supervisor.client();
    client.call("s", "show", KEY);
    let (id, first) = supervisor.prepare();
    other.call("s", "show", NOTE);
    assert!(supervisor.silent());
    supervisor.prepared(id, 7);
    let (id, commit) = supervisor.commit();
    let ticket = commit.ticket;
    let committed = proto::broker::Committed { ticket, seq: 2 };
    supervisor.say(id, Message::Committed(committed));
    let (_, second) = supervisor.prepare();
    assert_eq!((first.call, second.call), (CallId(1), CallId(2)));
}

#[test]
fn a_stale_generation_is_decided_again_under_the_new_policy() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", NOTE);
    let (id, _) = supervisor.prepare();
    let mut narrower = files();
    narrower.0.remove("grants/notes.toml");
    supervisor.policy(&narrower, 2);
    let stale = Refused {
        reason: RefuseReason::StaleGeneration,
        detail: "generation 2".into(),
        ticket: None,
    };
    supervisor.say(id, Message::Refused(stale));
    let (id, entry) = supervisor.record();
    let RecordEntry::Decision {
        generation, call, ..
    } = entry
    else {
        panic!("{entry:?}");
    };
    assert_eq!((generation, call), (2, CallId(1)));
    supervisor.recorded(id, 2);
    assert_eq!(denied(client.response()).0, DenyReason::NoGrant);
}

#[test]
fn a_policy_that_stays_stale_refuses_the_call_after_three_attempts() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", NOTE);
    for _ in 0..3 {
        let (id, _) = supervisor.prepare();
        let stale = Refused {
            reason: RefuseReason::StaleGeneration,
            detail: "generation 2".into(),
            ticket: None,
        };
        supervisor.say(id, Message::Refused(stale));
    }
    let (id, _) = supervisor.record();
    supervisor.recorded(id, 2);
    assert_eq!(denied(client.response()).0, DenyReason::LaunchFailed);
}

#[test]
fn a_refused_prepare_is_recorded_with_its_ticket_and_tells_the_caller_no_path() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", NOTE);
    let (id, _) = supervisor.prepare();
    let refused = Refused {
        reason: RefuseReason::Denied(DenyReason::PathOutside),
        detail: "/srv/notes/a.md leads to /etc/shadow".into(),
        ticket: Some(Ticket(7)),
    };
    supervisor.say(id, Message::Refused(refused));
    let (id, entry) = supervisor.record();
    let RecordEntry::Decision {
        decision,
        detail,
        ticket,
        ..
    } = entry
    else {
        panic!("{entry:?}");
    };
    let reason = DenyReason::PathOutside;
    let grant = Some(grant("notes"));
    assert_eq!(decision, DecisionRecord::Denied { reason, grant });
    assert_eq!(detail, "/srv/notes/a.md leads to /etc/shadow");
    assert_eq!(ticket, Some(Ticket(7)));
    assert!(client.waits());
    supervisor.recorded(id, 2);
    let (reason, told) = denied(client.response());
    assert_eq!(reason, DenyReason::PathOutside);
    assert!(!told.contains('/'), "{told}");
}

#[test]
fn a_refusal_reads_alike_whoever_made_it_and_says_whether_to_try_again() {
    let (supervisor, mut client) = begun();
    // brokerd's own.
    client.call("s", "show", ELSEWHERE);
    let (id, _) = supervisor.record();
    supervisor.recorded(id, 2);
    let (_, own) = denied(client.response());
    assert!(
        own.starts_with("tool show: ") && own.ends_with("the same call will not pass again"),
        "{own}"
    );
    // The supervisor's.
    let stays = "; the same call will not pass again";
    for (seq, (reason, end)) in [
        (DenyReason::PathOutside, stays),
        (DenyReason::DeniedByGrant, stays),
        (DenyReason::ConfinementTooWeak, stays),
        (DenyReason::LaunchFailed, "; nothing ran"),
        (
            DenyReason::LimitReached,
            "too many calls are in progress; try again",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        client.call("s", "show", NOTE);
        let (id, _) = supervisor.prepare();
        let refused = Refused {
            reason: RefuseReason::Denied(reason),
            detail: "for the owner".into(),
            ticket: None,
        };
        supervisor.say(id, Message::Refused(refused));
        let (id, _) = supervisor.record();
        supervisor.recorded(id, 3 + seq as u64);
        let (told, detail) = denied(client.response());
        assert_eq!(told, reason);
        assert!(
            detail.starts_with("tool show: ") && detail.ends_with(end),
            "{detail}"
        );
    }
}

#[test]
fn a_commit_that_comes_too_late_is_no_failure_of_the_log() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", NOTE);
    let (id, _) = supervisor.prepare();
    let _sandbox = supervisor.prepared(id, 7);
    let (id, _) = supervisor.commit();
    let error = WireError {
        code: ErrorCode::BadMessage,
        detail: "ticket 7 is not prepared".into(),
    };
    supervisor.say(id, Message::Error(error));
    assert_eq!(supervisor.abort(), Ticket(7));
    let (id, entry) = supervisor.record();
    let RecordEntry::Decision { detail, .. } = entry else {
        panic!("{entry:?}");
    };
    assert!(detail.contains("ticket 7 is not prepared"), "{detail}");
    supervisor.recorded(id, 2);
    assert_eq!(denied(client.response()).0, DenyReason::LaunchFailed);
}

#[test]
fn a_commit_that_fails_starts_nothing_and_is_told_as_audit_unavailable() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", KEY);
    let (id, _) = supervisor.prepare();
    let _sandbox = supervisor.prepared(id, 7);
    let (id, _) = supervisor.commit();
    let error = WireError {
        code: ErrorCode::Internal,
        detail: "cannot append: no space left".into(),
    };
    supervisor.say(id, Message::Error(error.clone()));
    assert_eq!(supervisor.abort(), Ticket(7));
    let (id, _) = supervisor.record();
    supervisor.say(id, Message::Error(error));
    assert_eq!(denied(client.response()).0, DenyReason::AuditUnavailable);

    // Nothing was read, so nothing was tainted.
    client.call("s", "show", NOTE);
    supervisor.prepare();
}

#[test]
fn a_caller_that_goes_away_before_the_commit_starts_nothing() {
    let (supervisor, mut client) = begun();
    client.call("s", "show", NOTE);
    let (id, _) = supervisor.prepare();
    drop(client);
    supervisor.prepared(id, 7);
    assert_eq!(supervisor.abort(), Ticket(7));
    // The session's turn is over: another call goes on.
    let mut client = supervisor.client();
    client.call("s", "show", NOTE);
    supervisor.run_call(8, 2);
}

#[test]
fn an_owners_call_is_given_its_number_and_names_an_open_session() {
    let (supervisor, mut client) = begun();
    client.call("other", "show", NOTE);
    assert_eq!(client.error().code, ErrorCode::UnknownSession);

    let mut client = supervisor.client();
    client.ask(Message::ToolRequest(proto::client::ToolRequest {
        session: session("s"),
        call: CallId(9),
        tool: "show".into(),
        arguments: NOTE.into(),
    }));
    assert_eq!(client.error().code, ErrorCode::BadCall);

    let mut client = supervisor.client();
    client.call("s", "show", NOTE);
    let (_, prepare) = supervisor.prepare();
    assert_eq!(prepare.call, CallId(1));
}
