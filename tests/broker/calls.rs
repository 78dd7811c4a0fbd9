//! What these suites share: brokerd's part of a call step by step, and the owner's part.

use std::os::fd::OwnedFd;
use std::path::Path;

use crate::homes::home;
use boxmaker_tests::system::processes::{Process, until};
use boxmaker_tests::system::relay::{Relay, read};
use boxmaker_tests::system::{Brokerd, Home, System};
use ipc::{Connection, Received, RecvError};
use proto::audit::{ExitStatus, OutcomeStatus, SessionEvent};
use proto::broker::{
    Abort, Commit, Exited, Finish, Prepare, Record, RecordEntry, RefuseReason, Refused,
};
use proto::client::{SessionSummary, StatusReply, ToolResponse};
use proto::role::Empty;
use proto::{
    CallId, Confinement, DataClass, DecisionRecord, DenyReason, Envelope, GrantId, Labels, Message,
    SessionId, Ticket, ToolName,
};

/// Brokerd as the test speaks it, with the supervisor on the other side.
pub(crate) struct Broker {
    pub(crate) relay: Relay,
    pub(crate) system: System,
    // Last, so that nothing runs any more when its directory is removed.
    pub(crate) home: Home,
    session: SessionId,
    calls: u64,
}

/// A sandbox that stands and was not committed.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) ticket: Ticket,
    pub(crate) call: CallId,
    pub(crate) grant: GrantId,
    pub(crate) confinement: Confinement,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// A call from its prepare to its finish.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) seq: u64,
    pub(crate) exited: Exited,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Broker {
    /// A brokerd that is ready, in the standard home, with an open session.
    pub(crate) fn up() -> Self {
        Self::up_in(home(Brokerd::Relay))
    }

    pub(crate) fn up_in(home: Home) -> Self {
        let mut system = home.start();
        let relay = Relay::up(&mut system, &home);
        let mut broker = Self {
            relay,
            system,
            home,
            session: session("s"),
            calls: 0,
        };
        broker.open("s");
        broker
    }

    /// Waits for the brokerd that follows one that has ended.
    pub(crate) fn again(&mut self) {
        self.relay = Relay::up(&mut self.system, &self.home);
    }

    /// Records the opening of a session; the calls that follow are its.
    pub(crate) fn open(&mut self, name: &str) {
        self.session = session(name);
        self.record(RecordEntry::Session {
            session: session(name),
            event: SessionEvent::Opened,
            by: "bxctl".to_owned(),
        });
    }

    /// Has an entry recorded.
    pub(crate) fn record(&mut self, entry: RecordEntry) -> u64 {
        match self
            .relay
            .ask(Message::Record(Record { entry }))
            .envelope
            .msg
        {
            Message::Recorded(recorded) => recorded.seq,
            other => panic!("expected recorded, got {other:?}"),
        }
    }

    pub(crate) fn request(&mut self, tool: &str, grant: &str, arguments: &str) -> Prepare {
        self.calls += 1;
        Prepare {
            session: self.session.clone(),
            call: CallId(self.calls),
            tool: ToolName::new(tool).unwrap(),
            grant: self::grant(grant),
            generation: self.relay.generation,
            arguments: arguments.to_owned(),
        }
    }

    /// Sends a prepare and returns what answers it.
    pub(crate) fn try_prepare(&mut self, prepare: Prepare) -> Result<Standing, Refused> {
        let (call, grant) = (prepare.call, prepare.grant.clone());
        let mut received = self.relay.ask(Message::Prepare(prepare));
        match received.envelope.msg {
            Message::Refused(refused) => Err(refused),
            Message::Prepared(prepared) => {
                let stderr = received.descriptors.pop().unwrap();
                let stdout = received.descriptors.pop().unwrap();
                Ok(Standing {
                    ticket: prepared.ticket,
                    call,
                    grant,
                    confinement: prepared.confinement,
                    stdout,
                    stderr,
                })
            }
            other => panic!("expected an answer to prepare, got {other:?}"),
        }
    }

    /// A prepare that must succeed.
    pub(crate) fn prepare(&mut self, tool: &str, grant: &str, arguments: &str) -> Standing {
        let prepare = self.request(tool, grant, arguments);
        self.try_prepare(prepare).unwrap()
    }

    /// A prepare that must be refused by the supervisor's own check, without a sandbox being left and without a record.
    pub(crate) fn denied(&mut self, tool: &str, grant: &str, arguments: &str) -> DenyReason {
        let before = self.home.lines().len();
        let prepare = self.request(tool, grant, arguments);
        let refused = self.try_prepare(prepare).unwrap_err();
        assert_eq!(self.system.sandboxes(&self.home), [], "{arguments}");
        assert_eq!(self.home.lines().len(), before, "{arguments}");
        match refused.reason {
            RefuseReason::Denied(reason) => reason,
            RefuseReason::StaleGeneration => panic!("{arguments}: {}", refused.detail),
        }
    }

    /// Commits what was prepared.
    pub(crate) fn commit(&mut self, standing: &Standing) -> u64 {
        match self
            .relay
            .ask(commit(standing.ticket, &standing.grant))
            .envelope
            .msg
        {
            Message::Committed(committed) => {
                assert_eq!(committed.ticket, standing.ticket);
                committed.seq
            }
            other => panic!("expected committed, got {other:?}"),
        }
    }

    /// Waits for the end of a committed call.
    pub(crate) fn exited(&mut self, ticket: Ticket) -> Exited {
        let is = |message: &Message| matches!(message, Message::Exited(exited) if exited.ticket == ticket);
        match self.relay.expect("exited", is).envelope.msg {
            Message::Exited(exited) => exited,
            other => panic!("{other:?}"),
        }
    }

    /// Commits what was prepared, waits for its end, and closes the call.
    pub(crate) fn run(&mut self, standing: Standing) -> Ran {
        let seq = self.commit(&standing);
        let ticket = standing.ticket;
        let (stdout, stderr) = standing.output();
        let exited = self.exited(ticket);
        let status = if exited.exit == Some(ExitStatus::Code(0)) {
            OutcomeStatus::Result
        } else {
            OutcomeStatus::Failed
        };
        let finished = self.relay.ask(finish(ticket, status)).envelope.msg;
        assert!(matches!(finished, Message::Recorded(_)), "{finished:?}");
        Ran {
            seq,
            exited,
            stdout,
            stderr,
        }
    }

    /// A whole call.
    pub(crate) fn call(&mut self, tool: &str, grant: &str, arguments: &str) -> Ran {
        let standing = self.prepare(tool, grant, arguments);
        self.run(standing)
    }

    /// Gives a ticket up, and waits until its sandbox is gone. An abort has no answer of its own.
    pub(crate) fn abort(&mut self, ticket: Ticket) {
        self.relay.say(Message::Abort(Abort { ticket }));
        self.wait_empty();
    }

    /// Waits until no sandbox is left but brokerd's.
    pub(crate) fn wait_empty(&mut self) {
        until("no sandbox", || self.status().sandboxes == 0);
        until("no stage", || self.system.sandboxes(&self.home).is_empty());
    }

    pub(crate) fn status(&mut self) -> StatusReply {
        match self.relay.ask(Message::Status(Empty {})).envelope.msg {
            Message::StatusReply(status) => status,
            other => panic!("expected a status, got {other:?}"),
        }
    }

    /// The sandbox that was prepared last and is the only one, by its pid 1.
    pub(crate) fn sandbox(&self) -> Process {
        let sandboxes = self.system.sandboxes(&self.home);
        let [one] = sandboxes.as_slice() else {
            panic!("one sandbox, not {sandboxes:?}");
        };
        one.clone()
    }

    /// Stops the supervisor in order; this brokerd goes when it is asked to.
    pub(crate) fn stop(self) -> (std::process::ExitStatus, Home) {
        let Self {
            mut relay,
            system,
            home,
            ..
        } = self;
        let goes = std::thread::spawn(move || {
            relay.expect("stop", |message| matches!(message, Message::Stop(_)));
        });
        let status = system.stop();
        goes.join().unwrap();
        (status, home)
    }

    /// The session that calls are made in.
    pub(crate) fn session(&self) -> SessionId {
        self.session.clone()
    }
}

