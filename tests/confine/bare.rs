//! Launches where no namespace can be made: what is left holds, what is missing is said, and nothing outlives its call.
//! A filter as containers have it refuses every namespace. As root these tests become a plain user.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use boxmaker_tests::binaries::binary;
use boxmaker_tests::system::processes::{Process, until};
use proto::{Confinement, Layer, Level};
use serde::Deserialize;
use tempfile::TempDir;

/// Who the plain user is when root runs the tests.
const USER: u32 = 71_002;

/// What holds without any namespace.
const HELD: &[Layer] = &[
    Layer::Caps,
    Layer::Nnp,
    Layer::Seccomp,
    Layer::LandlockFs,
    Layer::LandlockNet,
    Layer::LandlockScope,
    Layer::Descriptors,
    Layer::Terminal,
    Layer::Rlimits,
    Layer::Dumpable,
    Layer::Outside,
];

/// What a host may still limit by cgroups that it lets a plain user make.
const LIMITS: &[Layer] = &[Layer::Memory, Layer::Pids, Layer::Cpu];

#[derive(Debug, Deserialize)]
struct Launched {
    confinement: Confinement,
    stdout: String,
    stderr: String,
}

/// Copies of the binaries where any user can reach them, and directories of the user's own.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let place = Self { directory };
        open(place.directory.path());
        fs::create_dir(place.path("bin")).unwrap();
        open(&place.path("bin"));
        for name in [
            "launch-once",
            "without-namespaces",
            "boxmaker",
            "boxmaker-stage",
            "boxmaker-misbehave",
            "brokerd",
            "bxctl",
            "toolkit",
        ] {
            fs::copy(binary(name), place.path("bin").join(name)).unwrap();
        }
        for name in ["tree", "beside"] {
            fs::create_dir(place.path(name)).unwrap();
            fs::write(place.path(name).join("mine"), "mine\n").unwrap();
            give(&place.path(name));
            give(&place.path(name).join("mine"));
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A command of the plain user's, which can make no namespace.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(self.path("bin/without-namespaces"));
        command.arg(program).current_dir(self.path("tree"));
        if rustix::process::geteuid().is_root() {
            command.uid(USER).gid(USER);
        }
        command
    }

    fn launching(&self, script: &str) -> Command {
        let mut command = self.command(&self.path("bin/launch-once"));
        command
            .arg(self.path("bin/boxmaker-stage"))
            .arg(script)
            .arg(self.path("tree"));
        command
    }

    fn launch(&self, script: &str) -> Launched {
        let output = self.launching(script).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text} {told}"))
    }

    /// The process whose number a script wrote to a file in the tree.
    fn noted(&self, name: &str) -> Option<Process> {
        let text = fs::read_to_string(self.path("tree").join(name)).ok()?;
        Process::of(text.trim().parse().ok()?)
    }
}

fn open(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn give(path: &Path) {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(USER), Some(USER)).unwrap();
    }
}

/// Starts two processes that leave their parent and their session, and notes their numbers. No process of the script's
/// group is among them.
const LEAVE: &str = "setsid sh -c 'echo $$ > one; exec sleep 300' & \
                     (setsid sh -c '(setsid sh -c \"echo \\$\\$ > two; exec sleep 300\" &)' &); \
                     while ! [ -s one ] || ! [ -s two ]; do sleep 0.05; done; ";

#[test]
fn what_needs_no_namespace_holds_and_everything_else_is_a_gap() {
    let place = Place::new();
    let launched = place.launch("echo up");
    assert_eq!(
        (launched.stdout.as_str(), launched.stderr.as_str()),
        ("up\n", "")
    );
    let confinement = launched.confinement;
    assert_eq!(confinement.level, Level::Partial);
    let held = confinement
        .layers
        .iter()
        .filter(|one| !LIMITS.contains(one));
    assert_eq!(held.copied().collect::<Vec<_>>(), HELD);
    for layer in Layer::ALL {
        let gap = confinement.gap(*layer);
        assert_eq!(gap.is_none(), confinement.layers.contains(layer), "{layer}");
    }
    for layer in [Layer::Mount, Layer::Pid, Layer::Net, Layer::MountFlags] {
        let reason = &confinement.gap(layer).unwrap().reason;
        assert!(reason.contains("no namespace can be made here"), "{reason}");
    }
    assert!(!confinement.satisfies(Level::Full));
    assert!(confinement.satisfies(Level::Partial));
}

