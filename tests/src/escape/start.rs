//! Starting the probe for a column: with nothing around it, by bubblewrap, or by `launch-probe` in a sandbox of ours; and
//! what is left when that has ended, or when who started it has.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use confine::cgroup::Backend;
use confine::plan::Access;
use proto::Confinement;
use proto::config::CgroupChoice;
use rustix::process::Signal;

use super::column::{Column, Stage};
use super::launch::{Launch, Launched, Waiting};
use super::{GROUP, Room, USER};
use crate::plain::without_namespaces;
use crate::system::processes::{Process, comes, named};

/// The profile of our sandboxes: that of every tool, with programs that carry rights, and limits that are met soon.
const PROFILE: &str = r#"
extends = "tools/base"
view = ["@/bin"]
exec = ["@/bin/*"]

[limits]
memory = "64M"
pids = 24
files = 64
scratch = "1M"
"#;

/// How long one launch may take.
const WALL_MS: u64 = 120_000;

/// One run of the probe.
pub(super) struct Start<'a> {
    pub(super) column: Column,
    pub(super) room: &'a Room,
    pub(super) stage: &'a Stage,
    /// Without a sandbox: as the plain user.
    pub(super) user: bool,
    /// What the probe is told.
    pub(super) input: String,
    /// Whether ours gets a tenth of a processor, and is watched for whether it has to wait for it.
    pub(super) watch_processor: bool,
}

/// What became of it.
pub(super) struct Ended {
    /// Whatever was written.
    pub(super) said: String,
    /// Ours only.
    pub(super) confinement: Option<Confinement>,
    /// Ours only, where it was watched.
    pub(super) throttled: Option<bool>,
}

impl Start<'_> {
    /// Runs until everything has ended.
    pub(super) fn to_its_end(&self) -> Ended {
        let output = finish(self.begin());
        let said = text(&output.stdout) + &text(&output.stderr);
        if !self.column.ours() {
            return Ended {
                said,
                confinement: None,
                throttled: None,
            };
        }
        match serde_json::from_slice::<Launched>(&output.stdout) {
            Ok(launched) => Ended {
                said: launched.stdout + &launched.stderr,
                confinement: Some(launched.confinement),
                throttled: launched.throttled,
            },
            Err(_) => Ended {
                said,
                confinement: None,
                throttled: None,
            },
        }
    }

    fn begin(&self) -> (Child, String) {
        let probe = path(&self.room.at("bin/probe"));
        match self.column {
            Column::Free => {
                let uid = if self.user { USER } else { 0 };
                let words = [probe, "-".to_owned()];
                (start(self.room, uid, &words), self.input.clone())
            }
            Column::Bubblewrap => {
                let words = bubblewrap(self.room);
                (start(self.room, USER, &words), self.input.clone())
            }
            Column::Root => (self.launch(0), String::new()),
            Column::Rootless | Column::Bare => (self.launch(USER), String::new()),
        }
    }

    fn launch(&self, uid: u32) -> Child {
        let room = self.room;
        let mut profile = profile(room);
        if self.watch_processor {
            profile.push_str("cpu = \"10%\"\n");
        }
        let launch = Launch {
            pooled: self.stage.pooled,
            stage: placed(room, self.stage),
            probe: room.at("bin/probe"),
            filter: self.stage.filter.as_ref().map(|filter| {
                let place = room.at("bin/filter");
                fs::write(&place, filter).unwrap();
                place
            }),
            profile,
            trees: trees(room),
            input: self.input.clone(),
            sandboxes: room.at("sandboxes"),
            wall_ms: WALL_MS,
            watch_processor: self.watch_processor,
        };
        let mut words = Vec::new();
        if self.column == Column::Bare {
            // The numbers of users of its own namespace are the host's.
            let command = without_namespaces(&room.at("launch/launch-probe"));
            words.push("/usr/bin/unshare".to_owned());
            words.extend(
                command
                    .get_args()
                    .map(|word| word.to_str().unwrap().to_owned()),
            );
        } else {
            words.push(path(&room.at("launch/launch-probe")));
        }
        words.push(told(room, &launch));
        start(room, uid, &words)
    }

    /// What processes are called that are there to stay: as much of the nonce as the kernel keeps.
    fn stays(&self) -> &str {
        &self.room.nonce()[..15]
    }
}

fn profile(room: &Room) -> String {
    let root = path(&room.at(""));
    PROFILE.replace("@/", &format!("{}/", root.trim_end_matches('/')))
}

fn trees(room: &Room) -> Vec<(PathBuf, Access)> {
    vec![
        (room.at("notes"), Access::Read),
        (room.at("out"), Access::ReadWriteTree),
        (room.at("drop"), Access::WriteFiles),
    ]
}

/// The file that says what to launch.
fn told(room: &Room, launch: &Launch) -> String {
    let told = room.at("launch/launch.json");
    fs::write(&told, serde_json::to_vec(launch).unwrap()).unwrap();
    path(&told)
}

/// A sandbox of root's and a stage that wait, for who is outside of both.
#[derive(Debug)]
pub(super) struct Waiters {
    launcher: Child,
    pub(super) numbers: Waiting,
}

