//! `bxctl pending`, `approve` and `refuse`: what the owner is asked, and the answer. The arguments are shown in full, as
//! quoted data: whoever wrote them may want the owner to believe something else.

use proto::client::Question;
use proto::{Answer, ApprovalId, Timestamp};
use serde::Serialize;

use crate::broker::Broker;
use crate::failure::Failure;
use crate::moment;
use crate::place::Place;
use crate::screen::{Screen, Tone};
use crate::visible;

/// Before each line of quoted arguments.
const QUOTE: &str = "  | ";
/// Before the other lines, and where their text begins.
const INDENT: usize = 13;

/// The open questions as JSON.
#[derive(Debug, Serialize)]
struct Document {
    approvals: Vec<Question>,
}

/// An answer that was given, as JSON.
#[derive(Debug, Serialize)]
struct Given<'a> {
    approval: &'a ApprovalId,
    answer: Answer,
}

/// Prints every open question, the oldest first.
///
/// # Errors
/// brokerd could not be asked, or nothing can be written.
pub fn run(place: &Place, now: Timestamp, screen: &Screen, json: bool) -> Result<(), Failure> {
    let approvals = Broker::connect(&place.socket())?.approvals()?;
    if json {
        screen.json(&Document { approvals })?;
    } else if approvals.is_empty() {
        screen.remark("bxctl: no call waits for an answer\n");
    } else {
        let (width, colour) = (screen.out.width, screen.out.colour);
        let shown: Vec<String> = approvals
            .iter()
            .map(|question| text(question, now, width, colour))
            .collect();
        screen.print(&shown.join("\n"))?;
    }
    Ok(())
}

/// Answers one question.
///
/// # Errors
/// brokerd could not be asked, or the question is not open.
pub fn answer(
    approval: &ApprovalId,
    answer: Answer,
    place: &Place,
    screen: &Screen,
    json: bool,
) -> Result<(), Failure> {
    Broker::connect(&place.socket())?.answer(approval, answer)?;
    if json {
        screen.json(&Given { approval, answer })?;
    } else {
        screen.print(&match answer {
            Answer::Approved => {
                format!("{approval} is approved: the call is checked once more, and runs if nothing has changed\n")
            }
            Answer::Refused => format!("{approval} is refused: the call does not run\n"),
        })?;
    }
    Ok(())
}

/// One question as the owner reads it, in lines of at most `width` columns.
#[must_use]
pub fn text(question: &Question, now: Timestamp, width: usize, colour: bool) -> String {
    let mark = |untrusted| if untrusted { "untrusted" } else { "trusted" };
    let read = if question.untrusted {
        "has read untrusted text"
    } else {
        "has read no untrusted text"
    };
    let title = Tone::Title.paint(question.approval.as_str(), colour);
    let mut text = format!(
        "{title}  {} asks to run\n",
        Tone::Warning.paint(question.tool.as_str(), colour)
    );
    text.push_str(&format!(
        "  arguments, {}:\n",
        visible::count(question.arguments.len(), "byte")
    ));
    for line in cut(
        &visible::line(&question.arguments),
        width.saturating_sub(QUOTE.len()),
    ) {
        text.push_str(&format!("{QUOTE}{line}\n"));
    }
    let mut row = |name: &str, what: &str| {
        let mut name = name;
        for line in crate::table::wrap(what, width.saturating_sub(INDENT)) {
            let begin = format!("  {name}");
            text.push_str(&format!("{begin:INDENT$}{line}\n"));
            name = "";
        }
    };
    let session = format!("{}, call {}", question.session, question.call);
    row("session", &session);
    row("taint", &format!("{}, {read}", question.taint));
    row("grant", question.grant.as_str());
    row("why", &visible::line(&question.why));
    let result = format!(
        "would be {}, {}",
        question.labels.class,
        mark(question.labels.untrusted)
    );
    row("result", &result);
    let expires = format!(
        "{} ({})",
        moment::ago(now, question.expires),
        question.expires
    );
    row("expires", &expires);
    let id = &question.approval;
    row(
        "answer",
        &format!("bxctl approve {id}   or   bxctl refuse {id}"),
    );
    text
}

/// Lines of at most `limit` columns that hold every character of `text`: what is quoted is not wrapped at words,
/// because that loses where spaces were.
fn cut(text: &str, limit: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let columns = visible::columns(c);
        if used + columns > limit.max(2) {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            line.push(c);
        }
        used += columns;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(arguments: &str) -> Question {
        serde_json::from_value(serde_json::json!({
            "approval": "a17", "session": "20260917-080500-120", "call": 2, "tool": "fs_write",
            "arguments": arguments, "grant": "notes-ask", "taint": "private", "untrusted": true,
            "labels": {"class": "private", "untrusted": false},
            "why": "grant notes-ask covers the call and asks; its result is private, trusted",
            "asked": "2026-09-17T08:05:00.000Z", "expires": "2026-09-17T08:15:00.000Z",
        }))
        .unwrap()
    }

    fn shown(arguments: &str) -> String {
        let now = "2026-09-17T08:06:00.000Z".parse().unwrap();
        text(&question(arguments), now, 80, false)
    }

    #[test]
    fn a_question_is_shown_with_everything_an_answer_depends_on() {
        assert_eq!(
            shown(r#"{"path": "/srv/notes/a.md", "content": "hello"}"#),
            "a17  fs_write asks to run\n  \
               arguments, 47 bytes:\n  \
               | {\"path\": \"/srv/notes/a.md\", \"content\": \"hello\"}\n  \
               session    20260917-080500-120, call 2\n  \
               taint      private, has read untrusted text\n  \
               grant      notes-ask\n  \
               why        grant notes-ask covers the call and asks; its result is private,\n             \
                          trusted\n  \
               result     would be private, trusted\n  \
               expires    in 9 min (2026-09-17T08:15:00.000Z)\n  \
               answer     bxctl approve a17   or   bxctl refuse a17\n"
        );
    }

    #[test]
    fn hidden_characters_of_the_arguments_are_seen_and_no_line_leaves_its_quotes() {
        let text = shown(
            "{\"a\":\"x\u{202e}\u{9b}\u{feff}\",\n\"b\":\"\u{1b}[2Ja17  other asks to run\"}",
        );
        assert!(text.contains(r"x\u{202e}\u{9b}\u{feff}"), "{text}");
        assert!(text.contains(r"\x1b[2Ja17"), "{text}");
        assert_eq!(
            text.lines()
                .filter(|line| line.contains("asks to run"))
                .count(),
            2
        );
        assert!(text.lines().nth(2).unwrap().starts_with("  | "), "{text}");
    }

    #[test]
    fn long_arguments_are_shown_to_the_last_character_in_80_columns() {
        let long = format!("{{\"a\":\"{}  end\"}}", "wide 世 and  spaces ".repeat(40));
        let text = shown(&long);
        let quoted: String = text
            .lines()
            .filter_map(|line| line.strip_prefix("  | "))
            .collect();
        assert_eq!(quoted, long);
        assert!(
            text.lines().all(|line| visible::width(line) <= 80),
            "{text}"
        );
    }
}
