//! Programs of boxmaker's own that are missing, may not be executed or are none: at the start, and taken away while it
//! runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::Home;
use boxmaker_tests::system::processes::until;

use crate::homes::{echoes, home, read, reads, refused, serves, told, up};

/// What became of a program.
#[derive(Debug, Clone, Copy)]
enum Became {
    Missing,
    Closed,
    NoProgram,
}

use Became::{Closed, Missing, NoProgram};

/// Does `work` with one of boxmaker's programs in another state. What is in its place is another file: the programs of a
/// home are links to those under test.
fn with(home: &Home, name: &str, became: Became, work: impl FnOnce(&str)) {
    let place = home.directory().join("bin").join(name);
    let aside = home.directory().join("aside");
    fs::rename(&place, &aside).unwrap();
    match became {
        Missing => {}
        Closed => {
            fs::copy(&aside, &place).unwrap();
            fs::set_permissions(&place, Permissions::from_mode(0o644)).unwrap();
        }
        NoProgram => {
            fs::write(&place, "half a download\n").unwrap();
            fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
        }
    }
    work(&place.display().to_string());
    fs::rename(&aside, &place).unwrap();
}

#[test]
fn a_program_of_its_own_that_cannot_be_started_stops_the_start_and_is_named() {
    if skipped_without_root("a_program_of_its_own_that_cannot_be_started") {
        return;
    }
    let home = home();
    let beside = "installed beside boxmaker: install both from one build";
    for (name, became, status, says) in [
        ("boxmaker-stage", Missing, 1, beside),
        ("boxmaker-stage", Closed, 1, beside),
        ("boxmaker-stage", NoProgram, 1, beside),
        ("brokerd", Missing, 1, beside),
        ("brokerd", Closed, 1, "chmod o+rx it"),
        ("brokerd", NoProgram, 1, beside),
        ("toolkit", Missing, 2, "install it or correct `command`"),
        ("toolkit", Closed, 2, "chmod +x it or correct `command`"),
    ] {
        with(&home, name, became, |place| {
            let told = refused(&home, status);
            for expected in [place, says] {
                assert!(told.contains(expected), "{name} {became:?}: {told}");
            }
        });
    }
    serves(&home);
}

#[test]
fn a_stage_that_goes_while_it_runs_refuses_each_call_until_it_is_back() {
    if skipped_without_root("a_stage_that_goes_while_it_runs") {
        return;
    }
    let home = home();
    let system = up(&home);
    reads(&home);
    for became in [Missing, Closed, NoProgram] {
        with(&home, "boxmaker-stage", became, |place| {
            let output = read(&home);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{said}");
            for expected in [
                "launch_failed",
                &format!("cannot start {place}"),
                "install both",
            ] {
                assert!(said.contains(expected), "{became:?}: {said}");
            }
            assert!(told(&home, &["status"]).contains("audit log   open"));
        });
        reads(&home);
    }
    assert!(system.stop().success());
    home.sound();
}

#[test]
fn a_tool_that_goes_while_it_runs_refuses_its_own_calls_and_no_others() {
    if skipped_without_root("a_tool_that_goes_while_it_runs") {
        return;
    }
    let home = home();
    let system = up(&home);
    for became in [Missing, Closed, NoProgram] {
        with(&home, "toolkit", became, |place| {
            let output = read(&home);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{said}");
            for expected in ["launch_failed", place] {
                assert!(said.contains(expected), "{became:?}: {said}");
            }
            echoes(&home);
        });
        reads(&home);
    }
    assert!(system.stop().success());
    home.sound();
}

#[test]
fn programs_that_are_replaced_while_it_runs_serve_the_next_calls() {
    if skipped_without_root("programs_that_are_replaced_while_it_runs") {
        return;
    }
    let home = home();
    let mut system = up(&home);
    reads(&home);
    for name in ["boxmaker-stage", "toolkit", "brokerd"] {
        let place = home.directory().join("bin").join(name);
        let new = home.directory().join("new");
        fs::copy(&place, &new).unwrap();
        fs::rename(&new, &place).unwrap();
        reads(&home);
    }
    system.brokerd(&home).kill();
    system.wait_up(&home, 1);
    reads(&home);
    assert!(system.stop().success());
    home.sound();
}

#[test]
fn a_brokerd_that_cannot_be_started_again_is_tried_until_it_is_back() {
    if skipped_without_root("a_brokerd_that_cannot_be_started_again") {
        return;
    }
    let home = home();
    let mut system = up(&home);
    let brokerd = system.brokerd(&home);
    with(&home, "brokerd", Missing, |place| {
        brokerd.kill();
        let said = format!("brokerd: {place} does not exist; it is installed beside boxmaker");
        until("it is missed", || home.stderr().contains(&said));
        assert!(home.stderr().contains("brokerd is started again in "));
        assert!(told(&home, &["audit", "verify"]).starts_with("sound: "));
        system.must_run(&home);
    });
    system.wait_up(&home, 1);
    reads(&home);
    assert!(system.stop().success());
    home.sound();
}
