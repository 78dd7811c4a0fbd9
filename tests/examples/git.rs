//! `git log` on real repositories: of the granted owner, of somebody else, and of somebody who tries to make it run
//! something.

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use boxmaker_tests::binaries::skipped_without_root;
use serde_json::{Value, json};

use crate::room::{Room, skipped_without_program};

fn git(repository: &str, words: &[&str]) {
    let output = Command::new("/usr/bin/git")
        .args(["-c", "safe.directory=*", "-c", "user.name=Ann Other"])
        .args([
            "-c",
            "user.email=ann@example.org",
            "-c",
            "init.defaultBranch=main",
            "-C",
            repository,
        ])
        .args(words)
        .env_clear()
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
        .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
        .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// A repository with three commits, the last on a branch, some of them packed.
fn repository(room: &Room) -> String {
    let path = room.home.folder("code/project");
    git(&path, &["init", "--quiet"]);
    for (name, words) in [("a.txt", "First"), ("ä.txt", "Second")] {
        room.home.file(&format!("code/project/{name}"), words);
        git(&path, &["add", "."]);
        git(&path, &["commit", "--quiet", "-m", words]);
    }
    git(&path, &["gc", "--quiet"]);
    git(&path, &["tag", "v1"]);
    git(&path, &["checkout", "--quiet", "-b", "side"]);
    git(
        &path,
        &[
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "Third\n\n\u{1b}[31mred",
        ],
    );
    // Gives what root has made to the owner, closed to everybody else.
    room.home.folder("code/project")
}

fn log(repository: &str, revision: &str) -> Value {
    json!({"repository": repository, "revision": revision, "count": 10})
}

fn give(path: &Path, uid: u32) {
    chown(path, Some(uid), Some(uid)).unwrap();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), uid);
        }
    }
}

#[test]
fn the_history_of_a_repository_of_another_user_is_shown() {
    if skipped_without_root("the_history_of_a_repository") || skipped_without_program("git_log") {
        return;
    }
    let mut room = Room::new();
    let path = repository(&room);
    room.start();
    let text = room.call("git_log", &log(&path, "v1")).result();
    let subjects: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("    "))
        .collect();
    assert_eq!(subjects, ["    Second", "    First"]);
    assert!(
        text.contains("Author: Ann Other <ann@example.org>"),
        "{text}"
    );
    assert!(text.contains("Date:   2026-01-02T03:04:05+00:00"), "{text}");
    assert!(text.contains(" a.txt | 1 +\n"), "{text}");
    let text = room.call("git_log", &log(&path, "v1..HEAD")).result();
    assert!(text.contains("Third") && !text.contains("Second"), "{text}");
    let one = json!({"repository": path, "revision": "HEAD", "count": 1});
    let text = room.call("git_log", &one).result();
    assert_eq!(text.matches("commit ").count(), 1, "{text}");
    for (revision, part) in [("nothing", "bad revision"), ("--all", "bad_arguments")] {
        let refusal = room.call("git_log", &log(&path, revision)).refusal();
        assert!(refusal.contains(part), "{refusal}");
    }
    let refusal = room
        .call("git_log", &log(&room.home.path("code"), "HEAD"))
        .refusal();
    assert!(refusal.contains("not a git repository"), "{refusal}");
    let refusal = room.call("git_log", &log("/usr/share", "HEAD")).refusal();
    assert!(refusal.contains("no_grant"), "{refusal}");
}

#[test]
fn a_repository_of_a_third_user_is_shown_because_the_command_says_that_it_is_safe() {
    if skipped_without_root("a_repository_of_a_third_user") || skipped_without_program("git_log") {
        return;
    }
    let mut room = Room::new();
    let path = repository(&room);
    open(Path::new(&path));
    give(Path::new(&path), 1001);
    // The twin beside it: the same command without the two words.
    let text = std::fs::read_to_string(room.config().join("tools/git_log.toml")).unwrap();
    let without = text.replace(r#""-c", "safe.directory=*", "#, "");
    assert_ne!(without, text);
    room.home.tool("git_strict", &without);
    let grant = std::fs::read_to_string(room.config().join("grants/git_log.toml")).unwrap();
    room.home
        .grant("git_strict", &grant.replace("git_log", "git_strict"));
    room.start();
    let refusal = room.call("git_strict", &log(&path, "HEAD")).refusal();
    assert!(refusal.contains("dubious ownership"), "{refusal}");
    let text = room.call("git_log", &log(&path, "HEAD")).result();
    assert!(text.contains("Third"), "{text}");
}

/// Lets everybody read what is below a directory.
fn open(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = if path.is_dir() { 0o755 } else { 0o644 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            open(&entry.unwrap().path());
        }
    }
}

#[test]
fn what_the_configuration_of_a_repository_says_of_formats_and_programs_is_overridden() {
    if skipped_without_root("what_a_repository_says") || skipped_without_program("git_log") {
        return;
    }
    let mut room = Room::new();
    let path = repository(&room);
    let plain = {
        room.start();
        room.call("git_log", &log(&path, "HEAD")).result()
    };
    for (key, value) in [
        ("format.pretty", "format:evil %an"),
        ("log.date", "relative"),
        ("log.decorate", "full"),
        ("log.showSignature", "true"),
        ("log.mailmap", "true"),
        ("color.ui", "always"),
        ("core.quotePath", "false"),
        ("diff.external", "evil"),
        ("core.pager", "evil"),
        ("gpg.program", "evil"),
    ] {
        git(&path, &["config", key, value]);
    }
    room.home.file(
        "code/project/.mailmap",
        "Evil <evil@example.org> <ann@example.org>\n",
    );
    let text = room.call("git_log", &log(&path, "HEAD")).result();
    assert_eq!(text, plain);
    // The twin: without these words git does what it is told.
    let output = Command::new("/usr/bin/git")
        .args(["-c", "safe.directory=*", "-C", &path, "log", "--stat"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("evil Ann") && text.contains(" ä.txt"),
        "{text}"
    );
}

#[test]
fn git_log_may_execute_git_and_nothing_else() {
    if skipped_without_root("git_log_may_execute_git") || skipped_without_program("git_log") {
        return;
    }
    let room = Room::new();
    let path = repository(&room);
    let executed = |plan: &Value| -> Vec<String> {
        let rules = plan["landlock"].as_array().unwrap().iter();
        let paths = rules.filter(|rule| rule["rule"] == "execute");
        paths
            .map(|rule| rule["path"].as_str().unwrap().to_owned())
            .collect()
    };
    let (loaders, programs): (Vec<_>, Vec<_>) =
        executed(&room.plan("git_log", &log(&path, "HEAD")))
            .into_iter()
            .partition(|path| path.contains("/ld-linux"));
    assert_eq!(
        (loaders.len(), programs),
        (1, vec!["/usr/bin/git".to_owned()])
    );
    // The twin: what the profile's comment says for other commands.
    let profile = room.config().join("profiles/tools/git-log.toml");
    let text = std::fs::read_to_string(&profile).unwrap();
    let more = format!("exec = [\"/usr/lib/git-core/*\"]\n{text}");
    std::fs::write(&profile, more).unwrap();
    let executed = executed(&room.plan("git_log", &log(&path, "HEAD")));
    assert!(executed.len() > 10, "{executed:?}");
}
