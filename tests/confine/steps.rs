//! Every restricting step of the stage is measured: leaving any one out makes exactly its layer a gap, lowers the
//! level, and a launch that requires `full` does not pass; so it is for a stage that waited in the warm pool. Leaving out any other step fails the launch with that
//! step's error, or with the error of the step that first misses it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use boxmaker_tests::binaries::{binary, skipped_without_root};
use boxmaker_tests::sandbox::{await_pool, launcher_with_pool, plan, stdio};
use confine::Step;
use confine::launch::{IdentityChoice, LaunchError, Launcher, Prepared};
use confine::plan::{LandlockRule, Rule};
use proto::audit::{ExitCause, ExitStatus};
use proto::{Confinement, Layer, Level};
use tempfile::TempDir;

/// A stage without `steps`.
fn stage_without(directory: &TempDir, steps: &[Step]) -> PathBuf {
    let names: Vec<&str> = steps.iter().map(|step| step.as_str()).collect();
    let path = directory
        .path()
        .join(format!("without.{}", names.join(".")));
    std::os::unix::fs::symlink(binary("stage-without-a-step"), &path).unwrap();
    path
}

/// A launcher of such a stage, with so many of them in its warm pool.
fn launcher_without(directory: &TempDir, steps: &[Step], pool: u8) -> Launcher {
    let stage = stage_without(directory, steps);
    // Two launchers of one name would take each other's groups for what a crash left.
    let first = steps.first().map_or("all", |step| step.as_str());
    launcher_with_pool(&stage, &format!("{first}-{}-{pool}", steps.len()), pool)
}

fn prepare(launcher: &Launcher) -> Result<Prepared, LaunchError> {
    let (ends, _output) = stdio();
    launcher.prepare(
        plan(&["/usr/bin/true"]),
        Vec::new(),
        ends,
        IdentityChoice::Fresh,
    )
}

fn prepare_without(steps: &[Step]) -> Result<Prepared, LaunchError> {
    let directory = tempfile::tempdir().unwrap();
    prepare(&launcher_without(&directory, steps, 0))
}

fn measured_without(steps: &[Step]) -> Confinement {
    match prepare_without(steps) {
        Ok(prepared) => prepared.confinement().clone(),
        Err(error) => panic!("without {steps:?}: {error}"),
    }
}

/// What is measured of a stage that waited for its plan.
fn measured_warm_without(steps: &[Step]) -> Confinement {
    let directory = tempfile::tempdir().unwrap();
    let launcher = launcher_without(&directory, steps, 1);
    // The first is a cold one, and tells the pool what to keep.
    drop(prepare(&launcher).unwrap());
    await_pool(&launcher, 1);
    prepare(&launcher).unwrap().confinement().clone()
}

/// One test for each row: leaving the step out opens exactly these layers and leaves this level.
macro_rules! gaps {
    ($($test:ident: $step:ident => [$($layer:ident),+], $level:ident;)+) => {
        /// The steps whose absence is measured.
        const GAPS: &[Step] = &[$(Step::$step),+];
        $(
            #[test]
            fn $test() {
                if !skipped_without_root(stringify!($test)) {
                    opens_exactly(Step::$step, &[$(Layer::$layer),+], Level::$level);
                }
            }
        )+
    };
}

gaps! {
    without_close_descriptors: CloseDescriptors => [Descriptors], Partial;
    without_join_memory: JoinMemory => [Memory], Partial;
    without_join_pids: JoinPids => [Pids], Partial;
    without_join_cpu: JoinCpu => [Cpu], Partial;
    without_limits: Limits => [Rlimits], Partial;
    without_unshare_cgroup: UnshareCgroup => [CgroupNs], Partial;
    without_unshare_ipc: UnshareIpc => [Ipc], Partial;
    without_unshare_uts: UnshareUts => [Uts], Partial;
    without_unshare_net: UnshareNet => [Net], Partial;
    without_unshare_pid: UnsharePid => [Pid], Partial;
    without_session: Session => [Terminal], Partial;
    without_root_flags: RootFlags => [MountFlags], Partial;
    without_hostname: Hostname => [Uts], Partial;
    without_bounding: Bounding => [Caps], None;
    without_groups: Groups => [Uid], Partial;
    without_gid: Gid => [Uid], Partial;
    without_uid: Uid => [Uid], Partial;
    without_capabilities: Capabilities => [Caps], None;
    without_dumpable: Dumpable => [Dumpable], Partial;
    without_parent_death: ParentDeath => [ParentDeath], Partial;
    without_landlock_fs: LandlockFs => [LandlockFs], Partial;
    without_landlock_net: LandlockNet => [LandlockNet], Partial;
    without_landlock_scope: LandlockScope => [LandlockScope], Partial;
    without_seccomp: Seccomp => [Seccomp], None;
    // Steps whose results are what is measured: without them nothing is proven, so nothing counts as held.
    without_open_namespaces: OpenNamespaces => [Mount, Pid, Net, Ipc, Uts, CgroupNs], Partial;
    without_canaries_before: CanariesBefore => [Seccomp, LandlockFs, LandlockNet, LandlockScope], None;
}

fn opens_exactly(step: Step, layers: &[Layer], level: Level) {
    let _burden = burden();
    for confinement in [measured_without(&[step]), measured_warm_without(&[step])] {
        let gaps: Vec<Layer> = confinement.gaps.iter().map(|gap| gap.layer).collect();
        assert_eq!(gaps, layers, "{:?}", confinement.gaps);
        assert_eq!(confinement.level, level);
        assert!(!confinement.satisfies(Level::Full));
    }
}

