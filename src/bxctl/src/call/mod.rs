//! `bxctl call`: opens a session, lets one tool be called in it, ends it, and says what came of it, also when the call
//! is given up or brokerd goes away.

mod end;
mod fate;
mod hint;
pub(crate) mod interrupt;
pub mod report;

use std::cell::RefCell;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use proto::client::{SessionOpened, ToolRequest, ToolResponse};
use proto::{ApprovalId, CallId, ErrorCode};

use self::fate::Fate;
use self::interrupt::Interrupt;
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

/// How long what becomes of a call that was given up may take to be recorded, where nothing else tells.
const WRITTEN: Duration = Duration::from_secs(2);

/// How long to wait before the log is read again.
const PAUSE: Duration = Duration::from_millis(50);

/// A call that was sent.
struct Made {
    opened: SessionOpened,
    /// Whether the session was opened for this call, and ends with it.
    own: bool,
    tool: String,
    /// The question that it became, if it is that far.
    question: Option<ApprovalId>,
}

/// Makes the call and prints its result: the content on standard output, one line about it on standard error.
///
/// # Errors
/// The words are no arguments, or brokerd could not be asked. A denial, a failure and a call without an answer are
/// [`Done::Refused`].
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
    let interrupt = Interrupt::watch().map_err(Failure::Signals)?;
    let cuts = |broker: &Broker| interrupt.cuts(broker.stream()).map_err(Failure::Signals);
    cuts(&broker)?;
    let own = words.session.is_none();
    let opened = match (broker.open(words.session), interrupt.signal()) {
        (Ok(opened), _) => opened,
        (Err(_), Some(signal)) => {
            screen.failure("interrupted: the call was not made, and nothing ran");
            return Ok(Done::Interrupted(signal));
        }
        (Err(error), None) => return Err(error.into()),
    };
    let request = ToolRequest {
        session: opened.session.clone(),
        call: CallId(0),
        tool: words.tool.clone(),
        arguments,
    };
    let question = RefCell::new(None);
    let start = Instant::now();
    let answer = broker.call(request, |waiting| {
        if let ToolResponse::PendingApproval { approval, expires } = waiting {
            screen.remark(&format!(
                "bxctl: waiting for approval {approval} (bxctl approve {approval}) until {expires}\n"
            ));
            question.replace(Some(approval.clone()));
        }
    });
    let duration = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let made = Made {
        opened,
        own,
        tool: words.tool,
        question: question.into_inner(),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            return Ok(unanswered(
                error,
                broker,
                &made,
                place,
                interrupt.signal(),
                screen,
            ));
        }
    };
    let changed = match &answer {
        // A rule that the owner sees in a file, and boxmaker has not read, would have let the call pass.
        ToolResponse::Denied { .. } if interrupt.signal().is_none() => broker
            .status()
            .map(|reply| reply.changed)
            .unwrap_or_default(),
        _ => Vec::new(),
    };
    if own {
        // A signal that came after the answer has cut the line.
        let broker = interrupt.signal().is_none().then_some(broker);
        told(
            end::session(broker, &made.opened.session, place),
            &made,
            screen,
        );
    }
    let audit = crate::place::ledger(place).audit;
    let Made { opened, tool, .. } = made;
    let record = recent::decision(&audit, &opened.session, &tool, opened.last_call);
    let mut report = Report::new(opened.session, tool, answer, record, duration).ok_or(
        BrokerError::Unexpected {
            kind: "tool_request",
            got: "a question as the last answer",
        },
    )?;
    report.changed = changed;
    show(&report, screen, json)?;
    Ok(match interrupt.signal() {
        Some(signal) => Done::Interrupted(signal),
        None if report.status == Status::Result => Done::Well,
        None => Done::Refused,
    })
}

/// Says what became of a call that has no answer of its own. Where nothing but the log can tell, the session is ended
/// first, so that the log is final.
fn unanswered(
    error: BrokerError,
    broker: Broker,
    made: &Made,
    place: &Place,
    signal: Option<i32>,
    screen: &Screen,
) -> Done {
    // What brokerd is not connected to is given up.
    drop(broker);
    if signal.is_some() {
        screen.failure("interrupted: the call is given up");
    } else {
        screen.failure(&error.to_string());
    }
    let nothing = match &error {
        // An incomplete request is none, and a request that is refused is no call.
        BrokerError::Send { .. } => true,
        BrokerError::Refused { error, .. } => error.code != ErrorCode::Internal,
        _ => false,
    };
    let session = &made.opened.session;
    if nothing {
        screen.remark("  nothing ran\n");
        if made.own {
            told(end::session(None, session, place), made, screen);
        }
    } else {
        let went_away = signal.is_none() && matches!(error, BrokerError::Closed { .. });
        let (settled, ended) = end::settled(&made.opened, made.own, went_away, place);
        let audit = crate::place::ledger(place).audit;
        let question = made.question.as_ref();
        let look = || fate::of(&audit, &made.opened, &made.tool, question, settled);
        let mut fate = look();
        let until = Instant::now() + WRITTEN;
        // In a session that goes on only a record can tell, and brokerd may be about to write it.
        while fate == Fate::NotKnown && !settled && Instant::now() < until {
            thread::sleep(PAUSE);
            fate = look();
        }
        screen.remark(&format!("  {fate}\n"));
        if !matches!(fate, Fate::NothingRan { .. }) {
            screen.remark(&format!(
                "  `bxctl audit show --session {session}` says more\n"
            ));
        }
        if made.own {
            told(ended, made, screen);
        }
    }
    signal.map_or(Done::Refused, Done::Interrupted)
}

/// Says that the session of a call could not be ended.
fn told(ended: Result<(), BrokerError>, made: &Made, screen: &Screen) {
    if let Err(error) = ended {
        screen.remark(&format!(
            "bxctl: session {} was not ended: {}\n",
            made.opened.session,
            visible::text(&error.to_string())
        ));
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
