//! What the files of a home say of a boxmaker that does not answer: its log, its anchor, and the configuration that it
//! would load now beside the one that it loaded last. Reads only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use ipc::Files;
use ledger::{Report, VerifyError};
use proto::audit::RoleEvent;
use proto::{Entry, Hash32, Timestamp};
use serde::Serialize;

use super::SILENT;
use crate::audit::AuditError;
use crate::audit::rows::of_role;
use crate::broker::BrokerError;
use crate::configuration;
use crate::moment;
use crate::place::{self, Place};
use crate::screen::Tone;
use crate::visible;

/// Whether somebody holds the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The supervisor runs; brokerd does not, or does not answer.
    Silent,
    /// Nobody runs.
    Stopped,
}

/// What the files say, as JSON and, by [`Stored::text`], in words.
#[derive(Debug, Serialize)]
pub(super) struct Stored {
    state: State,
    /// Why nobody answered.
    why: String,
    /// The time of the last record of a load.
    loaded: Option<Timestamp>,
    /// As in the answer of a broker; absent if no load is recorded or the configuration cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<String>>,
    /// The last record of each role.
    roles: Vec<Role>,
    audit: Audit,
}

#[derive(Debug, Serialize)]
struct Role {
    role: String,
    pid: Option<u32>,
    event: RoleEvent,
    time: Timestamp,
}

#[derive(Debug, Default, Serialize)]
struct Audit {
    /// How many records there are, up to a break.
    next: u64,
    last: Option<Timestamp>,
    anchored: u64,
    bytes: u64,
    /// Why it is not sound, or not known to be.
    wrong: Option<String>,
}

impl Stored {
    /// Looks at the files of `place`, where `error` is why brokerd did not answer; gives the error back if that says all.
    ///
    /// # Errors
    /// This user may not talk to brokerd, or brokerd has said something.
    pub(super) fn of(place: &Place, error: BrokerError) -> Result<Self, BrokerError> {
        let (state, why) = match error {
            BrokerError::Absent { path } => (
                State::Stopped,
                format!("there is no socket {}", path.display()),
            ),
            BrokerError::Deserted { path } => (
                State::Stopped,
                format!("nobody listens at {}", path.display()),
            ),
            BrokerError::Slow { .. } => (
                State::Silent,
                format!("brokerd has not answered for {} s", SILENT.as_secs()),
            ),
            BrokerError::Closed { .. } => {
                (State::Silent, "brokerd ended before it answered".to_owned())
            }
            other => return Err(other),
        };
        let mut stored = Self {
            state,
            why,
            loaded: None,
            changed: None,
            roles: Vec::new(),
            audit: Audit::default(),
        };
        stored.read_log(place);
        Ok(stored)
    }

    fn read_log(&mut self, place: &Place) {
        let paths = place::ledger(place);
        let mut roles = BTreeMap::new();
        let mut loaded = None;
        for line in ledger::read(&paths) {
            // What is wrong the verifier says.
            let Ok(line) = line else { break };
            self.audit.next = line.seq + 1;
            self.audit.last = Some(line.time);
            match line.entry {
                Entry::Policy { files, .. } => loaded = Some((line.time, files)),
                Entry::Role { role, pid, event } => drop(roles.insert(
                    role.clone(),
                    Role {
                        role,
                        pid,
                        event: *event,
                        time: line.time,
                    },
                )),
                _ => {}
            }
        }
        self.roles = roles.into_values().collect();
        self.loaded = loaded.as_ref().map(|(time, _)| *time);
        self.changed = loaded.and_then(|(_, files)| changed(place, &files));
        self.audit.bytes = size(&paths.audit);
        match ledger::verify(&paths) {
            Ok(Report::Sound(sound)) => {
                self.audit.anchored = sound.anchored.map_or(0, |last| last + 1);
            }
            Ok(Report::Broken(broken)) => self.audit.wrong = Some(format!("broken at {broken}")),
            Err(VerifyError::Missing { audit, .. }) => {
                self.audit.wrong = Some(format!("{} is not there", audit.display()));
            }
            Err(error) => self.audit.wrong = Some(AuditError::from(error).to_string()),
        }
    }

    /// The words, one fact a line; `colour` as the stream takes it.
    pub(super) fn text(&self, now: Timestamp, colour: bool) -> String {
        let state = match self.state {
            State::Silent => Tone::Warning.paint("runs, but brokerd does not answer", colour),
            State::Stopped => Tone::Bad.paint("does not run", colour),
        };
        let mut text = format!("supervisor  {state}\n");
        let mut more = |line: &str| text.push_str(&format!("            {line}\n"));
        more(&visible::line(&self.why));
        more(match self.state {
            State::Silent => {
                "it may be starting again: ask once more, and look at the output of `boxmaker up`"
            }
            State::Stopped => {
                "`boxmaker up` starts it; --home DIR or BOXMAKER_HOME names another home"
            }
        });
        if let Some(loaded) = self.loaded {
            more(&format!("last started {}", moment::ago(now, loaded)));
        }
        if let Some(changed) = self.changed.as_ref().filter(|changed| !changed.is_empty()) {
            let what = match self.state {
                State::Silent => configuration::stale(changed),
                State::Stopped => format!("changed since: {}", configuration::some(changed)),
            };
            more(&Tone::Warning.paint(&what, colour));
        }
        for role in &self.roles {
            let what = of_role(&role.role, role.pid, &role.event);
            let ago = moment::ago(now, role.time);
            more(&format!("{}, {ago}", visible::line(&what)));
        }
        text + &self.audit.text(now, colour)
    }
}

impl Audit {
    fn text(&self, now: Timestamp, colour: bool) -> String {
        let records = match self.last {
            Some(last) => format!(
                "{}, the last {}",
                visible::count(self.next, "record"),
                moment::ago(now, last)
            ),
            None => "no record".to_owned(),
        };
        if let Some(wrong) = &self.wrong {
            let wrong = Tone::Bad.paint(&visible::text(wrong), colour);
            return format!("audit log   {records}\n            {wrong}\n");
        }
        format!(
            "audit log   {}; {records}\n            {}; {}\n",
            Tone::Good.paint("sound", colour),
            visible::size(self.bytes),
            super::anchored(self.anchored, self.next),
        )
    }
}

/// The files that are not what was loaded, if the configuration can be read.
fn changed(place: &Place, loaded: &BTreeMap<String, Hash32>) -> Option<Vec<String>> {
    let now = policy::hashes(&Files::read(&place.config).ok()?.0);
    let names: BTreeSet<&String> = now.keys().chain(loaded.keys()).collect();
    let differs = |name: &&String| now.get(*name) != loaded.get(*name);
    Some(names.into_iter().filter(differs).cloned().collect())
}

/// The bytes of all day files.
fn size(audit: &std::path::Path) -> u64 {
    let entries = fs::read_dir(audit).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "jsonl"))
        .filter_map(|entry| entry.metadata().ok())
        .map(|found| found.len())
        .sum()
}
