//! Eight callers at the same time. Some of their sessions read a secret, a stranger's words, or both, and go on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use boxmaker_tests::system::Home;
use boxmaker_tests::system::processes::until;
use proto::client::SessionSummary;
use proto::role::Empty;
use proto::{DataClass, Envelope, Message};
use serde_json::json;

use crate::caller::{Bxctl, Heard, Socket, Speaker, connected, token};

/// What a caller does besides appending tokens.
#[derive(Debug, Clone, Copy)]
struct Part {
    session: &'static str,
    /// After how many answered tokens it reads each of these.
    reads: &'static [(usize, &'static str)],
    bxctl: bool,
}

const fn part(session: &'static str, reads: &'static [(usize, &'static str)]) -> Part {
    Part {
        session,
        reads,
        bxctl: false,
    }
}

/// The callers but for one that gets a session of its own for each call.
const PARTS: [Part; 7] = [
    part("clean", &[]),
    part("other", &[]),
    part("secret", &[(1, "vault/a.md")]),
    part("mail", &[(1, "mail/a.md")]),
    part("both", &[(1, "vault/a.md"), (2, "mail/a.md")]),
    part("late", &[(3, "mail/a.md")]),
    Part {
        session: "terminal",
        reads: &[(2, "vault/a.md")],
        bxctl: true,
    },
];

/// Ends the callers, also when the test fails beside them.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What is told about each token.
pub(crate) type Told = BTreeMap<String, Heard>;

/// The crowd as its threads share it.
pub(crate) struct Crowd {
    socket: PathBuf,
    home: PathBuf,
    vault: PathBuf,
    stop: AtomicBool,
    answers: AtomicUsize,
    /// By caller, how many of its reads it has an answer to.
    read: [AtomicUsize; PARTS.len()],
}

impl Crowd {
    pub(crate) fn new(home: &Home) -> Self {
        Self {
            socket: home.home().join("run/bxctl/broker.sock"),
            home: home.home(),
            vault: PathBuf::from(home.path("")),
            stop: AtomicBool::new(false),
            answers: AtomicUsize::new(0),
            read: Default::default(),
        }
    }

    /// Opens the sessions and starts the callers; `during` runs beside them, and then they end.
    pub(crate) fn call(&self, during: impl FnOnce()) -> Told {
        thread::scope(|scope| {
            let mut callers = Vec::new();
            for (index, part) in PARTS.iter().enumerate() {
                let mut socket = Socket::open(&self.socket, part.session);
                callers.push(scope.spawn(move || {
                    if part.bxctl {
                        let mut bxctl = Bxctl::new(&self.home, Some(part.session));
                        self.run(&mut bxctl, part.session, part.reads, &self.read[index])
                    } else {
                        self.run(&mut socket, part.session, part.reads, &self.read[index])
                    }
                }));
            }
            callers.push(scope.spawn(|| {
                let mut bxctl = Bxctl::new(&self.home, None);
                self.run(&mut bxctl, "own", &[], &AtomicUsize::new(0))
            }));
            let stop = Stop(&self.stop);
            during();
            drop(stop);
            let each = callers.into_iter().map(|caller| caller.join().unwrap());
            each.flatten().collect()
        })
    }

    fn run(
        &self,
        speaker: &mut dyn Speaker,
        name: &str,
        reads: &[(usize, &str)],
        read: &AtomicUsize,
    ) -> Told {
        let mut told = Told::new();
        let mut answered = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let done = read.load(Ordering::SeqCst);
            if let Some((_, file)) = reads.get(done).filter(|(after, _)| *after <= answered) {
                let path = self.vault.join(file);
                let heard = speaker.call("fs_read", &json!({ "path": path }));
                if matches!(heard, Heard::Result { .. }) {
                    read.store(done + 1, Ordering::SeqCst);
                }
                continue;
            }
            let text = format!("{name}-{}", told.len());
            let heard = speaker.call("token", &token(&text));
            if matches!(heard, Heard::Result { .. } | Heard::Denied(_)) {
                answered += 1;
                self.answers.fetch_add(1, Ordering::SeqCst);
            }
            told.insert(text, heard);
        }
        told
    }

    /// Waits until this many calls more have an answer.
    pub(crate) fn answered(&self, more: usize) {
        let before = self.answers.load(Ordering::SeqCst);
        until("calls are answered", || {
            self.answers.load(Ordering::SeqCst) >= before + more
        });
    }

    /// Whether every caller has read what it is to read.
    pub(crate) fn all_read(&self) -> bool {
        let done =
            |(part, read): (&Part, &AtomicUsize)| read.load(Ordering::SeqCst) == part.reads.len();
        PARTS.iter().zip(&self.read).all(done)
    }

    /// Compares what brokerd knows of each session with what its caller has read: at least that while calls are on
    /// their way, and that alone `at_rest`.
    pub(crate) fn taints_are_right(&self, at_rest: bool) {
        // Looked at before brokerd is asked: what is read meanwhile may be in its answer.
        let read = self.read.each_ref().map(|read| read.load(Ordering::SeqCst));
        let Some(sessions) = sessions(&self.socket) else {
            assert!(!at_rest, "brokerd does not answer");
            return;
        };
        for (part, read) in PARTS.iter().zip(read) {
            let known = sessions
                .iter()
                .find(|known| known.session.as_str() == part.session)
                .unwrap();
            let of = |reads: &[(usize, &str)]| {
                let has = |what: &str| reads.iter().any(|(_, file)| file.starts_with(what));
                let class = if has("vault") {
                    DataClass::Secret
                } else {
                    DataClass::Private
                };
                (class, has("mail"))
            };
            let (class, untrusted) = of(&part.reads[..read]);
            let (most, may) = of(part.reads);
            assert!(known.open, "{known:?}");
            assert!(
                known.taint >= class && known.untrusted >= untrusted,
                "{known:?}"
            );
            assert!(known.taint <= most && known.untrusted <= may, "{known:?}");
            if at_rest {
                assert_eq!((known.taint, known.untrusted), (class, untrusted));
            }
        }
    }

    /// A session that has a secret may not read notes, and a clean one may.
    pub(crate) fn taint_is_obeyed(&self) {
        for part in PARTS {
            let secret = part.reads.iter().any(|(_, file)| file.starts_with("vault"));
            let mut socket = Socket::open(&self.socket, part.session);
            let heard = socket.call("fs_read", &json!({ "path": self.vault.join("notes/a.md") }));
            if secret {
                assert_eq!(heard, Heard::Denied(proto::DenyReason::TaintTooHigh));
            } else {
                assert!(
                    matches!(&heard, Heard::Result { content, .. } if content == "beans\n"),
                    "{heard:?}"
                );
            }
        }
    }

    /// Of the sessions that a caller gets for one call none is open. A brokerd that was killed before it could name
    /// one has left it to nobody, and nothing was called in it.
    pub(crate) fn own_sessions_are_over(&self) {
        let of_part = |id: &str| PARTS.iter().any(|part| part.session == id);
        for known in sessions(&self.socket).unwrap() {
            let own = !of_part(known.session.as_str());
            assert!(!own || !known.open || known.calls == 0, "{known:?}");
        }
    }
}

/// Every session that brokerd knows; none if it goes away meanwhile.
fn sessions(socket: &Path) -> Option<Vec<SessionSummary>> {
    let connection = connected(socket)?;
    let list = Envelope::new(1, Message::SessionList(Empty {}));
    connection.send(&list).ok()?;
    match connection.receive().ok()??.envelope.msg {
        Message::SessionListReply(reply) => Some(reply.sessions),
        other => panic!("{other:?}"),
    }
}
