//! `bxctl`, the owner's command line of boxmaker; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    bxctl::main(std::env::args_os())
}
