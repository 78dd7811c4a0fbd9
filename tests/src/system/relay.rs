//! The test's end of the relay: what a compromised brokerd can say to the supervisor, and what it hears.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use ipc::{Connection, Files, Received, Wire};
use proto::broker::HistoryEntry;
use proto::role::Empty;
use proto::{Envelope, ErrorCode, Message};

use super::processes::{PATIENCE, until};
use super::{Home, System};

/// One life of brokerd, spoken by the test. Dropping it ends that life.
#[derive(Debug)]
pub struct Relay {
    to: Arc<Mutex<Wire>>,
    from: Receiver<Received>,
    seen: Vec<Received>,
    next: u64,
    start: u64,
    /// The generation that came with the policy.
    pub generation: u64,
    /// The policy as it was handed over.
    pub policy: Files,
    /// What was replayed.
    pub history: Vec<HistoryEntry>,
}

impl Relay {
    /// Becomes the brokerd that `system` is starting, and takes in what it is handed. It is not `ready` yet.
    ///
    /// # Panics
    /// No brokerd is started within 30 s, or it is handed something else.
    #[must_use]
    pub fn connect(system: &mut System, home: &Home) -> Self {
        let mut connection = None;
        until("the owner's socket", || {
            system.must_run(home);
            connection = home.connect().ok();
            connection.is_some()
        });
        let stream = connection.unwrap().stream().try_clone().unwrap();
        let to = Arc::new(Mutex::new(Wire::new(stream.try_clone().unwrap())));
        let (tell, from) = channel();
        let pong = Arc::clone(&to);
        thread::spawn(move || {
            let from = Connection::new(stream);
            while let Ok(Some(received)) = from.receive() {
                let Envelope { id, ref msg, .. } = received.envelope;
                if matches!(msg, Message::Ping(_)) {
                    let pong_body = Envelope::new(id, Message::Pong(Empty {})).encode();
                    // The line may be at its end.
                    let _ = send(&pong, b'f', &pong_body.unwrap(), &[]);
                } else if tell.send(received).is_err() {
                    return;
                }
            }
        });
        let mut relay = Self {
            to,
            from,
            seen: Vec::new(),
            // Far from the ids that the supervisor chooses for what it says by itself.
            next: 1 << 32,
            start: 0,
            generation: 0,
            policy: Files::default(),
            history: Vec::new(),
        };
        relay.take_start();
        relay
    }

