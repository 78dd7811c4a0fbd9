//! Two hundred sandboxes at once. All wait until the last has started; then each tries to see, signal, trace and reach
//! every other, by the numbers of its processes and by the names of what it keeps. The twin is the same without sandboxes.
//!
//! They are launched as the supervisor launches them and not through it, because it lets no more than 64 calls be in
//! progress.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use boxmaker_tests::binaries::{binary, skipped_without_root, skipped_without_user_namespaces};
use boxmaker_tests::escape::probe;
use boxmaker_tests::plain::{USER, without_namespaces};
use rustix::process::geteuid;
use serde::Deserialize;
use tempfile::TempDir;

/// As many sandboxes as there are at once.
const MANY: usize = 200;

/// Answers by how often each came.
type Answers = BTreeMap<String, usize>;

#[derive(Debug, Deserialize)]
struct Told {
    keeps: Vec<Keeps>,
    tried: Vec<Tried>,
    met: Vec<Met>,
    ends: Vec<serde_json::Value>,
    apart: BTreeMap<String, usize>,
    processes: usize,
}

#[derive(Debug, Deserialize)]
struct Keeps {
    keeps: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Tried {
    /// How many it finds in `/proc`, or the errno below 0.
    processes: i64,
    tried: BTreeMap<String, Answers>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
struct Met {
    signals: usize,
    callers: usize,
}

#[derive(Debug, Deserialize)]
struct Left {
    descriptors: Option<Vec<String>>,
    mounts: Option<String>,
    processes: usize,
    groups: usize,
}

#[derive(Debug, Deserialize)]
struct Ran {
    told: Told,
    left: Left,
}

/// Programs and trees of a plain user's.
struct Place(TempDir);

impl Place {
    fn new(probe: &Path) -> Self {
        // Not below /tmp, of which each sandbox has its own.
        let place = Self(TempDir::with_prefix_in("many-", "/var/tmp").unwrap());
        let user = geteuid().is_root().then_some(USER);
        place.directory("", None);
        place.directory("trees", user);
        place.directory("sandboxes", user);
        for index in 0..MANY {
            place.directory(&format!("trees/{index}"), user);
        }
        let programs = [
            binary("launch-many"),
            binary("boxmaker-stage"),
            probe.to_owned(),
        ];
        for (program, name) in programs
            .iter()
            .zip(["launch-many", "boxmaker-stage", "probe"])
        {
            fs::copy(program, place.at(name)).unwrap();
            fs::set_permissions(place.at(name), Permissions::from_mode(0o755)).unwrap();
        }
        place
    }

    fn at(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn directory(&self, below: &str, user: Option<u32>) {
        let path = self.at(below);
        if !path.exists() {
            fs::create_dir(&path).unwrap();
        }
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        chown(&path, user, user).unwrap();
    }

    /// What comes of `command`, which starts `launch-many`.
    fn run(&self, mut command: Command, stage: &Path) -> Ran {
        command.arg(MANY.to_string()).arg(stage);
        let output = command
            .arg(self.at("probe"))
            .arg(self.at("trees"))
            .current_dir("/")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// The place of a test, or the reason why there is none.
fn place(test: &str) -> Option<Place> {
    match probe() {
        Ok(probe) => Some(Place::new(probe)),
        Err(reason) => {
            println!("skipped: {test}: {reason}");
            None
        }
    }
}

/// How each way was answered, over all.
fn answers(told: &Told) -> BTreeMap<&str, Answers> {
    let mut all: BTreeMap<&str, Answers> = BTreeMap::new();
    for (way, answers) in told.tried.iter().flat_map(|tried| &tried.tried) {
        let way = all.entry(way).or_default();
        for (answer, count) in answers {
            *way.entry(answer.clone()).or_default() += count;
        }
    }
    all
}

/// One answer for all of it.
fn only(answer: &str, count: usize) -> Answers {
    Answers::from([(answer.to_owned(), count)])
}

/// What is to be answered, by way.
type Expected<'a> = &'a [(&'a str, &'a str)];

/// Fails unless everything was answered so, by `numbers` numbers each and by the names of all others, nobody met anybody,
/// all ended by themselves, and nothing is left.
fn nobody_reached_another(
    ran: &Ran,
    numbers: usize,
    by_number: Expected<'_>,
    keeps: Expected<'_>,
    by_name: Expected<'_>,
) {
    let told = &ran.told;
    assert_eq!(told.keeps.len(), MANY);
    for kept in &told.keeps {
        let kept = kept
            .keeps
            .iter()
            .map(|(what, how)| (what.as_str(), how.as_str()));
        assert_eq!(
            kept.collect::<BTreeMap<_, _>>(),
            keeps.iter().copied().collect()
        );
    }
    // Process 1 of each, and its program.
    assert_eq!(told.processes, 2 * MANY);
    let mut expected = BTreeMap::new();
    for (way, answer) in by_number {
        expected.insert(*way, only(answer, MANY * numbers));
    }
    for (way, answer) in by_name {
        expected.insert(*way, only(answer, MANY * (MANY - 1)));
    }
    assert_eq!(answers(told), expected);
    let nobody = Met {
        signals: 0,
        callers: 0,
    };
    assert!(told.met.iter().all(|met| *met == nobody), "{:?}", told.met);
    for end in &told.ends {
        assert_eq!(end["cause"], "exited", "{end}");
        assert_eq!(end["exit"]["code"], 0, "{end}");
    }
    nothing_is_left(&ran.left);
}

fn nothing_is_left(left: &Left) {
    assert_eq!(left.descriptors, None);
    assert_eq!(left.mounts, None);
    assert_eq!((left.processes, left.groups), (0, 0));
}

/// With a pid namespace there is nobody of another's numbers; the filter does not even look for whom.
const BY_NUMBER: Expected<'_> = &[
    ("see", "ENOENT"),
    ("memory-file", "ENOENT"),
    ("root", "ENOENT"),
    ("descriptors", "ENOENT"),
    ("variables", "ENOENT"),
    ("signal", "ESRCH"),
    ("handle", "ESRCH"),
    ("group", "ESRCH"),
    ("take", "EPERM"),
    ("read-memory", "EPERM"),
    ("trace", "EPERM"),
];

/// What each can keep: files alone.
const KEEPS: Expected<'_> = &[
    ("scratch", "ok"),
    ("tree", "ok"),
    ("abstract", "EPERM"),
    ("local", "EPERM"),
    ("port", "EPERM"),
    ("segment", "ENOSYS"),
    ("messages", "ENOSYS"),
    ("shared", "ok"),
];

const BY_NAME: Expected<'_> = &[
    ("scratch", "ENOENT"),
    ("tree", "ENOENT"),
    ("abstract", "EPERM"),
    ("local", "EPERM"),
    ("port", "EPERM"),
    ("segment", "ENOSYS"),
    ("messages", "ENOSYS"),
    ("shared", "ENOENT"),
];

#[test]
fn two_hundred_sandboxes_of_root_do_not_reach_each_other() {
    let test = "two_hundred_sandboxes_of_root";
    if skipped_without_root(test) {
        return;
    }
    let Some(place) = place(test) else { return };
    let command = Command::new(place.at("launch-many"));
    let ran = place.run(command, &place.at("boxmaker-stage"));
    nobody_reached_another(&ran, 2 * MANY, BY_NUMBER, KEEPS, BY_NAME);
    assert!(ran.told.tried.iter().all(|tried| tried.processes == 2));
    for end in &ran.told.ends {
        assert_eq!(end["confinement"]["gaps"], serde_json::json!([]), "{end}");
    }
    // Each has namespaces and a uid of its own, none of which is the launcher's.
    assert_eq!(ran.told.apart.len(), 7);
    assert!(
        ran.told.apart.values().all(|count| *count == MANY + 1),
        "{:?}",
        ran.told.apart
    );
}

#[test]
fn nor_do_two_hundred_of_a_plain_user() {
    let test = "nor_do_two_hundred_of_a_plain_user";
    if skipped_without_user_namespaces(test) {
        return;
    }
    let Some(place) = place(test) else { return };
    let mut command = Command::new(place.at("launch-many"));
    if geteuid().is_root() {
        command.uid(USER).gid(USER);
    }
    let ran = place.run(command, &place.at("boxmaker-stage"));
    nobody_reached_another(&ran, 2 * MANY, BY_NUMBER, KEEPS, BY_NAME);
    assert!(ran.told.tried.iter().all(|tried| tried.processes == 2));
    assert_eq!(ran.told.apart["uid"], 1);
}

/// All processes are in view of all, of one user: Landlock and the filter alone keep them apart.
#[test]
fn nor_do_two_hundred_without_namespaces() {
    let test = "nor_do_two_hundred_without_namespaces";
    if skipped_without_user_namespaces(test) {
        return;
    }
    let Some(place) = place(test) else { return };
    let command = without_namespaces(&place.at("launch-many"));
    let ran = place.run(command, &place.at("boxmaker-stage"));
    let by_number = [
        // As docs/confinement.md says: that a process is there can be found out, and no more.
        ("see", "ok"),
        ("handle", "ok"),
        ("group", "ok"),
        ("memory-file", "EACCES"),
        ("root", "EACCES"),
        ("descriptors", "EACCES"),
        ("variables", "EACCES"),
        ("signal", "EPERM"),
        ("take", "EPERM"),
        ("read-memory", "EPERM"),
        ("trace", "EPERM"),
    ];
    let keeps = KEEPS.iter().map(|(what, how)| match *what {
        "shared" => (*what, "EACCES"),
        _ => (*what, *how),
    });
    let by_name = BY_NAME.iter().map(|(what, how)| match *what {
        "scratch" | "tree" => (*what, "EACCES"),
        _ => (*what, *how),
    });
    let (keeps, by_name): (Vec<_>, Vec<_>) = (keeps.collect(), by_name.collect());
    // Its own two processes have their numbers, and are no neighbours.
    nobody_reached_another(&ran, 2 * (MANY - 1), &by_number, &keeps, &by_name);
    assert!(ran.told.tried.iter().all(|tried| tried.processes == -13));
    assert_eq!(fs::read_dir(place.at("sandboxes")).unwrap().count(), 0);
}

#[test]
fn two_hundred_programs_without_a_sandbox_see_signal_trace_and_reach_each_other() {
    let test = "two_hundred_programs_without_a_sandbox";
    if skipped_without_root(test) {
        return;
    }
    let Some(place) = place(test) else { return };
    let command = Command::new(place.at("launch-many"));
    let ran = place.run(command, Path::new("free"));
    let told = &ran.told;
    for kept in &told.keeps {
        assert!(
            kept.keeps.values().all(|how| how == "ok"),
            "{:?}",
            kept.keeps
        );
    }
    let others = only("ok", MANY * (MANY - 1));
    for (way, answers) in answers(told) {
        assert_eq!(answers, others, "{way}");
    }
    let number = i64::try_from(MANY).unwrap();
    assert!(told.tried.iter().all(|tried| tried.processes > number));
    for met in &told.met {
        // By a name in the tree of files, by one without a file, and by a port.
        assert_eq!(met.callers, 3 * (MANY - 1));
        assert!(met.signals > 0);
    }
    assert!(
        told.ends.iter().all(|end| end["code"] == 0),
        "{:?}",
        told.ends
    );
    nothing_is_left(&ran.left);
}
