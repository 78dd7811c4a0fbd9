//! Plays the supervisor over a socket pair, one message at a time, with brokerd's library in a thread.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use brokerd::RunError;
use ipc::role::Started;
use ipc::{Connection, Files};
use proto::audit::{ExitCause, ExitStatus, SessionEvent, Usage};
use proto::broker::{
    Committed, Exited, Finish, History, HistoryEntry, PolicyGeneration, Prepare, Prepared,
    RecordEntry, Recorded,
};
use proto::client::{SessionOpen, ToolRequest, ToolResponse};
use proto::role::Empty;
use proto::{CallId, Confinement, Envelope, Hash32, Level, Message, SessionId, Ticket};

/// Every wait ends by then, so that a test that waits for nothing fails instead of hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// `max_output` of the tool `show`.
pub(crate) const MAX_OUTPUT: usize = 1000;

const SHOW: &str = r#"
description = "Shows one file."
kind = "argv"
command = ["/usr/bin/cat", "--", "{path}"]
profile = "tools/base"
side_effect = false
max_output = 1000
resources = { path = "read" }
[arguments]
type = "object"
required = ["path"]
properties.path.type = "string"
"#;

const NOTES: &str = r#"
tool = "show"
mode = "auto"
max_taint = "private"
untrusted = false
constraints.paths = ["read:/srv/notes"]
"#;

const KEYS: &str = r#"
tool = "show"
mode = "auto"
max_taint = "secret"
result_class = "secret"
constraints.paths = ["read:/srv/keys"]
"#;

pub(crate) const NOTE: &str = r#"{"path": "/srv/notes/a.md"}"#;
pub(crate) const KEY: &str = r#"{"path": "/srv/keys/a.pem"}"#;
pub(crate) const ELSEWHERE: &str = r#"{"path": "/etc/shadow"}"#;

/// The supervisor's end, the path of the listener, and the thread that runs brokerd.
pub(crate) struct Supervisor {
    pub(crate) control: Connection,
    directory: tempfile::TempDir,
    run: JoinHandle<Result<(), RunError>>,
    ended: std::sync::mpsc::Receiver<()>,
}

/// A sandbox that the test plays: where its output is written, and its ticket.
pub(crate) struct Sandbox {
    pub(crate) ticket: Ticket,
    pub(crate) stdout: UnixStream,
    pub(crate) stderr: UnixStream,
}

/// One connection of a client, with the id of its next request.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    next: u64,
}

