//! What brokerd may have recorded, and in what form (protocol.md section 6). Whatever it may not author is refused
//! here, and nothing is appended: decisions that let a call run, sequence numbers, times, hashes, measurements.

use std::sync::Mutex;

use policy::Policy;
use proto::approval::ApprovalEvent;
use proto::audit::{Decision, SessionEvent};
use proto::broker::RecordEntry;
use proto::grant::Mode;
use proto::{
    Arguments, CallId, DecisionRecord, Entry, GrantId, SessionId, Ticket, Timestamp, ToolName,
};

use super::call::{RefusedCall, TicketError};
use crate::approvals::{ApprovalError, Approvals};
use crate::books::{Books, digest};
use crate::lock;

/// The most characters of a tool's name in a denial; brokerd cuts longer ones.
const MOST_TOOL: usize = 64;
/// The most bytes that are kept of the owner's explanation of a decision.
const MOST_DETAIL: usize = 4096;
/// The peers behind the listeners that brokerd was given; nobody else can have asked for a session.
pub(crate) const PEERS: &[&str] = &["bxctl"];

/// Why an entry is not recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    /// It lets a call run.
    #[error("record takes denials only: a decision that lets a call run is stored by commit")]
    NotDenied,
    /// The tool's name is too long.
    #[error("a tool name in a record has 1 to {MOST_TOOL} characters")]
    ToolName,
    /// The arguments are not as a denial may give them.
    #[error("arguments in a record are {0}")]
    Arguments(&'static str),
    /// Another generation.
    #[error("the record says generation {said}, the policy is generation {own}")]
    Generation {
        /// What the record says.
        said: u64,
        /// What counts.
        own: u64,
    },
    /// The ticket is not one of a refused prepare of this call.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// No listener of that name was handed over.
    #[error("{0:?} is no peer that can open or end a session")]
    Peer(String),
    /// No denials, or times out of order.
    #[error("a denials record counts at least one, and its first is not after its last")]
    Denials,
    /// The event is none that its question can have.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// The decision has an outcome, is no decision that let a call run, or its sandbox lives.
    #[error("record {0} is no decision of an earlier run that waits for its outcome")]
    NotOpen(u64),
}

/// An entry that may be appended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    /// The entry.
    pub(crate) entry: Entry,
    /// Whether something begins with it, which a log that is full refuses. A denial is a call of its own; the end of a
    /// question, of a session or of a call goes on being recorded.
    pub(crate) begins: bool,
    /// Whether the answer waits until it is durable: only the end of a session has no effect to wait for.
    pub(crate) durable: bool,
    /// The session and text to remember under the record's number, if it holds an argument text in full.
    pub(crate) text: Option<(SessionId, String)>,
}

impl Admitted {
    const fn durable(entry: Entry, begins: bool) -> Self {
        Self {
            entry,
            begins,
            durable: true,
            text: None,
        }
    }
}

/// What is known when an entry is judged.
pub(crate) struct Bench<'a> {
    /// The policy's generation.
    pub(crate) generation: u64,
    /// The later of the clock and the last record.
    pub(crate) now: Timestamp,
    /// The memory of the log.
    pub(crate) books: &'a mut Books,
    /// The questions that were asked.
    pub(crate) approvals: &'a Mutex<Approvals>,
    /// The policy, for what asks.
    pub(crate) policy: &'a Policy,
}

