//! A stage that leaves out steps, or parts of them: those that its own name lists (`without.landlock-fs.seccomp`), and those that stand in
//! a file beside it (`boxmaker-stage.without`). It exists for the tests that prove that every step is measured; no part
//! of boxmaker starts it, and `boxmaker-stage` has no such choice.

use std::process::ExitCode;
use std::sync::OnceLock;

use confine::stage::{self, Steps};

/// Read once, at the start: later the stage has left the tree that the file is in.
static LEFT_OUT: OnceLock<Vec<String>> = OnceLock::new();

fn main() -> ExitCode {
    let name = std::env::args().next().unwrap_or_default();
    let file = name.rsplit('/').next().unwrap_or_default();
    let beside = std::fs::read_to_string(format!("{name}.without")).unwrap_or_default();
    let words = file.split('.').skip(1).chain(beside.split_whitespace());
    let words = words.map(str::to_owned).collect();
    LEFT_OUT.get_or_init(|| words);
    stage::main(Steps::only(is_taken))
}

fn is_taken(name: &str) -> bool {
    LEFT_OUT
        .get()
        .is_none_or(|words| !words.iter().any(|word| word == name))
}
