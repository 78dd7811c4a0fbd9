//! Every restricting step of the stage is measured: leaving any one out makes exactly its layer a gap, lowers the
//! level, and a launch that requires `full` does not pass. Leaving out any other step fails the launch with that
//! step's error, or with the error of the step that first misses it.

use std::path::PathBuf;

use boxmaker_tests::binaries::{binary, skipped_without_root};
use boxmaker_tests::sandbox::{launcher, plan, stdio};
use confine::Step;
use confine::launch::{IdentityChoice, LaunchError, Prepared};
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

fn prepare_without(steps: &[Step]) -> Result<Prepared, LaunchError> {
    let directory = tempfile::tempdir().unwrap();
    let stage = stage_without(&directory, steps);
    let launcher = launcher(&stage, steps.first().map_or("all", |step| step.as_str()));
    let (ends, _output) = stdio();
    launcher.prepare(
        plan(&["/usr/bin/true"]),
        Vec::new(),
        ends,
        IdentityChoice::Fresh,
    )
}

fn measured_without(steps: &[Step]) -> Confinement {
    prepare_without(steps).unwrap().confinement().clone()
}

/// The layers that leaving `step` out must open.
const GAPS: &[(Step, &[Layer], Level)] = &[
    (Step::JoinMemory, &[Layer::Memory], Level::Partial),
    (Step::JoinPids, &[Layer::Pids], Level::Partial),
    (Step::JoinCpu, &[Layer::Cpu], Level::Partial),
    (Step::Limits, &[Layer::Rlimits], Level::Partial),
    (Step::UnshareCgroup, &[Layer::CgroupNs], Level::Partial),
    (Step::UnshareIpc, &[Layer::Ipc], Level::Partial),
    (Step::UnshareNet, &[Layer::Net], Level::Partial),
    (Step::UnsharePid, &[Layer::Pid], Level::Partial),
    (Step::Session, &[Layer::Terminal], Level::Partial),
    (Step::RootFlags, &[Layer::MountFlags], Level::Partial),
    (Step::Bounding, &[Layer::Caps], Level::None),
    (Step::Gid, &[Layer::Uid], Level::Partial),
    (Step::Uid, &[Layer::Uid], Level::Partial),
    (Step::Dumpable, &[Layer::Dumpable], Level::Partial),
    (Step::ParentDeath, &[Layer::ParentDeath], Level::Partial),
    (Step::LandlockFs, &[Layer::LandlockFs], Level::Partial),
    (Step::LandlockNet, &[Layer::LandlockNet], Level::Partial),
    (Step::LandlockScope, &[Layer::LandlockScope], Level::Partial),
    (Step::Seccomp, &[Layer::Seccomp], Level::None),
];

#[test]
fn leaving_one_restricting_step_out_opens_exactly_its_layer() {
    if skipped_without_root("leaving_one_restricting_step_out") {
        return;
    }
    for (step, layers, level) in GAPS {
        let confinement = measured_without(&[*step]);
        let gaps: Vec<Layer> = confinement.gaps.iter().map(|gap| gap.layer).collect();
        assert_eq!(gaps, *layers, "without {step}: {:?}", confinement.gaps);
        assert_eq!(confinement.level, *level, "without {step}");
        assert!(!confinement.satisfies(Level::Full), "without {step}");
    }
}

#[test]
fn leaving_no_step_out_is_full() {
    if skipped_without_root("leaving_no_step_out") {
        return;
    }
    let confinement = measured_without(&[]);
    assert_eq!(confinement.gaps, []);
    assert!(confinement.satisfies(Level::Full));
}
