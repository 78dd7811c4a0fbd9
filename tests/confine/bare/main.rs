//! Launches by a plain user who can make no namespaces at all: what Landlock, the filter and a process's own means hold
//! is held, and whatever needs a namespace is said. As root these tests become such a user; no setting of the host is
//! touched.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod endings;
mod files;
mod place;

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use boxmaker_tests::binaries::{binary, skipped_without_root, skipped_without_user_namespaces};
use boxmaker_tests::plain::{CURE, USER, without_namespaces};
use boxmaker_tests::sandbox::{launcher, plan, stdio, strip};
use confine::launch::{IdentityChoice, LaunchError};
use proto::{Layer, Level};

use place::{Place, copy, launched};

/// What needs a namespace of its own.
const MISSING: [Layer; 8] = [
    Layer::Mount,
    Layer::Pid,
    Layer::Net,
    Layer::Ipc,
    Layer::Uts,
    Layer::CgroupNs,
    Layer::Uid,
    Layer::MountFlags,
];

/// What needs cgroups, which a plain user has or has not.
const LIMITS: [Layer; 3] = [Layer::Memory, Layer::Pids, Layer::Cpu];

#[test]
fn without_namespaces_exactly_what_needs_one_is_a_gap_and_the_level_is_partial() {
    if skipped_without_user_namespaces("without_namespaces_exactly_what_needs_one") {
        return;
    }
    let launched = Place::new().launch("echo up");
    assert_eq!(
        (launched.stdout.as_str(), launched.stderr.as_str()),
        ("up\n", "")
    );
    let confinement = launched.confinement;
    assert_eq!(confinement.level, Level::Partial);
    assert!(!confinement.satisfies(Level::Full));
    let gaps = confinement.gaps.iter().map(|gap| gap.layer);
    let gaps: Vec<_> = gaps.filter(|layer| !LIMITS.contains(layer)).collect();
    let missing = Layer::ALL.iter().filter(|layer| MISSING.contains(layer));
    assert_eq!(gaps, missing.copied().collect::<Vec<_>>());
    for layer in MISSING.into_iter().filter(|layer| *layer != Layer::Uid) {
        let reason = &confinement.gap(layer).unwrap().reason;
        assert!(reason.contains("unshare-user: unshare: E"), "{reason}");
    }
    let reason = &confinement.gap(Layer::Uid).unwrap().reason;
    assert!(reason.starts_with("shared-uid: "), "{reason}");
    // There is somebody outside to whom a signal was refused, so this is measured here and not asserted.
    assert!(confinement.layers.contains(&Layer::LandlockScope));
    assert!(
        confinement
            .asserted
            .iter()
            .all(|part| part.what != "signal")
    );
    let asserts = |what: &str| confinement.asserted.iter().any(|part| part.what == what);
    assert!(asserts("the bounding set, by no_new_privs"));
    assert_eq!(launched.left, 0);
}

#[test]
fn a_filter_that_refuses_namespaces_leaves_the_same() {
    let place = Place::new();
    copy("without-namespaces", place.directory.path());
    let mut command = Command::new(place.path("without-namespaces"));
    command
        .arg(place.path("launch-once"))
        .arg(place.path("boxmaker-stage"))
        .arg("echo up")
        .arg(place.path("tree"));
    if rustix::process::geteuid().is_root() {
        command.uid(USER).gid(USER);
    }
    let refused = launched(command);
    assert_eq!(refused.stdout, "up\n", "{}", refused.stderr);
    let reason = &refused.confinement.gap(Layer::Pid).unwrap().reason;
    assert!(
        reason.ends_with("unshare-user: unshare: EPERM: Operation not permitted"),
        "{reason}"
    );
    let other = place.launch("echo up").confinement;
    assert_eq!(refused.confinement.layers, other.layers);
    assert_eq!(refused.confinement.level, Level::Partial);
}

