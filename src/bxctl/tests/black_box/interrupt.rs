//! Signals on `bxctl call` where brokerd does not get as far as an answer.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use ipc::Connection;
use proto::{Envelope, Message};
use rustix::process::{Pid, Signal, kill_process};

use crate::host::{Host, opened};

fn start(host: &Host) -> Child {
    host.command(&["call", "fs_read"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// The signal that ended the command, and what it said.
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"");
    (
        output.status.signal(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A broker that opens a session if it `opens` one, and answers nothing else. It tells what it is asked.
fn mute(host: &Host, opens: bool) -> Receiver<Message> {
    let listener = std::os::unix::net::UnixListener::bind(host.socket()).unwrap();
    let (tell, asked) = channel();
    thread::spawn(move || {
        // Held, so that no connection ends from this side.
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            let connection = Connection::new(stream);
            while let Ok(Some(received)) = connection.receive() {
                let open = matches!(received.envelope.msg, Message::SessionOpen(_));
                let _ = tell.send(received.envelope.msg);
                if open && opens {
                    let opened = opened();
                    let answer = Envelope::new(received.envelope.id, opened);
                    connection.send(&answer).unwrap();
                }
            }
            held.push(connection);
        }
    });
    asked
}

#[test]
fn before_there_is_a_session_nothing_was_called() {
    let host = Host::new();
    let asked = mute(&host, false);
    let child = start(&host);
    assert!(matches!(asked.recv().unwrap(), Message::SessionOpen(_)));
    interrupt(&child);
    let (signal, said) = ended(child);
    assert_eq!(signal, Some(2), "{said}");
    assert!(
        said.contains("the call was not made, and nothing ran"),
        "{said}"
    );
}

#[test]
fn a_second_signal_ends_bxctl_that_waits_for_a_broker_that_says_nothing() {
    let host = Host::new();
    let asked = mute(&host, true);
    let child = start(&host);
    assert!(matches!(asked.recv().unwrap(), Message::SessionOpen(_)));
    assert!(matches!(asked.recv().unwrap(), Message::ToolRequest(_)));
    interrupt(&child);
    // Over another connection, which shows that the first was cut.
    assert!(matches!(asked.recv().unwrap(), Message::SessionEnd(_)));
    interrupt(&child);
    let (signal, said) = ended(child);
    assert_eq!(signal, Some(2), "{said}");
    assert!(said.contains("interrupted: the call is given up"), "{said}");
}
