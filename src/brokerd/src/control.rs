//! The private line to the supervisor: many threads ask at the same time, one thread reads and hands each answer to
//! the thread that waits for it. Knows which message answers which, and nothing of calls or sessions.
//!
//! Both ends choose ids of their own, so an id alone says nothing: what the supervisor says by itself (`ping`, `stop`,
//! `policy`, `exited`) is told from answers by its kind.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipc::{Connection, Received, RecvError, SendError};
use proto::broker::{
    Abort, Commit, Exited, Finish, PolicyGeneration, Prepare, Record, RecordEntry,
};
use proto::role::Empty;
use proto::{Envelope, ErrorCode, Message, Ticket, WireError};

use crate::bell::Bell;

/// Why the supervisor gave no answer that could be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// The line is closed; the process is about to end.
    #[error("the supervisor closed the control socket")]
    Closed,
    /// The question could not be sent, and was not.
    #[error("cannot send to the supervisor: {0}")]
    Send(#[source] SendError),
    /// The supervisor answered with an error.
    #[error("the supervisor answered {asked}: {detail}")]
    Answered {
        /// The kind of the question.
        asked: &'static str,
        /// `internal` if it failed, anything else if it refused.
        code: ErrorCode,
        /// What it said.
        detail: String,
    },
    /// The answer is of a kind that does not answer the question.
    #[error("the supervisor answered {asked} with {got}")]
    Unexpected {
        /// The kind of the question.
        asked: &'static str,
        /// The kind of the answer.
        got: &'static str,
    },
    /// eventfd(2) or poll(2) failed.
    #[error("cannot wait for the end of a call: {0}")]
    Wait(#[source] std::io::Error),
}

/// What the supervisor says by itself and the reader does not settle.
pub(crate) enum Order {
    /// Another generation of the policy.
    Policy(PolicyGeneration, OwnedFd),
    /// An orderly end is wanted.
    Stop,
}

/// Why the reader ended.
#[derive(Debug, thiserror::Error)]
pub enum ReadEnd {
    /// The supervisor closed the line.
    #[error("the supervisor closed the control socket")]
    Closed,
    /// What came is no message.
    #[error("from the supervisor: {0}")]
    Receive(#[from] RecvError),
    /// What came has no place here.
    #[error("the supervisor sent {0}, which has no place after the start")]
    Unexpected(&'static str),
}

/// The line. All methods may be called by any thread; [`Control::read`] by one.
#[derive(Debug)]
pub(crate) struct Control {
    receiver: Connection,
    sender: Mutex<Connection>,
    waiting: Mutex<Waiting>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    closed: bool,
    stopping: bool,
    answers: BTreeMap<u64, SyncSender<Received>>,
    exits: BTreeMap<Ticket, Exit>,
}

#[derive(Debug)]
struct Exit {
    exited: SyncSender<Exited>,
    bell: Arc<Bell>,
}

/// Waits for the end of one call.
pub(crate) struct ExitWatch<'control> {
    control: &'control Control,
    ticket: Ticket,
    exited: Receiver<Exited>,
    bell: Arc<Bell>,
}

impl Control {
    /// Takes over the control socket after the start.
    ///
    /// # Errors
    /// As fcntl(2) with `F_DUPFD_CLOEXEC`.
    pub(crate) fn new(connection: Connection, next: u64) -> std::io::Result<Self> {
        Ok(Self {
            sender: Mutex::new(connection.try_clone()?),
            receiver: connection,
            waiting: Mutex::default(),
            next: AtomicU64::new(next),
        })
    }

    /// Reads until the line ends, answers `ping`, hands out answers and ends of calls, and passes the rest to `order`.
    pub(crate) fn read(&self, order: impl Fn(Order)) -> ReadEnd {
        let end = loop {
            match self.receiver.receive() {
                Ok(Some(received)) => {
                    if let Err(end) = self.dispatch(received, &order) {
                        break end;
                    }
                }
                Ok(None) => break ReadEnd::Closed,
                Err(error) => break error.into(),
            }
        };
        let mut waiting = self.waiting();
        waiting.closed = true;
        // Every sender that is dropped here wakes the thread that waits at the other end.
        waiting.answers.clear();
        for exit in std::mem::take(&mut waiting.exits).into_values() {
            drop(exit.exited);
            exit.bell.ring();
        }
        end
    }

    fn dispatch(&self, received: Received, order: &impl Fn(Order)) -> Result<(), ReadEnd> {
        let Received {
            envelope,
            mut descriptors,
        } = received;
        match envelope.msg {
            Message::Ping(_) => {
                let pong = Envelope::new(envelope.id, Message::Pong(Empty {}));
                // A line that takes no pong ends the reader with its own error.
                let _ = self.sender().send(&pong);
            }
            Message::Stop(_) => order(Order::Stop),
            Message::Policy(policy) => {
                if let Some(memory) = descriptors.pop() {
                    order(Order::Policy(policy, memory));
                }
            }
            Message::Exited(exited) => {
                // A call that nobody waits for was given up by a thread that is gone.
                if let Some(exit) = self.waiting().exits.remove(&exited.ticket) {
                    let _ = exit.exited.send(exited);
                    exit.bell.ring();
                }
            }
            Message::Error(_)
            | Message::Ok(_)
            | Message::Recorded(_)
            | Message::Prepared(_)
            | Message::Refused(_)
            | Message::Committed(_)
            | Message::StatusReply(_) => {
                let asker = self.waiting().answers.remove(&envelope.id);
                if let Some(asker) = asker {
                    let _ = asker.send(Received {
                        envelope,
                        descriptors,
                    });
                }
            }
            other => return Err(ReadEnd::Unexpected(other.kind())),
        }
        Ok(())
    }

    /// Asks and waits for the answer, which is of any kind but `error`.
    ///
    /// # Errors
    /// As [`ControlError`].
    pub(crate) fn ask(&self, question: Message) -> Result<Received, ControlError> {
        let asked = question.kind();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, wait) = sync_channel(1);
        {
            let mut waiting = self.waiting();
            if waiting.closed {
                return Err(ControlError::Closed);
            }
            waiting.answers.insert(id, answer);
        }
        if let Err(error) = self.sender().send(&Envelope::new(id, question)) {
            self.waiting().answers.remove(&id);
            return Err(ControlError::Send(error));
        }
        let received = wait.recv().map_err(|_| ControlError::Closed)?;
        match received.envelope.msg {
            Message::Error(WireError { code, detail }) => Err(ControlError::Answered {
                asked,
                code,
                detail,
            }),
            _ => Ok(received),
        }
    }

    /// Has an entry appended to the log; it is durable when this returns, unless it is the record of an end.
    ///
    /// # Errors
    /// As [`ControlError`].
    pub(crate) fn record(&self, entry: RecordEntry) -> Result<u64, ControlError> {
        self.recorded(Message::Record(Record { entry }))
    }

    /// Closes a call.
    ///
    /// # Errors
    /// As [`ControlError`].
    pub(crate) fn finish(&self, finish: Finish) -> Result<u64, ControlError> {
        self.recorded(Message::Finish(finish))
    }

    fn recorded(&self, question: Message) -> Result<u64, ControlError> {
        let asked = question.kind();
        match self.ask(question)?.envelope.msg {
            Message::Recorded(recorded) => Ok(recorded.seq),
            other => Err(unexpected(asked, &other)),
        }
    }

    /// Asks for a sandbox; the answer is `prepared` or `refused`.
    ///
    /// # Errors
    /// As [`ControlError`].
    pub(crate) fn prepare(&self, prepare: Prepare) -> Result<Received, ControlError> {
        self.ask(Message::Prepare(prepare))
    }

    /// Asks for the start of a tool; the answer is `committed` or `refused`.
    ///
    /// # Errors
    /// As [`ControlError`].
    pub(crate) fn commit(&self, commit: Commit) -> Result<Message, ControlError> {
        Ok(self.ask(Message::Commit(commit))?.envelope.msg)
    }

    /// Gives a sandbox up. Nothing answers this: a committed one still ends with `exited`.
    pub(crate) fn abort(&self, ticket: Ticket) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let abort = Envelope::new(id, Message::Abort(Abort { ticket }));
        // If the line is gone, so is the sandbox.
        let _ = self.sender().send(&abort);
    }

    /// Begins to wait for the end of a call. To be called before its commit, because a tool may end at once.
    ///
    /// # Errors
    /// [`ControlError::Closed`] and [`ControlError::Wait`].
    pub(crate) fn watch(&self, ticket: Ticket) -> Result<ExitWatch<'_>, ControlError> {
        let bell = Arc::new(Bell::new().map_err(ControlError::Wait)?);
        let (exited, wait) = sync_channel(1);
        let exit = Exit {
            exited,
            bell: Arc::clone(&bell),
        };
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(ControlError::Closed);
        }
        if waiting.stopping {
            bell.ring();
        }
        waiting.exits.insert(ticket, exit);
        Ok(ExitWatch {
            control: self,
            ticket,
            exited: wait,
            bell,
        })
    }

    /// Wakes every thread that waits for the end of a call, so that it gives the call up.
    pub(crate) fn stop_calls(&self) {
        let mut waiting = self.waiting();
        waiting.stopping = true;
        waiting.exits.values().for_each(|exit| exit.bell.ring());
    }

    /// Whether [`Control::stop_calls`] was called.
    pub(crate) fn stopping(&self) -> bool {
        self.waiting().stopping
    }

    /// Ends the line, and with it the reader.
    pub(crate) fn close(&self) {
        let _ = self.receiver.stream().shutdown(std::net::Shutdown::Both);
    }

    fn sender(&self) -> MutexGuard<'_, Connection> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer `got` does not answer `asked`.
pub(crate) fn unexpected(asked: &'static str, got: &Message) -> ControlError {
    let got = got.kind();
    ControlError::Unexpected { asked, got }
}

impl ExitWatch<'_> {
    /// Rings when [`ExitWatch::exited`] has something to say, and when calls are to be given up.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// How the call ended; `None` while it runs.
    ///
    /// # Errors
    /// [`ControlError::Closed`]: nobody will ever say.
    pub(crate) fn exited(&self) -> Result<Option<Exited>, ControlError> {
        match self.exited.try_recv() {
            Ok(exited) => Ok(Some(exited)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(ControlError::Closed),
        }
    }
}

impl Drop for ExitWatch<'_> {
    fn drop(&mut self) {
        self.control.waiting().exits.remove(&self.ticket);
    }
}
