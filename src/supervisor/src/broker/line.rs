//! The sending side of brokerd's control socket. brokerd may be compromised: one that stops reading must hold up
//! nobody for long, so a send that takes too long ends the line.

use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ipc::{Connection, SendError};
use proto::frame::FrameError;
use proto::{Envelope, ErrorCode, Message, WireError};

use crate::lock;

/// How long brokerd may leave a frame unread.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most characters of the detail of an error.
const MOST_DETAIL: usize = 4096;

/// The line; any thread may send.
#[derive(Debug)]
pub(crate) struct Line {
    connection: Mutex<Connection>,
    /// The same socket, to end the line while a thread holds the lock.
    stream: UnixStream,
    next: AtomicU64,
}

impl Line {
    /// A handle for sending over `connection`, and its other side for receiving.
    ///
    /// # Errors
    /// The socket could not be copied or set up.
    pub(crate) fn new(connection: &Connection) -> std::io::Result<Self> {
        let sender = connection.try_clone()?;
        sender.stream().set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: sender.stream().try_clone()?,
            connection: Mutex::new(sender),
            next: AtomicU64::new(1),
        })
    }

    /// An id for something the supervisor says by itself.
    pub(crate) fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends `message` as the answer to `id`. `false` if brokerd will not get it; the line is at its end then.
    pub(crate) fn answer(&self, id: u64, message: Message) -> bool {
        self.send(&Envelope::new(id, message), &[])
    }

    /// Answers `id` with an error.
    pub(crate) fn refuse(&self, id: u64, code: ErrorCode, detail: &dyn ToString) -> bool {
        let detail = detail.to_string().chars().take(MOST_DETAIL).collect();
        self.answer(id, Message::Error(WireError { code, detail }))
    }

    /// Says `message` without having been asked.
    pub(crate) fn say(&self, message: Message) -> bool {
        self.answer(self.next(), message)
    }

    /// Sends a frame with its descriptors.
    pub(crate) fn send(&self, envelope: &Envelope, descriptors: &[BorrowedFd<'_>]) -> bool {
        let sent = lock(&self.connection).send_with(envelope, descriptors);
        match sent {
            Ok(()) => true,
            // Nothing was sent, so the line is still in step; the caller's message was the fault.
            Err(SendError::Count { .. } | SendError::Frame(FrameError::TooLong(_))) => false,
            Err(_) => {
                self.close();
                false
            }
        }
    }

    /// Ends the line in both directions.
    pub(crate) fn close(&self) {
        // It fails only if the line has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::role::Empty;

    #[test]
    fn an_answer_carries_the_id_of_its_question_and_an_event_one_of_its_own() {
        let (near, far) = Connection::pair().unwrap();
        let line = Line::new(&near).unwrap();
        assert!(line.answer(77, Message::Ok(Empty {})));
        assert!(line.say(Message::Stop(Empty {})));
        assert!(line.refuse(78, ErrorCode::BadMessage, &"no"));
        let ids: Vec<u64> = (0..3)
            .map(|_| far.receive().unwrap().unwrap().envelope.id)
            .collect();
        assert_eq!(ids, [77, 1, 78]);
    }

    #[test]
    fn a_message_that_fits_no_frame_is_not_sent_and_the_line_goes_on() {
        let (near, far) = Connection::pair().unwrap();
        let line = Line::new(&near).unwrap();
        let detail = "x".repeat(proto::frame::MAX_FRAME);
        let code = ErrorCode::Internal;
        assert!(!line.answer(1, Message::Error(WireError { code, detail })));
        assert!(line.answer(2, Message::Ok(Empty {})));
        assert_eq!(far.receive().unwrap().unwrap().envelope.id, 2);
    }

    #[test]
    fn a_send_to_a_peer_that_is_gone_ends_the_line() {
        let (near, far) = Connection::pair().unwrap();
        let line = Line::new(&near).unwrap();
        drop(far);
        assert!(!line.say(Message::Stop(Empty {})));
        assert!(near.receive().unwrap().is_none());
    }
}
