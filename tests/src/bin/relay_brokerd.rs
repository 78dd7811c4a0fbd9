//! A brokerd that belongs to whoever connects: it starts as the role, takes the owner's listener, accepts one
//! connection there, and from then on the peer of that connection speaks brokerd's side of the private line. It decides
//! nothing and answers nothing itself. No part of boxmaker starts it; a test puts it in the place of `brokerd`.
//!
//! To the peer it sends `role_start` without its sockets, and then every frame of the supervisor with its descriptors.
//! From the peer it takes frames whose first byte says how the rest goes on: `f` as one frame with the descriptors that
//! came, `b` as bytes without a header, so that a peer can also say what is no frame. After `s` it does not end with the
//! private line, as a brokerd would that wants to stay.

use std::error::Error;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ipc::role::Started;
use ipc::{Frame, Wire};
use proto::role::RoleStart;
use proto::{Envelope, Message};

/// Whether this process outlives its line, if it can.
static STAYS: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    match relay() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("relay-brokerd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn relay() -> Result<(), Box<dyn Error>> {
    let mut started = Started::from_stdin("brokerd")?;
    let listener = started
        .listener("bxctl")
        .ok_or("no listener was handed over")?;
    let (peer, _) = listener.accept()?;
    drop(listener);
    let peer = Wire::new(peer);
    let control = Wire::new(started.control.stream().try_clone()?);

    let start = Message::RoleStart(RoleStart {
        role: "brokerd".to_owned(),
        config: started.config,
        sockets: Vec::new(),
    });
    peer.send(&Envelope::new(started.id, start).encode()?, &[])?;

    let (from, to) = (control.try_clone()?, peer.try_clone()?);
    thread::spawn(move || {
        while let Ok(Some(frame)) = from.receive() {
            if send(&to, &frame.body, &frame).is_err() {
                break;
            }
        }
        while STAYS.load(Ordering::SeqCst) {
            thread::park();
        }
        // One side without the other is of no use; what was passed on stays to be read.
        exit(0);
    });
    while let Some(frame) = peer.receive()? {
        match frame.body.split_first() {
            Some((b'f', body)) => send(&control, body, &frame)?,
            Some((b'b', bytes)) => control.stream().write_all(bytes)?,
            Some((b's', _)) => STAYS.store(true, Ordering::SeqCst),
            _ => return Err("a frame of the peer begins with f, b or s".into()),
        }
    }
    Ok(())
}

fn send(to: &Wire, body: &[u8], with: &Frame) -> Result<(), proto::frame::FrameError> {
    let descriptors: Vec<_> = with.descriptors.iter().map(AsFd::as_fd).collect();
    to.send(body, &descriptors)
}
