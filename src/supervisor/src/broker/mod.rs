//! The supervisor's side of brokerd's private line (protocol.md sections 4 to 6). brokerd may be compromised: whatever
//! it sends is judged by the supervisor's own policy, answered with an error, or ends brokerd; it never ends the
//! supervisor.

pub(crate) mod call;
mod commit;
pub(crate) mod history;
mod line;
mod prepare;
mod record;
mod tickets;
mod workers;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use confine::launch::{Killer, Launcher};
use ipc::{Connection, Received};
use ledger::Ledger;
use proto::broker::{Record, Recorded};
use proto::client::{AuditStatus, RoleStatus, StatusReply};
use proto::{Entry, ErrorCode, Message, Timestamp};

use self::line::Line;
pub(crate) use self::prepare::too_weak;
pub(crate) use self::record::PEERS;
use self::tickets::{Numbers, Tickets};
use self::workers::Workers;
use crate::approvals::Approvals;
use crate::books::Books;
use crate::load::Loaded;
use crate::lock;
use crate::sandbox::ToolSandbox;
use crate::voice;

/// What the supervisor has for its whole life.
#[derive(Debug)]
pub(crate) struct Core {
    /// When it started.
    pub(crate) since: Timestamp,
    /// Policy and profiles.
    pub(crate) loaded: Loaded,
    /// The log.
    pub(crate) ledger: Ledger,
    /// Where the log is, for the replay.
    pub(crate) paths: ledger::Paths,
    /// Makes sandboxes.
    pub(crate) launcher: Launcher,
    /// The memory of the log.
    pub(crate) books: Mutex<Books>,
    /// The questions to the owner. No other lock is taken while it is held.
    pub(crate) approvals: Mutex<Approvals>,
    /// Numbers tickets.
    pub(crate) numbers: Numbers,
    /// Whether the supervisor is stopping.
    pub(crate) stopping: AtomicBool,
    /// The roles as `status` shows them.
    pub(crate) roles: Mutex<Vec<RoleStatus>>,
}

impl Core {
    /// The time that counts for the policy: it never goes back (architecture.md section 6).
    pub(crate) fn now(&self) -> Timestamp {
        let clock = clock();
        self.ledger
            .head()
            .time
            .map_or(clock, |last| last.max(clock))
    }
}

/// The wall clock.
pub(crate) fn clock() -> Timestamp {
    std::time::SystemTime::now().into()
}

/// One life of brokerd, from its start to its end.
#[derive(Debug)]
pub(crate) struct Life {
    core: Arc<Core>,
    /// The line to it.
    pub(crate) line: Line,
    tickets: Tickets<ToolSandbox, Killer>,
    workers: Arc<Workers>,
    ready: AtomicBool,
    unanswered: AtomicU32,
    /// The id of its `role_start`, which its `ready` answers.
    pub(crate) start: u64,
}

impl Life {
    /// A life over `connection`; nothing was said yet.
    ///
    /// # Errors
    /// The socket could not be copied or set up.
    pub(crate) fn new(core: Arc<Core>, connection: &Connection) -> std::io::Result<Self> {
        let line = Line::new(connection)?;
        Ok(Self {
            core,
            start: line.next(),
            line,
            tickets: Tickets::new(),
            workers: Arc::default(),
            ready: AtomicBool::new(false),
            unanswered: AtomicU32::new(0),
        })
    }

    /// Whether brokerd said that it can serve.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    /// Sends a `ping`, and answers how many have no `pong` yet, this one included.
    pub(crate) fn ping(&self) -> u32 {
        let unanswered = self.unanswered.fetch_add(1, Ordering::SeqCst) + 1;
        self.line.say(Message::Ping(proto::role::Empty {}));
        unanswered
    }

    /// Kills the sandboxes that were not committed in time.
    pub(crate) fn expire(&self) {
        let late = self.tickets.expire(Instant::now());
        if let Some(first) = late.first() {
            let (count, limit) = (late.len(), call::COMMIT_WITHIN.as_secs());
            let calls = crate::count(count as u64, "prepared call");
            voice::remark(&format!(
                "{calls}, ticket {first} the first, not committed within {limit} s: given up"
            ));
        }
    }

