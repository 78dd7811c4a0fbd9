//! A home with a tool that leaves a mark for each run, and the two sides of a question: the caller and the owner.

use std::fs;

use boxmaker_tests::system::{Brokerd, Home, System};
use boxmaker_tests::tools;
use ipc::Connection;
use proto::audit::Decision;
use proto::client::{AnswerQuestion, Question, SessionOpen, ToolRequest, ToolResponse};
use proto::role::Empty;
use proto::{
    Approval, ApprovalId, CallId, DecisionRecord, DenyReason, Entry, Envelope, ErrorCode, Message,
    SessionId,
};

/// Arguments that no parser would write like this, so that other bytes cannot pass for them.
pub(crate) const MARK: &str = "{ \"text\":\"one \\u202e two\"\t}";

const GRANT: &str = r#"
tool = "mark"
mode = "ask"
max_taint = "private"
after_untrusted = "allow"
constraints.paths = ["write:@FILES@/marks"]
"#;

const VAULT: &str = r#"
tool = "fs_read"
mode = "auto"
max_taint = "secret"
result_class = "secret"
constraints.paths = ["read:@FILES@/vault"]
"#;

/// A home in which `mark` asks for `expiry`, and reading the vault taints.
pub(crate) fn home(expiry: &str) -> Home {
    let home = Home::new(Brokerd::Real);
    home.tool("mark", tools::MARK);
    home.tool("fs_read", tools::FS_READ);
    home.grant("mark", GRANT);
    home.grant("vault", VAULT);
    home.folder("marks");
    home.file("vault/code.txt", "7391\n");
    let config = home.home().with_file_name("config").join("config.toml");
    let before = fs::read_to_string(&config).unwrap();
    let after = format!("{before}\n[approvals]\nexpiry = \"{expiry}\"\n");
    home.configure("config.toml", &after);
    home
}

/// Starts the system and waits until it serves.
pub(crate) fn up(home: &Home) -> System {
    let times = home.times_up();
    let mut system = home.start();
    system.wait_up(home, times);
    system
}

/// What the tool has left: the input of each run, one after the other.
pub(crate) fn marks(home: &Home) -> String {
    fs::read_to_string(home.path("marks/log")).unwrap_or_default()
}

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

/// One connection.
pub(crate) struct Peer(Connection);

impl Peer {
    /// Connects, and opens the one session of these tests or resumes it.
    pub(crate) fn new(home: &Home) -> Self {
        let peer = Self(home.connect().unwrap());
        let session = Some(session());
        let opened = peer.ask(Message::SessionOpen(SessionOpen { session }));
        assert!(matches!(opened, Message::SessionOpened(_)), "{opened:?}");
        peer
    }

    fn send(&self, message: Message) {
        self.0.send(&Envelope::new(1, message)).unwrap();
    }

    fn next(&self) -> Envelope {
        self.0.receive().unwrap().unwrap().envelope
    }

    fn ask(&self, message: Message) -> Message {
        self.send(message);
        let answer = self.next();
        assert!(answer.r#final);
        answer.msg
    }

    pub(crate) fn call(&self, tool: &str, arguments: &str) {
        self.send(Message::ToolRequest(ToolRequest {
            session: session(),
            call: CallId(0),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        }));
    }

    /// The question that the call has become.
    pub(crate) fn pending(&self) -> ApprovalId {
        let envelope = self.next();
        assert!(!envelope.r#final);
        match envelope.msg {
            Message::ToolResponse(ToolResponse::PendingApproval { approval, .. }) => approval,
            other => panic!("{other:?}"),
        }
    }

    /// Makes the call that asks, up to its question.
    pub(crate) fn asks(&self) -> ApprovalId {
        self.call("mark", MARK);
        self.pending()
    }

    pub(crate) fn response(&self) -> ToolResponse {
        let envelope = self.next();
        assert!(envelope.r#final);
        match envelope.msg {
            Message::ToolResponse(response) => response,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn content(&self) -> String {
        match self.response() {
            ToolResponse::Result { content, .. } => content,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn denied(&self) -> DenyReason {
        match self.response() {
            ToolResponse::Denied { reason, .. } => reason,
            other => panic!("{other:?}"),
        }
    }

    /// Hears that the connection ends without a result.
    pub(crate) fn cut_off(&self) {
        if let Ok(Some(received)) = self.0.receive() {
            let message = received.envelope.msg;
            assert!(matches!(message, Message::Error(_)), "{message:?}");
        }
    }
}

/// Says yes or no, on a connection of its own.
pub(crate) fn answer(home: &Home, approval: &ApprovalId, yes: bool) -> Result<(), ErrorCode> {
    let named = AnswerQuestion {
        approval: approval.clone(),
    };
    let message = if yes {
        Message::Approve(named)
    } else {
        Message::Refuse(named)
    };
    match Peer(home.connect().unwrap()).ask(message) {
        Message::Ok(_) => Ok(()),
        Message::Error(error) => Err(error.code),
        other => panic!("{other:?}"),
    }
}

/// The open questions.
pub(crate) fn questions(home: &Home) -> Vec<Question> {
    let peer = Peer(home.connect().unwrap());
    peer.send(Message::Approvals(Empty {}));
    let mut all = Vec::new();
    loop {
        let envelope = peer.next();
        match envelope.msg {
            Message::ApprovalsReply(reply) => all.extend(reply.approvals),
            other => panic!("{other:?}"),
        }
        if envelope.r#final {
            return all;
        }
    }
}

/// Every event of a question in the log, with its number.
pub(crate) fn events(home: &Home) -> Vec<(u64, Approval)> {
    let pick = |line: proto::Line| match line.entry {
        Entry::Approval(approval) => Some((line.seq, approval)),
        _ => None,
    };
    home.lines().into_iter().filter_map(pick).collect()
}

/// What happened to questions, each event as one word.
pub(crate) fn words(home: &Home) -> Vec<String> {
    let word = |(_, approval): (u64, Approval)| {
        let event = serde_json::to_value(&approval.event).unwrap();
        let part = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}{}", approval.approval, part("state"), part("answer"))
    };
    events(home).into_iter().map(word).collect()
}

/// The decisions about `mark`.
pub(crate) fn decided(home: &Home) -> Vec<(u64, Decision)> {
    let mut all = home.decisions();
    all.retain(|(_, decision)| decision.tool == "mark");
    all
}

/// The one refusal of `mark`.
pub(crate) fn refusal(home: &Home) -> DenyReason {
    let decided = decided(home);
    let [(_, decision)] = decided.as_slice() else {
        panic!("{decided:?}");
    };
    match decision.decision {
        DecisionRecord::Denied { reason, .. } => reason,
        ref other => panic!("{other:?}"),
    }
}
