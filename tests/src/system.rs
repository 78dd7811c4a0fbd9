//! The whole system on a home, a configuration and files of its own: `boxmaker up` from a directory that holds
//! boxmaker's binaries, and as `brokerd` either the real one or the relay that a test speaks through.

mod files;
pub mod processes;
pub mod relay;
mod running;

use std::ffi::{CStr, OsStr};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;

use confine::cgroup::Backend;
use ipc::Connection;
use ledger::{Paths, Report, Sound};
use proto::audit::{Decision, Outcome};
use proto::config::CgroupChoice;
use proto::{Entry, Line};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::binaries::binary;
use files::{own, place};
use processes::{Process, comes, in_cgroups};

pub use files::OWNER;
pub use running::System;

/// Which program stands in the place of `brokerd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brokerd {
    /// The real one.
    Real,
    /// The relay: the test is brokerd.
    Relay,
}

/// Everything that outlives a supervisor.
#[derive(Debug)]
pub struct Home {
    directory: TempDir,
    /// To whom the owner's files belong.
    owner: u32,
    /// Who starts the supervisor, if that is not the user of the test.
    starter: Option<u32>,
    mounts: Mutex<Vec<PathBuf>>,
}

impl Home {
    /// An empty home and configuration. Layers that the host's cgroups cannot give are waived.
    ///
    /// # Panics
    /// A directory cannot be made, or a binary is not built.
    #[must_use]
    pub fn new(brokerd: Brokerd) -> Self {
        Self::with(brokerd, OWNER, None)
    }

    /// The same for a supervisor without privileges: as root, home, configuration and files belong to `user`, who
    /// starts it; as a plain user, to whoever runs the test.
    ///
    /// # Panics
    /// A directory cannot be made, or a binary is not built.
    #[must_use]
    pub fn of_plain_user(brokerd: Brokerd, user: u32) -> Self {
        let own = rustix::process::geteuid();
        let starter = own.is_root().then_some(user);
        let home = Self::with(brokerd, starter.unwrap_or(own.as_raw()), starter);
        if let Some(user) = starter {
            chown(home.at("home"), Some(user), Some(user)).unwrap();
        }
        home
    }

