//! `bxctl audit show`: reads the log, lets the selection choose, prints.

use std::io;

use proto::Timestamp;

use super::selection::{Filter, Selection};
use super::{AuditError, rows};
use crate::cli::ShowWords;
use crate::failure::Failure;
use crate::place::Place;
use crate::screen::Screen;

/// `bxctl audit show`: a table, or with `json` the chosen lines as they are stored.
///
/// # Errors
/// A time is none; the log cannot be read, there is none, or it is broken. What stands before the break is printed.
pub fn run(
    words: &ShowWords,
    place: &Place,
    now: Timestamp,
    screen: &Screen,
    json: bool,
) -> Result<(), Failure> {
    let mut selection = Selection::new(Filter::new(words, now)?);
    let paths = crate::place::ledger(place);
    if let Err(error) = std::fs::metadata(&paths.audit)
        && error.kind() == io::ErrorKind::NotFound
    {
        let what = format!(
            "there is no audit log: {} is not there",
            paths.audit.display()
        );
        return Err(AuditError::Missing { what }.into());
    }
    let mut end = Ok(());
    for line in ledger::read(&paths) {
        match line {
            Ok(line) => selection.take(line),
            Err(error) => end = Err(AuditError::from(error)),
        }
    }
    let rows = selection.finish();
    if json {
        let mut lines: Vec<_> = rows
            .iter()
            .flat_map(|row| [Some(&row.line), row.end.as_ref()])
            .flatten()
            .collect();
        lines.sort_by_key(|line| line.seq);
        for line in lines {
            screen.json(line)?;
        }
    } else if rows.is_empty() {
        // Of what could not be read nothing can be said.
        if end.is_ok() {
            screen.remark(none(words));
        }
    } else {
        screen.print(&rows::table(&rows).render(screen.out.width, screen.out.colour))?;
    }
    Ok(end?)
}

/// What is said where there is nothing to show.
fn none(words: &ShowWords) -> &'static str {
    let ShowWords {
        session,
        tool,
        outcome,
        since,
        until,
        limit: _,
    } = words;
    let chosen = session.is_some()
        || tool.is_some()
        || outcome.is_some()
        || since.is_some()
        || until.is_some();
    if chosen {
        "bxctl: no record matches; without options every record is shown\n"
    } else {
        "bxctl: the audit log has no record yet\n"
    }
}
