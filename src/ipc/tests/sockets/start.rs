//! The start of a role over a given socket; `tests/stdin.rs` does it over a real standard input.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};

use ipc::Connection;
use ipc::connection::RecvError;
use ipc::role::{StartError, Started, start};
use proto::role::{Empty, RoleStart};
use proto::{Envelope, Message};

use crate::pipes::Witness;
use crate::wire::{framed, say};

fn control() -> (Connection, UnixStream) {
    let (supervisor, role) = UnixStream::pair().unwrap();
    (Connection::new(supervisor), role)
}

#[test]
fn a_role_gets_its_configuration_and_its_listeners_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let owner = UnixListener::bind(path("owner")).unwrap();
    let chat = UnixListener::bind(path("chat")).unwrap();
    let (supervisor, role) = control();
    let sockets = [("bxctl", owner.as_fd()), ("gatewayd", chat.as_fd())];
    start(&supervisor, 11, "brokerd", "waive = []\n", &sockets).unwrap();
    drop((owner, chat));

    let mut started = Started::from_stream("brokerd", role).unwrap();
    assert_eq!((started.id, started.config.as_str()), (11, "waive = []\n"));
    assert_eq!(started.unexpected(), ["bxctl", "gatewayd"]);
    assert!(started.listener("loopd").is_none());
    for (peer, file) in [("bxctl", "owner"), ("gatewayd", "chat")] {
        let listener = started.listener(peer).unwrap();
        let mut caller = UnixStream::connect(path(file)).unwrap();
        caller.write_all(peer.as_bytes()).unwrap();
        drop(caller);
        let mut heard = String::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_string(&mut heard)
            .unwrap();
        assert_eq!(heard, peer);
        assert!(started.listener(peer).is_none());
    }
    assert!(started.unexpected().is_empty());

    started
        .control
        .send(&Envelope::new(started.id, Message::Ready(Empty {})))
        .unwrap();
    let ready = supervisor.receive().unwrap().unwrap().envelope;
    assert_eq!(ready, Envelope::new(11, Message::Ready(Empty {})));
}

#[test]
fn a_role_refuses_to_be_another_one_and_closes_what_came() {
    let (supervisor, role) = control();
    let witness = Witness::new(1);
    let sockets = [("bxctl", witness.descriptors()[0])];
    start(&supervisor, 1, "egressd", "", &sockets).unwrap();
    let error = Started::from_stream("brokerd", role).unwrap_err();
    assert_eq!(
        error.to_string(),
        "started as egressd, but this binary is brokerd"
    );
    witness.sees_all_closed();
    assert!(supervisor.receive().unwrap().is_none());
}

#[test]
fn two_sockets_of_one_name_are_refused_and_closed() {
    let (supervisor, role) = control();
    let witness = Witness::new(3);
    let names = ["bxctl", "gatewayd", "bxctl"];
    let sockets: Vec<_> = names.into_iter().zip(witness.descriptors()).collect();
    start(&supervisor, 1, "brokerd", "", &sockets).unwrap();
    let error = Started::from_stream("brokerd", role).unwrap_err();
    assert!(
        matches!(&error, StartError::Duplicate(name) if name == "bxctl"),
        "{error}"
    );
    witness.sees_all_closed();

    let (supervisor, role) = control();
    let witness = Witness::new(3);
    let names = ["bxctl", "gatewayd", "loopd"];
    let sockets: Vec<_> = names.into_iter().zip(witness.descriptors()).collect();
    start(&supervisor, 1, "brokerd", "", &sockets).unwrap();
    assert_eq!(
        Started::from_stream("brokerd", role).unwrap().unexpected(),
        names
    );
    witness.sees_all_closed();
}

#[test]
fn a_role_starts_with_role_start_and_with_no_other_message() {
    let (supervisor, role) = control();
    supervisor
        .send(&Envelope::new(1, Message::Ping(Empty {})))
        .unwrap();
    let error = Started::from_stream("brokerd", role).unwrap_err();
    assert!(matches!(error, StartError::Unexpected("ping")), "{error}");

    let (supervisor, role) = control();
    start(&supervisor, 1, "brokerd", "", &[]).unwrap();
    assert!(
        Started::from_stream("brokerd", role)
            .unwrap()
            .unexpected()
            .is_empty()
    );
}

#[test]
fn a_role_whose_supervisor_is_gone_does_not_start() {
    let (supervisor, role) = control();
    drop(supervisor);
    let error = Started::from_stream("brokerd", role).unwrap_err();
    assert!(matches!(error, StartError::Closed), "{error}");
}

#[test]
fn a_role_that_gets_fewer_sockets_than_names_does_not_start() {
    let (supervisor, role) = UnixStream::pair().unwrap();
    let message = Message::RoleStart(RoleStart {
        role: "brokerd".into(),
        config: String::new(),
        sockets: vec!["bxctl".into(), "gatewayd".into()],
    });
    let witness = Witness::new(1);
    let body = Envelope::new(1, message).encode().unwrap();
    say(&supervisor, &framed(&body), &witness.descriptors());
    let error = Started::from_stream("brokerd", role).unwrap_err();
    assert!(
        matches!(
            error,
            StartError::Receive(RecvError::Count {
                named: 2,
                came: 1,
                ..
            })
        ),
        "{error}"
    );
    witness.sees_all_closed();
}
