//! `boxmaker up`: everything in its order, in the foreground, until a signal or a failure.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use confine::host::Privilege;
use confine::launch::{Ended, Launcher, LauncherError, LauncherOptions, PoolSizes};
use ledger::{AppendError, Ledger, LockError, OpenError};
use proto::config::OTHER_TOOLS;
use proto::{Confinement, Entry, Timestamp};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::bare::{bare, bare_reason};
use crate::books::digest;
use crate::broker::{Core, clock};
use crate::demands;
use crate::home::{self, HomeError};
use crate::load::{Directories, LoadFailure, Loaded, load};
use crate::notify::{self, Notifier};
use crate::role::{self, RoleError};
use crate::share::{Members, ShareError};
use crate::{count, in_full, voice, way_out};

/// What the main thread waits for.
#[derive(Debug)]
pub(crate) enum Event {
    /// SIGTERM or SIGINT, and when it came.
    Signal(Instant),
    /// The role can serve.
    Ready,
    /// The sandbox of the role that had this process id is empty.
    Ended(u32, Ended),
}

/// Why the supervisor did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpError {
    /// The configuration was not loaded.
    #[error(transparent)]
    Config(#[from] LoadFailure),
    /// A step on a file or directory failed.
    #[error("cannot {step} {}: {source}", path.display())]
    File {
        /// What was tried.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The home is not taken.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Something could not be given to the group.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// Something that is no socket is in the place of the socket.
    #[error("{} is no socket; move it away: boxmaker puts its socket there", .0.display())]
    NoSocket(PathBuf),
    /// The log was not opened.
    #[error(transparent)]
    Log(#[from] OpenError),
    /// The load could not be recorded.
    #[error("the policy is not used without a record: {0}")]
    Record(#[from] AppendError),
    /// Nothing can be launched on this host.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// Signals or threads could not be had.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    /// brokerd does not run.
    #[error("{0}")]
    Role(String),
}

impl UpError {
    /// What the owner is told: what happened, and the way out where the system refused a file of the home.
    pub(crate) fn told(&self) -> String {
        let text = in_full(self);
        let of_the_home = matches!(
            self,
            Self::File { .. }
                | Self::Home(HomeError::File { .. })
                | Self::Share(_)
                | Self::Log(OpenError::File(_) | OpenError::Lock(LockError::File(_)))
        );
        match way_out::of(self).filter(|_| of_the_home) {
            Some(way) => format!("{text}; {way}"),
            None => text,
        }
    }
}

impl From<RoleError> for UpError {
    fn from(error: RoleError) -> Self {
        Self::Role(in_full(&error))
    }
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> UpError {
    let path = path.to_owned();
    move |source| UpError::File { step, path, source }
}

/// Runs the supervisor until SIGTERM or SIGINT.
///
/// # Errors
/// As [`UpError`]; whatever was started is gone.
pub(crate) fn up(directories: &Directories) -> Result<(), UpError> {
    // Directories and files are made with the modes that stand beside them and no more.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let (told, events) = channel();
    // First of all, so that an early signal ends the start in order too.
    await_signals(told.clone())?;
    let home = &directories.home;
    let run = home.join("run");
    let _lock = home::hold(home)?;

    let loaded = load(directories, 1)?;
    for warning in &loaded.warnings {
        voice::remark(&format!("warning: {warning}"));
    }
    let launcher = launcher(directories, &loaded)?;
    let paths = ledger::Paths {
        audit: home.join("audit"),
        anchor: home.join("anchor"),
    };
    let (ledger, opened) = Ledger::open(&paths, Box::new(clock))?;
    ledger.limit(loaded.policy.config().audit.max_bytes.get());
    let members = Members::of_host()?;
    members.share_log(&paths)?;
    if let Some(torn) = opened.recovered {
        voice::remark(&format!(
            "{} ended in a torn line of {} at {}; it is kept, and record {} says so",
            torn.file,
            count(torn.length, "byte"),
            torn.offset,
            torn.seq
        ));
    }
    if let Some(warning) = behind(clock(), ledger.head().time) {
        voice::remark(&format!("warning: {warning}"));
    }
    let entry = Entry::Policy {
        generation: loaded.policy.generation(),
        files: loaded.policy.hashes(),
    };
    ledger.append_durable(entry)?;

    let socket = Socket::bind(&run.join("bxctl"), members)?;
    let about = about(&loaded, &socket.path);
    let core = Arc::new(Core {
        since: clock(),
        loaded,
        ledger,
        paths,
        launcher,
        books: Mutex::default(),
        approvals: Mutex::default(),
        numbers: Default::default(),
        stopping: AtomicBool::new(false),
        roles: Mutex::default(),
    });
    let notifier = Notifier::new(std::env::var_os(notify::VARIABLE).as_deref());
    let mut warned = false;
    let ready = |measured: &Confinement| {
        voice::announce(&about);
        if !std::mem::replace(&mut warned, true) {
            let unmet = demands::unmet(core.loaded.policy.grants(), measured, clock());
            if let Some(unmet) = unmet {
                voice::remark(&format!("warning: {unmet}"));
            }
        }
    };
    let ended = role::run(&core, &socket.listener, &events, &told, &notifier, ready);
    drop(socket);
    core.ledger.sync()?;
    Ok(ended?)
}

/// What the owner is told of a clock that is behind the last record. It was wrong then, or is now; boxmaker cannot know.
fn behind(clock: Timestamp, last: Option<Timestamp>) -> Option<String> {
    let last = last.filter(|last| *last > clock)?;
    Some(format!(
        "the clock says {clock}, and the last record is of {last}: time does not go back, so records are of that time, and \
         grants expire by it, until the clock has passed it; mend the clock, or, if it was wrong then, stop boxmaker and \
         move audit/ and anchor away together: the next start begins a new log"
    ))
}

fn about(loaded: &Loaded, socket: &Path) -> String {
    let waive = &loaded.policy.config().waive;
    let mut text = format!(
        "boxmaker is up: {}, {}, socket {}",
        count(loaded.policy.tools().count() as u64, "tool"),
        count(loaded.policy.grants().count() as u64, "grant"),
        socket.display()
    );
    if !waive.is_empty() {
        let layers: Vec<_> = waive.iter().map(|layer| layer.as_str()).collect();
        text.push_str(&format!("; waived: {}", layers.join(", ")));
    }
    match (loaded.privilege, &loaded.refusal) {
        (Privilege::Bare, refusal) => {
            let why = bare_reason(refusal.as_deref().unwrap_or_default());
            text.push_str(&format!(
                "; without namespaces: every sandbox has the host's paths, processes and network, held back by Landlock and \
                 the system call filter alone, so the level is partial at best; {why}"
            ));
        }
        (privilege, _) if privilege.gives_users() => {}
        _ => text.push_str(
            "; without root: every sandbox has your uid, so the level is partial at best",
        ),
    }
    text
}

fn await_signals(told: Sender<Event>) -> Result<(), UpError> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(UpError::Signals)?;
    let wait = move || {
        for _ in signals.forever() {
            if told.send(Event::Signal(Instant::now())).is_err() {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(wait).map(drop).map_err(UpError::Signals)
}

/// How many stages wait for the calls of tools with one profile, where `[pool]` says nothing of it.
const WAITING: u8 = 2;

fn pool(table: &BTreeMap<String, u8>) -> PoolSizes {
    let mut named = table.clone();
    PoolSizes {
        tools: named.remove(OTHER_TOOLS).unwrap_or(WAITING),
        named,
    }
}

fn launcher(directories: &Directories, loaded: &Loaded) -> Result<Launcher, UpError> {
    let config = loaded.policy.config();
    let home = &directories.home;
    let canonical = fs::canonicalize(home).map_err(failed("look at", home))?;
    let hash = digest(canonical.as_os_str().as_encoded_bytes()).to_string();
    let options = LauncherOptions {
        stage: directories.stage(),
        uid_range: config.uid_range,
        cgroup: config.cgroup,
        name: hash.get(..8).unwrap_or_default().to_owned(),
        waive: config.waive.clone(),
        pool: pool(&config.pool),
        bare: loaded
            .refusal
            .as_ref()
            .map(|refusal| bare(refusal, home.join("run/sandboxes"))),
    };
    Ok(Launcher::new(options)?)
}

/// The owner's socket. It is removed when this is dropped.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Binds `broker.sock` in `directory`. The home is locked, so a socket that is there is a dead one.
    fn bind(directory: &Path, members: Members) -> Result<Self, UpError> {
        fs::create_dir_all(directory).map_err(failed("make", directory))?;
        members.share(directory, 0o750)?;
        let path = directory.join("broker.sock");
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.file_type().is_socket() => {
                fs::remove_file(&path).map_err(failed("remove", &path))?;
            }
            Ok(_) => return Err(UpError::NoSocket(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("look at", &path)(error)),
        }
        let listener = UnixListener::bind(&path).map_err(|error| {
            // The library finds out before the kernel is asked, and answers with no errno.
            let error = match error.kind() {
                io::ErrorKind::InvalidInput => Errno::NAMETOOLONG.into(),
                _ => error,
            };
            failed("bind", &path)(error)
        })?;
        members.share(&path, 0o660)?;
        Ok(Self { listener, path })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A socket that stays is removed by the next start.
        let _ = fs::remove_file(&self.path);
    }
}
