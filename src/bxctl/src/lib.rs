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
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help is no error: clap prints it to standard output and says 0. Nobody to tell if it cannot be printed.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2).into();
        }
    };
    let screen = Screen::standard();
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
        Command::Status => {
            let reply = Broker::connect(&place.socket())?.status()?;
            if json {
                screen.json(&reply)?;
            } else {
                screen.print(&status::text(&reply, now, width, colour))?;
            }
        }
        Command::Grants(words) => {
            let policy = configuration::load(&place.config, now)?.policy;
            let tool = words.tool.as_ref();
            if json {
                screen.json(&grants::document(&policy, tool, now))?;
            } else if !grants::any(&policy, tool) {
                screen.remark(
                    "bxctl: there is no such grant, and what no grant covers does not run\n",
                );
            } else {
                screen.print(&grants::table(&policy, tool, now).render(width, colour))?;
            }
        }
        Command::Tools => {
            let policy = configuration::load(&place.config, now)?.policy;
            if json {
                screen.json(&tools::document(&policy))?;
            } else {
                screen.print(&tools::table(&policy).render(width, colour))?;
            }
        }
    }
    Ok(Done::Well)
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
        screen.print(&verdict.text())?;
        if verdict.ok {
            // Which configuration it was: a plain user's own, or the host's.
            screen.print(&format!("checked: {}\n", place.config.display()))?;
        }
    }
    Ok(if verdict.ok {
        Done::Well
    } else {
        Done::Refused
    })
}
