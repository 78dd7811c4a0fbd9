//! What becomes of signals: the stage blocks what it waits for and ignores what would end it, and none of that is its
//! program's.

use boxmaker_tests::binaries::skipped_without_root;
use std::fs;

use crate::room::{Granted, plan, prepare, run};

const NONE: &str = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";

#[test]
fn no_signal_of_a_program_is_blocked_or_ignored() {
    if skipped_without_root("no_signal_of_a_program") {
        return;
    }
    let granted = Granted::new();
    let words = ["/usr/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"];
    let (prepared, ends) = prepare(plan(&words, &granted), &granted, false);
    let stage = fs::read_to_string(format!("/proc/{}/status", prepared.pid())).unwrap();
    assert!(!stage.contains("SigBlk:\t0000000000000000"), "{stage}");
    let (status, stdout, stderr) = run(prepared, ends, "");
    assert_eq!(status, 0, "{stderr}");
    // The C library ignores two signals of its own in every program that it starts.
    let told = stdout.replace("SigIgn:\t0000000180000000", "SigIgn:\t0000000000000000");
    assert_eq!(told, NONE);
}
