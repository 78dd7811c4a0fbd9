//! The home of this suite, and a peer that speaks over its socket.

use std::fs;
use std::process::{Child, Command, Stdio};

use boxmaker_tests::binaries::binary;
use boxmaker_tests::system::{Brokerd, Home, System};
use boxmaker_tests::tools;
use ipc::Connection;
use proto::client::{
    Question, SessionOpen, SessionSummary, StatusReply, ToolRequest, ToolResponse,
};
use proto::role::Empty;
use proto::{CallId, DenyReason, Entry, Envelope, Message, SessionId};

/// What the one granted note holds.
pub(crate) const NOTE: &str = "beans on the south wall\n";

/// A home with notes to read, `mark` that asks and appends its input to `marks/log`, and `stays` that ends only when it
/// is killed. `[session]` allows `denials` refusals.
pub(crate) fn home(denials: u64) -> Home {
    let home = Home::new(Brokerd::Real);
    let config = home.directory().join("config/config.toml");
    let before = fs::read_to_string(&config).unwrap();
    home.configure(
        "config.toml",
        &format!("{before}[session]\ndenials = {denials}\n"),
    );
    home.tool("fs_read", tools::FS_READ);
    let stdio = |command: &str, argument: &str, kind: &str| {
        format!(
            "description = \"For a test.\"\nkind = \"stdio\"\ncommand = {command}\nprofile = \"tools/base\"\n\
             [arguments]\ntype = \"object\"\nrequired = [\"{argument}\"]\nproperties.{argument}.type = \"{kind}\"\n"
        )
    };
    let tee = "[\"/usr/bin/tee\", \"-a\", \"@FILES@/marks/log\"]";
    home.tool("mark", &stdio(tee, "text", "string"));
    home.tool("stays", &stdio("[\"boxmaker-misbehave\"]", "acts", "array"));
    let grant = |id: &str, tool: &str, mode: &str, rest: &str| {
        home.grant(
            id,
            &format!("tool = \"{tool}\"\nmode = \"{mode}\"\nmax_taint = \"secret\"\nafter_untrusted = \"allow\"\n{rest}"),
        );
    };
    grant(
        "mark",
        "mark",
        "ask",
        "constraints.paths = [\"write:@FILES@/marks\"]\n",
    );
    grant("stays", "stays", "auto", "");
    grant(
        "notes",
        "fs_read",
        "auto",
        "constraints.paths = [\"read:@FILES@/notes\"]\n",
    );
    home.file("notes/a.md", NOTE);
    home.file("marks/log", "");
    home.file("away.md", "not granted\n");
    home.link("notes/away.md", &home.path("away.md"));
    home
}

/// Starts the system and waits until it serves.
pub(crate) fn up(home: &Home) -> System {
    let times = home.times_up();
    let mut system = home.start();
    system.wait_up(home, times);
    system
}

/// The arguments that name one of the owner's files.
pub(crate) fn file(home: &Home, below: &str) -> String {
    serde_json::json!({ "path": home.path(below) }).to_string()
}

/// Starts `bxctl` with these words.
pub(crate) fn bxctl(home: &Home, words: &[&str]) -> Child {
    Command::new(binary("bxctl"))
        .args(words)
        .arg("--home")
        .arg(home.home())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// One connection in a session.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    session: SessionId,
}

impl Peer {
    /// Connects, and opens or resumes `session`.
    pub(crate) fn new(home: &Home, session: &str) -> Self {
        let peer = Self {
            connection: home.connect().unwrap(),
            session: SessionId::new(session).unwrap(),
        };
        let session = Some(peer.session.clone());
        let opened = peer.ask(Message::SessionOpen(SessionOpen { session }));
        assert!(matches!(opened, Message::SessionOpened(_)), "{opened:?}");
        peer
    }

    fn send(&self, message: Message) {
        self.connection.send(&Envelope::new(1, message)).unwrap();
    }

    fn next(&self) -> Envelope {
        self.connection.receive().unwrap().unwrap().envelope
    }

    fn ask(&self, message: Message) -> Message {
        self.send(message);
        self.next().msg
    }

    /// Makes a call and does not wait for its answer.
    pub(crate) fn call(&self, tool: &str, arguments: &str) {
        self.send(Message::ToolRequest(ToolRequest {
            session: self.session.clone(),
            call: CallId(0),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        }));
    }

    /// The answer to a call.
    pub(crate) fn response(&self) -> ToolResponse {
        match self.next().msg {
            Message::ToolResponse(response) => response,
            other => panic!("{other:?}"),
        }
    }

    /// Makes a call that is refused.
    pub(crate) fn denied(&self, tool: &str, arguments: &str) -> DenyReason {
        self.call(tool, arguments);
        match self.response() {
            ToolResponse::Denied { reason, .. } => reason,
            other => panic!("{other:?}"),
        }
    }

    /// Reads the note that is granted.
    pub(crate) fn reads(&self, home: &Home) {
        self.call("fs_read", &file(home, "notes/a.md"));
        match self.response() {
            ToolResponse::Result { content, .. } => assert_eq!(content, NOTE),
            other => panic!("{other:?}"),
        }
    }
}

/// Answers one question of a connection of its own.
fn asked(home: &Home, message: Message) -> Vec<Envelope> {
    let connection = home.connect().unwrap();
    connection.send(&Envelope::new(1, message)).unwrap();
    let mut parts = Vec::new();
    loop {
        let envelope = connection.receive().unwrap().unwrap().envelope;
        let last = envelope.r#final;
        parts.push(envelope);
        if last {
            return parts;
        }
    }
}

/// Every session that brokerd knows.
pub(crate) fn sessions(home: &Home) -> Vec<SessionSummary> {
    match asked(home, Message::SessionList(Empty {})).remove(0).msg {
        Message::SessionListReply(reply) => reply.sessions,
        other => panic!("{other:?}"),
    }
}

/// The open questions.
pub(crate) fn questions(home: &Home) -> Vec<Question> {
    let parts = asked(home, Message::Approvals(Empty {})).into_iter();
    let part = |envelope: Envelope| match envelope.msg {
        Message::ApprovalsReply(reply) => reply.approvals,
        other => panic!("{other:?}"),
    };
    parts.flat_map(part).collect()
}

/// What the supervisor says of itself.
pub(crate) fn status(home: &Home) -> StatusReply {
    match asked(home, Message::Status(Empty {})).remove(0).msg {
        Message::StatusReply(reply) => reply,
        other => panic!("{other:?}"),
    }
}

/// What happened to questions, each event as one word.
pub(crate) fn events(home: &Home) -> Vec<String> {
    let word = |line: proto::Line| match line.entry {
        Entry::Approval(approval) => {
            let event = serde_json::to_value(&approval.event).unwrap();
            Some(event["state"].as_str().unwrap().to_owned())
        }
        _ => None,
    };
    home.lines().into_iter().filter_map(word).collect()
}

/// What the tool `mark` has left.
pub(crate) fn marks(home: &Home) -> String {
    fs::read_to_string(home.path("marks/log")).unwrap()
}
