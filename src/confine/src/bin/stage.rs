//! `boxmaker-stage`: confines itself, reports what holds, then starts one program. Started by the supervisor only.

use std::process::ExitCode;

use confine::stage::{self, Steps};

fn main() -> ExitCode {
    stage::main(Steps::ALL)
}
