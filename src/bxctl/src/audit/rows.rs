//! Records of the log as a table: calls with their ends, everything else in one sentence.

use proto::audit::{Decision, DecisionRecord, ExitCause, ExitStatus, Outcome, OutcomeStatus};
use proto::audit::{RoleEvent, SessionEvent};
use proto::{Answer, Approval, ApprovalEvent, Entry, Line};

use super::selection::Row;
use crate::moment;
use crate::screen::Tone;
use crate::status::level;
use crate::table::{Cell, Fit, Table};
use crate::visible;

/// The rows as a table, the day above its records, and the session above its calls: a name may be too long for a column.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ("seq", Fit::Number),
        ("time", Fit::Whole),
        ("call", Fit::Number),
        ("tool", Fit::Wrap),
        ("decision", Fit::Wrap),
        ("grant", Fit::Wrap),
        ("level", Fit::Whole),
        ("outcome", Fit::Wrap),
    ]);
    let mut day = String::new();
    let mut session = None;
    for row in rows {
        let line = &row.line;
        let today = moment::day(line.time);
        if today != day {
            table.row(vec![Cell::new(format!("{today} UTC")).tone(Tone::Title)]);
            day = today;
            session = None;
        }
        let seq = Cell::new(line.seq.to_string());
        let time = Cell::new(moment::clock(line.time));
        match &line.entry {
            Entry::Decision(decision) => {
                if session != Some(&decision.session) {
                    let name = format!("session {}", decision.session);
                    table.row(vec!["".into(), Cell::new(name).tone(Tone::Title)]);
                    session = Some(&decision.session);
                }
                table.row(call(seq, time, decision, row.end.as_ref()));
                let denied = decision.decision.granted().is_none();
                if denied && !decision.detail.is_empty() {
                    table.row(vec!["".into(), "".into(), Cell::new(&decision.detail)]);
                }
            }
            other => {
                // Its own line names the session already.
                if let Entry::Session {
                    session: named,
                    event,
                    ..
                } = other
                    && *event != SessionEvent::Ended
                {
                    session = Some(named);
                }
                table.row(vec![seq, time, event(other)]);
            }
        }
    }
    table
}

fn call(seq: Cell, time: Cell, decision: &Decision, end: Option<&Line>) -> Vec<Cell> {
    let (decided, grant) = match &decision.decision {
        DecisionRecord::Allowed { grant } => (Cell::new("allowed").tone(Tone::Good), Some(grant)),
        DecisionRecord::Approved {
            grant, approver, ..
        } => (
            Cell::new(format!("approved by {approver}")).tone(Tone::Good),
            Some(grant),
        ),
        DecisionRecord::Denied { reason, grant } => {
            (Cell::new(reason.as_str()).tone(Tone::Bad), grant.as_ref())
        }
    };
    let ended = match end.map(|line| &line.entry) {
        Some(Entry::Outcome(end)) => outcome(end),
        _ if decision.decision.granted().is_some() => Cell::new("open").tone(Tone::Warning),
        _ => "-".into(),
    };
    vec![
        seq,
        time,
        decision.call.to_string().into(),
        Cell::new(&decision.tool),
        decided,
        grant.map_or("-", |grant| grant.as_str()).into(),
        decision
            .confinement
            .as_ref()
            .map_or_else(|| "-".into(), |measured| level(measured.level)),
        ended,
    ]
}

fn outcome(outcome: &Outcome) -> Cell {
    let how = match (outcome.cause, outcome.exit) {
        (Some(ExitCause::Timeout), _) => "timeout".to_owned(),
        (Some(ExitCause::Memory), _) => "memory".to_owned(),
        (Some(ExitCause::Aborted), _) => "aborted".to_owned(),
        (Some(ExitCause::Lost), _) => "lost".to_owned(),
        (Some(ExitCause::NotStarted), _) => "not started".to_owned(),
        (_, Some(ExitStatus::Code(code))) => format!("exit {code}"),
        (_, Some(ExitStatus::Signal(signal))) => format!("signal {signal}"),
        (_, None) => "no status".to_owned(),
    };
    match outcome.status {
        OutcomeStatus::Result => Cell::new("result").tone(Tone::Good),
        OutcomeStatus::Failed => Cell::new(format!("failed {how}")).tone(Tone::Bad),
        OutcomeStatus::Unknown => Cell::new("unknown").tone(Tone::Warning),
    }
}

fn question(approval: &Approval) -> Cell {
    let of = format!(
        "{}: call {}, question {}",
        approval.session, approval.call, approval.approval
    );
    match &approval.event {
        ApprovalEvent::Asked {
            tool,
            grant,
            expires,
            ..
        } => Cell::new(format!(
            "{of} asked: {tool} under grant {grant}, until {}",
            moment::clock(*expires)
        )),
        ApprovalEvent::Answered { answer, by, .. } => match answer {
            Answer::Approved => Cell::new(format!("{of} approved by {by}")).tone(Tone::Good),
            Answer::Refused => Cell::new(format!("{of} refused by {by}")).tone(Tone::Bad),
        },
        ApprovalEvent::Expired {} => Cell::new(format!("{of} expired")).tone(Tone::Warning),
        ApprovalEvent::Withdrawn {} => Cell::new(format!("{of} withdrawn, its caller went away")),
    }
}