pub(crate) fn session(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

pub(crate) fn files() -> Files {
    let files = [
        ("tools/show.toml", SHOW),
        ("grants/notes.toml", NOTES),
        ("grants/keys.toml", KEYS),
    ];
    Files(BTreeMap::from(files.map(|(name, text)| {
        (name.to_owned(), text.as_bytes().to_vec())
    })))
}

impl Supervisor {
    /// Starts brokerd with an empty log and waits until it is ready.
    pub(crate) fn ready() -> Self {
        let supervisor = Self::start(&["bxctl"], &files(), &[]);
        let ready = supervisor.next();
        assert_eq!((ready.id, ready.msg), (77, Message::Ready(Empty {})));
        supervisor
    }

    /// Sends everything that a start consists of; what brokerd makes of it is the test's to read.
    pub(crate) fn start(listeners: &[&str], files: &Files, history: &[HistoryEntry]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (own, other) = UnixStream::pair().unwrap();
        let (end, ended) = std::sync::mpsc::channel();
        let run = std::thread::spawn(move || {
            let _end = end;
            let started = Started::from_stream("brokerd", other).unwrap();
            brokerd::run(started)
        });
        own.set_read_timeout(Some(PATIENCE)).unwrap();
        let control = Connection::new(own);
        let sockets: Vec<_> = listeners
            .iter()
            .map(|name| UnixListener::bind(directory.path().join(name)).unwrap())
            .collect();
        let named: Vec<_> = listeners
            .iter()
            .copied()
            .zip(sockets.iter().map(|socket| socket.as_fd()))
            .collect();
        ipc::role::start(&control, 77, "brokerd", "", &named).unwrap();
        let supervisor = Self {
            control,
            directory,
            run,
            ended,
        };
        supervisor.policy(files, 1);
        // One entry a frame, so that the history has more than one.
        for entry in history {
            let entries = vec![entry.clone()];
            let part = Message::History(History { entries });
            // A brokerd that refuses to start may be gone by now.
            let _ = supervisor.control.send(&Envelope::partial(79, part));
        }
        let entries = Vec::new();
        let last = Envelope::new(79, Message::History(History { entries }));
        let _ = supervisor.control.send(&last);
        supervisor
    }

    pub(crate) fn policy(&self, files: &Files, generation: u64) {
        let memory = files.seal().unwrap();
        let policy = Envelope::new(78, Message::Policy(PolicyGeneration { generation }));
        let _ = self.control.send_with(&policy, &[memory.as_fd()]);
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("bxctl")
    }

    pub(crate) fn client(&self) -> Client {
        let connection = Connection::connect(&self.path()).unwrap();
        let stream = connection.stream();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client {
            connection,
            next: 1,
        }
    }

    /// A client and an open session.
    pub(crate) fn session(&self, name: &str) -> Client {
        let mut client = self.client();
        let session = Some(session(name));
        client.ask(Message::SessionOpen(SessionOpen { session }));
        let (id, _) = self.record();
        self.recorded(id, 1);
        let opened = client.answer();
        assert!(matches!(opened, Message::SessionOpened(_)), "{opened:?}");
        client
    }

    /// Waits until brokerd has read everything that was said to it.
    pub(crate) fn heard(&self) {
        self.say(600, Message::Ping(Empty {}));
        let pong = self.next();
        assert_eq!((pong.id, pong.msg), (600, Message::Pong(Empty {})));
    }

    /// The next message of brokerd.
    pub(crate) fn next(&self) -> Envelope {
        self.control.receive().unwrap().unwrap().envelope
    }

    /// Whether brokerd has said anything that was not read yet.
    pub(crate) fn silent(&self) -> bool {
        silent(self.control.stream())
    }

    pub(crate) fn say(&self, id: u64, message: Message) {
        self.control.send(&Envelope::new(id, message)).unwrap();
    }

    pub(crate) fn record(&self) -> (u64, RecordEntry) {
        let next = self.next();
        match next.msg {
            Message::Record(record) => (next.id, record.entry),
            other => panic!("expected record, got {other:?}"),
        }
    }

    pub(crate) fn recorded(&self, id: u64, seq: u64) {
        self.say(id, Message::Recorded(Recorded { seq }));
    }

    pub(crate) fn prepare(&self) -> (u64, Prepare) {
        let next = self.next();
        match next.msg {
            Message::Prepare(prepare) => (next.id, prepare),
            other => panic!("expected prepare, got {other:?}"),
        }
    }

    /// Answers a prepare with a sandbox of this ticket.
    pub(crate) fn prepared(&self, id: u64, ticket: u64) -> Sandbox {
        let ticket = Ticket(ticket);
        let (stdout, their_stdout) = UnixStream::pair().unwrap();
        let (stderr, their_stderr) = UnixStream::pair().unwrap();
        let confinement = Confinement {
            level: Level::Full,
            layers: vec![],
            asserted: vec![],
            gaps: vec![],
            waived: vec![],
            landlock_abi: 6,
            plan: Hash32::ZERO,
        };
        let prepared = Message::Prepared(Prepared {
            ticket,
            confinement,
        });
        let streams = [their_stdout.as_fd(), their_stderr.as_fd()];
        let envelope = Envelope::new(id, prepared);
        self.control.send_with(&envelope, &streams).unwrap();
        Sandbox {
            ticket,
            stdout,
            stderr,
        }
    }

    /// Waits for the commit of `ticket` and gives what it says and the id to answer.
    pub(crate) fn commit(&self) -> (u64, proto::broker::Commit) {
        let next = self.next();
        match next.msg {
            Message::Commit(commit) => (next.id, commit),
            other => panic!("expected commit, got {other:?}"),
        }
    }

    /// Takes a call that must be allowed from its prepare to the running tool.
    pub(crate) fn run_call(&self, ticket: u64, seq: u64) -> Sandbox {
        let (id, _) = self.prepare();
        let sandbox = self.prepared(id, ticket);
        let (id, commit) = self.commit();
        assert_eq!(commit.ticket, sandbox.ticket);
        let ticket = sandbox.ticket;
        self.say(id, Message::Committed(Committed { ticket, seq }));
        sandbox
    }

    pub(crate) fn exited(&self, sandbox: Sandbox, cause: ExitCause, exit: Option<ExitStatus>) {
        let ticket = sandbox.ticket;
        drop(sandbox);
        let usage = Usage {
            wall_ms: 30_004,
            cpu_ms: Some(1),
            max_rss: Some(1),
        };
        let exited = Exited {
            ticket,
            exit,
            cause,
            usage,
        };
        self.say(ticket.0, Message::Exited(exited));
    }

    /// Ends a call well and records its outcome.
    pub(crate) fn end_call(&self, sandbox: Sandbox) -> Finish {
        self.exited(sandbox, ExitCause::Exited, Some(ExitStatus::Code(0)));
        let (id, finish) = self.finish();
        self.recorded(id, 900);
        finish
    }

    pub(crate) fn finish(&self) -> (u64, Finish) {
        let next = self.next();
        match next.msg {
            Message::Finish(finish) => (next.id, finish),
            other => panic!("expected finish, got {other:?}"),
        }
    }

    pub(crate) fn abort(&self) -> Ticket {
        match self.next().msg {
            Message::Abort(abort) => abort.ticket,
            other => panic!("expected abort, got {other:?}"),
        }
    }

    /// Waits for the end of brokerd.
    pub(crate) fn ended(self) -> Result<(), RunError> {
        // Nothing is ever sent: the sender goes with the thread.
        let waited = self.ended.recv_timeout(PATIENCE);
        assert_eq!(waited, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
        self.run.join().unwrap()
    }

    /// Says stop, lets brokerd record what it wants, and waits for its end. Gives what it recorded.
    pub(crate) fn stop(self) -> Vec<RecordEntry> {
        self.say(500, Message::Stop(Empty {}));
        let mut recorded = Vec::new();
        while let Some(received) = self.control.receive().unwrap() {
            let Message::Record(record) = received.envelope.msg else {
                panic!("expected record, got {:?}", received.envelope.msg);
            };
            recorded.push(record.entry);
            self.recorded(received.envelope.id, 901);
        }
        self.ended().unwrap();
        recorded
    }
}

impl Sandbox {
    pub(crate) fn writes(&mut self, bytes: &[u8]) {
        self.stdout.write_all(bytes).unwrap();
    }

    pub(crate) fn complains(&mut self, bytes: &[u8]) {
        self.stderr.write_all(bytes).unwrap();
    }
}

impl Client {
    pub(crate) fn ask(&mut self, message: Message) {
        let envelope = Envelope::new(self.next, message);
        self.connection.send(&envelope).unwrap();
        self.next += 1;
    }

    pub(crate) fn call(&mut self, name: &str, tool: &str, arguments: &str) {
        self.ask(Message::ToolRequest(ToolRequest {
            session: session(name),
            call: CallId(0),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        }));
    }

    /// The answer to the last request.
    pub(crate) fn answer(&self) -> Message {
        let envelope = self.connection.receive().unwrap().unwrap().envelope;
        assert_eq!(envelope.id, self.next - 1);
        assert!(envelope.r#final);
        envelope.msg
    }

    pub(crate) fn response(&self) -> ToolResponse {
        match self.answer() {
            Message::ToolResponse(response) => response,
            other => panic!("expected tool_response, got {other:?}"),
        }
    }

    /// Whether no answer has come yet, after brokerd had time to send one too early.
    pub(crate) fn waits(&self) -> bool {
        silent(self.connection.stream())
    }

    /// Sends bytes that need not be a frame.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        match self.connection.stream().write_all(bytes) {
            Ok(()) => {}
            // It did not wait for the end of what it cannot take.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe),
        }
    }

    /// The error that brokerd sends before it closes, which it then does.
    pub(crate) fn error(&self) -> proto::WireError {
        let envelope = self.connection.receive().unwrap().unwrap().envelope;
        let Message::Error(error) = envelope.msg else {
            panic!("expected error, got {:?}", envelope.msg);
        };
        let mut rest = Vec::new();
        match self.connection.stream().read_to_end(&mut rest) {
            Ok(_) => {}
            // What brokerd had not read is told by a reset.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
        assert_eq!(rest, b"");
        error
    }
}

/// Whether nothing comes for a while. A machine that is too slow makes this true too often, never too rarely.
fn silent(stream: &UnixStream) -> bool {
    let while_ = Duration::from_millis(150);
    stream.set_read_timeout(Some(while_)).unwrap();
    let mut byte = [0; 1];
    let flags = rustix::net::RecvFlags::PEEK;
    let got = rustix::net::recv(stream, &mut byte, flags);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    matches!(got, Err(rustix::io::Errno::AGAIN))
}

pub(crate) fn opened(name: &str, event: SessionEvent) -> RecordEntry {
    RecordEntry::Session {
        session: session(name),
        event,
        by: "bxctl".to_owned(),
    }
}