    fn take_start(&mut self) {
        let start = self.expect("role_start", |message| {
            matches!(message, Message::RoleStart(_))
        });
        self.start = start.envelope.id;
        let mut policy = self.expect("policy", |message| matches!(message, Message::Policy(_)));
        if let Message::Policy(generation) = policy.envelope.msg {
            self.generation = generation.generation;
        }
        self.policy = Files::unseal(policy.descriptors.remove(0)).unwrap();
        loop {
            let part = self.expect("history", |message| matches!(message, Message::History(_)));
            if let Message::History(history) = part.envelope.msg {
                self.history.extend(history.entries);
            }
            if part.envelope.r#final {
                return;
            }
        }
    }

    /// Says that it can serve.
    pub fn ready(&mut self) {
        let ready = Envelope::new(self.start, Message::Ready(Empty {}));
        self.frame(&ready.encode().unwrap(), &[]);
    }

    /// Connects and says that it can serve.
    #[must_use]
    pub fn up(system: &mut System, home: &Home) -> Self {
        let mut relay = Self::connect(system, home);
        let times = home.times_up();
        relay.ready();
        system.wait_up(home, times);
        relay
    }

    /// Sends a message and returns its id.
    pub fn say(&mut self, message: Message) -> u64 {
        let id = self.fresh();
        self.frame(&Envelope::new(id, message).encode().unwrap(), &[]);
        id
    }

    /// Sends a message and waits for what answers it.
    pub fn ask(&mut self, message: Message) -> Received {
        let id = self.say(message);
        self.answer(id)
    }

    /// Sends a message that must be refused, and returns with which code and words.
    ///
    /// # Panics
    /// The answer is no error.
    pub fn refused(&mut self, message: Message) -> (ErrorCode, String) {
        match self.ask(message).envelope.msg {
            Message::Error(error) => (error.code, error.detail),
            other => panic!("expected an error, got {other:?}"),
        }
    }

    /// An id that was not used yet, for a frame that is no message of this protocol.
    pub fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Sends the body of one frame, whatever it holds. A line that has ended takes it and is silent.
    pub fn frame(&mut self, body: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let _ = send(&self.to, b'f', body, descriptors);
    }

    /// Sends bytes that need not be a frame.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let _ = send(&self.to, b'b', bytes, &[]);
    }

    /// Has the relay stay when the line ends, so that only the supervisor can end it.
    pub fn stay(&mut self) {
        let _ = send(&self.to, b's', &[], &[]);
    }

    /// Waits for the answer to `id`.
    ///
    /// # Panics
    /// It does not come within 30 s, or the line ends.
    pub fn answer(&mut self, id: u64) -> Received {
        self.take(&format!("an answer to {id}"), |received| {
            received.envelope.id == id
        })
    }

    /// Waits for a message that the supervisor says by itself.
    ///
    /// # Panics
    /// It does not come within 30 s, or the line ends.
    pub fn expect(&mut self, what: &str, wanted: impl Fn(&Message) -> bool) -> Received {
        self.take(what, |received| wanted(&received.envelope.msg))
    }

    fn take(&mut self, what: &str, wanted: impl Fn(&Received) -> bool) -> Received {
        let start = Instant::now();
        loop {
            if let Some(index) = self.seen.iter().position(&wanted) {
                return self.seen.remove(index);
            }
            let left = PATIENCE.saturating_sub(start.elapsed());
            match self.from.recv_timeout(left) {
                Ok(received) => self.seen.push(received),
                Err(error) => panic!("no {what}: {error}; there was {:?}", self.seen),
            }
        }
    }

    /// Waits until the line has ended, and returns what the supervisor said last.
    ///
    /// # Panics
    /// It has not within 30 s.
    pub fn ended(&mut self) -> Vec<Message> {
        let start = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(start.elapsed());
            match self.from.recv_timeout(left) {
                Ok(received) => self.seen.push(received),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the line has not ended within 30 s"),
            }
        }
        let seen = std::mem::take(&mut self.seen);
        seen.into_iter()
            .map(|received| received.envelope.msg)
            .collect()
    }

    /// Whether nothing was heard that nobody asked for; waits for nothing.
    #[must_use]
    pub fn heard(&mut self) -> Vec<&Message> {
        while let Ok(received) = self.from.try_recv() {
            self.seen.push(received);
        }
        self.seen
            .iter()
            .map(|received| &received.envelope.msg)
            .collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let to = self.to.lock().unwrap();
        // The thread that reads holds the stream too, so closing it is not enough.
        let _ = to.stream().shutdown(std::net::Shutdown::Both);
    }
}

fn send(
    to: &Mutex<Wire>,
    how: u8,
    body: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), proto::frame::FrameError> {
    let mut whole = vec![how];
    whole.extend_from_slice(body);
    to.lock().unwrap().send(&whole, descriptors)
}

/// Reads one of the tool's streams to its end.
///
/// # Panics
/// It is no UTF-8.
#[must_use]
pub fn read(stream: OwnedFd) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::fs::File::from(stream), &mut text).unwrap();
    text
}

/// A descriptor that goes nowhere, to be sent where none is wanted.
///
/// # Panics
/// There is no `/dev/null`.
#[must_use]
pub fn stray() -> OwnedFd {
    let null = std::fs::File::open("/dev/null").unwrap();
    null.as_fd().try_clone_to_owned().unwrap()
}
