//! Messages with the number of descriptors that their kind names, and no other number.

use std::os::unix::net::UnixStream;

use ipc::{Connection, RecvError, SendError};
use proto::broker::PolicyGeneration;
use proto::frame::{FrameError, MAX_FRAME};
use proto::role::{Empty, RoleStart};
use proto::{Envelope, ErrorCode, Message};

use crate::pipes::Witness;
use crate::wire::{framed, say};

fn peers() -> (Connection, UnixStream) {
    let (one, other) = UnixStream::pair().unwrap();
    (Connection::new(one), other)
}

fn ping() -> Envelope {
    Envelope::new(3, Message::Ping(Empty {}))
}

fn policy() -> Envelope {
    Envelope::new(4, Message::Policy(PolicyGeneration { generation: 1 }))
}

fn role_start(sockets: usize) -> Envelope {
    let start = RoleStart {
        role: "brokerd".into(),
        config: String::new(),
        sockets: (0..sockets).map(|index| index.to_string()).collect(),
    };
    Envelope::new(5, Message::RoleStart(start))
}

#[test]
fn a_message_arrives_with_exactly_the_descriptors_it_names() {
    for (envelope, count) in [
        (ping(), 0),
        (policy(), 1),
        (role_start(0), 0),
        (role_start(16), 16),
    ] {
        let (receiver, peer) = peers();
        let witness = Witness::new(count);
        let sender = Connection::new(peer);
        sender.send_with(&envelope, &witness.descriptors()).unwrap();
        let received = receiver.receive().unwrap().unwrap();
        assert_eq!(received.envelope, envelope);
        witness.sees_open(received.descriptors);
    }
}

#[test]
fn a_message_with_another_number_of_descriptors_is_refused_and_they_are_closed() {
    for (envelope, count) in [
        (ping(), 1),
        (policy(), 0),
        (policy(), 2),
        (role_start(3), 2),
        (role_start(0), 1),
    ] {
        let (receiver, peer) = peers();
        let witness = Witness::new(count);
        say(
            &peer,
            &framed(&envelope.encode().unwrap()),
            &witness.descriptors(),
        );
        let error = receiver.receive().unwrap_err();
        let RecvError::Count {
            kind,
            id,
            named,
            came,
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((*kind, *id), (envelope.msg.kind(), envelope.id));
        assert_eq!((*named, *came), (envelope.msg.descriptors(), count));
        witness.sees_all_closed();
    }
}

#[test]
fn a_message_is_not_sent_with_another_number_of_descriptors() {
    for (envelope, count) in [(ping(), 1), (policy(), 0), (policy(), 2)] {
        let (sender, peer) = Connection::pair().unwrap();
        let witness = Witness::new(count);
        let error = sender
            .send_with(&envelope, &witness.descriptors())
            .unwrap_err();
        assert!(
            matches!(error, SendError::Count { given, .. } if given == count),
            "{error}"
        );
        drop(sender);
        assert!(peer.receive().unwrap().is_none());
    }
}

#[test]
fn descriptors_that_come_with_a_bad_message_are_closed() {
    for body in [
        "{}",
        "no json",
        r#"{"v":2,"id":9,"final":true,"msg":{"kind":"policy","body":{}}}"#,
    ] {
        let (receiver, peer) = peers();
        let witness = Witness::new(2);
        say(&peer, &framed(body.as_bytes()), &witness.descriptors());
        let error = receiver.receive().unwrap_err();
        assert!(matches!(error, RecvError::Decode(_)), "{error}");
        witness.sees_all_closed();
    }
}

#[test]
fn an_error_is_answered_with_its_code_and_the_id_of_what_it_answers() {
    let newer = r#"{"v":2,"id":9,"final":true,"msg":{}}"#;
    let unknown = r#"{"v":1,"id":8,"final":true,"msg":{"kind":"open_sesame","body":{}}}"#;
    let uncounted = String::from_utf8(policy().encode().unwrap()).unwrap();
    for (bytes, id, code) in [
        (framed(newer.as_bytes()), 9, ErrorCode::BadVersion),
        (framed(unknown.as_bytes()), 8, ErrorCode::BadMessage),
        (framed(b"no json"), 0, ErrorCode::BadMessage),
        (framed(uncounted.as_bytes()), 4, ErrorCode::BadFrame),
        (vec![0; 4], 0, ErrorCode::BadFrame),
        (vec![0xff; 4], 0, ErrorCode::BadFrame),
    ] {
        let (receiver, peer) = peers();
        say(&peer, &bytes, &[]);
        let reply = receiver.receive().unwrap_err().reply();
        assert_eq!(reply.id, id);
        receiver.send(&reply).unwrap();
        let heard = Connection::new(peer).receive().unwrap().unwrap().envelope;
        let Message::Error(error) = heard.msg else {
            panic!("{heard:?}");
        };
        assert_eq!(error.code, code, "{}", error.detail);
        assert!(!error.detail.is_empty());
    }
}

#[test]
fn the_answer_to_the_longest_bad_message_fits_a_frame() {
    let (head, tail) = (
        r#"{"v":1,"id":8,"final":true,"msg":{"kind":""#,
        r#"","body":{}}}"#,
    );
    let filler = "\u{1f980}".repeat((MAX_FRAME - head.len() - tail.len()) / 4);
    let error = Envelope::decode(format!("{head}{filler}{tail}").as_bytes()).unwrap_err();
    let reply = RecvError::from(error).reply();
    assert!(reply.encode().unwrap().len() < 4096);
}

#[test]
fn a_message_that_would_not_fit_a_frame_is_not_sent() {
    let (sender, peer) = Connection::pair().unwrap();
    let start = |length| {
        let start = RoleStart {
            role: "brokerd".into(),
            config: "x".repeat(length),
            sockets: Vec::new(),
        };
        Envelope::new(5, Message::RoleStart(start))
    };
    let error = sender.send(&start(MAX_FRAME)).unwrap_err();
    assert!(
        matches!(error, SendError::Frame(FrameError::TooLong(_))),
        "{error}"
    );
    sender.send(&start(1000)).unwrap();
    assert_eq!(peer.receive().unwrap().unwrap().envelope, start(1000));
}

#[test]
fn one_thread_receives_while_another_sends_on_the_same_end() {
    let (one, other) = Connection::pair().unwrap();
    let listening = one.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Some(received) = listening.receive().unwrap() {
                assert_eq!(received.envelope, ping());
            }
        });
        scope.spawn(move || {
            for _ in 0..100 {
                other.send(&ping()).unwrap();
                assert_eq!(other.receive().unwrap().unwrap().envelope, policy());
            }
        });
        let witness = Witness::new(1);
        for _ in 0..100 {
            one.send_with(&policy(), &witness.descriptors()).unwrap();
        }
    });
}
