//! Real launches: what is measured, what the program sees, how it ends. They need root and say so without it.

use std::time::Duration;

use boxmaker_tests::binaries::{binary, skipped_without_root};
use boxmaker_tests::sandbox::{launcher, plan, stdio};
use confine::launch::IdentityChoice;
use proto::Level;
use proto::audit::{ExitCause, ExitStatus};

const WALL: Duration = Duration::from_secs(30);

#[test]
fn a_sandbox_holds_every_layer_and_passes_the_programs_status_on() {
    if skipped_without_root("a_sandbox_holds_every_layer") {
        return;
    }
    let launcher = launcher(&binary("boxmaker-stage"), "full");
    let (ends, output) = stdio();
    let plan = plan(&["/usr/bin/sh", "-c", "id -u; exit 3"]);
    let prepared = launcher
        .prepare(plan, Vec::new(), ends, IdentityChoice::Fresh)
        .unwrap();
    let confinement = prepared.confinement().clone();
    assert_eq!(confinement.gaps, []);
    assert_eq!(confinement.level, Level::Full);
    let ended = prepared.start().unwrap().wait(WALL);
    let (stdout, stderr) = output.read();
    assert_eq!((stdout.trim(), stderr.as_str()), ("1879048208", ""));
    assert_eq!(ended.exit, Some(ExitStatus::Code(3)));
    assert_eq!(ended.cause, ExitCause::Exited);
}