#[test]
fn the_granted_tree_is_open_and_nothing_else_that_the_user_may_read_or_change() {
    let place = Place::new();
    let (tree, beside) = (place.path("tree"), place.path("beside"));
    let acts = |directory: &Path| {
        let at = directory.display();
        format!("cat {at}/mine; echo new > {at}/new; ls {at}; ")
    };
    // Outside any sandbox the same user can do all of that, in both.
    let mut outside = place.command(Path::new("/bin/sh"));
    outside.args(["-c", &format!("{}{}", acts(&tree), acts(&beside))]);
    let output = outside.output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "mine\nmine\nnew\nmine\nmine\nnew\n"
    );

    let inside = place.launch(&acts(&tree));
    assert_eq!(inside.stdout, "mine\nmine\nnew\n", "{}", inside.stderr);
    let refused = place.launch(&format!("{} cat /proc/1/cmdline; ls /tmp", acts(&beside)));
    assert_eq!(refused.stdout, "");
    let denied = refused.stderr.matches("Permission denied").count();
    assert_eq!(denied, 5, "{}", refused.stderr);
}

#[test]
fn modes_and_times_of_the_users_files_cannot_be_changed() {
    let place = Place::new();
    let file = place.path("beside/mine");
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    let before = mode(&file);
    let script = format!("chmod 600 {0}; touch -d 2001-01-01 {0}", file.display());
    let launched = place.launch(&script);
    let refused = launched.stderr.matches("Operation not permitted").count();
    assert!(refused >= 1, "{}", launched.stderr);
    assert_eq!(mode(&file), before);
    // Outside any sandbox the same user can.
    let mut outside = place.command(Path::new("/bin/sh"));
    assert!(outside.args(["-c", &script]).status().unwrap().success());
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn what_leaves_its_parent_and_its_session_is_dead_when_the_call_is_over() {
    let place = Place::new();
    let launched = place.launch(&format!(
        "cd {}; {LEAVE} echo gone",
        place.path("tree").display()
    ));
    assert_eq!(launched.stdout, "gone\n", "{}", launched.stderr);
    for name in ["one", "two"] {
        assert!(place.path("tree").join(name).exists());
        assert!(place.noted(name).is_none(), "{name} goes on");
    }
}

#[test]
fn what_leaves_its_parent_is_dead_soon_after_the_launcher_was_killed() {
    let place = Place::new();
    let script = format!(
        "cd {}; {LEAVE} : > ready; sleep 300",
        place.path("tree").display()
    );
    let mut launcher = place
        .launching(&script)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ready = place.path("tree/ready");
    until("the script has started everything", || ready.exists());
    let left: Vec<Process> = ["one", "two"].map(|name| place.noted(name).unwrap()).into();
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    until("all of it is dead", || left.iter().all(|one| !one.lives()));
}

#[test]
fn the_whole_demo_runs_and_refuses_what_asks_for_more() {
    let place = Place::new();
    let state = place.path("state");
    fs::create_dir(&state).unwrap();
    give(&state);
    let mut demo = place.command(&place.path("bin/boxmaker"));
    let output = demo.arg("demo").current_dir(&state).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for said in [
        "no namespace can be made here",
        "\"object\":\"AF_INET\",\"outcome\":\"EPERM\"",
        "\"object\":\"/etc/shadow\",\"outcome\":\"EACCES\"",
        "denied: confinement_too_weak",
        "The log is sound",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    // Nothing is left of the directories for canaries.
    let run = fs::read_dir(state.join(".state/home/run")).unwrap();
    let mut left = run.map(|entry| entry.unwrap().file_name());
    assert!(!left.any(|name| name.to_string_lossy().starts_with("canaries")));
}

#[test]
fn doctor_says_what_is_missing_and_explain_shows_what_is_meant() {
    let place = Place::new();
    let mut doctor = place.command(&place.path("bin/boxmaker"));
    let output = doctor.args(["doctor", "--json"]).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["privilege"], "bare");
    assert_eq!(told["level"], "partial", "{told}");
}
