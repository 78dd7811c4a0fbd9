//! A home and a configuration of their own, a scripted brokerd behind the socket, and the binary.

use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use ipc::Connection;
use proto::{Envelope, Message};

/// One temporary directory with `home` and `config`.
pub(crate) struct Host {
    directory: tempfile::TempDir,
}

/// What the binary left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Standard output as one JSON document.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

impl Host {
    pub(crate) fn new() -> Self {
        // Whatever it was: what a group may write is no configuration.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        let directory = tempfile::tempdir().unwrap();
        for below in [
            "home/run/bxctl",
            "home/audit",
            "config/grants",
            "config/tools",
            "config/profiles/tools",
        ] {
            std::fs::create_dir_all(directory.path().join(below)).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home().join("run/bxctl/broker.sock")
    }

    /// Writes one file of the configuration.
    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.config().join(name), text).unwrap();
    }

    /// The binary with these words and nothing of this process's environment that it reads.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bxctl"));
        command
            .args(words)
            .env("BOXMAKER_HOME", self.home())
            .env("BOXMAKER_CONFIG", self.config())
            .env_remove("NO_COLOR")
            .env("TERM", "xterm");
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        ended(self.command(words).stdin(Stdio::null()))
    }

    pub(crate) fn run_with_input(&self, words: &[&str], input: &str) -> Ended {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        collect(child.wait_with_output().unwrap())
    }

    /// Listens on the socket and answers each message by `script`; every answer but the last is not final. The
    /// connection is closed after an empty answer. Returns what was asked.
    pub(crate) fn broker(
        &self,
        script: impl Fn(&Message) -> Vec<Message> + Send + 'static,
    ) -> Receiver<Message> {
        let listener = UnixListener::bind(self.socket()).unwrap();
        let (asked, seen) = channel();
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let connection = Connection::new(stream);
                while let Ok(Some(received)) = connection.receive() {
                    let id = received.envelope.id;
                    let answers = script(&received.envelope.msg);
                    // A test that does not ask what was asked has dropped the other end.
                    let _ = asked.send(received.envelope.msg);
                    let count = answers.len();
                    if count == 0 {
                        break;
                    }
                    // brokerd closes a connection whose request it refuses.
                    let refuses = matches!(answers.last(), Some(Message::Error(_)));
                    for (index, answer) in answers.into_iter().enumerate() {
                        let envelope = if index + 1 == count {
                            Envelope::new(id, answer)
                        } else {
                            Envelope::partial(id, answer)
                        };
                        if connection.send(&envelope).is_err() {
                            break;
                        }
                    }
                    if refuses {
                        break;
                    }
                }
            }
        });
        seen
    }
}

/// Runs a command to its end.
pub(crate) fn ended(command: &mut Command) -> Ended {
    collect(command.output().unwrap())
}

fn collect(output: std::process::Output) -> Ended {
    Ended {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A boxmaker whose configuration was changed after it read it.
const STATUS: &str = r#"{"since": "2020-01-01T06:00:00.000Z", "generation": 1, "changed": ["grants/notes.toml"],
    "questions": 0, "sandboxes": 0, "roles": [], "audit": {"next": 0, "last": null, "anchored": 0, "bytes": 0,
    "max_bytes": 8589934592, "full": false, "closed": null}}"#;

/// A message from its JSON.
pub(crate) fn message(kind: &str, body: &str) -> Message {
    serde_json::from_str(&format!(r#"{{"kind": "{kind}", "body": {body}}}"#)).unwrap()
}

/// brokerd's answer that opens a session.
pub(crate) fn opened() -> Message {
    message("session_opened", r#"{"session": "s-1", "last_call": 0}"#)
}

/// Answers sessions as brokerd does, and a call with `answer`.
pub(crate) fn answering(
    answer: &'static str,
) -> impl Fn(&Message) -> Vec<Message> + Send + 'static {
    move |asked| {
        vec![match asked {
            Message::SessionOpen(_) => opened(),
            Message::SessionEnd(_) => message("ok", "{}"),
            Message::ToolRequest(_) => message("tool_response", answer),
            // After a denial, for what changed.
            Message::Status(_) => message("status_reply", STATUS),
            other => panic!("nobody asks {}", other.kind()),
        }]
    }
}

/// A path as text.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
