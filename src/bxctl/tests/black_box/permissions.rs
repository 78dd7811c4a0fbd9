//! What someone is told who may not look.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::host::{Ended, Host, answering, ended, text};

/// A group that no user of the machine is in, and a user that owns nothing.
const GROUP: u32 = 1_879_000_123;
const STRANGER: u32 = 1_879_000_124;

/// The binary where a stranger can reach it, run by one who is in `group`.
fn as_stranger(host: &Host, group: u32, words: &[&str]) -> Ended {
    let binary = host.home().join("bxctl");
    if !binary.exists() {
        // Another process copies: a child that another test forks meanwhile would hold the copy open for writing,
        // and it could not be executed.
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_bxctl"))
            .arg(&binary)
            .status();
        assert!(copied.unwrap().success());
    }
    let mut command = Command::new(&binary);
    command.args(words).args([
        "--home",
        text(&host.home()),
        "--config",
        text(&host.config()),
    ]);
    ended(command.uid(STRANGER).gid(group))
}

/// A home as the supervisor makes it: `run/bxctl` and `audit` are 0750 and belong to a group.
fn shared() -> Option<Host> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become someone who may not look");
        return None;
    }
    let host = Host::new();
    fs::set_permissions(host.home().parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    for below in ["run/bxctl", "audit"] {
        let path = host.home().join(below);
        chown(&path, None, Some(GROUP)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    }
    Some(host)
}

#[test]
fn someone_outside_the_group_of_the_socket_is_told_which_it_is() {
    let Some(host) = shared() else { return };
    let result = r#"{"status": "denied", "reason": "no_grant", "detail": ""}"#;
    let _seen = host.broker(answering(result));
    fs::set_permissions(host.socket(), Permissions::from_mode(0o770)).unwrap();
    chown(host.socket(), None, Some(GROUP)).unwrap();
    let outside = as_stranger(&host, STRANGER, &["call", "t"]);
    assert_eq!(
        (outside.status, outside.out.as_str()),
        (1, ""),
        "{outside:?}"
    );
    assert!(
        outside
            .err
            .contains(&format!("is open to the group {GROUP}")),
        "{outside:?}"
    );
    let inside = as_stranger(&host, GROUP, &["call", "t"]);
    assert!(inside.err.starts_with("t denied: no_grant"), "{inside:?}");
}

#[test]
fn someone_outside_the_group_of_the_log_is_told_which_it_is() {
    let Some(host) = shared() else { return };
    for command in ["verify", "show"] {
        let outside = as_stranger(&host, STRANGER, &["audit", command]);
        assert_eq!(
            (outside.status, outside.out.as_str()),
            (2, ""),
            "{outside:?}"
        );
        assert!(
            outside
                .err
                .contains(&format!("is open to the group {GROUP}")),
            "{outside:?}"
        );
        // Of what was not read nothing is said.
        assert!(!outside.err.contains("no record"), "{outside:?}");
    }
    let inside = as_stranger(&host, GROUP, &["audit", "show"]);
    assert_eq!(
        (inside.status, inside.err.as_str()),
        (0, "bxctl: the audit log has no record yet\n"),
        "{inside:?}"
    );
}

#[test]
fn a_program_that_may_not_be_looked_at_is_left_open_and_not_called_absent() {
    let Some(host) = shared() else { return };
    let closed = host.home().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    let tool = format!(
        "description = \"x\"\nkind = \"stdio\"\ncommand = [\"{}/program\"]\nprofile = \"tools/base\"\n\
         side_effect = false\narguments = {{ type = \"object\" }}\n",
        text(&closed)
    );
    host.file("tools/t.toml", &tool);
    let told = as_stranger(&host, STRANGER, &["check"]);
    assert_eq!(told.status, 0, "{told:?}");
    assert!(
        told.out.starts_with("not seen: tools/t.toml:3: program ") && told.out.contains("\nok: "),
        "{told:?}"
    );
    let root = host.run(&["check"]);
    assert_eq!(root.status, 1, "{root:?}");
    assert!(root.out.starts_with("tools/t.toml:3: program "), "{root:?}");
}
