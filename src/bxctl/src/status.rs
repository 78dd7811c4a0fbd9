//! `bxctl status`: what the supervisor runs, and whether it can record; where nobody answers, what the files say.

mod stored;

use std::time::Duration;

use proto::client::StatusReply;
use proto::{Level, Timestamp};
use serde::Serialize;

use self::stored::Stored;
use crate::broker::{Broker, BrokerError};
use crate::failure::{Done, Failure};
use crate::moment;
use crate::place::Place;
use crate::screen::{Screen, Tone};
use crate::table::{Cell, Fit, Table};
use crate::visible;

/// The way out of a log that is as large as it may be.
const FULL: &str = ";\n            raise max_bytes in [audit] of config.toml and restart boxmaker, or\n            \
                    stop it and move audit/ and anchor away together: the next start\n            begins a new log";

/// How long an answer is waited for. brokerd asks the supervisor and no tool; one that starts again takes longer, and is
/// told from the files.
const SILENT: Duration = Duration::from_secs(5);

/// The answer of a broker as JSON.
#[derive(Debug, Serialize)]
struct Running<'a> {
    state: &'static str,
    #[serde(flatten)]
    reply: &'a StatusReply,
}

/// Prints the status; [`Done::Refused`] if nobody answers.
///
/// # Errors
/// This user may not ask, what is answered cannot be used, or nothing can be written.
pub fn run(place: &Place, now: Timestamp, screen: &Screen, json: bool) -> Result<Done, Failure> {
    let (width, colour) = (screen.out.width, screen.out.colour);
    match ask(place) {
        Ok(reply) if json => screen.json(&Running {
            state: "running",
            reply: &reply,
        })?,
        Ok(reply) => screen.print(&text(&reply, now, width, colour))?,
        Err(error) => {
            let stored = Stored::of(place, error)?;
            if json {
                screen.json(&stored)?;
            } else {
                screen.say(&stored.text(now, colour))?;
            }
            return Ok(Done::Refused);
        }
    }
    Ok(Done::Well)
}

/// The files of the configuration that are not what boxmaker runs with; none if it cannot be asked.
#[must_use]
pub fn changed(place: &Place) -> Vec<String> {
    ask(place).map(|reply| reply.changed).unwrap_or_default()
}

fn ask(place: &Place) -> Result<StatusReply, BrokerError> {
    Broker::connect(&place.socket())?.within(SILENT).status()
}

/// How far the anchor reaches, of `next` records.
fn anchored(anchored: u64, next: u64) -> String {
    match anchored {
        0 => "the anchor names no record yet".to_owned(),
        all if all == next => "the anchor names the last".to_owned(),
        behind => format!("the anchor names record {}", behind - 1),
    }
}

/// The way out of a log whose disk took a record only in part, or not.
const CLOSED: &str = ";\n            make room on its disk, or mend that, and restart boxmaker";

/// How far ahead the last record is before the clock is blamed: what was written while the answer came is no sign.
const AHEAD_MS: u64 = 60_000;

/// What a clock that is behind the log brings about.
const WENT_BACK: &str = "            the clock went back: records are of the last one's time, and grants\n            \
                         expire by it, until the clock has passed it\n";

/// The status in words, with a table of the roles; `width` and `colour` as the stream takes them.
#[must_use]
pub fn text(reply: &StatusReply, now: Timestamp, width: usize, colour: bool) -> String {
    let audit = &reply.audit;
    let last = audit
        .last
        .map_or_else(|| "none yet".to_owned(), |last| moment::ago(now, last));
    let log = match &audit.closed {
        None if audit.full => Tone::Bad.paint("full, no call can run", colour),
        None => Tone::Good.paint("open", colour),
        Some(why) => {
            let why = format!("closed, no call can run: {}", visible::line(why));
            Tone::Bad.paint(&why, colour)
        }
    };
    let mut size = format!(
        "            {} of at most {}; {}",
        visible::size(audit.bytes),
        visible::size(audit.max_bytes),
        anchored(audit.anchored, audit.next),
    );
    if audit.closed.is_some() {
        size.push_str(CLOSED);
    } else if audit.full {
        size.push_str(FULL);
    }
    size.push('\n');
    let ahead = |last: Timestamp| last.as_millis().saturating_sub(now.as_millis());
    if audit.last.is_some_and(|last| ahead(last) > AHEAD_MS) {
        size.push_str(WENT_BACK);
    }
    let changed = listed(&reply.changed, colour);
    let questions = match reply.questions {
        0 => String::new(),
        waiting => {
            let text = format!(
                "{} for you: bxctl pending",
                visible::count(waiting, "question")
            );
            format!("\nquestions   {}", Tone::Warning.paint(&text, colour))
        }
    };
    let mut roles = Table::new(&[
        ("role", Fit::Wrap),
        ("pid", Fit::Number),
        ("level", Fit::Whole),
        ("started", Fit::Whole),
        ("restarts", Fit::Number),
    ]);
    for role in &reply.roles {
        roles.row(vec![
            Cell::new(&role.role),
            role.pid.map_or_else(
                || Cell::new("down").tone(Tone::Bad),
                |pid| pid.to_string().into(),
            ),
            level(role.level),
            moment::ago(now, role.since).into(),
            role.restarts.to_string().into(),
        ]);
    }
    format!(
        "supervisor  started {}, policy generation {}\n{changed}\
         sandboxes   {} of tools now{questions}\n\
         audit log   {log}; {}, the last {last}\n{size}\n{}",
        moment::ago(now, reply.since),
        reply.generation,
        reply.sandboxes,
        visible::count(audit.next, "record"),
        roles.render(width, colour),
    )
}

