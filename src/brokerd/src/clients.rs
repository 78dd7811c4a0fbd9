//! The listener behind which the owner's command line is: one thread per connection, so that a peer that says nothing
//! or never reads holds only its own (protocol.md section 2). What may be asked here is listed in one `match`.

use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use ipc::Connection;
use proto::client::SessionOpen;
use proto::{Answer, Envelope, ErrorCode, Message, WireError};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::asking::Caller;
use crate::bell::Bell;
use crate::broker::{Broker, internal, stopping};
use crate::calls::Unanswered;
use crate::report;

/// The most connections at one time.
pub(crate) const CONNECTIONS: usize = 64;

/// How long a peer may take to make room for an answer.
const WRITE: Duration = Duration::from_secs(30);

/// How long to wait before accepting again when the process has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// Held by the thread of one connection.
struct Place(Arc<AtomicUsize>);

impl Place {
    /// A call that waits for the owner leaves its place to others, or nobody could come in and answer. Questions have
    /// a bound of their own.
    fn lend(&self, lent: bool) {
        if lent {
            self.0.fetch_sub(1, Ordering::AcqRel);
        } else {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Accepts connections until `closing` rings.
pub(crate) fn accept(broker: &Arc<Broker>, listener: &UnixListener, closing: &Bell) {
    let taken = Arc::new(AtomicUsize::new(0));
    // A connection that is gone again between poll and accept must not make accept wait, deaf to `closing`.
    if let Err(error) = listener.set_nonblocking(true) {
        report(format_args!("cannot serve the listener: {error}"));
        return;
    }
    loop {
        let mut polled = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(closing, PollFlags::IN),
        ];
        match rustix::event::poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => {
                report(format_args!("cannot wait for connections: {errno}"));
                return;
            }
        }
        if !polled[1].revents().is_empty() {
            return;
        }
        match listener.accept() {
            Ok((stream, _)) => admit(broker, stream, &taken),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => {
                report(format_args!("cannot accept a connection: {error}"));
                thread::sleep(PAUSE);
            }
        }
    }
}

fn admit(broker: &Arc<Broker>, stream: UnixStream, taken: &Arc<AtomicUsize>) {
    let connection = Connection::new(stream);
    let place = Place(Arc::clone(taken));
    if taken.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS {
        let full = format!("{CONNECTIONS} connections are open, and that is the most: close one");
        refuse(&connection, 0, internal(full));
        return;
    }
    let broker = Arc::clone(broker);
    let spawned = thread::Builder::new()
        .name("bxctl".to_owned())
        .spawn(move || {
            serve(&broker, &connection, &place);
        });
    if let Err(error) = spawned {
        // The connection went with the thread that did not start, and is closed.
        report(format_args!("cannot serve a connection: {error}"));
    }
}

/// Answers one request after the other until the peer leaves or does what it may not.
fn serve(broker: &Broker, connection: &Connection, place: &Place) {
    if let Err(error) = connection.stream().set_write_timeout(Some(WRITE)) {
        report(format_args!(
            "cannot bound the answers of a connection: {error}"
        ));
        return;
    }
    loop {
        let request = match connection.receive() {
            Ok(Some(received)) => received.envelope,
            Ok(None) => return,
            Err(error) => {
                // Whether the peer still reads this does not matter: the stream is out of step and ends.
                let _ = connection.send(&error.reply());
                return;
            }
        };
        let id = request.id;
        if !request.r#final {
            let detail = "a request is one frame, with final: true".to_owned();
            let code = ErrorCode::BadMessage;
            return refuse(connection, id, WireError { code, detail });
        }
        let answered = match request.msg {
            Message::ToolRequest(call) => {
                let Some(_in_progress) = broker.begin_call() else {
                    return refuse(connection, id, stopping());
                };
                let tell = |response| {
                    let part = Envelope::partial(id, Message::ToolResponse(response));
                    connection.send(&part).is_ok()
                };
                let caller = Caller {
                    stream: connection.stream(),
                    tell: &tell,
                    waits: &|waits| place.lend(waits),
                };
                let response = broker.call(&call, &caller);
                answer(connection, id, response.map(Message::ToolResponse))
            }
            Message::Approvals(_) => answer_in_parts(connection, id, broker.list_questions()),
            Message::SessionOpen(open) => open_session(broker, connection, id, open),
            other => answer(connection, id, handle(broker, other)),
        };
        if !answered {
            return;
        }
    }
}

/// Opens a session and names it to the peer. One that boxmaker named and nobody was told of would stay open for ever,
/// so it is ended.
fn open_session(broker: &Broker, connection: &Connection, id: u64, open: SessionOpen) -> bool {
    let named = open.session.is_some();
    let opened = broker.open_session(open);
    let fresh = match &opened {
        Ok(Message::SessionOpened(opened)) if !named => Some(opened.session.clone()),
        _ => None,
    };
    let told = answer(connection, id, opened.map_err(Unanswered::Error));
    if let (false, Some(session)) = (told, fresh)
        && let Err(error) = broker.end_session(&session)
    {
        report(format_args!(
            "session {session} was not ended: {}",
            error.detail
        ));
    }
    told
}

/// Every kind that this listener takes and that `serve` does not answer itself.
fn handle(broker: &Broker, message: Message) -> Result<Message, Unanswered> {
    let answer = match message {
        Message::SessionList(_) => Ok(broker.list_sessions()),
        Message::SessionEnd(end) => broker.end_session(&end.session),
        Message::ToolsList(_) => broker.list_tools(),
        Message::Approve(named) => broker.answer(&named.approval, Answer::Approved),
        Message::Refuse(named) => broker.answer(&named.approval, Answer::Refused),
        Message::Status(_) => broker.status(),
        other => Err(WireError {
            code: ErrorCode::BadMessage,
            detail: format!(
                "{} is not asked here: this listener takes session_open, session_list, session_end, tool_request, \
                 tools_list, approvals, approve, refuse and status",
                other.kind()
            ),
        }),
    };
    answer.map_err(Unanswered::Error)
}

/// Sends an answer of several frames; whether the connection goes on.
fn answer_in_parts(connection: &Connection, id: u64, mut parts: Vec<Message>) -> bool {
    let Some(last) = parts.pop() else {
        return false;
    };
    let sent = |part| connection.send(&Envelope::partial(id, part)).is_ok();
    parts.into_iter().all(sent) && answer(connection, id, Ok(last))
}

/// Sends an answer; whether the connection goes on.
fn answer(connection: &Connection, id: u64, answer: Result<Message, Unanswered>) -> bool {
    let message = match answer {
        Ok(message) => message,
        Err(Unanswered::Error(error)) => {
            refuse(connection, id, error);
            return false;
        }
        Err(Unanswered::Gone) => return false,
    };
    let kind = message.kind();
    match connection.send(&Envelope::new(id, message)) {
        Ok(()) => true,
        Err(ipc::SendError::Frame(proto::frame::FrameError::TooLong(bytes))) => {
            let rule = proto::frame::MAX_FRAME;
            let detail = format!("{kind} would have {bytes} bytes, and a frame holds {rule}");
            refuse(connection, id, internal(detail));
            false
        }
        // The peer left, or did not read for too long; half an answer may be out.
        Err(_) => false,
    }
}

fn refuse(connection: &Connection, id: u64, error: WireError) {
    // The connection is closed next, so a peer that does not read this learns as much.
    let _ = connection.send(&Envelope::new(id, Message::Error(error)));
}