impl Waiters {
    pub(super) fn new(room: &Room) -> Self {
        let launch = Launch {
            pooled: false,
            stage: placed(room, &Stage::default()),
            probe: room.at("bin/probe"),
            filter: None,
            profile: profile(room),
            trees: trees(room),
            input: String::new(),
            sandboxes: room.at("sandboxes"),
            wall_ms: WALL_MS,
            watch_processor: false,
        };
        let mut launcher = Command::new(room.at("launch/launch-probe"))
            .arg(told(room, &launch))
            .arg("wait")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = launcher.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let numbers = serde_json::from_str(&line).unwrap();
        Self { launcher, numbers }
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        // It ends when nobody can tell it anything any more.
        drop(self.launcher.stdin.take());
        let _ = self.launcher.wait();
    }
}

/// Whether anything is there that was to stay, without a sandbox now, in one once it had the time to end. Ends it.
pub(super) fn left(start: &Start<'_>) -> bool {
    let there = || named(start.stays());
    let gone = start.column != Column::Free && comes(|| there().is_empty());
    let there = there();
    there.iter().for_each(Process::kill);
    !gone && !there.is_empty()
}

/// Ends who started the probe, once something is there that is to stay, and with process 1 of a sandbox stopped, which
/// could otherwise end the rest; says whether it is left. Or why that could not be tried.
pub(super) fn end_of_starter(start: &Start<'_>) -> Result<bool, String> {
    let (mut stand, input) = start.begin();
    // Open until the end: the probe would take its end for its own.
    let mut stdin = stand.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, input.as_bytes()).unwrap();
    // Two of them: what the act has started, and what keeps the probe from its end.
    let mut came = false;
    let _ = comes(|| {
        came = named(start.stays()).len() == 2;
        came || !matches!(stand.try_wait(), Ok(None))
    });
    let starter = Process::of(stand.id()).and_then(|stand| stand.children().into_iter().next());
    let mut first = Vec::new();
    let outcome = match &starter {
        Some(starter) if came => {
            if start.column != Column::Free {
                first = starter.children();
                first.iter().for_each(|first| first.signal(Signal::STOP));
            }
            starter.kill();
            Ok(left(start))
        }
        _ => Err("what was to stay did not come".to_owned()),
    };
    drop(stdin);
    // One that waited for its plan is stopped and does not hear that its starter has ended.
    first.iter().for_each(Process::kill);
    let _ = stand.kill();
    let _ = stand.wait();
    if let Some(starter) = starter {
        // Who was killed left its groups behind.
        let name = format!("test-escape-{}", starter.pid);
        let _ = Backend::detect(CgroupChoice::Auto, &name).and_then(|found| found.clean());
    }
    outcome
}

/// Whether bubblewrap is there and the plain user may use it; otherwise why not.
///
/// # Errors
/// What it said.
///
/// # Panics
/// The stand cannot be started.
pub fn bubblewrap_works(room: &Room) -> Result<(), String> {
    if !Path::new("/usr/bin/bwrap").exists() {
        return Err("bubblewrap is not installed".to_owned());
    }
    let output = finish((start(room, USER, &bubblewrap(room)), String::new()));
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "bubblewrap does not start: {}",
            text(&output.stderr).trim()
        )),
    }
}

/// A sandbox of bubblewrap that shows what ours shows.
fn bubblewrap(room: &Room) -> Vec<String> {
    let mut words: Vec<String> =
        "/usr/bin/bwrap --unshare-all --die-with-parent --new-session --clearenv --hostname box \
         --ro-bind /usr /usr --proc /proc --dev /dev --size 1048576 --tmpfs /tmp"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
    for link in ["/bin", "/lib", "/lib64"] {
        if let Ok(target) = fs::read_link(link) {
            words.extend(["--symlink".to_owned(), path(&target), link.to_owned()]);
        }
    }
    for (how, below) in [
        ("--ro-bind", "bin"),
        ("--ro-bind", "notes"),
        ("--bind", "out"),
        ("--bind", "drop"),
    ] {
        let place = path(&room.at(below));
        words.extend([how.to_owned(), place.clone(), place]);
    }
    words.extend(["--".to_owned(), path(&room.at("bin/probe")), "-".to_owned()]);
    words
}

/// Starts a command on the stand.
fn start(room: &Room, uid: u32, command: &[String]) -> Child {
    Command::new(room.at("bin/probe"))
        .arg("stand")
        .arg(room.at(""))
        .arg(room.nonce())
        .args([GROUP.to_string(), uid.to_string()])
        .args(command)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish((mut child, input): (Child, String)) -> Output {
    let mut stdin = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        // Who has ended reads no more, which the answers show.
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output
}

/// The stage's path. One that leaves steps out is told so by its name.
fn placed(room: &Room, stage: &Stage) -> PathBuf {
    let launch = room.at("launch");
    if stage.without.is_empty() {
        return launch.join("boxmaker-stage");
    }
    let place = launch.join(format!("without.{}", stage.without.join(".")));
    if !place.exists() {
        std::os::unix::fs::symlink(launch.join("stage-without-a-step"), &place).unwrap();
    }
    place
}

fn path(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
