//! Launches by a plain user: a user namespace gives everything but a uid of its own, and whatever is missing is said.
//! As root these tests become a plain user for the launch; as a plain user they are one.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use boxmaker_tests::binaries::{binary, skipped_without_user_namespaces};
use proto::{Confinement, Layer, Level};
use serde::Deserialize;
use tempfile::TempDir;

/// Who the plain user is when root runs the tests.
const USER: u32 = 71_001;

#[derive(Debug, Deserialize)]
struct Launched {
    confinement: Confinement,
    stdout: String,
    stderr: String,
}

/// Copies of the binaries where any user can reach them, and a directory of the user's own.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["launch-once", "boxmaker-stage"] {
            fs::copy(binary(name), directory.path().join(name)).unwrap();
        }
        let place = Self { directory };
        let tree = place.tree();
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("mine"), "mine\n").unwrap();
        if rustix::process::geteuid().is_root() {
            for path in [tree.join("mine"), tree] {
                chown(path, Some(USER), Some(USER)).unwrap();
            }
        }
        place
    }

    fn tree(&self) -> PathBuf {
        self.directory.path().join("tree")
    }

    fn command(&self, script: &str) -> Command {
        let path = |name: &str| self.directory.path().join(name);
        let mut command = Command::new(path("launch-once"));
        command
            .arg(path("boxmaker-stage"))
            .arg(script)
            .arg(self.tree());
        if rustix::process::geteuid().is_root() {
            command.uid(USER).gid(USER);
        }
        command
    }

    fn launch(&self, script: &str) -> Launched {
        let output = self.command(script).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!(
                "{error}: {text} {:?}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }
}

#[test]
fn a_plain_user_gets_everything_but_a_uid_and_cgroups_of_its_own() {
    if skipped_without_user_namespaces("a_plain_user_gets_everything") {
        return;
    }
    let place = Place::new();
    let launched = place.launch("echo up");
    assert_eq!(
        (launched.stdout.as_str(), launched.stderr.as_str()),
        ("up\n", "")
    );
    let confinement = launched.confinement;
    assert_eq!(confinement.level, Level::Partial);
    let reason = &confinement.gap(Layer::Uid).unwrap().reason;
    assert!(
        reason.starts_with("shared-uid: started by a plain user"),
        "{reason}"
    );
    assert!(
        reason.contains("started as root, each gets a uid of its own"),
        "{reason}"
    );
    // Without a cgroup the limit on processes is one of the user namespace.
    assert!(confinement.layers.contains(&Layer::Pids));
    // What the host lets a plain user limit differs; nothing else may be missing.
    let others = [Layer::Uid, Layer::Memory, Layer::Cpu];
    let more: Vec<_> = confinement
        .gaps
        .iter()
        .filter(|gap| !others.contains(&gap.layer))
        .collect();
    assert!(more.is_empty(), "{more:?}");
    assert!(!confinement.satisfies(Level::Full));
    assert!(confinement.satisfies(Level::Partial));
}

#[test]
fn a_plain_users_sandbox_works_in_the_granted_tree_and_sees_nothing_else() {
    if skipped_without_user_namespaces("a_plain_users_sandbox_works") {
        return;
    }
    let place = Place::new();
    let tree = place.tree();
    let script = format!(
        "cat {0}/mine && echo new > {0}/new && echo /proc/[0-9]*; ls -d /etc /home {1}/launch-once",
        tree.display(),
        place.directory.path().display()
    );
    let launched = place.launch(&script);
    assert_eq!(
        launched.stdout, "mine\n/proc/1 /proc/2\n",
        "{}",
        launched.stderr
    );
    assert_eq!(
        launched.stderr.matches("No such file or directory").count(),
        3,
        "{}",
        launched.stderr
    );
    assert_eq!(fs::read_to_string(tree.join("new")).unwrap(), "new\n");
}

#[test]
fn without_privileges_another_users_tree_stays_closed() {
    if skipped_without_user_namespaces("without_privileges_another_users_tree") {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!(
            "skipped: without_privileges_another_users_tree: needs root, to make a file of another user"
        );
        return;
    }
    let place = Place::new();
    let other = place.tree().join("other");
    fs::write(&other, "theirs\n").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    let read = format!("cat {}", other.display());
    assert!(place.launch(&read).stderr.contains("Permission denied"));
    chown(&other, Some(USER), Some(USER)).unwrap();
    assert_eq!(place.launch(&read).stdout, "theirs\n");
}

#[test]
fn a_plain_users_sandbox_meets_its_limit_on_processes() {
    if skipped_without_user_namespaces("a_plain_users_sandbox_meets_its_limit") {
        return;
    }
    let place = Place::new();
    let start = |count: u32| {
        place.launch(&format!(
            "i=0; while [ $i -lt {count} ]; do sleep 300 & i=$((i+1)); done; echo all"
        ))
    };
    let launched = start(100);
    assert_eq!(launched.stdout, "");
    assert!(
        launched.stderr.contains("Cannot fork"),
        "{}",
        launched.stderr
    );
    assert_eq!(start(9).stdout, "all\n");
}

#[test]
fn nothing_of_a_plain_users_sandbox_is_left() {
    if skipped_without_user_namespaces("nothing_of_a_plain_users_sandbox") {
        return;
    }
    let place = Place::new();
    let launched = place.launch("(setsid sleep 4242 &) ; echo started");
    assert_eq!(launched.stdout, "started\n", "{}", launched.stderr);
    let left = fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line == b"sleep\x004242\x00" && Path::new(&entry.path()).exists()
    });
    assert!(!left);
}