impl Standing {
    /// Reads both streams to their ends.
    pub(crate) fn output(self) -> (String, String) {
        let Self { stdout, stderr, .. } = self;
        let aside = std::thread::spawn(move || read(stderr));
        (read(stdout), aside.join().unwrap())
    }
}

pub(crate) const SECRET: Labels = Labels {
    class: DataClass::Secret,
    untrusted: true,
};

/// A commit of an allowed decision whose result is secret.
pub(crate) fn commit(ticket: Ticket, grant: &GrantId) -> Message {
    decide(
        ticket,
        DecisionRecord::Allowed {
            grant: grant.clone(),
        },
    )
}

pub(crate) fn decide(ticket: Ticket, decision: DecisionRecord) -> Message {
    Message::Commit(Commit {
        ticket,
        decision,
        session_taint: DataClass::Private,
        labels: SECRET,
        detail: String::new(),
    })
}

pub(crate) fn finish(ticket: Ticket, status: OutcomeStatus) -> Message {
    Message::Finish(Finish {
        ticket,
        status,
        class: SECRET.class,
        untrusted: SECRET.untrusted,
        truncated: false,
        bytes: 0,
    })
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn grant(id: &str) -> GrantId {
    GrantId::new(id).unwrap()
}

/// `{"path": …}`
pub(crate) fn at(path: &str) -> String {
    serde_json::json!({ "path": path }).to_string()
}

/// `{"path": …, "content": …}`
pub(crate) fn writing(path: &str, content: &str) -> String {
    serde_json::json!({ "path": path, "content": content }).to_string()
}

/// Whether the tool `touch` has done its first act.
pub(crate) fn touched(home: &Home) -> bool {
    Path::new(&home.path("marks/touched")).exists()
}

/// The owner's question to the real brokerd and its answer.
pub(crate) fn ask(connection: &Connection, message: Message) -> Message {
    connection.send(&Envelope::new(1, message)).unwrap();
    connection
        .receive()
        .unwrap()
        .expect("an answer")
        .envelope
        .msg
}

/// What a caller hears whose call was cut off: its connection ends, or an error says so.
pub(crate) fn no_result(heard: &Result<Option<Received>, RecvError>) {
    let result = match heard {
        Ok(Some(received)) => match &received.envelope.msg {
            Message::ToolResponse(response) => Some(response),
            _ => None,
        },
        _ => None,
    };
    let cut = matches!(result, None | Some(ToolResponse::Failed { .. }));
    assert!(cut, "{heard:?}");
}

/// Every session, as the real brokerd lists it.
pub(crate) fn sessions(home: &Home) -> Vec<SessionSummary> {
    match ask(&home.connect().unwrap(), Message::SessionList(Empty {})) {
        Message::SessionListReply(reply) => reply.sessions,
        other => panic!("expected sessions, got {other:?}"),
    }
}
