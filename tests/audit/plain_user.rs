//! What a plain user is told who may not look at everything, or whose home is no directory: the cause and the way out,
//! and not that the owner's configuration is wrong.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use boxmaker_tests::binaries::{binary, skipped_without_root};
use boxmaker_tests::tools::SHOW;

/// A user that nobody is.
const USER: u32 = 1_879_000_124;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// Root's configuration with a grant for `files/notes`, which holds a file, and a copy of the program that anyone can
    /// reach.
    fn new() -> Self {
        // Whatever it was: what a group may write is no configuration.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        // Not below /tmp: that is each sandbox's own scratch directory.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let place = Self { directory };
        place.mode("", 0o755);
        for below in ["bin", "config/tools", "config/grants", "files/notes"] {
            fs::create_dir_all(place.path(below)).unwrap();
        }
        fs::write(place.path("files/notes/a.md"), "a").unwrap();
        fs::write(place.path("config/tools/show.toml"), SHOW).unwrap();
        let notes = place.path("files/notes");
        let grant = format!(
            "tool = \"show\"\nmode = \"auto\"\nmax_taint = \"private\"\nconfinement = \"partial\"\n\
             constraints.paths = [\"read:{}\"]\n",
            notes.display()
        );
        fs::write(place.path("config/grants/notes.toml"), grant).unwrap();
        // By another process, so that no child of another test holds it open for writing.
        let mut copy = Command::new("cp");
        copy.arg(binary("boxmaker")).arg(place.path("bin/boxmaker"));
        assert!(copy.status().unwrap().success());
        place
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    fn mode(&self, below: &str, mode: u32) {
        fs::set_permissions(self.path(below), Permissions::from_mode(mode)).unwrap();
    }

    /// Runs boxmaker as the plain user: its status, and what it said on either stream.
    fn run(&self, home: &Path, words: &[&str]) -> (i32, String) {
        let output = Command::new(self.path("bin/boxmaker"))
            .args(words)
            .arg("--home")
            .arg(home)
            .arg("--config")
            .arg(self.path("config"))
            .env_clear()
            .stdin(Stdio::null())
            .uid(USER)
            .gid(USER)
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let status = output.status.code().unwrap();
        (status, String::from_utf8(said).unwrap())
    }

    fn explain(&self) -> (i32, String) {
        let arguments = format!(
            "{{\"path\":\"{}\"}}",
            self.path("files/notes/a.md").display()
        );
        let words = ["explain", "show", "--args", &arguments];
        self.run(&self.path("home"), &words)
    }
}

#[test]
fn what_a_user_may_not_look_at_is_told_as_permission_and_not_as_a_mistake() {
    if skipped_without_root("what_a_user_may_not_look_at") {
        return;
    }
    let place = Place::new();
    for closed in ["files", "files/notes", "config", "config/grants/notes.toml"] {
        let (status, told) = place.explain();
        assert_eq!(status, 0, "{told}");
        assert!(told.contains("tool show, grant notes, plan "), "{told}");
        let before = fs::metadata(place.path(closed)).unwrap().permissions();
        place.mode(closed, 0o700);
        let (status, told) = place.explain();
        place.mode(closed, before.mode());
        assert_eq!(status, 2, "{closed}: {told}");
        assert!(told.starts_with("boxmaker: permission denied: "), "{told}");
        assert!(told.contains("as root, or as the user whose"), "{told}");
        for wrong in ["not usable", "would be refused"] {
            assert!(!told.contains(wrong), "{told}");
        }
    }
}

#[test]
fn a_home_that_is_a_file_or_somebody_elses_is_told_with_the_way_out() {
    if skipped_without_root("a_home_that_is_a_file_or_somebody_elses") {
        return;
    }
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    let (status, told) = place.run(&place.path("file"), &["up"]);
    assert_eq!(status, 1, "{told}");
    assert!(
        told.contains("is no directory") && told.contains("--home"),
        "{told}"
    );
    // Root's directory, in which this user can make nothing.
    let (status, told) = place.run(&place.path("home"), &["up"]);
    assert_eq!(status, 1, "{told}");
    assert!(
        told.contains("Permission denied") && told.contains("a home of your own with --home"),
        "{told}"
    );
    // The twin: a home of their own gets past both, and the next thing that is missing is another.
    fs::create_dir(place.path("own")).unwrap();
    chown(place.path("own"), Some(USER), Some(USER)).unwrap();
    fs::remove_file(place.path("config/grants/notes.toml")).unwrap();
    fs::write(place.path("config/config.toml"), "unknown = 1\n").unwrap();
    let (status, told) = place.run(&place.path("own"), &["up"]);
    assert_eq!(status, 2, "{told}");
    assert!(told.contains("config.toml:1: unknown key"), "{told}");
    assert!(place.path("own/run/lock").exists());
}
