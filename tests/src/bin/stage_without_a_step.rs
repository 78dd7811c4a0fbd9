//! A stage that leaves out the steps that its own name lists: `without.landlock-fs.seccomp`. It exists for the tests
//! that prove that every step is measured; no part of boxmaker starts it, and `boxmaker-stage` has no such choice.

use std::process::ExitCode;

use confine::Step;
use confine::stage::{self, Steps};

fn main() -> ExitCode {
    stage::main(Steps::only(is_taken))
}

fn is_taken(step: Step) -> bool {
    let name = std::env::args().next().unwrap_or_default();
    let file = name.rsplit('/').next().unwrap_or_default();
    file.split('.')
        .skip(1)
        .all(|left_out| left_out != step.as_str())
}
