//! One whole call through the owner's socket of a running `boxmaker up`: brokerd, supervisor, log, sandbox and back.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use ipc::Connection;
use proto::client::{SessionOpen, ToolRequest, ToolResponse};
use proto::{CallId, Envelope, Message, SessionId};
use rustix::process::{Pid, Signal, kill_process};

use crate::Outcome;
use crate::report::Row;
use crate::setting::Setting;

/// A running system and a session in it.
pub(crate) struct Whole {
    supervisor: Child,
    /// Held open until the end.
    _told: BufReader<ChildStdout>,
    connection: Connection,
    session: SessionId,
    arguments: String,
    asked: u64,
    row: Row,
}

impl Whole {
    pub(crate) fn new(setting: &Setting) -> Outcome<Self> {
        let home = setting.directory.join("home");
        let mut supervisor = Command::new(setting.binaries.join("boxmaker"))
            .arg("up")
            .arg("--home")
            .arg(&home)
            .arg("--config")
            .arg(setting.directory.join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = supervisor.stdout.take().ok_or("no standard output")?;
        let mut told = BufReader::new(stdout);
        let mut line = String::new();
        told.read_line(&mut line)?;
        if !line.starts_with("boxmaker is up") {
            supervisor.wait()?;
            return Err("boxmaker did not start; its reason is above".into());
        }
        let connection = Connection::connect(&home.join("run/bxctl/broker.sock"))?;
        let mut whole = Self {
            supervisor,
            _told: told,
            connection,
            session: SessionId::new("bench")?,
            arguments: setting.arguments(),
            asked: 0,
            row: Row::new("a whole call through bxctl's socket"),
        };
        match whole.ask(Message::SessionOpen(SessionOpen { session: None }))? {
            Message::SessionOpened(opened) => whole.session = opened.session,
            other => return Err(format!("session_open: {other:?}").into()),
        }
        Ok(whole)
    }

    fn ask(&mut self, message: Message) -> Outcome<Message> {
        self.asked += 1;
        self.connection.send(&Envelope::new(self.asked, message))?;
        let received = self
            .connection
            .receive()?
            .ok_or("brokerd closed the socket")?;
        Ok(received.envelope.msg)
    }

    pub(crate) fn round(&mut self, keep: bool) -> Outcome<()> {
        let request = ToolRequest {
            session: self.session.clone(),
            call: CallId(0),
            tool: "fs_read".to_owned(),
            arguments: self.arguments.clone(),
        };
        let begun = Instant::now();
        let answer = self.ask(Message::ToolRequest(request))?;
        let time = begun.elapsed();
        match answer {
            Message::ToolResponse(ToolResponse::Result { content, .. })
                if content.contains("Beans") => {}
            other => return Err(format!("tool_request: {other:?}").into()),
        }
        if keep {
            self.row.samples.push(time);
        }
        Ok(())
    }

    /// Ends the system in order and gives the samples.
    pub(crate) fn end(mut self) -> Outcome<Row> {
        kill_process(Pid::from_child(&self.supervisor), Signal::TERM)?;
        let status = self.supervisor.wait()?;
        if !status.success() {
            return Err(format!("boxmaker up: {status}").into());
        }
        Ok(std::mem::replace(&mut self.row, Row::new("")))
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        // After an error nobody has ended it; what it started ends with it.
        if let Ok(None) = self.supervisor.try_wait() {
            let _ = self.supervisor.kill();
            let _ = self.supervisor.wait();
        }
    }
}
