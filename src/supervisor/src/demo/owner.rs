//! The owner of the demo: starts the system as a process of its own, asks brokerd over the owner's socket, stops it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ipc::{Connection, RecvError, SendError};
use proto::approval::Answer;
use proto::client::{AnswerQuestion, Question, SessionEnd, SessionOpen, ToolRequest, ToolResponse};
use proto::role::Empty;
use proto::{ApprovalId, CallId, Envelope, InvalidId, Message, SessionId};
use rustix::process::{Pid, Signal};

use super::scene::{Act, Part};
use super::setting::Setting;

/// How long the system may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why the system could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnerError {
    /// It could not be started.
    #[error("cannot start boxmaker up: {0}")]
    Start(io::Error),
    /// It ended early.
    #[error("boxmaker up ended with {status}; its own words:\n{log}")]
    Ended {
        /// How.
        status: ExitStatus,
        /// What it wrote.
        log: String,
    },
    /// Its socket did not appear.
    #[error("no socket at {} within 30 s; what boxmaker up wrote: {}", socket.display(), log.display())]
    NoSocket {
        /// Where it should be.
        socket: PathBuf,
        /// Where it writes.
        log: PathBuf,
    },
    /// Sending failed.
    #[error("cannot ask brokerd: {0}")]
    Send(#[from] SendError),
    /// Receiving failed.
    #[error("brokerd's answer cannot be read: {0}")]
    Receive(#[from] RecvError),
    /// Another answer came.
    #[error("brokerd answered {0}")]
    Unexpected(String),
    /// A session's name is not one.
    #[error(transparent)]
    Name(#[from] InvalidId),
}

/// `boxmaker up` as a child.
#[derive(Debug)]
pub(super) struct System {
    child: Child,
    log: PathBuf,
}

impl System {
    pub(super) fn start(setting: &Setting) -> Result<Self, OwnerError> {
        let log = setting.home.with_file_name("up.log");
        let output = File::create(&log).map_err(OwnerError::Start)?;
        let own = std::env::current_exe().map_err(OwnerError::Start)?;
        let mut child = Command::new(own)
            .arg("up")
            .arg("--home")
            .arg(&setting.home)
            .arg("--config")
            .arg(&setting.config)
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(OwnerError::Start)?)
            .stderr(output)
            .spawn()
            .map_err(OwnerError::Start)?;
        let socket = setting.socket();
        let start = Instant::now();
        while !Self::answers(&socket) {
            if let Some(status) = child.try_wait().map_err(OwnerError::Start)? {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(OwnerError::Ended { status, log });
            }
            if start.elapsed() > PATIENCE {
                // Its end is all that is wanted, and there is nothing to do about a failure.
                let _: io::Result<()> = child.kill();
                return Err(OwnerError::NoSocket { socket, log });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { child, log })
    }

    /// Whether brokerd serves: the socket alone is there before it does.
    fn answers(socket: &std::path::Path) -> bool {
        let Ok(connection) = Connection::connect(socket) else {
            return false;
        };
        let ask = Envelope::new(1, Message::Status(Empty {}));
        connection
            .stream()
            .set_read_timeout(Some(Duration::from_secs(1)))
            .is_ok()
            && connection.send(&ask).is_ok()
            && matches!(connection.receive(), Ok(Some(_)))
    }

    /// Stops it in order and waits for its end.
    pub(super) fn stop(mut self) -> Result<(), OwnerError> {
        let status = self.end().map_err(OwnerError::Start)?;
        if status.success() {
            return Ok(());
        }
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        Err(OwnerError::Ended { status, log })
    }

    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        self.child.wait()
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // Also when the demo ends early: what it started ends with it.
        let _: io::Result<ExitStatus> = self.end();
    }
}

/// The owner's side of the socket.
#[derive(Debug)]
pub(super) struct Owner {
    connection: Connection,
    /// A second line, to answer questions while a call waits on the first.
    answers: Connection,
    run: String,
    next: u64,
    /// The sessions that are open, with the number of their last call.
    sessions: HashMap<String, CallId>,
}

impl Owner {
    pub(super) fn connect(setting: &Setting) -> Result<Self, OwnerError> {
        let socket = setting.socket();
        let connection = Connection::connect(&socket).map_err(OwnerError::Start)?;
        let answers = Connection::connect(&socket).map_err(OwnerError::Start)?;
        let run = setting.run.clone();
        let mut owner = Self {
            connection,
            answers,
            run,
            next: 1,
            sessions: HashMap::new(),
        };
        for part in [Part::Work, Part::Secret, Part::Hostile] {
            let name = owner.name(part);
            let open = SessionOpen {
                session: Some(SessionId::new(name.clone())?),
            };
            match owner.ask(Message::SessionOpen(open))? {
                Message::SessionOpened(opened) => owner.sessions.insert(name, opened.last_call),
                other => return Err(OwnerError::Unexpected(format!("{other:?}"))),
            };
        }
        Ok(owner)
    }

    /// The session of an act.
    pub(super) fn session(&self, act: &Act) -> &str {
        let name = self.name(act.part);
        self.sessions
            .keys()
            .find(|session| **session == name)
            .map_or("", String::as_str)
    }

    fn name(&self, part: Part) -> String {
        let part = match part {
            Part::Work => "work",
            Part::Secret => "secret",
            Part::Hostile => "hostile",
        };
        format!("demo-{}-{part}", self.run)
    }

    /// Makes one call, and answers if it asks; the number is the one brokerd allots.
    pub(super) fn call(&mut self, act: &Act) -> Result<Called, OwnerError> {
        let name = self.name(act.part);
        let request = ToolRequest {
            session: SessionId::new(name.clone())?,
            call: CallId(0),
            tool: act.tool.to_owned(),
            arguments: act.arguments.clone(),
        };
        let mut asked = None;
        let mut answer = self.ask(Message::ToolRequest(request))?;
        if let Message::ToolResponse(ToolResponse::PendingApproval { approval, .. }) = &answer {
            asked = Some(self.answer(approval, act.answer)?);
            answer = receive(&self.connection)?;
        }
        let response = match answer {
            Message::ToolResponse(response) => response,
            other => return Err(OwnerError::Unexpected(format!("{other:?}"))),
        };
        let last = self.sessions.entry(name).or_insert(CallId(0));
        last.0 += 1;
        Ok(Called {
            call: *last,
            asked,
            response,
        })
    }

    /// Reads the question as brokerd shows it to the owner, and answers it; without an answer in the scene it is no.
    fn answer(
        &mut self,
        approval: &ApprovalId,
        answer: Option<Answer>,
    ) -> Result<Question, OwnerError> {
        self.next += 1;
        self.answers
            .send(&Envelope::new(self.next, Message::Approvals(Empty {})))?;
        let open = match receive(&self.answers)? {
            Message::ApprovalsReply(reply) => reply.approvals,
            other => return Err(OwnerError::Unexpected(format!("{other:?}"))),
        };
        let question = open
            .into_iter()
            .find(|question| question.approval == *approval);
        let question = question
            .ok_or_else(|| OwnerError::Unexpected(format!("no open question {approval}")))?;
        let answered = AnswerQuestion {
            approval: approval.clone(),
        };
        let message = match answer {
            Some(Answer::Approved) => Message::Approve(answered),
            Some(Answer::Refused) | None => Message::Refuse(answered),
        };
        self.next += 1;
        self.answers.send(&Envelope::new(self.next, message))?;
        match receive(&self.answers)? {
            Message::Ok(_) => Ok(question),
            other => Err(OwnerError::Unexpected(format!("{other:?}"))),
        }
    }

    pub(super) fn end_sessions(&mut self) -> Result<(), OwnerError> {
        let names: Vec<String> = self.sessions.keys().cloned().collect();
        for name in names {
            self.ask(Message::SessionEnd(SessionEnd {
                session: SessionId::new(name)?,
            }))?;
        }
        Ok(())
    }

    fn ask(&mut self, message: Message) -> Result<Message, OwnerError> {
        let id = self.next;
        self.next += 1;
        self.connection.send(&Envelope::new(id, message))?;
        receive(&self.connection)
    }
}

/// How a call went.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) call: CallId,
    /// What the owner was asked.
    pub(super) asked: Option<Question>,
    pub(super) response: ToolResponse,
}

fn receive(connection: &Connection) -> Result<Message, OwnerError> {
    match connection.receive()?.map(|received| received.envelope) {
        Some(Envelope {
            msg: Message::Error(error),
            ..
        }) => Err(OwnerError::Unexpected(error.detail)),
        Some(envelope) => Ok(envelope.msg),
        None => Err(OwnerError::Unexpected("nothing and hung up".to_owned())),
    }
}