    /// Takes no new request, and kills every sandbox.
    pub(crate) fn close(&self) {
        self.tickets.close();
    }

    /// Waits until every sandbox is gone and every thread that served is done; `false` if that takes too long.
    pub(crate) fn wait_idle(&self, limit: Duration) -> bool {
        self.workers.wait_idle(limit)
    }

    /// Serves brokerd until the line ends.
    pub(crate) fn serve(self: &Arc<Self>, connection: &Connection) {
        loop {
            match connection.receive() {
                Ok(Some(received)) => self.dispatch(received),
                Ok(None) => break,
                Err(error) => {
                    self.line.send(&error.reply(), &[]);
                    voice::remark(&format!("brokerd's line is closed: {error}"));
                    break;
                }
            }
        }
        self.close();
        self.line.close();
    }

    fn dispatch(self: &Arc<Self>, received: Received) {
        let id = received.envelope.id;
        match received.envelope.msg {
            Message::Prepare(prepare) => self.prepare(id, prepare),
            Message::Commit(commit) => self.commit(id, commit),
            Message::Abort(abort) => {
                let life = Arc::clone(self);
                self.workers
                    .brief("abort", move || life.tickets.abort(abort.ticket));
            }
            Message::Finish(finish) => self.finish(id, finish),
            Message::Record(record) => {
                let life = Arc::clone(self);
                self.workers
                    .brief("record", move || life.record(id, record));
            }
            Message::Status(_) => drop(self.line.answer(id, Message::StatusReply(self.status()))),
            Message::Pong(_) => self.unanswered.store(0, Ordering::SeqCst),
            Message::Ready(_) if id == self.start && !self.is_ready() => {
                self.ready.store(true, Ordering::SeqCst);
            }
            other => {
                let detail = format!("{} is nothing that brokerd may say here", other.kind());
                self.line.refuse(id, ErrorCode::BadMessage, &detail);
            }
        }
    }

    fn record(&self, id: u64, record: Record) {
        let now = self.core.now();
        let admitted = {
            let mut books = lock(&self.core.books);
            let bench = record::Bench {
                generation: self.core.loaded.policy.generation(),
                now,
                books: &mut books,
                approvals: &self.core.approvals,
                policy: &self.core.loaded.policy,
            };
            record::admit(record.entry, bench, |ticket, session, call, tool| {
                self.tickets.take_refused(ticket, session, call, tool)
            })
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(error) => {
                self.line.refuse(id, ErrorCode::BadMessage, &error);
                return;
            }
        };
        let approval = match &admitted.entry {
            Entry::Approval(approval) => Some(approval.clone()),
            _ => None,
        };
        let appended = if admitted.begins {
            self.core.ledger.begin(admitted.entry)
        } else if admitted.durable {
            self.core.ledger.append_durable(admitted.entry)
        } else {
            self.core.ledger.append(admitted.entry)
        };
        if let Some(approval) = approval {
            let now = self.core.now();
            lock(&self.core.approvals).stored(&approval, appended.is_ok(), now);
        }
        match appended {
            Ok(appended) => {
                if let Some((session, text)) = admitted.text {
                    lock(&self.core.books).remember(&session, &text, appended.seq);
                }
                let seq = appended.seq;
                self.line.answer(id, Message::Recorded(Recorded { seq }));
            }
            Err(error) => drop(self.line.refuse(id, ErrorCode::Internal, &error)),
        }
    }

    fn status(&self) -> StatusReply {
        let head = self.core.ledger.head();
        StatusReply {
            since: self.core.since,
            generation: self.core.loaded.policy.generation(),
            roles: lock(&self.core.roles).clone(),
            changed: self.core.loaded.changed(),
            questions: lock(&self.core.approvals).waiting(self.core.now()),
            sandboxes: self.tickets.sandboxes(),
            audit: AuditStatus {
                next: head.next,
                last: head.time,
                anchored: head.anchored,
                bytes: head.bytes,
                max_bytes: self.core.loaded.policy.config().audit.max_bytes.get(),
                full: head.full,
                closed: head.closed,
            },
        }
    }
}
