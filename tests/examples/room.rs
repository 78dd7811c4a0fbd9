//! A running system whose configuration is the examples with other paths: what they call `/srv` is a directory of its
//! own, whose files belong to a user who is not root.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use boxmaker_tests::binaries::binary;
use boxmaker_tests::system::{Brokerd, Home, System};
use serde_json::Value;

use crate::files::{all, directory};

/// Where the example of a script says that it is installed.
const LIBRARY: &str = "/usr/local/lib/boxmaker";

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Called {
    /// The result of a call that had one.
    pub(crate) fn result(self) -> String {
        assert_eq!(self.status, Some(0), "{self:?}");
        self.out
    }

    /// What is said of a call that was refused or failed.
    pub(crate) fn refusal(self) -> String {
        assert_eq!((self.status, self.out.as_str()), (Some(1), ""), "{self:?}");
        self.err
    }
}

pub(crate) struct Room {
    pub(crate) home: Home,
    system: Option<System>,
}

impl Room {
    /// The examples, not yet loaded. A tool whose program this host has not is left out.
    pub(crate) fn new() -> Self {
        let room = Self {
            home: Home::new(Brokerd::Real),
            system: None,
        };
        for below in ["notes", "drafts", "code", "data"] {
            room.home.folder(below);
        }
        let library = room.library();
        fs::create_dir(&library).unwrap();
        let script = library.join("columns.py");
        fs::copy(directory().join("scripts/columns.py"), &script).unwrap();
        for (path, mode) in [(&library, 0o755), (&script, 0o644)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir_all(room.config().join("profiles/tools")).unwrap();
        for (name, bytes) in all() {
            let stem = name.split(['/', '.']).nth(1).unwrap();
            let program = missing(stem);
            if program.is_none() || name.starts_with("profiles/") {
                let text = String::from_utf8(bytes).unwrap();
                let text = text.replace(LIBRARY, library.to_str().unwrap());
                room.home
                    .configure(&name, &text.replace("/srv/", "@FILES@/"));
            }
        }
        room
    }

    /// The examples, loaded and running.
    pub(crate) fn running() -> Self {
        let mut room = Self::new();
        room.start();
        room
    }

    pub(crate) fn start(&mut self) {
        let mut system = self.home.start();
        system.wait_up(&self.home, 0);
        self.system = Some(system);
    }

    /// The configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.home.home().with_file_name("config")
    }

    fn library(&self) -> PathBuf {
        self.home.home().with_file_name("library")
    }

    /// Calls a tool in a session of its own.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Called {
        let output = Command::new(binary("bxctl"))
            .args(["call", tool, &arguments.to_string(), "--home"])
            .arg(self.home.home())
            .arg("--config")
            .arg(self.config())
            .output()
            .unwrap();
        Called {
            status: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The sandbox that a call would get, as `boxmaker explain` says it.
    pub(crate) fn plan(&self, tool: &str, arguments: &Value) -> Value {
        let output = Command::new(binary("boxmaker"))
            .args([
                "explain",
                tool,
                "--json",
                "--args",
                &arguments.to_string(),
                "--home",
            ])
            .arg(self.home.home())
            .arg("--config")
            .arg(self.config())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["plan"].clone()
    }
}

/// The program of the example tool of that name, if this host has it not.
fn missing(tool: &str) -> Option<String> {
    let name = format!("tools/{tool}.toml");
    let files = all();
    let text = std::str::from_utf8(files.get(&name)?).unwrap();
    let line = text.split("command = [").nth(1)?;
    let program = line.split('"').nth(1)?;
    (program.starts_with('/') && !Path::new(program).exists()).then(|| program.to_owned())
}

/// Says why a test of an example tool does nothing, and whether it must.
pub(crate) fn skipped_without_program(tool: &str) -> bool {
    let program = missing(tool);
    if let Some(program) = &program {
        println!("skipped: the example {tool}: this host has no {program}");
    }
    program.is_some()
}
