//! The process of the broker: becomes the role that its standard input says, and serves.

use std::process::ExitCode;

use ipc::role::Started;

fn main() -> ExitCode {
    let started = match Started::from_stdin("brokerd") {
        Ok(started) => started,
        Err(error) => {
            eprintln!("brokerd: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match brokerd::run(started) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("brokerd: {error}");
            ExitCode::FAILURE
        }
    }
}
