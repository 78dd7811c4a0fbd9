//! Tools that write more than is kept: what the caller gets, what is recorded, and that others are served meanwhile.

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::Home;
use boxmaker_tests::system::processes::until;
use proto::audit::{ExitCause, ExitStatus, Outcome, OutcomeStatus};
use proto::client::ToolResponse;

use crate::home::{Peer, home, sessions, status, up};

/// Bytes of output that these tools keep.
const KEPT: usize = 10_000;

/// A tool that runs a script.
fn script(home: &Home, name: &str, script: &str) {
    home.tool(
        name,
        &format!(
            "description = \"For a test.\"\nkind = \"stdio\"\ncommand = [\"/usr/bin/sh\", \"-c\", \"{script}\"]\n\
             profile = \"tools/base\"\nmax_output = {KEPT}\n[arguments]\ntype = \"object\"\n"
        ),
    );
    home.grant(name, &format!("tool = \"{name}\"\nmode = \"auto\"\nmax_taint = \"secret\"\nafter_untrusted = \"allow\"\n"));
}

fn outcome(home: &Home) -> Outcome {
    home.outcomes().pop().unwrap()
}

#[test]
fn a_tool_that_writes_more_than_is_kept_has_its_first_bytes_kept_and_the_cut_recorded() {
    if skipped_without_root("a_tool_that_writes_more_than_is_kept") {
        return;
    }
    let home = home(1000);
    script(&home, "all", "printf %010000d 0");
    script(&home, "more", "printf %010001d 0; printf %03000d 0 >&2");
    script(
        &home,
        "fails",
        "printf %03000d 0 >&2; echo last >&2; exit 3",
    );
    let system = up(&home);
    let peer = Peer::new(&home, "writes");
    let text = "0".repeat(KEPT);
    for (tool, cut) in [("all", false), ("more", true)] {
        peer.call(tool, "{}");
        match peer.response() {
            ToolResponse::Result {
                content, truncated, ..
            } => {
                assert_eq!((content.as_str(), truncated), (text.as_str(), cut));
            }
            other => panic!("{other:?}"),
        }
        let outcome = outcome(&home);
        assert_eq!(outcome.status, OutcomeStatus::Result);
        assert_eq!((outcome.bytes, outcome.truncated), (KEPT as u64, cut));
        assert_eq!(outcome.exit, Some(ExitStatus::Code(0)));
    }
    // Of its complaints the caller of one that fails gets the last.
    peer.call("fails", "{}");
    match peer.response() {
        ToolResponse::Failed { message, .. } => {
            assert!(message.ends_with("00last"), "{message}");
            assert!(message.len() < 3000, "{}", message.len());
        }
        other => panic!("{other:?}"),
    }
    assert!(system.stop().success());
    home.sound();
}

#[test]
fn a_tool_that_writes_without_end_is_stopped_and_nobody_else_is() {
    if skipped_without_root("a_tool_that_writes_without_end") {
        return;
    }
    let home = home(1000);
    script(&home, "says", "while :; do printf %04096d 0; done");
    script(&home, "complains", "while :; do printf %04096d 0; done >&2");
    script(
        &home,
        "both",
        "while :; do printf %04096d 0; done >&2 & while :; do printf %04096d 0; done",
    );
    let system = up(&home);
    let stays = Peer::new(&home, "stays");
    stays.call("stays", r#"{"acts":["sleep"]}"#);
    until("it runs", || status(&home).sandboxes == 1);
    let other = Peer::new(&home, "other");
    for tool in ["says", "complains", "both"] {
        let peer = Peer::new(&home, tool);
        peer.call(tool, "{}");
        other.reads(&home);
        match peer.response() {
            ToolResponse::Failed { message, .. } => assert!(
                message
                    .starts_with("stopped: it wrote more than 16 times its limit of 10000 bytes"),
                "{message}"
            ),
            other => panic!("{other:?}"),
        }
        let outcome = home
            .outcomes()
            .into_iter()
            .find(|outcome| outcome.session.as_str() == tool)
            .unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert_eq!(outcome.cause, Some(ExitCause::Aborted));
        other.reads(&home);
    }
    // Who ran before runs still, in the same life of brokerd.
    assert_eq!(status(&home).sandboxes, 1);
    assert_eq!(status(&home).roles[0].restarts, 0);
    assert!(sessions(&home).len() >= 5);
    drop(stays);
    until("it is given up", || status(&home).sandboxes == 0);
    assert!(system.stop().success());
    home.sound();
}
