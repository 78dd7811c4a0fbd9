//! `boxmaker-misbehave`: a tool that tries to do harm and says what the kernel answered.
//!
//! For the demo and the tests. It takes one JSON object, `{"acts": ["socket", "shadow", …], …}`, does the acts in that
//! order and writes one JSON object a line: `{"act", "object", "outcome", "detail"?}`, where the outcome is `ok` or the
//! name of the error. It knows of no sandbox: outside one the acts succeed as far as the user's rights go, and it
//! takes back what it did, so that a refusal inside can be compared with a success outside. Called with `--touch PATH`
//! it creates that file before it reads a byte of input, which shows whether any code of a tool has run.

mod act;
mod files;
mod inspect;
mod processes;
mod report;

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use act::Arguments;
use report::Report;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let text: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
    match *text.as_slice() {
        [] => {}
        ["--touch", path] => {
            if let Err(error) = Report::stdout().touch(Path::new(path)) {
                return complain(&format!("cannot write to standard output: {error}"));
            }
        }
        ["--wait"] => return processes::wait_for_end(),
        ["--linger", ms] => return processes::linger(ms.parse().unwrap_or(0)),
        _ => {
            return complain(&format!(
                "usage: boxmaker-misbehave [--touch PATH] < arguments.json\n{}",
                act::help()
            ));
        }
    }
    let mut input = Vec::new();
    if let Err(error) = io::stdin().read_to_end(&mut input) {
        return complain(&format!("cannot read standard input: {error}"));
    }
    let arguments = match Arguments::parse(&input) {
        Ok(arguments) => arguments,
        Err(error) => return complain(&format!("{error}\n{}", act::help())),
    };
    let mut report = Report::stdout();
    for act in &arguments.acts {
        if let Err(error) = act.perform(&arguments, &mut report) {
            return complain(&format!("cannot write to standard output: {error}"));
        }
    }
    ExitCode::SUCCESS
}

/// Standard error may be closed; the exit status then says it alone.
fn complain(text: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "boxmaker-misbehave: {}", text.trim_end());
    ExitCode::from(2)
}
