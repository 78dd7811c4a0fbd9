//! `bxctl call`: opens a session, lets one tool be called in it, ends it, and says what came of it.

mod hint;
pub mod report;

use std::io;
use std::time::Instant;

use proto::client::{ToolRequest, ToolResponse};
use proto::{CallId, SessionId};

use self::report::{Report, Status};
use crate::arguments;
use crate::audit::recent;
use crate::broker::{Broker, BrokerError};
use crate::cli::CallWords;
use crate::configuration;
use crate::failure::{Done, Failure};
use crate::place::Place;
use crate::screen::Screen;
use crate::visible;

/// Makes the call and prints its result: the content on standard output, one line about it on standard error.
///
/// # Errors
/// The words are no arguments, or brokerd could not be asked. A denial and a failure are [`Done::Refused`].
pub fn run(words: CallWords, place: &Place, screen: &Screen, json: bool) -> Result<Done, Failure> {
    let mut schema = None;
    if arguments::wants_schema(&words.arguments) {
        match configuration::schema(&place.config, &words.tool) {
            Ok(found) => schema = found,
            Err(error) => screen.remark(&format!(
                "bxctl: every KEY=VALUE is sent as text, because the tool's file cannot be read: {}\n",
                visible::text(&error.to_string())
            )),
        }
    }
    let arguments = arguments::build(&words.arguments, schema.as_ref(), &mut io::stdin().lock())?;
    let mut broker = Broker::connect(&place.socket())?;
    let own = words.session.is_none();
    let opened = broker.open(words.session)?;
    let request = ToolRequest {
        session: opened.session.clone(),
        call: CallId(0),
        tool: words.tool.clone(),
        arguments,
    };
    let start = Instant::now();
    let answer = broker.call(request, |waiting| {
        if let ToolResponse::PendingApproval { approval, expires } = waiting {
            screen.remark(&format!(
                "bxctl: waiting for approval {approval} (bxctl approve {approval}) until {expires}\n"
            ));
        }
    });
    let duration = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    if own && let Err(error) = end(broker, &answer, &opened.session, place) {
        screen.remark(&format!(
            "bxctl: session {} was not ended: {error}\n",
            opened.session
        ));
    }
    let record = recent::decision(
        &crate::place::ledger(place).audit,
        &opened.session,
        &words.tool,
        opened.last_call,
    );
    let report = Report::new(opened.session, words.tool, answer?, record, duration).ok_or(
        BrokerError::Unexpected {
            kind: "tool_request",
            got: "a question as the last answer",
        },
    )?;
    show(&report, screen, json)?;
    Ok(if report.status == Status::Result {
        Done::Well
    } else {
        Done::Refused
    })
}

/// Ends the session of a call. A broker that refuses a request closes the connection with its answer, so the end needs
/// another one. One that went away has said nothing, and ends nothing that it could be asked for soon.
fn end(
    mut broker: Broker,
    answer: &Result<ToolResponse, BrokerError>,
    session: &SessionId,
    place: &Place,
) -> Result<(), BrokerError> {
    match answer {
        Ok(_) | Err(BrokerError::Send { .. }) => broker.end(session.clone()),
        Err(BrokerError::Refused { .. }) => {
            drop(broker);
            Broker::connect(&place.socket())?.end(session.clone())
        }
        Err(_) => Ok(()),
    }
}

fn show(report: &Report, screen: &Screen, json: bool) -> io::Result<()> {
    if json {
        return screen.json(report);
    }
    if let Some(content) = &report.content {
        if screen.out.terminal {
            let shown = visible::text(content);
            let end = if shown.is_empty() || shown.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            screen.print(&format!("{shown}{end}"))?;
        } else {
            screen.print(content)?;
        }
    }
    screen.remark(&report.remark(screen.err.colour));
    Ok(())
}