/// The files that changed since the start, a line each; only some of many.
fn listed(files: &[String], colour: bool) -> String {
    const SHOWN: usize = 5;
    if files.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "            {}\n",
        Tone::Warning.paint("changed since; a restart of boxmaker loads it:", colour)
    );
    for file in files.iter().take(SHOWN) {
        text.push_str(&format!("            {}\n", visible::line(file)));
    }
    if files.len() > SHOWN {
        text.push_str(&format!("            and {} more\n", files.len() - SHOWN));
    }
    text
}

/// A level in its tone.
#[must_use]
pub fn level(level: Level) -> Cell {
    Cell::new(level.to_string()).tone(match level {
        Level::Full => Tone::Good,
        Level::Partial => Tone::Warning,
        Level::None => Tone::Bad,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(full: bool, closed: &str) -> StatusReply {
        reply_with(full, closed, "[]", 0)
    }

    fn reply_with(full: bool, closed: &str, changed: &str, questions: u64) -> StatusReply {
        serde_json::from_str(&format!(
            r#"{{"since": "2026-09-17T06:00:00.000Z", "generation": 2, "changed": {changed},
                "questions": {questions}, "sandboxes": 1, "roles": [{{"role": "brokerd",
                "pid": 4711, "since": "2026-09-17T08:00:00.000Z", "restarts": 1, "level": "full"}}],
                "audit": {{"next": 42, "last": "2026-09-17T08:04:18.000Z", "anchored": 42, "bytes": 65536, "max_bytes": 8589934592,
                "full": {full}, "closed": {closed}}}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn a_running_supervisor_is_told_in_words() {
        let now = "2026-09-17T08:05:00.000Z".parse().unwrap();
        assert_eq!(
            text(&reply(false, "null"), now, 80, false),
            "supervisor  started 2 h ago, policy generation 2\n\
             sandboxes   1 of tools now\n\
             audit log   open; 42 records, the last 42 s ago\n\
             \x20           64 KiB of at most 8 GiB; the anchor names the last\n\
             \n\
             role      pid  level  started    restarts\n\
             brokerd  4711  full   5 min ago         1\n"
        );
    }

    #[test]
    fn a_full_log_says_the_way_out_in_80_columns() {
        let now = "2026-09-17T08:05:00.000Z".parse().unwrap();
        let text = text(&reply(true, "null"), now, 80, false);
        assert!(
            text.contains("audit log   full, no call can run; 42 records"),
            "{text}"
        );
        assert!(text.contains("64 KiB of at most 8 GiB;"), "{text}");
        assert!(text.contains("raise max_bytes in [audit]"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn what_changed_and_who_waits_is_said_with_what_to_do() {
        let now = "2026-09-17T08:05:00.000Z".parse().unwrap();
        let files = r#"["grants/notes.toml", "tools/new.toml"]"#;
        let text = text(&reply_with(false, "null", files, 2), now, 80, false);
        assert!(
            text.starts_with(
                "supervisor  started 2 h ago, policy generation 2\n\
                 \x20           changed since; a restart of boxmaker loads it:\n\
                 \x20           grants/notes.toml\n\
                 \x20           tools/new.toml\n\
                 sandboxes   1 of tools now\n\
                 questions   2 questions for you: bxctl pending\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_clock_that_is_behind_the_log_is_said() {
        let reply = reply(false, "null");
        for (now, told) in [("08:03:30", false), ("08:02:00", true)] {
            let now = format!("2026-09-17T{now}.000Z").parse().unwrap();
            let text = text(&reply, now, 80, false);
            assert_eq!(text.contains("the clock went back"), told, "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
        }
    }

    #[test]
    fn a_closed_log_says_why() {
        let now = "2026-09-17T08:05:00.000Z".parse().unwrap();
        let text = text(
            &reply(false, r#""fsync: no space left\u001b""#),
            now,
            80,
            false,
        );
        assert!(
            text.contains("closed, no call can run: fsync: no space left\\x1b;"),
            "{text}"
        );
        assert!(text.contains("restart boxmaker"), "{text}");
    }
}
