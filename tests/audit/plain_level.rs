//! What a plain user is told of the level before anything is refused for it: by `boxmaker explain`, which measures, and by
//! `boxmaker up`, which names the grants that ask for more.

use std::os::unix::process::CommandExt;
use std::process::Command;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::processes::until;
use boxmaker_tests::system::{Brokerd, Home};
use boxmaker_tests::tools::SHOW;
use serde_json::Value;

/// A user that nobody is.
const USER: u32 = 1_879_000_125;

fn grant(level: &str) -> String {
    format!(
        "tool = \"show\"\nmode = \"auto\"\nmax_taint = \"private\"\nconfinement = \"{level}\"\n\
         constraints.paths = [\"read:@FILES@/notes\"]\n"
    )
}

/// A home of the plain user's with a file in a granted directory. Nothing is waived.
fn home() -> Home {
    let home = Home::of_plain_user(Brokerd::Real, USER);
    home.configure("config.toml", "");
    home.tool("show", SHOW);
    home.file("notes/a.md", "a");
    home
}

/// What `boxmaker explain` says of a call under grant `id`.
fn explain(home: &Home, user: Option<u32>, id: &str, more: &[&str]) -> String {
    let arguments = format!("{{\"path\":\"{}\"}}", home.path("notes/a.md"));
    let mut command = Command::new(home.directory().join("bin/boxmaker"));
    command
        .args(["explain", "show", "--grant", id, "--args", &arguments])
        .args(more);
    command.arg("--home").arg(home.home());
    command.arg("--config").arg(home.directory().join("config"));
    command.env_clear();
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn explain_promises_a_plain_user_no_uid_and_no_limits_that_there_are_not() {
    if skipped_without_root("explain_promises_a_plain_user") {
        return;
    }
    let home = home();
    home.grant("whole", &grant("full"));
    home.grant("less", &grant("partial"));
    let told = explain(&home, Some(USER), "whole", &[]);
    assert!(!told.contains("user id of its own"), "{told}");
    let (_, measured) = told.split_once("\nMeasured here, as uid ").unwrap();
    assert!(measured.contains("\n  level partial\n"), "{told}");
    assert!(measured.contains("\n  gap uid: shared-uid: "), "{told}");
    assert!(
        measured.contains("\n    what helps: start boxmaker"),
        "{told}"
    );
    assert!(
        measured.contains("  not enough: level full is required"),
        "{told}"
    );
    let told = explain(&home, Some(USER), "less", &[]);
    assert!(told.contains("\n  level partial\n"), "{told}");
    assert!(!told.contains("not enough"), "{told}");
    // Root has the uids.
    let told = explain(&home, None, "whole", &[]);
    assert!(told.contains("\nMeasured here, as root\n"), "{told}");
    assert!(!told.contains("gap uid"), "{told}");
}

#[test]
fn what_explain_measured_is_of_the_plan_that_it_shows() {
    if skipped_without_root("what_explain_measured") {
        return;
    }
    let home = home();
    home.grant("less", &grant("partial"));
    let told: Value =
        serde_json::from_str(&explain(&home, Some(USER), "less", &["--json"])).unwrap();
    assert_eq!(told["confinement"]["plan"], told["hash"]);
    assert_eq!(told["confinement"]["level"], "partial");
    assert_eq!(told["failure"], Value::Null);
}

#[test]
fn a_call_that_would_be_refused_is_explained_with_what_to_do_on_a_line_of_its_own() {
    let home = Home::of_plain_user(Brokerd::Real, USER);
    home.tool("show", SHOW);
    home.grant("less", &grant("partial"));
    home.file("notes/a.md", "a");
    for (words, told) in [
        (
            vec!["shwo"],
            "this call would be refused, unknown_tool: tool shwo: there is no such tool; did you mean `show`?\n  change",
        ),
        (
            vec!["show", "--args", "{\"paht\":\"a.md\"}"],
            "this call would be refused, bad_arguments: tool show: argument `paht` is not known to this tool; did you \
             mean `path`?\n  change",
        ),
    ] {
        let mut command = Command::new(home.directory().join("bin/boxmaker"));
        command.arg("explain").args(&words);
        command.arg("--home").arg(home.home());
        command.arg("--config").arg(home.directory().join("config"));
        let output = command.env_clear().output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(told), "{words:?}: {error}");
    }
}

#[test]
fn a_start_names_the_grants_that_ask_for_more_than_there_is() {
    if skipped_without_root("a_start_names_the_grants") {
        return;
    }
    let home = home();
    home.grant("less", &grant("partial"));
    let warns = "asks for confinement \"full\", and this host gives partial (gaps: uid";
    let mut system = home.start();
    system.wait_up(&home, 0);
    // What is said after it has all been said before.
    assert!(system.stop().success());
    assert!(!home.stderr().contains("asks for"), "{}", home.stderr());

    home.grant("whole", &grant("full"));
    let mut system = home.start();
    system.wait_up(&home, 1);
    until("the warning", || home.stderr().contains(warns));
    assert!(system.stop().success());
    let told = home.stderr();
    assert!(
        told.contains("warning: grants/whole.toml asks for"),
        "{told}"
    );
    assert!(!told.contains("grants/less.toml"), "{told}");
}
