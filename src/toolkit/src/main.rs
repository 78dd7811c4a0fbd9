//! `toolkit TOOL`: one JSON object on standard input, the result on standard output, errors on standard error.

use std::io::{self, Write};
use std::process::ExitCode;

use toolkit::{Failure, TOOLS, Tool, read_input};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(word), None) = (words.next(), words.next()) else {
        return usage("one word is needed, the name of a tool");
    };
    match word.to_str() {
        Some("--help" | "-h") => match write!(io::stdout(), "{}", help()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Some(name) => match Tool::named(name) {
            Some(tool) => run(tool),
            None => usage(&format!("there is no tool {name:?}")),
        },
        None => usage("the name of a tool is UTF-8"),
    }
}

fn run(tool: &Tool) -> ExitCode {
    // Collected first: an error must not leave half a result on standard output.
    let mut result = Vec::new();
    let done = read_input(io::stdin().lock())
        .map_err(Failure::from)
        .and_then(|input| tool.run(&input, &mut result))
        .and_then(|()| {
            let mut out = io::stdout().lock();
            out.write_all(&result)
                .and_then(|()| out.flush())
                .map_err(Failure::Output)
        });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => complain(&format!("{}: {failure}\n", tool.name), 1),
    }
}

fn usage(what: &str) -> ExitCode {
    complain(&format!("toolkit: {what}\n{}", help()), 2)
}

/// Standard error may be closed; the exit status then says it alone.
fn complain(text: &str, status: u8) -> ExitCode {
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(status)
}

fn help() -> String {
    let mut text = String::from(
        "usage: toolkit TOOL < arguments.json\nOne JSON object on standard input, the result on standard output.\n",
    );
    for tool in TOOLS {
        text.push_str(&format!("  {:9} {}\n", tool.name, tool.about));
    }
    text
}
