//! A brokerd that does not read what tools write: the pipe is full, the tool waits until its time is up, and nobody else
//! waits for either.

use std::os::fd::OwnedFd;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::Brokerd;
use boxmaker_tests::system::processes::until;
use proto::Message;
use proto::audit::{ExitCause, ExitStatus, OutcomeStatus};

use crate::calls::{Broker, at, finish};
use crate::homes::{NOTE, home};

/// A tool that writes without end to one of its streams.
fn writer(stream: u8) -> String {
    format!(
        "description = \"For a test.\"\nkind = \"stdio\"\ncommand = [\"/usr/bin/sh\", \"-c\", \"while :; do printf %04096d 0; done >&{stream}\"]\n\
         profile = \"tools/base\"\ntimeout = \"5s\"\n[arguments]\ntype = \"object\"\n"
    )
}

/// Whether a pipe takes nothing more.
fn full(reading: &OwnedFd) -> bool {
    let size = rustix::pipe::fcntl_getpipe_size(reading).unwrap();
    rustix::io::ioctl_fionread(reading).unwrap() == size as u64
}

#[test]
fn a_tool_whose_output_nobody_reads_waits_and_is_ended_while_others_go_on() {
    if skipped_without_root("a_tool_whose_output_nobody_reads") {
        return;
    }
    let home = home(Brokerd::Relay);
    for (tool, stream) in [("says", 1), ("complains", 2)] {
        home.tool(tool, &writer(stream));
        home.grant(tool, &format!("tool = \"{tool}\"\nmode = \"auto\"\nmax_taint = \"secret\"\nafter_untrusted = \"allow\"\n"));
    }
    let mut broker = Broker::up_in(home);
    let said = broker.prepare("says", "says", "{}");
    let complained = broker.prepare("complains", "complains", "{}");
    let seqs = [&said, &complained].map(|standing| broker.commit(standing));
    until("both pipes are full", || {
        full(&said.stdout) && full(&complained.stderr)
    });

    // Neither the supervisor nor another call waits for that.
    let note = at(&broker.home.path("notes/a.md"));
    for _ in 0..3 {
        let ran = broker.call("fs_read", "notes", &note);
        assert_eq!(
            (ran.exited.exit, ran.stdout.as_str()),
            (Some(ExitStatus::Code(0)), NOTE)
        );
    }
    for standing in [&said, &complained] {
        let exited = broker.exited(standing.ticket);
        assert_eq!(exited.cause, ExitCause::Timeout);
        assert_eq!(exited.exit, Some(ExitStatus::Signal(9)));
    }
    // What the kernel kept for the reader is all that there is.
    for (stream, other) in [
        (said.stdout, said.stderr),
        (complained.stderr, complained.stdout),
    ] {
        let size = rustix::pipe::fcntl_getpipe_size(&stream).unwrap();
        let text = boxmaker_tests::system::relay::read(stream);
        assert_eq!(text.len(), size);
        assert_eq!(boxmaker_tests::system::relay::read(other), "");
    }
    for ticket in [said.ticket, complained.ticket] {
        let finished = broker.relay.ask(finish(ticket, OutcomeStatus::Failed));
        let finished = finished.envelope.msg;
        assert!(matches!(finished, Message::Recorded(_)), "{finished:?}");
    }
    broker.wait_empty();
    let outcomes = broker.home.outcomes();
    for seq in seqs {
        let outcome = outcomes.iter().find(|outcome| outcome.of == seq).unwrap();
        assert_eq!(outcome.cause, Some(ExitCause::Timeout));
    }
    broker.home.sound();
}

/// The twin: what is read to its end makes the same program wait for nothing.
#[test]
fn a_tool_whose_output_is_read_is_not_held_up() {
    if skipped_without_root("a_tool_whose_output_is_read") {
        return;
    }
    let home = home(Brokerd::Relay);
    // More than a pipe takes.
    home.tool(
        "says",
        &writer(1).replace("while :; do printf %04096d 0; done", "printf %01000000d 0"),
    );
    home.grant(
        "says",
        "tool = \"says\"\nmode = \"auto\"\nmax_taint = \"secret\"\nafter_untrusted = \"allow\"\n",
    );
    let mut broker = Broker::up_in(home);
    let ran = broker.call("says", "says", "{}");
    assert_eq!(ran.exited.cause, ExitCause::Exited);
    assert_eq!(ran.stdout.len(), 1_000_000);
    broker.home.sound();
}
