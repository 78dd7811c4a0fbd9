//! The owner's command line: asks brokerd over its socket, reads the configuration and the audit log, and prints what
//! it finds for people or as JSON. It decides nothing and holds no right that its user does not have.

pub mod arguments;
pub mod audit;
pub mod broker;
pub mod call;
pub mod check;
pub mod cli;
pub mod configuration;
pub mod failure;
pub mod grants;
pub mod moment;
pub mod pending;
pub mod place;
pub mod screen;
pub mod sessions;
pub mod status;
pub mod table;
pub mod tools;
pub mod visible;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Parser as _;
use confine::judged::Judged;
use proto::{Answer, Timestamp};

use crate::broker::Broker;
use crate::check::Verdict;
use crate::cli::{AuditCommand, Cli, Command};
use crate::failure::{Done, Failure};
use crate::place::Place;
use crate::screen::Screen;

/// Runs the command that `words` name (the program's name first) and prints what comes of it; the exit status is
/// 0 done, 1 refused or failed, 2 usage or unusable input. A call that a signal interrupts ends by that signal.
#[must_use]
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let screen = Screen::standard();
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            let status = u8::try_from(error.exit_code()).unwrap_or(2);
            if error.use_stderr() {
                screen.remark(&error.render().to_string());
            } else {
                // Help is no error. Nobody to tell if it cannot be printed.
                let _ = error.print();
            }
            return status.into();
        }
    };
    match run(cli, &screen) {
        Ok(Done::Well) => ExitCode::SUCCESS,
        Ok(Done::Refused) => ExitCode::from(1),
        Ok(Done::Interrupted(signal)) => call::interrupt::die(signal),
        Err(failure) => {
            if !failure.is_closed_pipe() {
                screen.failure(&failure.to_string());
            }
            failure.status().into()
        }
    }
}

fn run(cli: Cli, screen: &Screen) -> Result<Done, Failure> {
    let place = place::choose(cli.home, cli.config);
    let now = Timestamp::from(SystemTime::now());
    let (width, colour) = (screen.out.width, screen.out.colour);
    let json = cli.json;
    match cli.command {
        Command::Call(words) => return call::run(words, &place, screen, json),
        Command::Audit(AuditCommand::Verify) => return audit::verify::run(&place, screen, json),
        Command::Audit(AuditCommand::Show(words)) => {
            audit::show::run(&words, &place, now, screen, json)?;
        }
        Command::Pending => pending::run(&place, now, screen, json)?,
        Command::Approve(words) => {
            pending::answer(&words.id, Answer::Approved, &place, screen, json)?;
        }
        Command::Refuse(words) => {
            pending::answer(&words.id, Answer::Refused, &place, screen, json)?;
        }
        Command::Check => return check(&place, now, screen, json),
        Command::Sessions => {
            let reply = Broker::connect(&place.socket())?.sessions()?;
            if json {
                screen.json(&reply)?;
            } else if reply.sessions.is_empty() {
                screen.remark(
                    "bxctl: there is no session yet; `bxctl call` opens one for its call\n",
                );
            } else {
                screen.print(&sessions::table(&reply, now).render(width, colour))?;
            }
        }
        Command::Status => return status::run(&place, now, screen, json),
        Command::Grants(words) => {
            let policy = configuration::load(&place.config, now)?.policy;
            let tool = words.tool.as_ref();
            if json {
                screen.json(&grants::document(&policy, tool, now))?;
            } else if !grants::any(&policy, tool) {
                screen.remark(&grants::none(&policy, tool, &place.config));
            } else {
                screen.print(&grants::table(&policy, tool, now).render(width, colour))?;
            }
            if !json {
                remind(&place, screen);
            }
        }
        Command::Tools => {
            let policy = configuration::load(&place.config, now)?.policy;
            if json {
                screen.json(&tools::document(&policy))?;
            } else if policy.tools().next().is_none() {
                screen.remark(&format!(
                    "bxctl: there is no tool in {}; a tool is a file in its tools/\n",
                    place.config.display()
                ));
            } else {
                screen.print(&tools::table(&policy).render(width, colour))?;
            }
            if !json {
                remind(&place, screen);
            }
        }
    }
    Ok(Done::Well)
}

/// Says so if boxmaker runs with other files than those that were just shown.
fn remind(place: &Place, screen: &Screen) {
    let changed = status::changed(place);
    if !changed.is_empty() {
        screen.remark(&format!("bxctl: {}\n", configuration::stale(&changed)));
    }
}

fn check(place: &Place, now: Timestamp, screen: &Screen, json: bool) -> Result<Done, Failure> {
    let mut judged = Judged::of(&place.config, 1, now);
    let unreadable = std::mem::take(&mut judged.unreadable);
    let verdict = Verdict::of(judged, &place.config, &place::binaries());
    if !unreadable.is_empty() {
        return Err(configuration::failure(&place.config, unreadable, verdict.errors).into());
    }
    if json {
        screen.json(&verdict)?;
    } else {
        screen.say(&verdict.text())?;
        if verdict.ok {
            // Which configuration it was: a plain user's own, or the host's.
            screen.say(&format!("checked: {}\n", place.config.display()))?;
            remind(place, screen);
        }
    }
    Ok(if verdict.ok {
        Done::Well
    } else {
        Done::Refused
    })
}