/// Judges `entry`. `refused` takes the refused sandbox of a ticket out, if it is that of the call.
pub(crate) fn admit(
    entry: RecordEntry,
    bench: Bench<'_>,
    refused: impl FnOnce(Ticket, &SessionId, CallId, &str) -> Result<RefusedCall, TicketError>,
) -> Result<Admitted, RecordError> {
    match entry {
        RecordEntry::Decision {
            session,
            call,
            tool,
            arguments,
            session_taint,
            decision,
            detail,
            generation,
            ticket,
        } => {
            if !matches!(decision, DecisionRecord::Denied { .. }) {
                return Err(RecordError::NotDenied);
            }
            check_tool(&tool)?;
            if generation != bench.generation {
                return Err(RecordError::Generation {
                    said: generation,
                    own: bench.generation,
                });
            }
            let arguments = denied_arguments(arguments)?;
            let refused = ticket
                .map(|ticket| refused(ticket, &session, call, &tool))
                .transpose()?;
            // The supervisor saw the arguments of a refused prepare itself.
            let arguments = match &refused {
                Some(refused) => seen_arguments(&refused.call.arguments),
                None => arguments,
            };
            let (arguments, text) = match arguments {
                Arguments::Text(text) => stored(bench.books, &session, text),
                other => (other, None),
            };
            let entry = Entry::Decision(Box::new(Decision {
                session,
                call,
                tool,
                arguments,
                session_taint,
                decision,
                labels: None,
                detail: cut(detail),
                generation,
                confinement: refused.and_then(|refused| refused.confinement),
            }));
            Ok(Admitted {
                entry,
                begins: true,
                durable: true,
                text,
            })
        }
        RecordEntry::Approval(approval) => {
            let asks = |tool: &ToolName, grant: &GrantId| {
                bench.policy.grant(grant).is_some_and(|grant| {
                    grant.file().mode == Mode::Ask && grant.file().tool == *tool
                })
            };
            lock(bench.approvals).admit(&approval, bench.now, PEERS, asks)?;
            let begins = matches!(approval.event, ApprovalEvent::Asked { .. });
            Ok(Admitted::durable(Entry::Approval(approval), begins))
        }
        RecordEntry::Session { session, event, by } => {
            if !PEERS.contains(&by.as_str()) {
                return Err(RecordError::Peer(by.chars().take(64).collect()));
            }
            Ok(Admitted {
                begins: event != SessionEvent::Ended,
                durable: event != SessionEvent::Ended,
                entry: Entry::Session { session, event, by },
                text: None,
            })
        }
        RecordEntry::Denials {
            session,
            tool,
            reason,
            count,
            first,
            last,
        } => {
            check_tool(&tool)?;
            if count == 0 || first > last {
                return Err(RecordError::Denials);
            }
            let entry = Entry::Denials {
                session,
                tool,
                reason,
                count,
                // Nothing that is recorded happened later than now.
                first: first.min(bench.now),
                last: last.min(bench.now),
            };
            Ok(Admitted::durable(entry, true))
        }
        RecordEntry::Unknown { of } => {
            let open = bench
                .books
                .take_unknown(of)
                .ok_or(RecordError::NotOpen(of))?;
            let entry = Entry::Outcome(open.unknown(of));
            Ok(Admitted::durable(entry, false))
        }
    }
}

/// The form in which a text is stored, and what to remember once it is.
pub(crate) fn stored(
    books: &Books,
    session: &SessionId,
    text: String,
) -> (Arguments, Option<(SessionId, String)>) {
    let form = books.stored_form(session, &text);
    let remember = matches!(form, Arguments::Text(_)).then(|| (session.clone(), text));
    (form, remember)
}

/// `detail`, cut so that a record stays small whatever brokerd says.
pub(crate) fn cut(mut detail: String) -> String {
    if detail.len() > MOST_DETAIL {
        detail.truncate(detail.floor_char_boundary(MOST_DETAIL));
        detail.push('…');
    }
    detail
}

fn check_tool(tool: &str) -> Result<(), RecordError> {
    if tool.is_empty() || tool.chars().count() > MOST_TOOL {
        return Err(RecordError::ToolName);
    }
    Ok(())
}

/// The arguments of a refused prepare; a text that must not be stored becomes its digest.
fn seen_arguments(text: &str) -> Arguments {
    match policy::arguments::parse(text) {
        Ok(_) => Arguments::Text(text.to_owned()),
        Err(_) => Arguments::Digest {
            length: text.len() as u64,
            sha256: digest(text.as_bytes()),
        },
    }
}

/// A text must be one that may be stored (policy.md section 2, check 3); where a text stands already is the
/// supervisor's to say.
fn denied_arguments(arguments: Arguments) -> Result<Arguments, RecordError> {
    match arguments {
        Arguments::Text(text) if policy::arguments::parse(&text).is_err() => {
            Err(RecordError::Arguments(
                "a JSON object that passes the check of arguments, or else their length and digest",
            ))
        }
        Arguments::SameAs { .. } => Err(RecordError::Arguments(
            "given in full: the supervisor finds out itself what is stored already",
        )),
        arguments => Ok(arguments),
    }
}

#[cfg(test)]
mod tests;
