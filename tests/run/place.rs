//! Who runs, from where: root, or a plain user with copies of the binaries, each with a state directory of its own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use boxmaker_tests::binaries::{binary, skipped_without_root, skipped_without_user_namespaces};
use boxmaker_tests::plain::{USER, without_namespaces};
use tempfile::TempDir;

/// Who starts boxmaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Root,
    Plain,
    /// A plain user who can make no namespaces.
    Bare,
}

/// Binaries, files and the logs of runs, of one user.
pub(crate) struct Place {
    pub(crate) who: Who,
    directory: TempDir,
}

/// A place of each user that there can be here; `test` says what was skipped.
pub(crate) fn places(test: &str) -> Vec<Place> {
    let mut places = Vec::new();
    if !skipped_without_root(test) {
        places.push(Place::new(Who::Root));
    }
    if !skipped_without_user_namespaces(test) {
        places.push(Place::new(Who::Plain));
    }
    places
}

/// That of a plain user where no namespaces can be made.
pub(crate) fn bare(test: &str) -> Option<Place> {
    (!skipped_without_user_namespaces(test)).then(|| Place::new(Who::Bare))
}

impl Place {
    fn new(who: Who) -> Self {
        // Not below /tmp: that is each sandbox's own scratch directory.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let place = Self { who, directory };
        for below in ["bin", "state", "files", "files/deep", "out"] {
            fs::create_dir(place.path(below)).unwrap();
        }
        for name in ["boxmaker", "boxmaker-stage", "toolkit"] {
            // Copied by another process, so that no child of another test holds it open for writing.
            let copied = Command::new("cp")
                .arg(binary(name))
                .arg(place.path("bin"))
                .status();
            assert!(copied.unwrap().success(), "{name}");
        }
        fs::write(place.path("files/note"), "a note\n").unwrap();
        fs::create_dir_all(place.path("config/profiles/tools")).unwrap();
        fs::write(
            place.path("config/profiles/tools/sleeper.toml"),
            "extends = \"tools/base\"\nexec = [\"/usr/bin/sleep\", \"/usr/bin/setsid\"]\n",
        )
        .unwrap();
        if who != Who::Root {
            for below in [
                "",
                "/profiles",
                "/profiles/tools",
                "/profiles/tools/sleeper.toml",
            ] {
                place.give(&format!("config{below}"));
            }
        }
        for below in ["state", "files", "files/deep", "files/note", "out"] {
            place.give(below);
        }
        place
    }

    /// To whoever runs; what is written is never root's.
    pub(crate) fn give(&self, below: &str) {
        if rustix::process::geteuid().is_root() && (self.who != Who::Root || below != "state") {
            chown(self.path(below), Some(USER), Some(USER)).unwrap();
        }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    pub(crate) fn show(&self, below: &str) -> String {
        self.path(below).display().to_string()
    }

    /// `boxmaker run` with these options, up to `--`. Root's log is in a home that is named, or it would be the host's.
    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let program = self.path("bin/boxmaker");
        let mut command = match self.who {
            Who::Bare => without_namespaces(&program),
            Who::Root | Who::Plain => Command::new(program),
        };
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("none"))
            .env("XDG_STATE_HOME", self.path("state"))
            .current_dir(self.path("files"))
            .args(["run", "--config"])
            .arg(self.path("config"));
        match self.who {
            Who::Root => {
                command.arg("--home").arg(self.home());
            }
            Who::Plain if rustix::process::geteuid().is_root() => {
                command.uid(USER).gid(USER);
            }
            Who::Plain | Who::Bare => {}
        }
        command.args(options).arg("--");
        command
    }

    /// Where the first run has its log.
    pub(crate) fn home(&self) -> PathBuf {
        match self.who {
            Who::Root => self.path("state/root"),
            Who::Plain | Who::Bare => self.path("state/boxmaker-run/1"),
        }
    }

    pub(crate) fn run(&self, options: &[&str], words: &[&str]) -> Output {
        self.command(options).args(words).output().unwrap()
    }

    /// What a shell script that is run comes to.
    pub(crate) fn shell(&self, options: &[&str], script: &str) -> Ended {
        Ended::of(self.run(options, &["sh", "-c", script]))
    }
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
