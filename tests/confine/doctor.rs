//! `boxmaker doctor` names the gaps of a host and what helps: as root, as a plain user, and without user namespaces.

#![expect(
    clippy::expect_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use boxmaker_tests::binaries::{binary, skipped_without_root, skipped_without_user_namespaces};
use boxmaker_tests::plain::{CURE, USER, without_namespaces};
use serde_json::Value;
use tempfile::TempDir;

/// Copies of the binaries where any user can reach them.
fn place() -> TempDir {
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.path(), open).expect("its mode");
    for name in ["boxmaker", "boxmaker-stage", "toolkit"] {
        fs::copy(binary(name), directory.path().join(name)).expect(name);
    }
    directory
}

fn diagnosis(mut command: Command) -> Value {
    let output = command.output().expect("doctor runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

fn doctor(directory: &TempDir) -> Command {
    let mut command = Command::new(directory.path().join("boxmaker"));
    command
        .args(["doctor", "--json", "--config", "/nonexistent"])
        .env("HOME", "/nonexistent");
    command
}

/// The gaps of a profile by layer, with what helps.
fn gaps(diagnosis: &Value, profile: &str) -> Vec<(String, Option<String>)> {
    let profiles = diagnosis["profiles"].as_array().expect("profiles");
    let found = profiles
        .iter()
        .find(|one| one["profile"] == profile)
        .expect("the profile");
    let gaps = found["gaps"]
        .as_array()
        .unwrap_or_else(|| panic!("{found}"));
    gaps.iter()
        .map(|gap| {
            let layer = gap["layer"].as_str().expect("a layer").to_owned();
            (layer, gap["helps"].as_str().map(str::to_owned))
        })
        .collect()
}

#[test]
fn root_is_told_the_level_and_for_every_gap_what_helps() {
    if skipped_without_root("root_is_told_the_level") {
        return;
    }
    let diagnosis = diagnosis(doctor(&place()));
    assert_eq!(diagnosis["privilege"], "root");
    let gaps = gaps(&diagnosis, "tools/base");
    assert_eq!(
        diagnosis["level"],
        if gaps.is_empty() { "full" } else { "partial" }
    );
    assert!(gaps.iter().all(|(_, helps)| helps.is_some()), "{gaps:?}");
}

#[test]
fn a_plain_user_is_told_that_root_gives_each_sandbox_a_uid() {
    if skipped_without_root("a_plain_user_is_told") {
        return;
    }
    let place = place();
    let mut command = doctor(&place);
    command.uid(USER).gid(USER);
    let diagnosis = diagnosis(command);
    assert_eq!(
        (&diagnosis["privilege"], &diagnosis["level"]),
        (&"user".into(), &"partial".into())
    );
    let gaps = gaps(&diagnosis, "tools/base");
    let uid = gaps
        .iter()
        .find(|(layer, _)| layer == "uid")
        .expect("a gap");
    assert!(
        uid.1
            .as_deref()
            .is_some_and(|helps| helps.contains("as root")),
        "{gaps:?}"
    );
    assert!(gaps.iter().all(|(_, helps)| helps.is_some()), "{gaps:?}");
}

#[test]
fn without_user_namespaces_the_level_is_partial_and_the_setting_that_closes_them_is_named() {
    if skipped_without_user_namespaces("without_user_namespaces_the_level") {
        return;
    }
    let place = place();
    let doctor = |json: bool| {
        let mut command = without_namespaces(&place.path().join("boxmaker"));
        command
            .args(["doctor", "--config", "/nonexistent"])
            .env("HOME", "/nonexistent");
        if json {
            command.arg("--json");
        }
        command
    };
    let found = diagnosis(doctor(true));
    assert_eq!(
        (&found["privilege"], &found["level"]),
        (&"bare".into(), &"partial".into())
    );
    let refused = found["refused"].as_str().expect("what was refused");
    assert!(refused.starts_with("unshare-user: unshare: E"), "{refused}");
    for profile in ["roles/brokerd", "tools/base"] {
        let gaps = gaps(&found, profile);
        for layer in ["mount", "pid", "net", "ipc", "uts", "cgroup-ns"] {
            let (_, helps) = gaps.iter().find(|(of, _)| of == layer).expect(layer);
            let helps = helps.as_deref().expect("what helps");
            assert!(helps.ends_with(CURE), "{layer}: {helps}");
        }
        assert!(gaps.iter().all(|(_, helps)| helps.is_some()), "{gaps:?}");
    }
    let output = doctor(false).output().expect("doctor runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let once = text.replace("\n     ", "");
    for said in [
        "as a plain user without namespaces",
        "gaps mount pid net ipc uts cgroup-ns: it is in the supervisor's namespace; no namespaces can be made here \
         (unshare-user: unshare: E",
        CURE,
        "level on this host: partial",
    ] {
        assert!(once.contains(said), "{said}: {text}");
    }
}