    fn with(brokerd: Brokerd, owner: u32, starter: Option<u32>) -> Self {
        // Whatever it was: what a group may write is no configuration.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        // Not below /tmp: that is each sandbox's own scratch directory.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let home = Self {
            directory,
            owner,
            starter,
            mounts: Mutex::default(),
        };
        for below in ["bin", "home", "config/grants", "config/tools", "files"] {
            fs::create_dir_all(home.at(below)).unwrap();
        }
        for name in [
            "boxmaker",
            "boxmaker-stage",
            "boxmaker-misbehave",
            "bxctl",
            "toolkit",
        ] {
            place(&binary(name), &home.at("bin").join(name));
        }
        home.put(brokerd);
        let backend = Backend::detect(CgroupChoice::Auto, "test").unwrap();
        let waived: Vec<_> = backend
            .missing()
            .iter()
            .map(|(layer, _)| format!("\"{layer}\""))
            .collect();
        home.configure("config.toml", &format!("waive = [{}]\n", waived.join(", ")));
        home.own_files();
        home
    }

    fn own_files(&self) {
        own(&self.at("files"), self.owner);
    }

    /// Puts a program in the place of `brokerd`, for the next start of it.
    ///
    /// # Panics
    /// The file cannot be replaced.
    pub fn put(&self, brokerd: Brokerd) {
        let name = match brokerd {
            Brokerd::Real => "brokerd",
            Brokerd::Relay => "relay-brokerd",
        };
        let (new, place_of) = (self.at("bin").join("next"), self.at("bin").join("brokerd"));
        place(&binary(name), &new);
        fs::rename(new, place_of).unwrap();
    }

    /// The directory that holds home, configuration, binaries and the owner's files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn at(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    /// `BOXMAKER_HOME`.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.at("home")
    }

    /// The absolute path of a file of the owner's.
    #[must_use]
    pub fn path(&self, below: &str) -> String {
        self.at("files").join(below).to_string_lossy().into_owned()
    }

    /// Writes a file of the configuration; `@FILES@` stands for the directory of the owner's files. A `config.toml` that
    /// says nothing of the warm pool keeps none: what these suites count is what runs.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn configure(&self, name: &str, text: &str) {
        let files = self.at("files");
        let mut text = text.replace("@FILES@", &files.to_string_lossy());
        if name == "config.toml" && !text.contains("pool.") {
            text.insert_str(0, "pool.\"tools/*\" = 0\n");
        }
        fs::write(self.at("config").join(name), text).unwrap();
    }

    /// Writes `tools/NAME.toml`.
    pub fn tool(&self, name: &str, text: &str) {
        self.configure(&format!("tools/{name}.toml"), text);
    }

    /// Writes `grants/ID.toml`.
    pub fn grant(&self, id: &str, text: &str) {
        self.configure(&format!("grants/{id}.toml"), text);
    }

    /// Makes a directory of the owner's.
    ///
    /// # Panics
    /// It cannot be made.
    pub fn folder(&self, below: &str) -> String {
        let path = self.at("files").join(below);
        fs::create_dir_all(&path).unwrap();
        self.own_files();
        self.path(below)
    }

    /// Writes a file of the owner's.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn file(&self, below: &str, text: &str) -> String {
        let path = self.at("files").join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.own_files();
        self.path(below)
    }

    /// Makes a symbolic link among the owner's files.
    ///
    /// # Panics
    /// It cannot be made.
    pub fn link(&self, below: &str, target: &str) -> String {
        std::os::unix::fs::symlink(target, self.at("files").join(below)).unwrap();
        self.path(below)
    }

    /// Mounts a file system on a directory below this one, for as long as this lives. In a mount namespace that only
    /// the test has.
    ///
    /// # Panics
    /// It cannot be mounted.
    pub fn mount(&self, below: &str, kind: &str, options: &CStr) {
        let path = self.at(below);
        fs::create_dir_all(&path).unwrap();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount(kind, &path, kind, flags, options).unwrap();
        self.mounts.lock().unwrap().push(path);
    }

    /// Starts `boxmaker up`. It is up when a brokerd is.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start(&self) -> System {
        self.start_in(&[])
    }

    /// [`Home::start`], with an environment of these variables.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start_in(&self, environment: &[(&str, &OsStr)]) -> System {
        let child = self.up().envs(environment.iter().copied()).spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        System { child, process }
    }

    /// How a `boxmaker up` ends that does not serve.
    ///
    /// # Panics
    /// It does not end.
    #[must_use]
    pub fn start_in_vain(&self) -> ExitStatus {
        let mut child = self.up().spawn().unwrap();
        let mut status = None;
        let ended = comes(|| {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        if !ended {
            // Nobody else would end it.
            child.kill().unwrap();
            child.wait().unwrap();
        }
        status.expect("it ends within 30 s")
    }

    /// `boxmaker up`, with nothing in its environment.
    fn up(&self) -> Command {
        let said = |name: &str| {
            let file = File::options()
                .append(true)
                .create(true)
                .open(self.at(name));
            Stdio::from(file.unwrap())
        };
        let mut command = Command::new(self.at("bin/boxmaker"));
        if let Some(user) = self.starter {
            command.uid(user).gid(user);
        }
        command
            .arg("up")
            .arg("--home")
            .arg(self.home())
            .arg("--config")
            .arg(self.at("config"))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(said("stdout"))
            .stderr(said("stderr"));
        command
    }

    /// What `bxctl` answers to these words, asked by whoever starts the supervisor.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn bxctl(&self, words: &[&str]) -> Output {
        let mut command = Command::new(self.at("bin/bxctl"));
        if let Some(user) = self.starter {
            command.uid(user).gid(user);
        }
        command
            .args(words)
            .arg("--home")
            .arg(self.home())
            .env("BOXMAKER_CONFIG", self.at("config"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// What supervisors have written to standard error so far.
    ///
    /// # Panics
    /// It is no UTF-8.
    #[must_use]
    pub fn stderr(&self) -> String {
        fs::read_to_string(self.at("stderr")).unwrap_or_default()
    }

    /// How often a supervisor has said that calls are served.
    #[must_use]
    pub fn times_up(&self) -> usize {
        let said = fs::read_to_string(self.at("stdout")).unwrap_or_default();
        said.matches("boxmaker is up").count()
    }

    /// A connection to the owner's socket, as `bxctl` makes it.
    ///
    /// # Errors
    /// As connect(2); there is no socket while no supervisor runs.
    pub fn connect(&self) -> io::Result<Connection> {
        Connection::connect(&self.home().join("run/bxctl/broker.sock"))
    }

    /// Where the log is.
    #[must_use]
    pub fn paths(&self) -> Paths {
        Paths {
            audit: self.home().join("audit"),
            anchor: self.home().join("anchor"),
        }
    }

    /// Every line of the log.
    ///
    /// # Panics
    /// The log is broken.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        ledger::read(&self.paths()).map(Result::unwrap).collect()
    }

    /// Every decision of the log with its number.
    #[must_use]
    pub fn decisions(&self) -> Vec<(u64, Decision)> {
        self.pick(|line| match line.entry {
            Entry::Decision(decision) => Some((line.seq, *decision)),
            _ => None,
        })
    }

    /// Every outcome of the log.
    #[must_use]
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.pick(|line| match line.entry {
            Entry::Outcome(outcome) => Some(outcome),
            _ => None,
        })
    }

    fn pick<T>(&self, of: impl Fn(Line) -> Option<T>) -> Vec<T> {
        self.lines().into_iter().filter_map(of).collect()
    }

    /// Verifies the log.
    ///
    /// # Panics
    /// It is not sound.
    pub fn sound(&self) -> Sound {
        match ledger::verify(&self.paths()).unwrap() {
            Report::Sound(sound) => sound,
            Report::Broken(broken) => panic!("the log is broken: {broken:?}"),
        }
    }

    /// The processes in this home's cgroups, and how many groups there are.
    #[must_use]
    pub fn in_cgroups(&self) -> (Vec<u32>, usize) {
        in_cgroups(&format!("boxmaker-{}", self.name()))
    }

    /// What tells the cgroups of this home from those of others.
    fn name(&self) -> String {
        let canonical = fs::canonicalize(self.home()).unwrap_or_default();
        let hash = Sha256::digest(canonical.as_os_str().as_encoded_bytes());
        hash.iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for path in self.mounts.get_mut().into_iter().flatten() {
            // What stays mounted keeps its directory from being removed, and nothing else.
            let _ = unmount(&*path, UnmountFlags::DETACH);
        }
        // A supervisor that was killed leaves its groups to the next start of its home, and there is none.
        let _ = Backend::detect(CgroupChoice::Auto, &self.name()).and_then(|found| found.clean());
    }
}
