//! Where the launches are made from, and how: as a plain user who can make no namespaces, with the programs where that
//! user can reach them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use boxmaker_tests::binaries::binary;
use boxmaker_tests::plain::{USER, without_namespaces};
use proto::Confinement;
use proto::audit::ExitStatus;
use serde::Deserialize;
use tempfile::TempDir;

#[derive(Debug, Deserialize)]
pub(crate) struct Launched {
    pub(crate) confinement: Confinement,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) left: usize,
}

/// Copies of the binaries where any user can reach them; in it a tree that is granted, and beside it a file of the same
/// user that is not.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        for name in ["launch-once", "boxmaker-stage"] {
            copy(name, directory.path());
        }
        let place = Self { directory };
        for own in ["tree", "tree/below", "other"] {
            fs::create_dir(place.path(own)).unwrap();
        }
        fs::write(place.path("tree/mine"), "mine\n").unwrap();
        fs::write(place.path("other/secret"), "secret\n").unwrap();
        for own in ["tree", "tree/below", "tree/mine", "other", "other/secret"] {
            place.give(own);
        }
        place
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    pub(crate) fn show(&self, below: &str) -> String {
        self.path(below).display().to_string()
    }

    pub(crate) fn give(&self, below: &str) {
        if rustix::process::geteuid().is_root() {
            chown(self.path(below), Some(USER), Some(USER)).unwrap();
        }
    }

    pub(crate) fn command(&self, stage: &str, script: &str) -> Command {
        let mut command = without_namespaces(&self.path("launch-once"));
        command
            .arg(self.path(stage))
            .arg(script)
            .arg(self.path("tree"));
        command
    }

    pub(crate) fn launch(&self, script: &str) -> Launched {
        launched(self.command("boxmaker-stage", script))
    }

    /// The same words by the same user without a sandbox: what they print.
    pub(crate) fn outside(&self, script: &str) -> String {
        let output = self.outside_command(script).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    pub(crate) fn outside_command(&self, script: &str) -> Command {
        let mut command = without_namespaces(Path::new("/usr/bin/sh"));
        command.args(["-c", script]);
        command
    }

    /// Starts a launch that does not end by itself, and waits until `ready` of its words run.
    pub(crate) fn start(&self, script: &str, ready: &[&str]) -> Child {
        let mut command = self.command("boxmaker-stage", script);
        command.env("LAUNCHER_HOME", self.path("tree/home"));
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        for words in ready {
            until(words, || !running(words).is_empty());
        }
        child
    }
}

/// Copied by another process, so that no child of another test holds it open for writing.
pub(crate) fn copy(name: &str, to: &Path) {
    let copied = Command::new("cp").arg(binary(name)).arg(to).status();
    assert!(copied.unwrap().success(), "{name}");
}

pub(crate) fn launched(mut command: Command) -> Launched {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| {
        let told = String::from_utf8_lossy(&output.stderr);
        panic!("{error}: {text} {told}")
    })
}

/// The processes whose command line is these words.
pub(crate) fn running(words: &str) -> Vec<i32> {
    let line: Vec<u8> = words
        .split(' ')
        .flat_map(|word| [word.as_bytes(), b"\0"].concat())
        .collect();
    let is = |pid: &i32| {
        let read = fs::read(format!("/proc/{pid}/cmdline"));
        read.is_ok_and(|found| found == line)
    };
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is).collect()
}

/// Waits until `holds`, at most 30 s.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{what}: not within 30 s"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Words that no other test uses and no other run.
pub(crate) fn sleep(number: u32) -> String {
    format!("sleep {}.{}", 40_000 + number, std::process::id())
}
