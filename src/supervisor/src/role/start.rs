//! The start of brokerd: its sandbox, its record, and everything it is handed (protocol.md section 1).

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use confine::derive::derive;
use confine::host::{Host, Privilege};
use confine::launch::{Killer, Running, StageStdio};
use confine::plan::{Plan, Program};
use ipc::Connection;
use proto::audit::{ExitCause, RoleEvent};
use proto::broker::PolicyGeneration;
use proto::client::RoleStatus;
use proto::role::RoleStart;
use proto::{Confinement, Entry, Envelope, Level, Line, Message};

use super::keeper::keep;
use super::{PROFILE, ROLE, RoleError, record, role_entry};
use crate::approvals::Approvals;
use crate::books::{Books, digest};
use crate::broker::{Core, Life, PEERS, clock, history, too_weak};
use crate::lock;
use crate::sandbox::prepare_role;
use crate::stdio::{Pipe, show};
use crate::up::Event;

/// Its place at the start of `uid_range`.
const SLOT: u32 = 0;

/// How long brokerd may live after its line has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One running brokerd.
#[derive(Debug)]
pub(super) struct Brokerd {
    pub(super) life: Arc<Life>,
    pub(super) killer: Killer,
    pub(super) pid: u32,
    /// What was measured of its sandbox.
    pub(super) confinement: Confinement,
    pub(super) reader: JoinHandle<()>,
    /// Ends the keeper when it is dropped.
    _keeper: Sender<()>,
}

/// Launches brokerd and hands it everything it needs; `starts` counts the starts before this one.
pub(super) fn start(
    core: &Arc<Core>,
    listener: &UnixListener,
    told: &Sender<Event>,
    starts: u64,
) -> Result<Brokerd, RoleError> {
    let (near, far) = UnixStream::pair()?;
    let (out, err) = (Pipe::new()?, Pipe::new()?);
    let ends = StageStdio {
        stdin: OwnedFd::from(far),
        stdout: out.write,
        stderr: err.write,
    };
    let plan = plan(core)?;
    let wall = Duration::from_millis(plan.limits.wall_ms);
    let prepared = prepare_role(&core.launcher, plan, ends, SLOT)?;
    let confinement = prepared.confinement().clone();
    if let Some(why) = too_weak(&confinement, required(core)) {
        return Err(RoleError::Weak(why));
    }
    let connection = Connection::new(near);
    let life = Arc::new(Life::new(Arc::clone(core), &connection)?);
    show(ROLE, out.read)?;
    show(ROLE, err.read)?;

    let pid = prepared.pid();
    set_status(core, pid, starts, &confinement);
    let started = RoleEvent::Started {
        confinement: confinement.clone(),
    };
    record(core, Some(pid), started)?;
    let running = match prepared.start() {
        Ok(running) => running,
        Err(error) => {
            core.ledger
                .append(role_entry(Some(pid), RoleEvent::Ended { exit: None }))?;
            return Err(error.into());
        }
    };
    let killer = running.killer();
    let running = (pid, running, wall);
    let line = (life, connection);
    let attached = attach(core, listener, told, running, confinement, line);
    attached.inspect_err(|_| {
        killer.kill(ExitCause::Aborted);
        // What failed is told already; a log that is closed is found by the next start.
        let _ = core
            .ledger
            .append(role_entry(Some(pid), RoleEvent::Ended { exit: None }));
    })
}

/// The least level that does for brokerd: all of it, or what a plain user can have.
fn required(core: &Core) -> Level {
    match core.loaded.privilege {
        Privilege::Root => Level::Full,
        Privilege::UserNamespace | Privilege::Bare => Level::Partial,
    }
}

