//! One caller: over the socket as any program may, or through `bxctl`. It says of each of its tokens what it was told.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use boxmaker_tests::binaries::binary;
use ipc::Connection;
use proto::client::{SessionOpen, ToolRequest, ToolResponse};
use proto::{CallId, DataClass, DenyReason, Envelope, ErrorCode, Message, SessionId};
use serde_json::{Value, json};

/// What a caller was told about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Its result.
    Result {
        content: String,
        class: DataClass,
        untrusted: bool,
    },
    /// That it was refused.
    Denied(DenyReason),
    /// That nothing ran, and why, or that it reached nobody.
    NotRun,
    /// That it ran, and not how it ended.
    Ran,
    /// Nothing that says how it ended: the broker went away first.
    Nothing,
}

/// How long a caller waits for an answer: longer than any start of brokerd on a slow machine.
const DEAF: Duration = Duration::from_secs(300);

/// How a call is made.
pub(crate) trait Speaker {
    /// Makes one call and waits for what is told about it.
    fn call(&mut self, tool: &str, arguments: &Value) -> Heard;
}

/// A program that speaks over the socket, in an open session.
pub(crate) struct Socket<'a> {
    path: &'a Path,
    session: SessionId,
    connection: Option<Connection>,
}

impl<'a> Socket<'a> {
    /// Opens `session`, while brokerd serves.
    pub(crate) fn open(path: &'a Path, session: &str) -> Self {
        let session = SessionId::new(session).unwrap();
        let connection = connected(path).expect("brokerd serves");
        let open = Message::SessionOpen(SessionOpen {
            session: Some(session.clone()),
        });
        connection.send(&Envelope::new(1, open)).unwrap();
        let opened = connection.receive().unwrap().unwrap().envelope.msg;
        assert!(matches!(opened, Message::SessionOpened(_)), "{opened:?}");
        Self {
            path,
            session,
            connection: Some(connection),
        }
    }

    /// Makes a call and does not wait for its answer; whether it was sent.
    pub(crate) fn send(&mut self, tool: &str, arguments: &Value) -> bool {
        let request = Message::ToolRequest(ToolRequest {
            session: self.session.clone(),
            call: CallId(0),
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
        });
        let connection = self.connection.as_ref();
        connection.is_some_and(|line| line.send(&Envelope::new(2, request)).is_ok())
    }

    fn told(&self) -> Option<Message> {
        let connection = self.connection.as_ref()?;
        let answer = connection.receive();
        if let Err(ipc::RecvError::Wire(ipc::wire::WireError::Frame(
            proto::frame::FrameError::Io(error),
        ))) = &answer
        {
            let kind = error.kind();
            assert!(kind != std::io::ErrorKind::WouldBlock, "nobody answers");
        }
        Some(answer.ok()??.envelope.msg)
    }
}

/// A connection, if somebody listens.
pub(crate) fn connected(path: &Path) -> Option<Connection> {
    let connection = Connection::connect(path).ok()?;
    connection.stream().set_read_timeout(Some(DEAF)).unwrap();
    Some(connection)
}

impl Speaker for Socket<'_> {
    fn call(&mut self, tool: &str, arguments: &Value) -> Heard {
        if self.connection.is_none() {
            self.connection = connected(self.path);
        }
        if self.connection.is_none() {
            thread::sleep(Duration::from_millis(5));
            return Heard::NotRun;
        }
        if !self.send(tool, arguments) {
            self.connection = None;
            return Heard::NotRun;
        }
        match self.told() {
            Some(Message::ToolResponse(ToolResponse::Result {
                content,
                class,
                untrusted,
                ..
            })) => Heard::Result {
                content,
                class,
                untrusted,
            },
            Some(Message::ToolResponse(ToolResponse::Denied { reason, .. })) => {
                Heard::Denied(reason)
            }
            // A brokerd that loses its supervisor says so. That its session is not known would be a lie.
            Some(Message::Error(error)) if error.code == ErrorCode::Internal => {
                self.connection = None;
                Heard::Nothing
            }
            None => {
                self.connection = None;
                Heard::Nothing
            }
            Some(other) => panic!("{}: {other:?}", self.session),
        }
    }
}

/// Somebody at a terminal, each call a process of its own.
pub(crate) struct Bxctl<'a> {
    home: &'a Path,
    session: Option<&'a str>,
}

impl<'a> Bxctl<'a> {
    /// Calls in `session`, or in one of its own each time.
    pub(crate) const fn new(home: &'a Path, session: Option<&'a str>) -> Self {
        Self { home, session }
    }
}

impl Speaker for Bxctl<'_> {
    fn call(&mut self, tool: &str, arguments: &Value) -> Heard {
        let mut command = Command::new(binary("bxctl"));
        command.args(["call", tool, &arguments.to_string(), "--json"]);
        command.arg("--home").arg(self.home);
        if let Some(session) = self.session {
            command.args(["--session", session]);
        }
        let output = command.env_clear().output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        if output.stdout.is_empty() {
            assert_eq!(output.status.code(), Some(1), "{said}");
            return unanswered(&said);
        }
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
        let status = text("status");
        assert_eq!(
            output.status.code(),
            Some(i32::from(status != "result")),
            "{report}"
        );
        match status.as_str() {
            "result" => Heard::Result {
                content: text("content"),
                class: serde_json::from_value(report["class"].clone()).unwrap(),
                untrusted: report["untrusted"].as_bool().unwrap(),
            },
            "denied" => Heard::Denied(serde_json::from_value(report["reason"].clone()).unwrap()),
            _ => panic!("{report}"),
        }
    }
}

/// What an error of bxctl's says about the call.
fn unanswered(said: &str) -> Heard {
    // Without a session it came to no call.
    let none = ["nothing ran", "boxmaker does not run", "session_open"];
    // First, because a session that could not be ended is told after it.
    if said.contains("the call ran (record ") {
        Heard::Ran
    } else if said.contains("whether the call ran is not known") {
        Heard::Nothing
    } else if none.iter().any(|words| said.contains(words)) {
        Heard::NotRun
    } else {
        panic!("bxctl does not say whether the call ran: {said}");
    }
}

/// The arguments that carry one token.
pub(crate) fn token(text: &str) -> Value {
    json!({ "text": text })
}
