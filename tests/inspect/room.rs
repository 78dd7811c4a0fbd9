//! One sandbox as the supervisor makes it: the built-in profile, the facts of this host, two granted trees that belong
//! to somebody else.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use boxmaker_tests::binaries::binary;
use boxmaker_tests::sandbox::launcher;
use confine::Plan;
use confine::derive::derive;
use confine::host::{Host, Privilege};
use confine::launch::{GrantedTree, IdentityChoice, Launcher, Prepared, StageStdio};
use confine::plan::{Access, Mount, Program};
use confine::profile::Profiles;
use proto::audit::{ExitCause, ExitStatus};
use proto::{Hash32, Level};
use rustix::pipe::{PipeFlags, pipe_with};
use tempfile::TempDir;

/// Who owns the granted trees.
const OWNER: u32 = 1000;

/// Two granted directories beside one that is not granted.
pub(crate) struct Granted {
    directory: TempDir,
}

impl Granted {
    pub(crate) fn new() -> Self {
        // Not below /tmp, of which a sandbox has its own.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["notes", "out", "other"] {
            let path = directory.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), name).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            for path in [&path, &path.join("file")] {
                chown(path, Some(OWNER), Some(OWNER)).unwrap();
            }
        }
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn trees(&self) -> [(PathBuf, Access); 2] {
        [
            (self.path("notes"), Access::Read),
            (self.path("out"), Access::ReadWriteTree),
        ]
    }
}

/// The plan for these words under `tools/base`, with the granted trees; the first word is a path.
pub(crate) fn plan(words: &[&str], granted: &Granted) -> Plan {
    let profiles = Profiles::load(&BTreeMap::new()).unwrap();
    let profile = profiles.get("tools/base").unwrap();
    let program = Program {
        argv: words.iter().map(|word| (*word).to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: text(&granted.path("notes")),
        input: Hash32::ZERO,
    };
    let trees = granted.trees().map(|(path, access)| Mount::Tree {
        path: text(&path),
        directory: true,
        access,
        exec: false,
    });
    let host = Host::take(profile, Path::new(words[0]), Privilege::Root).unwrap();
    derive(profile, program, &trees, Level::Full, &host).unwrap()
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The ends of a program's standard descriptors that stay outside.
pub(crate) struct Outside {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Outside {
    /// The names that `/proc` has for the pipes, standard input first if it is one.
    pub(crate) fn names(&self) -> Vec<String> {
        let ends = self.stdin.iter().chain([&self.stdout, &self.stderr]);
        // Both ends of a pipe are one inode.
        ends.map(|end| format!("pipe:[{}]", rustix::fs::fstat(end).unwrap().st_ino))
            .collect()
    }
}

/// Builds the sandbox of `plan`. Standard input is a pipe, or `/dev/null` as an `argv` tool gets it.
pub(crate) fn prepare(plan: Plan, granted: &Granted, piped: bool) -> (Prepared, Outside) {
    // One for the process: two of one name would share cgroups.
    static LAUNCHER: LazyLock<Launcher> =
        LazyLock::new(|| launcher(&binary("boxmaker-stage"), "inspect"));
    let (stdin, writer) = if piped {
        let (stdin, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        (stdin, Some(writer))
    } else {
        (OwnedFd::from(File::open("/dev/null").unwrap()), None)
    };
    let (out, stdout) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let (err, stderr) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let trees = granted.trees().map(|(path, _)| GrantedTree {
        descriptor: File::open(&path)
            .unwrap()
            .as_fd()
            .try_clone_to_owned()
            .unwrap(),
        owner: (OWNER, OWNER),
    });
    let stdio = StageStdio {
        stdin,
        stdout,
        stderr,
    };
    let prepared = LAUNCHER
        .prepare(plan, trees.into(), stdio, IdentityChoice::Fresh)
        .unwrap();
    let confinement = prepared.confinement();
    assert_eq!(
        (confinement.level, &confinement.gaps),
        (Level::Full, &vec![])
    );
    let outside = Outside {
        stdin: writer,
        stdout: out,
        stderr: err,
    };
    (prepared, outside)
}

/// Lets it run on `input` and gives its status, standard output and standard error.
pub(crate) fn run(prepared: Prepared, outside: Outside, input: &str) -> (u8, String, String) {
    let running = prepared.start().unwrap();
    if let Some(stdin) = outside.stdin {
        File::from(stdin).write_all(input.as_bytes()).unwrap();
    }
    let read = |end: OwnedFd| std::thread::spawn(|| std::io::read_to_string(File::from(end)));
    let (stdout, stderr) = (read(outside.stdout), read(outside.stderr));
    let ended = running.wait(Duration::from_secs(30));
    assert_eq!(ended.cause, ExitCause::Exited, "{ended:?}");
    let Some(ExitStatus::Code(code)) = ended.exit else {
        panic!("{ended:?}");
    };
    let text =
        |thread: std::thread::JoinHandle<std::io::Result<String>>| thread.join().unwrap().unwrap();
    (code, text(stdout), text(stderr))
}
