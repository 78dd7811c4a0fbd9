//! The four columns: the same acts without a sandbox, in ours as root, in ours as a plain user, and in bubblewrap. All of
//! them start on the same stand, so that each has the same to lose.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use confine::plan::Access;
use proto::Confinement;
use serde::Deserialize;

use super::launch::{Launch, Launched};
use super::{GROUP, Room, Row, USER};

/// Where the acts are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Without a sandbox, as root but for rows of the plain user's.
    Free,
    /// In ours, started by root.
    Root,
    /// In ours, started by the plain user.
    Rootless,
    /// In bubblewrap's, started by the plain user.
    Bubblewrap,
}

/// The stage that ours is made by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// The shipped one.
    Shipped,
    /// The tests' own, without these steps.
    Without(Vec<String>),
}

/// What one act came to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Answer {
    outcome: String,
    errno: String,
    /// In words.
    pub detail: String,
}

impl Answer {
    /// `ok`, `held`, the errno, the signal; or that there was none.
    #[must_use]
    pub fn word(&self) -> &str {
        match self.outcome.as_str() {
            "refused" => &self.errno,
            "killed" => &self.detail,
            other => other,
        }
    }

    fn missing(detail: &str) -> Self {
        Self {
            outcome: "missing".to_owned(),
            errno: String::new(),
            detail: detail.to_owned(),
        }
    }
}

/// What all acts of a run came to, in the order of the rows.
#[derive(Debug)]
pub struct Ran {
    /// One for each row.
    pub answers: Vec<Answer>,
    /// What was measured, where ours was launched; of the last launch.
    pub confinement: Option<Confinement>,
}

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

impl Column {
    /// Every column.
    pub const ALL: [Self; 4] = [Self::Free, Self::Root, Self::Rootless, Self::Bubblewrap];

    /// Tries every row in `room`.
    ///
    /// # Panics
    /// The column cannot be set up.
    #[must_use]
    pub fn run(self, room: &Room, rows: &[Row], stage: &Stage) -> Ran {
        let mut batches: BTreeMap<(bool, usize), Vec<usize>> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            let user = self == Self::Free && row.user;
            let batch = if row.alone { index + 1 } else { 0 };
            batches.entry((user, batch)).or_default().push(index);
        }
        let mut answers = vec![Answer::missing("it was not tried"); rows.len()];
        let mut confinement = None;
        for ((user, _), batch) in batches {
            let sandbox = self != Self::Free;
            let input: String = batch
                .iter()
                .map(|&index| format!("{index} {}\n", room.act(&rows[index].act, sandbox)))
                .collect();
            let (said, measured) = self.launch(room, input, user, stage);
            confinement = measured.or(confinement);
            let told = parse(&said);
            for index in batch {
                let none = || Answer::missing(&format!("no answer; all that was said: {said}"));
                answers[index] = told.get(&index).cloned().unwrap_or_else(none);
            }
        }
        Ran {
            answers,
            confinement,
        }
    }

    fn launch(
        self,
        room: &Room,
        input: String,
        user: bool,
        stage: &Stage,
    ) -> (String, Option<Confinement>) {
        let probe = room.at("bin/probe");
        let uid = if user || matches!(self, Self::Rootless | Self::Bubblewrap) {
            USER
        } else {
            0
        };
        match self {
            Self::Free => {
                let output = start(room, uid, &[path(&probe), "-".to_owned()], &input);
                (text(&output.stdout), None)
            }
            Self::Bubblewrap => {
                let output = start(room, uid, &bubblewrap(room), &input);
                (text(&output.stdout) + &text(&output.stderr), None)
            }
            Self::Root | Self::Rootless => {
                let launched = self.launch_ours(room, uid, input, stage);
                (
                    launched.stdout + &launched.stderr,
                    Some(launched.confinement),
                )
            }
        }
    }

    fn launch_ours(self, room: &Room, uid: u32, input: String, stage: &Stage) -> Launched {
        let launch = Launch {
            stage: placed(room, stage),
            probe: room.at("bin/probe"),
            profile: PROFILE.replace(
                "@/",
                &format!("{}/", path(&room.at("")).trim_end_matches('/')),
            ),
            trees: vec![
                (room.at("notes"), Access::Read),
                (room.at("out"), Access::ReadWriteTree),
                (room.at("drop"), Access::WriteFiles),
            ],
            input,
            wall_ms: WALL_MS,
        };
        let spec = room.at("launch/launch.json");
        fs::write(&spec, serde_json::to_vec(&launch).unwrap()).unwrap();
        let words = [path(&room.at("launch/launch-probe")), path(&spec)];
        let output = start(room, uid, &words, "");
        let said = text(&output.stdout);
        serde_json::from_str(&said).unwrap_or_else(|error| {
            panic!(
                "{self:?} with {stage:?}: {error}: {said}{}",
                text(&output.stderr)
            )
        })
    }
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
    let output = start(room, USER, &bubblewrap(room), "");
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
fn start(room: &Room, uid: u32, command: &[String], input: &str) -> Output {
    let mut child = Command::new(room.at("bin/probe"))
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
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
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
    match stage {
        Stage::Shipped => launch.join("boxmaker-stage"),
        Stage::Without(steps) => {
            let place = launch.join(format!("without.{}", steps.join(".")));
            if !place.exists() {
                std::os::unix::fs::symlink(launch.join("stage-without-a-step"), &place).unwrap();
            }
            place
        }
    }
}

/// The answers by the number of their row.
fn parse(said: &str) -> BTreeMap<usize, Answer> {
    #[derive(Deserialize)]
    struct Line {
        id: String,
        #[serde(flatten)]
        answer: Answer,
    }
    said.lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
        .filter_map(|line| Some((line.id.parse().ok()?, line.answer)))
        .collect()
}

fn path(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
