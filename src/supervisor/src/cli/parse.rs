//! The words of the command line: what was asked for, or what is wrong with the question.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;
use policy::budget::Budget;
use proto::Level;

use super::{COMMANDS, Command, Places};
use crate::explain::Question;
use crate::run::Request;

/// Reads them all.
///
/// # Errors
/// The first word that makes no sense, with what it may have been meant to be.
pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
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
            Some("run") => parse_run(parser),
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

/// Everything after `--` is the program's, whatever it looks like.
fn parse_run(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let words: Vec<OsString> = parser.raw_args()?.collect();
    let end = words.iter().position(|word| word == "--");
    let Some(end) = end else {
        if let [only] = words.as_slice()
            && ["--help", "-h"].contains(&only.to_str().unwrap_or_default())
        {
            return Ok(Command::Help);
        }
        return Err("the program stands after --, for example: boxmaker run -- ls".into());
    };
    let (own, rest) = words.split_at(end);
    let mut parser = lexopt::Parser::from_args(own);
    let mut places = Places::default();
    let mut request = Request {
        profile: "tools/base".to_owned(),
        budget: Budget::default(),
        timeout: None,
        level: None,
        json: false,
        home: None,
        words: rest.get(1..).unwrap_or_default().to_vec(),
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("home") => request.home = Some(parser.value()?.into()),
            Long("config") => places.config = Some(parser.value()?.into()),
            Long("profile") => request.profile = text(parser.value()?)?,
            Long("allow") => {
                let written = text(parser.value()?)?;
                request
                    .budget
                    .add(Budget::parse(&written).map_err(|error| error.to_string())?);
            }
            Long("timeout") => {
                let written = text(parser.value()?)?;
                request.timeout = Some(duration(&written)?);
            }
            Long("confinement") => {
                let written = text(parser.value()?)?;
                request.level = Some(level(&written)?);
            }
            Long("json") => request.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => {
                return Err(unexpected(
                    &other,
                    &[
                        "profile",
                        "allow",
                        "timeout",
                        "confinement",
                        "json",
                        "home",
                        "config",
                    ],
                ));
            }
        }
    }
    if request.words.is_empty() {
        return Err("after -- stands the program".into());
    }
    Ok(Command::Run(places, Box::new(request)))
}

fn duration(text: &str) -> Result<Duration, lexopt::Error> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(format!("--timeout {text:?} is no time; write 30s, 5m or 1h30m").into()),
    }
}

fn level(text: &str) -> Result<Level, lexopt::Error> {
    match text {
        "full" => Ok(Level::Full),
        "partial" => Ok(Level::Partial),
        _ => Err(format!(
            "--confinement {text:?} is no level that a run may have; write full or partial"
        )
        .into()),
    }
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
    fn a_run_takes_its_own_options_and_leaves_the_rest_to_the_program() {
        let words = [
            "run",
            "--allow",
            "fs:read:a",
            "--allow=env:B",
            "--timeout",
            "90s",
            "--confinement",
            "partial",
            "--json",
            "--",
            "ls",
            "--json",
            "--",
            "-h",
        ];
        let request = Request {
            profile: "tools/base".to_owned(),
            budget: Budget::parse("fs:read:a,env:B").unwrap(),
            timeout: Some(Duration::from_secs(90)),
            level: Some(Level::Partial),
            json: true,
            home: None,
            words: ["ls", "--json", "--", "-h"].map(OsString::from).to_vec(),
        };
        let run = Command::Run(Places::default(), Box::new(request));
        assert_eq!(parsed(&words), Ok(run));
        assert_eq!(parsed(&["run", "--help"]), Ok(Command::Help));
        for (words, says) in [
            (&["run", "ls"] as &[&str], "stands after --"),
            (&["run", "--"], "after -- stands the program"),
            (&["run", "ls", "--", "-l"], "\"ls\" is one word too many"),
            (
                &["run", "--alow", "io", "--", "ls"],
                "did you mean --allow?",
            ),
            (&["run", "--timeout", "0s", "--", "ls"], "is no time"),
            (&["run", "--confinement", "none", "--", "ls"], "is no level"),
            (
                &["run", "--allow", "net", "--", "ls"],
                "no host can be reached",
            ),
        ] {
            let error = parsed(words).unwrap_err();
            assert!(error.contains(says), "{words:?}: {error}");
        }
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
