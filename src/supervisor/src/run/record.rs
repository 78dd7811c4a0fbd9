//! The log of runs: a decision before the program starts, an outcome after its end, as for every call.

use std::path::Path;

use confine::launch::Ended;
use ledger::{Ledger, Paths};
use proto::audit::{
    Arguments, Decision, ExitCause, ExitStatus, Outcome, OutcomeStatus, SessionEvent,
};
use proto::{
    CallId, Confinement, DataClass, DecisionRecord, DenyReason, Entry, GrantId, Labels, SessionId,
};
use serde::Serialize;

use super::{Request, RunError};
use crate::books::Books;
use crate::broker::clock;
use crate::{count, in_full, voice};

/// What the tool of every run is called in the log.
const TOOL: &str = "run";
/// What its grant is called there: the option that is one.
const GRANT: &str = "allow";

/// The log of one run.
#[derive(Debug)]
pub(super) struct Record {
    ledger: Ledger,
    session: SessionId,
}

/// What is run, as it stands in the record: the arguments of the call.
#[derive(Debug)]
pub(super) struct Subject(String);

#[derive(Serialize)]
struct Said<'a> {
    program: &'a [String],
    allow: String,
    profile: &'a str,
}

impl Subject {
    /// `program` are the program's path and its words.
    pub(super) fn new(request: &Request, program: &[String]) -> Result<Self, RunError> {
        let said = Said {
            program,
            allow: request.budget.to_string(),
            profile: &request.profile,
        };
        let text = serde_json::to_string(&said).map_err(|error| failed(&error))?;
        Ok(Self(text))
    }
}

fn failed(error: &dyn std::error::Error) -> RunError {
    RunError::Record(in_full(error))
}

impl Record {
    /// Opens the log in `home`, which this process holds, and says in it that nobody saw the end of what a run that was killed
    /// had begun.
    pub(super) fn open(home: &Path, most: u64) -> Result<Self, RunError> {
        let paths = Paths {
            audit: home.join("audit"),
            anchor: home.join("anchor"),
        };
        let (ledger, opened) =
            Ledger::open(&paths, Box::new(clock)).map_err(|error| failed(&error))?;
        ledger.limit(most);
        if let Some(torn) = opened.recovered {
            voice::remark(&format!(
                "{} ended in a torn line of {}; it is kept, and record {} says so",
                torn.file,
                count(torn.length, "byte"),
                torn.seq
            ));
        }
        let mut books = Books::default();
        for line in ledger::read(&paths) {
            books.read(&line.map_err(|error| failed(&error))?);
        }
        let now = clock().as_millis();
        let name = format!("run-{now}-{}", std::process::id());
        let session = SessionId::new(name).map_err(|error| failed(&error))?;
        let record = Self { ledger, session };
        for (of, open) in books.take_all_unknown() {
            record.append(Entry::Outcome(open.unknown(of)))?;
        }
        Ok(record)
    }

    /// That the program may start, before it does; the number of that record.
    pub(super) fn begins(
        &self,
        subject: &Subject,
        confinement: &Confinement,
    ) -> Result<u64, RunError> {
        let grant = grant()?;
        self.session(SessionEvent::Opened)?;
        let entry = self.decision(
            subject,
            DecisionRecord::Allowed { grant },
            "",
            Some(confinement),
        );
        let appended = self.ledger.begin(entry).map_err(|error| failed(&error))?;
        Ok(appended.seq)
    }

    /// That the sandbox was not built.
    pub(super) fn failed(&mut self, subject: &Subject, why: &str) -> Result<(), RunError> {
        self.denied(subject, DenyReason::LaunchFailed, why, None)
    }

    /// That less holds than is required.
    pub(super) fn weak(
        &mut self,
        subject: &Subject,
        why: &str,
        confinement: &Confinement,
    ) -> Result<(), RunError> {
        let reason = DenyReason::ConfinementTooWeak;
        self.denied(subject, reason, why, Some(confinement))
    }

    fn denied(
        &self,
        subject: &Subject,
        reason: DenyReason,
        why: &str,
        confinement: Option<&Confinement>,
    ) -> Result<(), RunError> {
        let grant = Some(grant()?);
        self.session(SessionEvent::Opened)?;
        let denied = DecisionRecord::Denied { reason, grant };
        self.append(self.decision(subject, denied, why, confinement))?;
        self.session(SessionEvent::Ended)
    }

    /// How the program of record `of` ended.
    pub(super) fn ended(&self, of: u64, ended: &Ended) -> Result<(), RunError> {
        let well = (ended.cause, ended.exit) == (ExitCause::Exited, Some(ExitStatus::Code(0)));
        let outcome = Outcome {
            of,
            session: self.session.clone(),
            status: match well {
                true => OutcomeStatus::Result,
                false => OutcomeStatus::Failed,
            },
            class: LABELS.class,
            untrusted: LABELS.untrusted,
            truncated: false,
            bytes: 0,
            cause: Some(ended.cause),
            exit: ended.exit,
            usage: Some(ended.usage),
        };
        self.append(Entry::Outcome(outcome))?;
        self.session(SessionEvent::Ended)
    }

    fn decision(
        &self,
        subject: &Subject,
        decision: DecisionRecord,
        detail: &str,
        confinement: Option<&Confinement>,
    ) -> Entry {
        Entry::Decision(Box::new(Decision {
            session: self.session.clone(),
            call: CallId(1),
            tool: TOOL.to_owned(),
            arguments: Arguments::Text(subject.0.clone()),
            session_taint: LABELS.class,
            labels: decision.granted().map(|_| LABELS),
            decision,
            detail: detail.to_owned(),
            // No policy was loaded.
            generation: 0,
            confinement: confinement.cloned(),
        }))
    }

    fn session(&self, event: SessionEvent) -> Result<(), RunError> {
        self.append(Entry::Session {
            session: self.session.clone(),
            event,
            by: TOOL.to_owned(),
        })
    }

    fn append(&self, entry: Entry) -> Result<(), RunError> {
        let appended = self.ledger.append_durable(entry);
        appended.map(drop).map_err(|error| failed(&error))
    }
}

/// Nobody but whoever typed the command gets to see what the program writes, and it is marked as if it were a stranger's.
const LABELS: Labels = Labels {
    class: DataClass::Private,
    untrusted: true,
};

fn grant() -> Result<GrantId, RunError> {
    GrantId::new(GRANT).map_err(|error| failed(&error))
}