/// Gives this process what the stage must take away: a group, an inheritable capability, a descriptor that exec keeps.
/// Without them the steps that take them away would have nothing to show.
fn burden() -> OwnedFd {
    nix::unistd::setgroups(&[nix::unistd::Gid::from_raw(4242)]).unwrap();
    let permitted = caps::read(None, caps::CapSet::Permitted).unwrap();
    caps::set(None, caps::CapSet::Inheritable, &permitted).unwrap();
    rustix::fs::open(
        "/etc",
        rustix::fs::OFlags::RDONLY,
        rustix::fs::Mode::empty(),
    )
    .unwrap()
}

/// Steps that do not restrict, or without which the next one cannot work, and how the launch fails without them.
const FAILURES: &[(Step, &str)] = &[
    (
        Step::SpawnInner,
        "the stage did not answer: the other side closed the socket",
    ),
    (
        Step::UnshareMount,
        "stage step mounts: mount namespace: still in the supervisor's",
    ),
    (Step::Mounts, "stage step pivot: "),
    (
        Step::Pivot,
        "stage step pivot: /: the root is not the one that was built",
    ),
    (Step::NoNewPrivs, "stage step landlock-fs: restrict: "),
    (Step::Report, "the stage did not answer: "),
];

/// Steps that carry what the stage works with; there is no stage without them.
const GIVEN: &[Step] = &[Step::ReceivePlan, Step::ReceiveTrees, Step::Start];

/// Steps of a plain user's launch.
const PLAIN: &[Step] = &[
    Step::UnshareUser,
    Step::Subreaper,
    Step::Mark,
    Step::Processes,
];

#[test]
fn every_step_is_in_one_of_the_lists() {
    let listed = |step: &Step| {
        GAPS.iter().filter(|of| *of == step).count()
            + FAILURES.iter().filter(|(of, _)| of == step).count()
            + GIVEN.iter().filter(|of| *of == step).count()
            // Not taken by root: see the tests of launches without privileges and without namespaces.
            + usize::from(PLAIN.contains(step))
            // Leaving it out grants nothing: see the test of its own.
            + usize::from(*step == Step::OpenRules)
    };
    for step in Step::ALL {
        assert_eq!(listed(step), 1, "{step}");
    }
}

#[test]
fn leaving_another_step_out_fails_the_launch_with_an_error_that_names_a_step() {
    if skipped_without_root("leaving_another_step_out") {
        return;
    }
    for (step, text) in FAILURES {
        let error = prepare_without(&[*step]).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(text), "without {step}: {error}");
    }
}

#[test]
fn no_rules_allow_nothing() {
    if skipped_without_root("no_rules_allow_nothing") {
        return;
    }
    let prepared = prepare_without(&[Step::OpenRules]).unwrap();
    assert_eq!(prepared.confinement().gaps, []);
    let ended = prepared.start().unwrap().wait(Duration::from_secs(30));
    assert_eq!(ended.cause, ExitCause::NotStarted);
    let detail = ended.detail.unwrap();
    assert!(
        detail.contains("Permission denied (os error 13)"),
        "{detail}"
    );
}

#[test]
fn privileges_that_can_still_grow_are_seen_once_nothing_else_needs_the_bit() {
    if skipped_without_root("privileges_that_can_still_grow") {
        return;
    }
    let without = [
        Step::NoNewPrivs,
        Step::LandlockFs,
        Step::LandlockNet,
        Step::LandlockScope,
        Step::Seccomp,
    ];
    let confinement = measured_without(&without);
    assert_eq!(
        confinement.gap(Layer::Nnp).unwrap().reason,
        "the bit is not set"
    );
    assert_eq!(confinement.gaps.len(), 5);
    assert_eq!(confinement.level, Level::None);
}

#[test]
fn leaving_no_step_out_is_full() {
    if skipped_without_root("leaving_no_step_out") {
        return;
    }
    for confinement in [measured_without(&[]), measured_warm_without(&[])] {
        assert_eq!(confinement.gaps, []);
        assert!(confinement.satisfies(Level::Full));
    }
}

/// A profile's `exec` may match more programs than a process may have descriptors.
#[test]
fn there_may_be_more_rules_than_descriptors() {
    if skipped_without_root("there_may_be_more_rules_than_descriptors") {
        return;
    }
    let mut many = plan(&["/usr/bin/sh", "-c", "exit 3"]);
    many.limits.files = 64;
    for program in fs::read_dir("/usr/bin").unwrap().take(300) {
        many.landlock.push(LandlockRule {
            path: program.unwrap().path().display().to_string(),
            rule: Rule::Execute,
        });
    }
    assert!(many.landlock.len() > 200);
    let launcher = launcher_with_pool(&binary("boxmaker-stage"), "rules", 0);
    let (ends, _output) = stdio();
    let prepared = launcher
        .prepare(many, Vec::new(), ends, IdentityChoice::Fresh)
        .unwrap();
    assert_eq!(prepared.confinement().gaps, []);
    let ended = prepared.start().unwrap().wait(Duration::from_secs(30));
    assert_eq!(ended.exit, Some(ExitStatus::Code(3)));
}
