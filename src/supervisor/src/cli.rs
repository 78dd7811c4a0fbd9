//! The command line of `boxmaker`: what was asked for, and the exit status. 0 done, 1 refused or failed, 2 usage or
//! unusable input.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ipc::place::Place;
use lexopt::prelude::*;

use crate::demo;
use crate::doctor;
use crate::explain::{self, ExplainError, Question};
use crate::in_full;
use crate::load::Directories;
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
  boxmaker demo [--state DIR]
      Build a small system below DIR (default .state), start it, and make calls, some of which must fail.
  boxmaker --help | --version

  --home DIR    where state is kept (or BOXMAKER_HOME; default /var/lib/boxmaker, for a plain user
                ~/.local/state/boxmaker)
  --config DIR  the configuration (or BOXMAKER_CONFIG; default /etc/boxmaker, for a plain user ~/.config/boxmaker)

The owner talks to a running boxmaker with bxctl.
Exit status: 0 done, 1 refused or failed, 2 usage or unusable input.
";

/// The commands by their names.
const COMMANDS: [&str; 4] = ["up", "explain", "doctor", "demo"];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Help,
    Version,
    Up(Places),
    Explain(Places, Question),
    Demo(PathBuf),
    Doctor(Places, bool),
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
    match parse(lexopt::Parser::from_env()) {
        Ok(command) => run(command),
        Err(error) => fail(
            2,
            &format!("{error}\n  boxmaker --help lists the commands and their options"),
        ),
    }
}

fn run(command: Command) -> ExitCode {
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

fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let Some(first) = parser.next()? else {
        return Err("a command is missing".into());
    };
    match first {
        Long("help") | Short('h') => Ok(Command::Help),
        Long("version") | Short('V') => Ok(Command::Version),
        Value(command) => match command.to_str() {
            Some("up") => parse_up(parser),
            Some("explain") => parse_explain(parser),
            Some("demo") => parse_demo(parser),
            Some("doctor") => parse_doctor(parser),
            other => {
                let near = other.and_then(|name| policy::nearest(name, COMMANDS.iter().copied()));
                let meant = did_you_mean(near);
                Err(format!("there is no command {command:?}{meant}").into())
            }
        },
        other => Err(unexpected(&other, &["help", "version"])),
    }
}

fn parse_up(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut places = Places::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("home") => places.home = Some(parser.value()?.into()),
            Long("config") => places.config = Some(parser.value()?.into()),
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(unexpected(&other, &["home", "config"])),
        }
    }
    Ok(Command::Up(places))
}

fn parse_explain(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut places = Places::default();
    let (mut tool, mut grant, mut arguments, mut json) = (None, None, None, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("home") => places.home = Some(parser.value()?.into()),
            Long("config") => places.config = Some(parser.value()?.into()),
            Long("grant") => grant = Some(parser.value()?.parse()?),
            Long("args") => arguments = Some(text(parser.value()?)?),
            Long("json") => json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            Value(name) if tool.is_none() => tool = Some(name.parse()?),
            other => {
                return Err(unexpected(
                    &other,
                    &["grant", "args", "json", "home", "config"],
                ));
            }
        }
    }
    let Some(tool) = tool else {
        return Err("explain needs the name of a tool".into());
    };
    let question = Question {
        tool,
        grant,
        arguments: arguments.unwrap_or_else(|| "{}".to_owned()),
        json,
    };
    Ok(Command::Explain(places, question))
}

fn parse_demo(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut state = PathBuf::from(".state");
    while let Some(argument) = parser.next()? {
        match argument {
            Long("state") => state = parser.value()?.into(),
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(unexpected(&other, &["state"])),
        }
    }
    Ok(Command::Demo(state))
}

fn parse_doctor(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut places, mut json) = (Places::default(), false);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("config") => places.config = Some(parser.value()?.into()),
            Long("json") => json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(unexpected(&other, &["json", "config"])),
        }
    }
    Ok(Command::Doctor(places, json))
}

/// An argument that this command does not take, with the option that it may have been meant to be.
fn unexpected(argument: &lexopt::Arg<'_>, options: &[&str]) -> lexopt::Error {
    let text = match argument {
        Long(name) => {
            let near = policy::nearest(name, options.iter().copied().chain(["help"]));
            let near = near.map(|name| format!("--{name}"));
            format!(
                "there is no option --{name} here{}",
                did_you_mean(near.as_deref())
            )
        }
        Short(letter) => format!("there is no option -{letter} here"),
        Value(word) => format!("{word:?} is one word too many"),
    };
    text.into()
}

/// The question at the end of a sentence about a word that is not known; nothing where no word is near.
fn did_you_mean(word: Option<&str>) -> String {
    word.map_or_else(String::new, |word| format!("; did you mean {word}?"))
}

fn text(value: OsString) -> Result<String, lexopt::Error> {
    value.into_string().map_err(lexopt::Error::NonUnicodeValue)
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

#[cfg(test)]
mod tests {
    use proto::{GrantId, ToolName};

    use super::*;

    fn parsed(words: &[&str]) -> Result<Command, String> {
        parse(lexopt::Parser::from_args(words)).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_read_with_their_options() {
        assert_eq!(parsed(&["--help"]), Ok(Command::Help));
        assert_eq!(parsed(&["up", "--help"]), Ok(Command::Help));
        assert_eq!(parsed(&["-V"]), Ok(Command::Version));
        let doctor = Command::Doctor(Places::default(), true);
        assert_eq!(parsed(&["doctor", "--json"]), Ok(doctor));
        assert_eq!(parsed(&["demo"]), Ok(Command::Demo(".state".into())));
        let demo = Command::Demo("/s".into());
        assert_eq!(parsed(&["demo", "--state", "/s"]), Ok(demo));
        let places = Places {
            home: Some("/h".into()),
            config: Some("/c".into()),
        };
        assert_eq!(
            parsed(&["up", "--home", "/h", "--config=/c"]),
            Ok(Command::Up(places))
        );
        let question = Question {
            tool: ToolName::new("fs_read").unwrap(),
            grant: Some(GrantId::new("notes").unwrap()),
            arguments: r#"{"path":"a"}"#.to_owned(),
            json: true,
        };
        let words = [
            "explain",
            "fs_read",
            "--grant",
            "notes",
            "--args",
            r#"{"path":"a"}"#,
            "--json",
        ];
        assert_eq!(
            parsed(&words),
            Ok(Command::Explain(Places::default(), question))
        );
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error_that_names_it() {
        for (words, says) in [
            (&[] as &[&str], "a command is missing"),
            (&["down"], "there is no command \"down\""),
            (&["docter"], "\"docter\"; did you mean doctor?"),
            (&["up", "now"], "\"now\" is one word too many"),
            (&["up", "--quick"], "there is no option --quick here"),
            (
                &["up", "--confg", "/c"],
                "--confg here; did you mean --config?",
            ),
            (&["explain", "a", "--arg", "{}"], "did you mean --args?"),
            (&["doctor", "--home", "/h"], "--home here"),
            (&["demo", "-x"], "no option -x here"),
            (&["explain"], "needs the name of a tool"),
            (&["explain", "No Tool"], "tool name"),
            (&["explain", "a", "b"], "b"),
            (&["--quick"], "--quick"),
        ] {
            let error = parsed(words).unwrap_err();
            assert!(error.contains(says), "{words:?}: {error}");
        }
    }
}