/// What is measured when the stage leaves a step out, and the level that is left.
#[test]
fn leaving_out_what_stands_in_for_namespaces_is_measured() {
    if skipped_without_user_namespaces("leaving_out_what_stands_in_for") {
        return;
    }
    let place = Place::new();
    let limits = |layer: &Layer| !LIMITS.contains(layer) && !MISSING.contains(layer);
    for (step, opens, level) in [
        ("mark", &[Layer::ParentDeath] as &[Layer], Level::Partial),
        ("subreaper", &[Layer::ParentDeath], Level::Partial),
        ("parent-death", &[Layer::ParentDeath], Level::Partial),
        ("dumpable", &[Layer::Dumpable], Level::Partial),
        ("landlock-net", &[Layer::LandlockNet], Level::Partial),
        ("landlock-scope", &[Layer::LandlockScope], Level::Partial),
        ("landlock-fs", &[Layer::LandlockFs], Level::None),
        ("seccomp", &[Layer::Seccomp], Level::None),
    ] {
        let stage = format!("without.{step}");
        copy("stage-without-a-step", &place.path(&stage));
        let confinement = launched(place.command(&stage, "true")).confinement;
        let gaps = confinement.gaps.iter().map(|gap| gap.layer);
        let more: Vec<_> = gaps.filter(limits).collect();
        assert_eq!(
            (more.as_slice(), confinement.level),
            (opens, level),
            "{step}: {:?}",
            confinement.gaps
        );
    }
}

#[test]
fn a_plan_without_namespaces_is_launched_only_where_none_can_be_made() {
    if skipped_without_root("a_plan_without_namespaces") {
        return;
    }
    let mut plan = plan(&["/usr/bin/true"]);
    strip(&mut plan, 7);
    let (ends, _output) = stdio();
    let launcher = launcher(&binary("boxmaker-stage"), "not-bare");
    let refused = launcher.prepare(plan, Vec::new(), ends, IdentityChoice::Fresh);
    assert!(matches!(refused, Err(LaunchError::Bare)), "{refused:?}");
}

/// The whole system as such a user: the demo passes, says why there are no namespaces and what helps, and shows a grant
/// refused that asks for `full`.
#[test]
fn the_demo_passes_and_a_grant_that_asks_for_full_is_refused_with_the_reason() {
    if skipped_without_user_namespaces("the_demo_passes_and_a_grant") {
        return;
    }
    let place = Place::new();
    let programs = place.path("bin");
    fs::create_dir(&programs).unwrap();
    for name in [
        "boxmaker",
        "boxmaker-stage",
        "brokerd",
        "bxctl",
        "toolkit",
        "boxmaker-misbehave",
    ] {
        copy(name, &programs);
    }
    let mut demo = without_namespaces(&programs.join("boxmaker"));
    demo.arg("demo")
        .arg("--state")
        .arg(place.path("other/state"));
    let output = demo.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{told}");
    for expected in [
        "by Landlock and the system call filter alone: no namespaces can be made here (unshare-user: ",
        CURE,
        "denied: confinement_too_weak · confinement partial, ",
        "brokerd started · confinement partial, ",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let mut show = without_namespaces(&programs.join("bxctl"));
    show.args(["audit", "show", "--json", "--home"])
        .arg(place.path("other/state/home"))
        .arg("--config")
        .arg(place.path("other/state/config"));
    let log = String::from_utf8(show.output().unwrap().stdout).unwrap();
    let refused: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("confinement_too_weak"))
        .collect();
    let [record] = refused.as_slice() else {
        panic!("{log}");
    };
    assert!(
        record.contains("level full is required and partial was measured"),
        "{record}"
    );
    assert!(record.contains(CURE), "{record}");
    // No sandbox of it is left on the disk.
    let left = fs::read_dir(place.path("other/state/home/run/sandboxes")).unwrap();
    assert_eq!(left.count(), 0);
}