/// Starts the threads around a brokerd that was let go, and hands it what it needs.
fn attach(
    core: &Arc<Core>,
    listener: &UnixListener,
    told: &Sender<Event>,
    (pid, running, wall): (u32, Running, Duration),
    confinement: Confinement,
    (life, connection): (Arc<Life>, Connection),
) -> Result<Brokerd, RoleError> {
    let killer = running.killer();
    let at_end = told.clone();
    let (alive, gone) = channel::<()>();
    thread::Builder::new()
        .name(format!("{ROLE} end"))
        .spawn(move || {
            let ended = running.wait(wall);
            drop(alive);
            // Nobody listens any more only if the supervisor is ending.
            let _ = at_end.send(Event::Ended(pid, ended));
        })?;
    hand_over(core, &life, listener)?;
    let (serving, ending) = (Arc::clone(&life), killer.clone());
    let reader = thread::Builder::new()
        .name(format!("{ROLE} line"))
        .spawn(move || {
            serving.serve(&connection);
            // A brokerd without its line is of no use, whatever it still does; one that is ending may end by itself.
            if gone.recv_timeout(LAST_WORDS) == Err(RecvTimeoutError::Timeout) {
                ending.kill(ExitCause::Aborted);
            }
        })?;
    let keeper = keep(&life, killer.clone(), told.clone())?;
    Ok(Brokerd {
        life,
        killer,
        pid,
        confinement,
        reader,
        _keeper: keeper,
    })
}

fn set_status(core: &Core, pid: u32, restarts: u64, confinement: &Confinement) {
    let status = RoleStatus {
        role: ROLE.to_owned(),
        pid: Some(pid),
        since: clock(),
        restarts,
        level: confinement.level,
    };
    *lock(&core.roles) = vec![status];
}

/// The plan of brokerd's sandbox: its profile, its binary, and no tree.
fn plan(core: &Core) -> Result<Plan, RoleError> {
    let profile = core
        .loaded
        .profiles
        .get(PROFILE)
        .ok_or(RoleError::Profile)?;
    let executable = core.loaded.binaries.join(ROLE);
    let program = Program {
        argv: vec![executable.to_str().ok_or(RoleError::Path)?.to_owned()],
        env: BTreeMap::new(),
        cwd: "/".to_owned(),
        input: digest(b""),
    };
    let host = Host::take(profile, &executable, core.loaded.privilege)?;
    Ok(derive(profile, program, &[], required(core), &host)?)
}

/// Sends `role_start`, the policy and the history. That brokerd does not take them is no error here: it has ended, or
/// the line has.
fn hand_over(core: &Core, life: &Life, listener: &UnixListener) -> Result<(), RoleError> {
    let files = &core.loaded.files;
    let config = files.0.get("config.toml").cloned().unwrap_or_default();
    let start = RoleStart {
        role: ROLE.to_owned(),
        config: String::from_utf8_lossy(&config).into_owned(),
        sockets: PEERS.iter().map(|peer| (*peer).to_owned()).collect(),
    };
    let memory = files.seal()?;
    let message = Message::RoleStart(start);
    let started = life
        .line
        .send(&Envelope::new(life.start, message), &[listener.as_fd()]);
    let generation = core.loaded.policy.generation();
    let message = Message::Policy(PolicyGeneration { generation });
    let given = started
        && life
            .line
            .send(&Envelope::new(life.line.next(), message), &[memory.as_fd()]);
    if !given {
        return Ok(());
    }
    let mut books = Books::default();
    let mut approvals = Approvals::default();
    let id = life.line.next();
    let send = |history, last| {
        let message = Message::History(history);
        let envelope = if last {
            Envelope::new(id, message)
        } else {
            Envelope::partial(id, message)
        };
        life.line.send(&envelope, &[]);
        Ok(())
    };
    let look = |line: &Line| {
        books.read(line);
        if let Entry::Approval(approval) = &line.entry {
            approvals.read(approval);
        }
    };
    history::replay(ledger::read(&core.paths), look, send)?;
    *lock(&core.books) = books;
    *lock(&core.approvals) = approvals;
    Ok(())
}
