//! The codec: length, then body. `frame/ping.frame` is a whole frame with its four header bytes.

use std::io::{self, Read};

use proptest::prelude::*;
use proto::frame::{self, FrameError, HEADER, MAX_FRAME};
use proto::{Envelope, Message};

use crate::fixtures;

/// A stream that never ends, and counts what is asked of it.
struct Endless {
    header: Vec<u8>,
    served: usize,
}

impl Endless {
    fn after(length: u32) -> Self {
        let header = length.to_be_bytes().to_vec();
        Self { header, served: 0 }
    }
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for byte in buffer.iter_mut() {
            *byte = self.header.get(self.served).copied().unwrap_or(b' ');
            self.served += 1;
        }
        Ok(buffer.len())
    }
}

/// A stream that hands out one byte at a time and is interrupted before each.
struct Dripping<'a> {
    rest: &'a [u8],
    interrupted: bool,
}

impl Read for Dripping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = self.rest.len().min(1);
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest = &self.rest[count..];
        Ok(count)
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    frame::write(&mut stream, body).unwrap();
    stream
}

#[test]
fn a_whole_frame_is_its_fixture_in_both_directions() {
    let stored = fixtures::bytes("frame/ping.frame");
    let body = fixtures::bytes("message/ping.json");
    assert_eq!(framed(&body), stored);
    assert_eq!(stored[..HEADER], [0, 0, 0, 59]);
    let read = frame::read(&mut stored.as_slice()).unwrap().unwrap();
    assert!(matches!(
        Envelope::decode(&read).unwrap().msg,
        Message::Ping(_)
    ));
}

#[test]
fn a_bad_length_is_refused_before_a_byte_of_the_body_is_read() {
    for length in [0, MAX_FRAME as u32 + 1, u32::MAX] {
        let mut stream = Endless::after(length);
        let error = frame::read(&mut stream).unwrap_err();
        match length {
            0 => assert!(matches!(error, FrameError::Empty), "{error}"),
            _ => assert!(
                matches!(error, FrameError::TooLong(told) if told == u64::from(length)),
                "{error}"
            ),
        }
        assert_eq!(stream.served, HEADER);
    }
}

#[test]
fn the_shortest_and_the_longest_body_are_read_and_nothing_after_them() {
    for length in [1, MAX_FRAME] {
        let mut stream = Endless::after(u32::try_from(length).unwrap());
        let body = frame::read(&mut stream).unwrap().unwrap();
        assert_eq!(body.len(), length);
        assert_eq!(stream.served, HEADER + length);
    }
}

#[test]
fn an_empty_or_too_long_body_is_refused_before_a_byte_is_written() {
    for length in [0, MAX_FRAME + 1] {
        let mut stream = Vec::new();
        frame::write(&mut stream, &vec![b' '; length]).unwrap_err();
        assert!(stream.is_empty());
    }
    assert_eq!(framed(&vec![b' '; MAX_FRAME]).len(), HEADER + MAX_FRAME);
}

#[test]
fn a_stream_may_end_between_two_frames_and_nowhere_else() {
    let frame = fixtures::bytes("frame/ping.frame");
    for cut in 1..frame.len() {
        let mut stream = [&frame[..], &frame[..cut]].concat();
        stream.truncate(frame.len() + cut);
        let mut rest = stream.as_slice();
        assert!(frame::read(&mut rest).unwrap().is_some());
        let error = frame::read(&mut rest).unwrap_err();
        assert!(matches!(error, FrameError::Truncated), "{cut}: {error}");
    }
    let mut whole = frame.as_slice();
    assert!(frame::read(&mut whole).unwrap().is_some());
    assert!(frame::read(&mut whole).unwrap().is_none());
}

#[test]
fn a_slow_and_interrupted_stream_gives_the_same_frame() {
    let frame = fixtures::bytes("frame/ping.frame");
    let mut stream = Dripping {
        rest: &frame,
        interrupted: false,
    };
    let body = frame::read(&mut stream).unwrap().unwrap();
    assert_eq!(body, fixtures::bytes("message/ping.json"));
}

#[test]
fn an_envelope_that_would_not_fit_a_frame_is_not_encoded() {
    let of = |length: usize| {
        Envelope::new(
            1,
            Message::Error(proto::WireError {
                code: proto::ErrorCode::Internal,
                detail: "x".repeat(length),
            }),
        )
    };
    let around = of(0).encode().unwrap().len();
    assert_eq!(of(MAX_FRAME - around).encode().unwrap().len(), MAX_FRAME);
    let error = of(MAX_FRAME - around + 1).encode().unwrap_err();
    assert!(matches!(error, FrameError::TooLong(1_048_577)), "{error}");
    // One byte of text, six bytes of JSON.
    let Message::Error(mut body) = of(0).msg else {
        unreachable!()
    };
    body.detail = "\u{1}".repeat(MAX_FRAME / 6 + 1);
    Envelope::new(1, Message::Error(body)).encode().unwrap_err();
}

proptest! {
    #[test]
    fn frames_written_one_after_another_are_read_one_after_another(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..2000), 0..8),
    ) {
        let stream: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
        let mut rest = stream.as_slice();
        for body in &bodies {
            let read = frame::read(&mut rest).unwrap();
            prop_assert_eq!(read.as_ref(), Some(body));
        }
        prop_assert!(frame::read(&mut rest).unwrap().is_none());
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut rest = bytes.as_slice();
        while let Ok(Some(body)) = frame::read(&mut rest) {
            prop_assert!(!body.is_empty() && body.len() <= MAX_FRAME);
        }
    }

    #[test]
    fn a_header_is_the_length_it_was_made_from(length in 0_usize..MAX_FRAME * 2) {
        match frame::header(length) {
            Ok(header) => prop_assert_eq!(frame::body_length(header).unwrap(), length),
            Err(_) => prop_assert!(length == 0 || length > MAX_FRAME),
        }
    }
}