/// What happened to a role: `brokerd (pid 77) started, level full`.
#[must_use]
pub fn of_role(role: &str, pid: Option<u32>, event: &RoleEvent) -> String {
    let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let what = match event {
        RoleEvent::Started { confinement } => format!("started, level {}", confinement.level),
        RoleEvent::Ended { exit } => match exit {
            Some(ExitStatus::Code(code)) => format!("ended with status {code}"),
            Some(ExitStatus::Signal(signal)) => format!("ended by signal {signal}"),
            None => "ended with a status nobody saw".to_owned(),
        },
        RoleEvent::GivenUp {} => "was given up: it ended too often".to_owned(),
    };
    format!("{role}{pid} {what}")
}

fn event(entry: &Entry) -> Cell {
    match entry {
        Entry::Session { session, event, by } => {
            let what = match event {
                SessionEvent::Opened => "opened",
                SessionEvent::Resumed => "resumed",
                SessionEvent::Ended => "ended",
            };
            Cell::new(format!("{session}: session {what} by {by}"))
        }
        Entry::Approval(approval) => question(approval),
        Entry::Role { role, pid, event } => {
            let text = of_role(role, *pid, event);
            match event.as_ref() {
                RoleEvent::GivenUp {} => Cell::new(text).tone(Tone::Bad),
                _ => Cell::new(text),
            }
        }
        Entry::Policy { generation, files } => Cell::new(format!(
            "policy generation {generation} loaded, {}",
            visible::count(files.len(), "file")
        )),
        Entry::Denials {
            session,
            tool,
            reason,
            count,
            first,
            last,
        } => Cell::new(format!(
            "{session}: {tool} denied {} ({reason}), {} to {}",
            visible::count(*count, "more time"),
            moment::clock(*first),
            moment::clock(*last)
        ))
        .tone(Tone::Bad),
        Entry::Recovery {
            file,
            offset,
            length,
            ..
        } => Cell::new(format!(
            "a torn line was kept: {} at offset {offset} of {file}",
            visible::count(*length, "byte")
        ))
        .tone(Tone::Warning),
        // Both stand in a row of their own kind; an outcome alone is never selected.
        Entry::Decision(_) | Entry::Outcome(_) => Cell::new(""),
    }
}

#[cfg(test)]
mod tests {
    use proto::Timestamp;

    use super::*;
    use crate::audit::sample;
    use crate::audit::selection::{Filter, Selection};
    use crate::cli::ShowWords;

    fn shown(width: usize) -> String {
        render(sample::lines(), width)
    }

    fn render(lines: impl IntoIterator<Item = Line>, width: usize) -> String {
        let filter = Filter::new(&ShowWords::default(), Timestamp::MAX).unwrap();
        let mut selection = Selection::new(filter);
        lines.into_iter().for_each(|line| selection.take(line));
        table(&selection.finish()).render(width, false)
    }

    #[test]
    fn a_call_and_its_end_are_one_line_and_the_rest_one_sentence_each() {
        let expected = "\
seq  time      call  tool      decision  grant       level  outcome
2026-09-17 UTC
  0  08:00:00  policy generation 1 loaded, 0 files
  1  08:01:00  brokerd (pid 77) started, level full
  2  08:02:00  s-1: session opened by bxctl
  3  08:03:00     1  fs_read   allowed   notes-read  full   result
  5  08:05:00     2  fs_read   no_grant  -           -      -
               /etc is not granted\\x1b
  6  08:06:00  s-2: session opened by bxctl
  7  08:07:00     1  fs_write  allowed   notes-read  full   failed timeout
  8  08:08:00     2  fs_list   allowed   notes-read  full   open
 10  08:10:00  s-2: fs_read denied 40 more times (no_grant), 08:00:00 to 08:00:30
 11  08:11:00  a torn line was kept: 3 bytes at offset 10 of 2026-09-17.jsonl
";
        assert_eq!(shown(100), expected);
    }

    #[test]
    fn what_becomes_of_a_question_is_one_sentence_each() {
        let said = |event: &str| {
            let text = format!(
                r#"{{"approval":"a3","session":"s-1","call":2,"event":{{"state":{event}}}}}"#
            );
            question(&serde_json::from_str(&text).unwrap())
        };
        let hash = proto::Hash32::ZERO;
        let asked = format!(
            r#""asked","tool":"fs_write","grant":"ask","arguments":"{hash}","expires":"2026-09-17T08:15:00.000Z""#
        );
        let of = "s-1: call 2, question a3";
        for (event, want) in [
            (
                asked.as_str(),
                "asked: fs_write under grant ask, until 08:15:00",
            ),
            (
                r#""answered","answer":"approved","by":"bxctl","post":null"#,
                "approved by bxctl",
            ),
            (
                r#""answered","answer":"refused","by":"b\u001b","post":null"#,
                "refused by b\\x1b",
            ),
            (r#""expired""#, "expired"),
            (r#""withdrawn""#, "withdrawn, its caller went away"),
        ] {
            let mut table = Table::new(&[("x", Fit::Wrap)]);
            table.row(vec![said(event)]);
            assert_eq!(table.render(200, false), format!("x\n{of} {want}\n"));
        }
    }

    #[test]
    fn at_80_columns_no_session_is_broken_and_above_its_calls_it_stands_once() {
        let long = "a-session-with-a-name-of-sixty-characters-that-no-column-holds";
        let renamed = |line: Line| -> Line {
            let text = serde_json::to_string(&line).unwrap();
            serde_json::from_str(&text.replace("\"s-2\"", &format!("\"{long}\""))).unwrap()
        };
        let lines: Vec<Line> = sample::lines().into_iter().map(renamed).collect();
        let calls = lines
            .into_iter()
            .filter(|line| !matches!(line.entry, Entry::Session { .. }));
        let text = render(calls, 80);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(
            text.matches(&format!("session {long}\n")).count(),
            1,
            "{text}"
        );
    }
}
