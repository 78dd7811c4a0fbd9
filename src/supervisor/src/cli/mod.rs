//! The command line of `boxmaker`: what was asked for, and the exit status. 0 done, 1 refused or failed, 2 usage or
//! unusable input.

mod parse;

use std::path::PathBuf;
use std::process::ExitCode;

use ipc::place::Place;

use crate::demo;
use crate::doctor;
use crate::explain::{self, ExplainError, Question};
use crate::in_full;
use crate::load::Directories;
use crate::run::{self, Request, Status};
use crate::up::{self, UpError};
use crate::voice;

const HELP: &str = "\
boxmaker: runs an agent's tools in sandboxes, as the owner's grants allow

  boxmaker up [--home DIR] [--config DIR]
      Start everything, in the foreground, until SIGTERM or SIGINT.
  boxmaker explain TOOL [--grant ID] [--args JSON] [--json] [--home DIR] [--config DIR]
      Print the plan of the sandbox that this call would get, and what this host makes of it for you: level and gaps.
      Nothing is started in it.
  boxmaker doctor [--json] [--config DIR]
      Say what this host can enforce, layer by layer, and how to get the rest.
  boxmaker run [--profile P] [--allow BUDGET] [--timeout T] [--confinement LEVEL] [--json] [--home DIR] [--config DIR]
               -- PROGRAM ARG…
      Run one program in a sandbox, with its streams and what BUDGET says: fs:read:PATH, fs:write:PATH, env:NAME, with
      commas between. Everything after -- is the program's. Needs no running boxmaker; its log is in a home of its own.
  boxmaker demo [--state DIR]
      Build a small system below DIR (default .state), start it, and make calls, some of which must fail.
  boxmaker --help | --version

  --home DIR    where state is kept (or BOXMAKER_HOME; default /var/lib/boxmaker, for a plain user
                ~/.local/state/boxmaker)
  --config DIR  the configuration (or BOXMAKER_CONFIG; default /etc/boxmaker, for a plain user ~/.config/boxmaker)

The owner talks to a running boxmaker with bxctl.
Exit status: 0 done, 1 refused or failed, 2 usage or unusable input. `boxmaker run` has that of its program; 124 if its
time was up, 125 if it was refused, 126 and 127 if it could not be executed or was not found.
";

/// The commands by their names.
const COMMANDS: [&str; 5] = ["up", "explain", "doctor", "demo", "run"];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Help,
    Version,
    Up(Places),
    Explain(Places, Question),
    Demo(PathBuf),
    Doctor(Places, bool),
    Run(Places, Box<Request>),
}

/// The directories that were named on the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    home: Option<PathBuf>,
    config: Option<PathBuf>,
}

/// Runs the program with the arguments of its process.
#[must_use]
pub fn main() -> ExitCode {
    match parse::parse(lexopt::Parser::from_env()) {
        Ok(command) => obey(command),
        Err(error) => fail(
            2,
            &format!("{error}\n  boxmaker --help lists the commands and their options"),
        ),
    }
}

fn obey(command: Command) -> ExitCode {
    match command {
        Command::Help => print!("{HELP}"),
        Command::Version => println!("boxmaker {}", env!("CARGO_PKG_VERSION")),
        Command::Up(places) => {
            let directories = match directories(places) {
                Ok(directories) => directories,
                Err(error) => return fail(1, &error),
            };
            match up::up(&directories) {
                Ok(()) => {}
                Err(error @ UpError::Config(_)) => return fail(2, &error.to_string()),
                Err(error) => return fail(1, &error.told()),
            }
        }
        Command::Demo(state) => {
            // What it configures must be writable by its owner alone, whatever this user's umask is.
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
            return demo::run(&state);
        }
        Command::Doctor(places, json) => {
            let directories = match directories(places) {
                Ok(directories) => directories,
                Err(error) => return fail(1, &error),
            };
            match doctor::examine(&directories) {
                Ok(diagnosis) if json => println!("{}", doctor::json(&diagnosis)),
                Ok(diagnosis) => print!("{}", doctor::words(&diagnosis)),
                Err(error) => return fail(1, &in_full(&error)),
            }
        }
        Command::Run(places, request) => {
            let directories = match directories(places) {
                Ok(directories) => directories,
                Err(error) => return fail(125, &error),
            };
            return match run::run(&directories, &request) {
                Status::Code(code) => ExitCode::from(code),
                Status::Signal(signal) => {
                    // It ends this process; where it cannot, the status says it.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
                }
            };
        }
        Command::Explain(places, question) => {
            let directories = match directories(places) {
                Ok(directories) => directories,
                Err(error) => return fail(1, &error),
            };
            match explain::explain(&directories, &question) {
                Ok(text) => print!("{text}"),
                Err(error @ (ExplainError::Config(_) | ExplainError::Forbidden(_))) => {
                    return fail(2, &error.to_string());
                }
                Err(error) => return fail(1, &in_full(&error)),
            }
        }
    }
    ExitCode::SUCCESS
}

fn fail(status: u8, message: &str) -> ExitCode {
    voice::remark(message);
    ExitCode::from(status)
}

/// The directories that count: the command line, then the environment, then the default.
fn directories(places: Places) -> Result<Directories, String> {
    let environment = |name: &str| std::env::var_os(name);
    let default = match rustix::process::geteuid().is_root() {
        true => Some(Place::of_host()),
        false => Place::of_user(environment),
    };
    let named_both = |places: &Places| places.home.is_some() && places.config.is_some();
    let default = match default {
        Some(place) => place,
        None if named_both(&places) => Place::of_host(),
        None => return Err("HOME is not set: name --home and --config".to_owned()),
    };
    let place = default.unless_named(places.home, places.config, environment);
    let whole = |path: PathBuf| {
        std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let own = std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    Ok(Directories {
        home: whole(place.home)?,
        config: whole(place.config)?,
        binaries: own.parent().map_or_else(|| "/".into(), PathBuf::from),
    })
}
