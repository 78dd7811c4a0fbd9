//! A call from its commit to its answer: its output, its end, and callers that do not wait.

use std::io::Write as _;

use proto::audit::{ExitCause, ExitStatus, OutcomeStatus};
use proto::client::ToolResponse;
use proto::{ErrorCode, Message, Ticket, WireError};

use crate::supervisor::{Client, MAX_OUTPUT, NOTE, Sandbox, Supervisor, files};

/// A call of `show` on a note whose tool is running.
fn running() -> (Supervisor, Client, Sandbox) {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.session("s");
    client.call("s", "show", NOTE);
    let sandbox = supervisor.run_call(7, 2);
    (supervisor, client, sandbox)
}

fn failed(response: ToolResponse) -> String {
    match response {
        ToolResponse::Failed { message, .. } => message,
        other => panic!("expected a failure, got {other:?}"),
    }
}

fn result(response: ToolResponse) -> (String, bool) {
    match response {
        ToolResponse::Result {
            content, truncated, ..
        } => (content, truncated),
        other => panic!("expected a result, got {other:?}"),
    }
}

#[test]
fn a_tool_that_ends_at_once_is_not_missed() {
    let (supervisor, client, sandbox) = running();
    supervisor.end_call(sandbox);
    assert_eq!(result(client.response()), (String::new(), false));
}

#[test]
fn a_failed_tool_says_how_it_ended_and_shows_the_end_of_its_complaints() {
    let (supervisor, client, mut sandbox) = running();
    sandbox.writes(b"half a result");
    sandbox.complains(&[b'x'; 4000]);
    sandbox.complains(b"\nno such file\n");
    supervisor.exited(sandbox, ExitCause::Exited, Some(ExitStatus::Code(3)));
    let (id, finish) = supervisor.finish();
    assert_eq!(finish.status, OutcomeStatus::Failed);
    supervisor.recorded(id, 3);
    let message = failed(client.response());
    assert!(message.starts_with("ended with status 3\nxxx"), "{message}");
    assert!(message.ends_with("x\nno such file"), "{message}");
    assert!(message.len() < 2100);
    assert!(!message.contains("half a result"));
}

#[test]
fn every_other_end_is_a_failure_with_its_cause() {
    for (cause, exit, said) in [
        (ExitCause::Timeout, None, "stopped after 30s"),
        (ExitCause::Memory, None, "killed: over its memory limit"),
        (ExitCause::NotStarted, None, "could not be started"),
        (
            ExitCause::Exited,
            Some(ExitStatus::Signal(6)),
            "killed by SIGABRT",
        ),
        // A status that came with another cause is no success.
        (
            ExitCause::Timeout,
            Some(ExitStatus::Code(0)),
            "stopped after 30s",
        ),
    ] {
        let (supervisor, client, sandbox) = running();
        supervisor.exited(sandbox, cause, exit);
        let (id, finish) = supervisor.finish();
        assert_eq!(finish.status, OutcomeStatus::Failed);
        supervisor.recorded(id, 3);
        assert_eq!(failed(client.response()), said);
    }
}

#[test]
fn output_past_the_limit_is_cut_and_bytes_that_are_no_text_are_replaced() {
    let (supervisor, client, mut sandbox) = running();
    sandbox.writes(b"\xff");
    sandbox.writes(&vec![b'y'; MAX_OUTPUT]);
    let finish = supervisor.end_call(sandbox);
    assert!(finish.truncated);
    assert_eq!(finish.bytes, MAX_OUTPUT as u64);
    let (content, truncated) = result(client.response());
    assert!(truncated);
    assert_eq!(content, format!("\u{fffd}{}", "y".repeat(MAX_OUTPUT - 3)));
}

#[test]
fn control_characters_are_cut_so_that_the_answer_fits_a_frame() {
    let mut large = files();
    let show = large.0["tools/show.toml"].clone();
    let show = String::from_utf8(show)
        .unwrap()
        .replace("max_output = 1000", "max_output = 262144");
    large.0.insert("tools/show.toml".into(), show.into_bytes());
    let supervisor = Supervisor::start(&["bxctl"], &large, &[]);
    supervisor.next();
    let mut client = supervisor.session("s");
    client.call("s", "show", NOTE);
    let mut sandbox = supervisor.run_call(7, 2);
    sandbox.writes(&vec![1; 262_144]);
    assert!(supervisor.end_call(sandbox).truncated);
    let (content, truncated) = result(client.response());
    assert!(truncated);
    // Six bytes each in JSON, and a little for the envelope.
    assert!(
        (174_000..174_763).contains(&content.len()),
        "{}",
        content.len()
    );

    client.call("s", "show", NOTE);
    let mut sandbox = supervisor.run_call(8, 3);
    sandbox.writes(&vec![b'y'; 262_144]);
    assert!(!supervisor.end_call(sandbox).truncated);
    assert_eq!(result(client.response()).0.len(), 262_144);
}

#[test]
fn a_flood_is_drained_and_stopped() {
    for complain in [false, true] {
        let (supervisor, client, sandbox) = running();
        let mut stream = if complain {
            &sandbox.stderr
        } else {
            &sandbox.stdout
        };
        // Within the allowance: no abort.
        stream.write_all(&vec![b'z'; MAX_OUTPUT * 16]).unwrap();
        assert!(supervisor.silent());
        stream.write_all(b"z").unwrap();
        assert_eq!(supervisor.abort(), Ticket(7));
        // Far more than a socket or pipe holds: it can only be written if somebody reads.
        stream.write_all(&vec![b'z'; 4 << 20]).unwrap();
        assert!(supervisor.silent(), "one abort is enough");
        supervisor.exited(sandbox, ExitCause::Aborted, Some(ExitStatus::Signal(9)));
        let (id, finish) = supervisor.finish();
        assert_eq!(finish.status, OutcomeStatus::Failed);
        supervisor.recorded(id, 3);
        let message = failed(client.response());
        assert!(
            message.starts_with("stopped: it wrote more than 16 times its limit of 1000 bytes"),
            "{message}"
        );
    }
}

#[test]
fn a_caller_that_goes_away_takes_its_call_with_it() {
    let (supervisor, client, sandbox) = running();
    drop(client);
    assert_eq!(supervisor.abort(), Ticket(7));
    assert!(supervisor.silent(), "the end comes first");
    supervisor.exited(sandbox, ExitCause::Aborted, Some(ExitStatus::Signal(9)));
    let (id, finish) = supervisor.finish();
    assert_eq!((finish.status, finish.bytes), (OutcomeStatus::Failed, 0));
    supervisor.recorded(id, 3);
}

#[test]
fn a_caller_that_only_ends_its_writing_gets_its_answer() {
    let (supervisor, client, mut sandbox) = running();
    let stream = client.connection.stream();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    sandbox.writes(b"a note");
    assert!(supervisor.silent());
    supervisor.end_call(sandbox);
    assert_eq!(result(client.response()).0, "a note");
}

#[test]
fn an_outcome_that_cannot_be_recorded_keeps_no_result_back() {
    let (supervisor, client, mut sandbox) = running();
    sandbox.writes(b"a note");
    supervisor.exited(sandbox, ExitCause::Exited, Some(ExitStatus::Code(0)));
    let (id, _) = supervisor.finish();
    let error = WireError {
        code: ErrorCode::Internal,
        detail: "the log is closed".into(),
    };
    supervisor.say(id, Message::Error(error));
    assert_eq!(result(client.response()).0, "a note");
}
