//! Raw frames: a peer that does not keep to the rules, written by hand.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use ipc::Wire;
use ipc::wire::{MAX_DESCRIPTORS, WireError};
use proto::frame::{FrameError, MAX_FRAME};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::pipes::Witness;

/// One end speaks frames, the other says what a test makes it say.
pub(crate) fn peers() -> (Wire, UnixStream) {
    let (one, other) = UnixStream::pair().unwrap();
    (Wire::new(one), other)
}

/// Sends `bytes` with `descriptors`, whatever the rules say.
pub(crate) fn say(stream: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    }
    let sent = rustix::net::sendmsg(
        stream,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    );
    assert_eq!(sent.unwrap(), bytes.len());
}

/// A whole frame.
pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    [&length.to_be_bytes(), body].concat()
}

#[test]
fn descriptors_arrive_in_order_with_their_frame() {
    for count in [0, 1, 2, MAX_DESCRIPTORS] {
        let (wire, peer) = peers();
        let witness = Witness::new(count);
        Wire::new(peer)
            .send(b"body", &witness.descriptors())
            .unwrap();
        let frame = wire.receive().unwrap().unwrap();
        assert_eq!(frame.body, b"body");
        witness.sees_open(frame.descriptors);
    }
}

#[test]
fn received_descriptors_do_not_outlive_an_exec() {
    let (wire, peer) = peers();
    let witness = Witness::new(1);
    Wire::new(peer)
        .send(b"body", &witness.descriptors())
        .unwrap();
    let frame = wire.receive().unwrap().unwrap();
    let flags = rustix::io::fcntl_getfd(&frame.descriptors[0]).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

#[test]
fn each_of_several_waiting_frames_keeps_its_own_descriptors() {
    let (wire, peer) = peers();
    let witnesses: Vec<Witness> = [1, 0, 2, 0].into_iter().map(Witness::new).collect();
    let sender = Wire::new(peer);
    for (index, witness) in witnesses.iter().enumerate() {
        sender
            .send(&[b'a'; 9][..=index], &witness.descriptors())
            .unwrap();
    }
    drop(sender);
    for (index, witness) in witnesses.into_iter().enumerate() {
        let frame = wire.receive().unwrap().unwrap();
        assert_eq!(frame.body.len(), index + 1);
        witness.sees_open(frame.descriptors);
    }
    assert!(wire.receive().unwrap().is_none());
}

#[test]
fn a_longest_frame_arrives_whole_with_its_descriptors() {
    let (wire, peer) = peers();
    let witness = Witness::new(MAX_DESCRIPTORS);
    let body: Vec<u8> = (0..MAX_FRAME).map(|index| (index % 251) as u8).collect();
    std::thread::scope(|scope| {
        let descriptors = witness.descriptors();
        let sender = Wire::new(peer);
        let body = &body;
        scope.spawn(move || sender.send(body, &descriptors).unwrap());
        let frame = wire.receive().unwrap().unwrap();
        assert!(frame.body == *body);
        assert_eq!(frame.descriptors.len(), MAX_DESCRIPTORS);
    });
    witness.sees_all_closed();
}

#[test]
fn one_descriptor_too_many_is_refused_and_all_are_closed() {
    for count in [MAX_DESCRIPTORS + 1, MAX_DESCRIPTORS + 2, 64] {
        let (wire, peer) = peers();
        let witness = Witness::new(count);
        say(&peer, &framed(b"body"), &witness.descriptors());
        let error = wire.receive().unwrap_err();
        assert!(
            matches!(error, WireError::TooManyDescriptors),
            "{count}: {error}"
        );
        drop(peer);
        witness.sees_all_closed();
    }
}

#[test]
fn a_sender_does_not_send_one_descriptor_too_many() {
    let (wire, peer) = peers();
    let witness = Witness::new(MAX_DESCRIPTORS + 1);
    let error = Wire::new(peer)
        .send(b"body", &witness.descriptors())
        .unwrap_err();
    assert!(matches!(error, FrameError::Io(_)), "{error}");
    assert!(wire.receive().unwrap().is_none());
    witness.sees_all_closed();
}

#[test]
fn descriptors_with_any_byte_but_the_first_are_refused_and_closed() {
    let frame = framed(b"body");
    for place in 1..frame.len() {
        let (wire, peer) = peers();
        let witness = Witness::new(2);
        say(&peer, &frame[..place], &[]);
        say(&peer, &frame[place..], &witness.descriptors());
        let error = wire.receive().unwrap_err();
        assert!(
            matches!(error, WireError::MisplacedDescriptors),
            "{place}: {error}"
        );
        witness.sees_all_closed();
    }
    let (wire, peer) = peers();
    let witness = Witness::new(2);
    say(&peer, &frame[..1], &witness.descriptors());
    say(&peer, &frame[1..], &[]);
    witness.sees_open(wire.receive().unwrap().unwrap().descriptors);
}

#[test]
fn descriptors_with_the_first_byte_and_again_later_are_all_closed() {
    let frame = framed(b"body");
    let (wire, peer) = peers();
    let (first, second) = (Witness::new(2), Witness::new(1));
    say(&peer, &frame[..6], &first.descriptors());
    say(&peer, &frame[6..], &second.descriptors());
    let error = wire.receive().unwrap_err();
    assert!(matches!(error, WireError::MisplacedDescriptors), "{error}");
    first.sees_all_closed();
    second.sees_all_closed();
}

#[test]
fn a_bad_length_is_refused_at_once_and_what_came_with_it_is_closed() {
    for length in [0, MAX_FRAME as u32 + 1, u32::MAX] {
        let (wire, peer) = peers();
        let witness = Witness::new(1);
        // The peer neither sends a body nor closes: a receiver that waited for one would wait for ever.
        say(&peer, &length.to_be_bytes(), &witness.descriptors());
        let error = wire.receive().unwrap_err();
        match length {
            0 => assert!(
                matches!(error, WireError::Frame(FrameError::Empty)),
                "{error}"
            ),
            _ => assert!(
                matches!(error, WireError::Frame(FrameError::TooLong(_))),
                "{error}"
            ),
        }
        witness.sees_all_closed();
    }
}

#[test]
fn a_peer_that_stops_inside_a_frame_is_told_from_one_that_stops_after_it() {
    let frame = framed(b"body");
    for cut in 1..frame.len() {
        let (wire, peer) = peers();
        let witness = Witness::new(1);
        say(&peer, &frame[..cut], &witness.descriptors());
        drop(peer);
        let error = wire.receive().unwrap_err();
        assert!(
            matches!(error, WireError::Frame(FrameError::Truncated)),
            "{cut}: {error}"
        );
        witness.sees_all_closed();
    }
    let (wire, peer) = peers();
    say(&peer, &frame, &[]);
    drop(peer);
    assert!(wire.receive().unwrap().is_some());
    assert!(wire.receive().unwrap().is_none());
}

#[test]
fn a_frame_that_comes_byte_by_byte_is_the_same_frame() {
    let (wire, mut peer) = peers();
    let witness = Witness::new(1);
    let frame = framed(b"body");
    std::thread::scope(|scope| {
        let descriptors = witness.descriptors();
        scope.spawn(move || {
            say(&peer, &frame[..1], &descriptors);
            for byte in &frame[1..] {
                peer.write_all(&[*byte]).unwrap();
            }
        });
        let received = wire.receive().unwrap().unwrap();
        assert_eq!(
            (received.body.as_slice(), received.descriptors.len()),
            (&b"body"[..], 1)
        );
    });
    witness.sees_all_closed();
}

#[test]
fn frames_that_are_never_received_leave_nothing_open() {
    let (wire, peer) = peers();
    let witness = Witness::new(3);
    Wire::new(peer)
        .send(b"body", &witness.descriptors())
        .unwrap();
    drop(wire);
    witness.sees_all_closed();
}
