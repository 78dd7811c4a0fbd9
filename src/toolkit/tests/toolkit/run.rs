//! Running a binary on one JSON object.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const TOOLKIT: &str = env!("CARGO_BIN_EXE_toolkit");
pub(crate) const MISBEHAVE: &str = env!("CARGO_BIN_EXE_boxmaker-misbehave");

/// A user that owns nothing.
pub(crate) const NOBODY: u32 = 64_987;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The result of a run that had one.
    pub(crate) fn result(self) -> String {
        assert_eq!((self.status, self.err.as_str()), (Some(0), ""), "{self:?}");
        self.out
    }

    /// The message of a run that failed, on one line and without a result.
    pub(crate) fn failure(self) -> String {
        assert_eq!((self.status, self.out.as_str()), (Some(1), ""), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        self.err
    }
}

/// How a binary is run.
#[derive(Debug, Default)]
pub(crate) struct How {
    pub(crate) uid: Option<u32>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) limit: Option<(Resource, u64)>,
}

/// Runs a tool as the user of the tests.
pub(crate) fn tool(name: &str, arguments: &Value) -> Ran {
    tool_with(name, arguments, &How::default())
}

/// Runs a tool as another user; the tests must be run by root.
pub(crate) fn tool_as(uid: u32, name: &str, arguments: &Value) -> Ran {
    tool_with(
        name,
        arguments,
        &How {
            uid: Some(uid),
            ..How::default()
        },
    )
}

pub(crate) fn tool_with(name: &str, arguments: &Value, how: &How) -> Ran {
    binary(TOOLKIT, &[name], arguments.to_string().as_bytes(), how)
}

/// Starts a binary, gives it its input and waits for it.
pub(crate) fn binary(program: &str, words: &[&str], input: &[u8], how: &How) -> Ran {
    let mut command = Command::new(program);
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(uid) = how.uid {
        command.uid(uid).gid(uid);
    }
    if let Some(cwd) = &how.cwd {
        command.current_dir(cwd);
    }
    let mut child = command.spawn().unwrap();
    // It does nothing before its input ends, so the limit is in time.
    if let Some((resource, value)) = how.limit {
        let limit = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        prlimit(Some(pid(&child)), resource, limit).unwrap();
    }
    // A program that refuses its words does not read.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Ran {
        status: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// Whether the tests are run by root; says what is skipped if not.
pub(crate) fn root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped, because it needs root: {what}");
    }
    root
}

/// A directory that everybody may pass through.
pub(crate) fn directory() -> TempDir {
    let made = tempfile::tempdir().unwrap();
    fs::set_permissions(made.path(), Permissions::from_mode(0o755)).unwrap();
    made
}

/// Gives a path to a user and sets its mode.
pub(crate) fn give(path: &Path, uid: u32, mode: u32) {
    chown(path, Some(uid), Some(uid)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The names in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
