//! `boxmaker demo`: the whole system on embedded defaults. It builds a home, a configuration and some files of another
//! user, starts `boxmaker up` on them, makes calls as their owner would, and shows for each what was decided, what was
//! measured and how it ended, as the audit log has it. Nothing it prints is written beforehand but the titles.

mod owner;
mod scene;
mod setting;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use ledger::{Paths, Report};
use proto::approval::Answer;
use proto::audit::{Decision, DecisionRecord};
use proto::client::{Question, ToolResponse};
use proto::{CallId, Confinement, Entry, Level};

use owner::{Called, Owner, OwnerError, System};
use scene::{Act, Expect};
use setting::Setting;

/// Why the demo could not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// The state directory could not be built.
    #[error(transparent)]
    Setting(#[from] setting::SettingError),
    /// The system did not start or did not answer.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The log could not be read.
    #[error("cannot read the log: {0}")]
    Read(#[from] ledger::ReadError),
    /// The log could not be verified.
    #[error("cannot verify the log: {0}")]
    Verify(#[from] ledger::VerifyError),
    /// A call has no record, which must never be.
    #[error("call {call} of session {session} has no record in the log")]
    NoRecord {
        /// Its session.
        session: String,
        /// Its number.
        call: u64,
    },
}

/// Runs the demo below `state` and says on standard output what happens.
///
/// Returns success if every call was decided, confined and ended as it should, and the log verifies.
pub(crate) fn run(state: &Path) -> ExitCode {
    match play(state) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            println!("\n{wrong} of the calls above did not end as they should.");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("boxmaker demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play(state: &Path) -> Result<usize, DemoError> {
    let setting = Setting::build(state)?;
    println!("{}", setting.describe());
    let system = System::start(&setting)?;
    let mut owner = Owner::connect(&setting)?;
    let mut wrong = 0;
    for (number, act) in scene::acts(&setting).iter().enumerate() {
        if let Some(title) = act.opens {
            println!("\n{title}");
        }
        if let Some(reason) = &act.skipped {
            println!(
                "\n {:>2}  {}\n     skipped: {reason}",
                number + 1,
                act.title
            );
            continue;
        }
        println!("\n {:>2}  {}", number + 1, act.title);
        println!("     {} {}", act.tool, shorten(&act.arguments, 100));
        let Called {
            call,
            asked,
            response,
        } = owner.call(act)?;
        if let Some(question) = &asked {
            println!("     {}", asks(question, act));
        }
        let record = record(&setting.paths, owner.session(act), call)?;
        println!("     {}", verdict(&record));
        println!("     {}", outcome(&response));
        for line in shown(&response) {
            println!("     | {line}");
        }
        if let Some(note) = act.afterwards(&setting) {
            println!("     {note}");
        }
        let complaints = complaints(act, &record, &response, setting.least());
        for complaint in &complaints {
            println!("     WRONG: {complaint}");
        }
        wrong += usize::from(!complaints.is_empty());
    }
    owner.end_sessions()?;
    system.stop()?;
    println!("\n{}", roles(&setting.paths)?);
    wrong += verify(&setting.paths)?;
    println!("{}", setting.whats_next());
    Ok(wrong)
}

/// The decision of one call as the log has it.
fn record(paths: &Paths, session: &str, call: CallId) -> Result<Decision, DemoError> {
    for line in ledger::read(paths) {
        if let Entry::Decision(decision) = line?.entry
            && decision.session.as_str() == session
            && decision.call == call
        {
            return Ok(*decision);
        }
    }
    Err(DemoError::NoRecord {
        session: session.to_owned(),
        call: call.0,
    })
}

fn asks(question: &Question, act: &Act) -> String {
    let said = match act.answer {
        Some(Answer::Approved) => "yes",
        Some(Answer::Refused) | None => "no",
    };
    format!(
        "the owner is asked ({}): {}; the owner says {said}",
        question.approval,
        shorten(&question.why, 100)
    )
}

fn verdict(record: &Decision) -> String {
    let decision = match &record.decision {
        DecisionRecord::Allowed { grant } => format!("allowed by grant {grant}"),
        DecisionRecord::Approved {
            grant, approver, ..
        } => {
            format!("approved by {approver} under grant {grant}")
        }
        DecisionRecord::Denied { reason, .. } => format!("denied: {reason}"),
    };
    match &record.confinement {
        Some(confinement) => format!("{decision} · {}", confined(confinement)),
        None => format!("{decision} · nothing was started"),
    }
}

fn confined(confinement: &Confinement) -> String {
    let mut text = format!(
        "confinement {}, {} layers measured",
        confinement.level,
        confinement.layers.len()
    );
    let gaps: Vec<&str> = confinement
        .gaps
        .iter()
        .map(|gap| gap.layer.as_str())
        .collect();
    if !gaps.is_empty() {
        // Writing to a string does not fail.
        let _: std::fmt::Result = write!(text, ", gaps: {}", gaps.join(" "));
    }
    text
}

fn outcome(response: &ToolResponse) -> String {
    let marks = |class, untrusted| match untrusted {
        true => format!("{class}, untrusted"),
        false => format!("{class}"),
    };
    match response {
        ToolResponse::Result {
            content,
            class,
            untrusted,
            truncated,
            ..
        } => {
            let cut = if *truncated { ", cut" } else { "" };
            format!(
                "result: {}, {} bytes{cut}",
                marks(class, *untrusted),
                content.len()
            )
        }
        ToolResponse::Failed {
            message,
            class,
            untrusted,
        } => {
            let first = message.lines().next().unwrap_or_default();
            format!("failed: {first} ({})", marks(class, *untrusted))
        }
        ToolResponse::Denied { detail, .. } => format!("the caller hears: {detail}"),
        ToolResponse::PendingApproval { approval, .. } => format!("waits for approval {approval}"),
    }
}

/// The first lines of a result, with anything that could steer a terminal made visible.
fn shown(response: &ToolResponse) -> Vec<String> {
    const LINES: usize = 8;
    let ToolResponse::Result { content, .. } = response else {
        return Vec::new();
    };
    let mut lines: Vec<String> = content
        .lines()
        .take(LINES)
        .map(|line| shorten(line, 110))
        .collect();
    let more = content.lines().count().saturating_sub(LINES);
    if more > 0 {
        lines.push(format!("… {more} more lines"));
    }
    lines
}

/// At most `width` characters, control characters escaped.
fn shorten(text: &str, width: usize) -> String {
    let plain: String = text
        .chars()
        .flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect();
    if plain.chars().count() <= width {
        return plain;
    }
    plain
        .chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}

fn complaints(act: &Act, record: &Decision, response: &ToolResponse, least: Level) -> Vec<String> {
    let mut complaints = Vec::new();
    let as_expected = match (act.expect, response) {
        (Expect::Result, ToolResponse::Result { .. }) => true,
        (Expect::Failed, ToolResponse::Failed { .. }) => true,
        (Expect::Denied(expected), ToolResponse::Denied { reason, .. }) => expected == *reason,
        _ => false,
    };
    if !as_expected {
        complaints.push(format!("expected {}", act.expect));
    }
    let measured = record.confinement.as_ref();
    match record.decision.granted() {
        Some(_) if measured.is_none_or(|confinement| !confinement.satisfies(least)) => {
            complaints.push(format!("it ran with less than {least} confinement"));
        }
        _ => {}
    }
    complaints.extend(act.unwanted(response));
    complaints
}

/// The roles that were started since the demo began, with what was measured of them.
fn roles(paths: &Paths) -> Result<String, DemoError> {
    let mut text = String::from("Roles, as the log has them:");
    let mut latest = Vec::new();
    for line in ledger::read(paths) {
        match line?.entry {
            // A generation is loaded at each start, so what came before it is of an earlier run.
            Entry::Policy { .. } => latest.clear(),
            Entry::Role { role, event, .. } => {
                if let proto::audit::RoleEvent::Started { confinement } = *event {
                    latest.push(format!(
                        "\n     {role} started · {}",
                        confined(&confinement)
                    ));
                }
            }
            _ => {}
        }
    }
    text.extend(latest);
    Ok(text)
}

fn verify(paths: &Paths) -> Result<usize, DemoError> {
    match ledger::verify(paths)? {
        Report::Sound(sound) => {
            println!(
                "The log is sound: {} in {}, head {}.",
                crate::count(sound.lines, "record"),
                crate::count(sound.files, "file"),
                sound.head
            );
            Ok(0)
        }
        Report::Broken(broken) => {
            println!("The log is BROKEN: {broken}");
            Ok(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_prints_cannot_steer_the_terminal() {
        assert_eq!(shorten("a\u{1b}[2Jb", 40), "a\\u{1b}[2Jb");
        assert_eq!(shorten("abcdef", 4), "abc…");
    }
}
