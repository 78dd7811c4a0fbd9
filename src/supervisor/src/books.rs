//! What the supervisor remembers of the log it writes: decisions whose end is not recorded yet, and where an argument
//! text already stands. Both can be rebuilt from the log; nothing here is an authority.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use proto::audit::{Outcome, OutcomeStatus};
use proto::{Arguments, Entry, Hash32, Labels, Line, SessionId};
use sha2::{Digest, Sha256};

/// The most argument texts whose place is remembered; an older one is stored again when it returns.
const MOST_TEXTS: usize = 4096;

/// A decision that let a call run and whose outcome is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenDecision {
    /// Its session.
    pub(crate) session: SessionId,
    /// What its result was going to be labelled.
    pub(crate) labels: Labels,
}

impl OpenDecision {
    /// What the log says of it, the decision in line `of`, when nobody saw how it ended.
    pub(crate) fn unknown(self, of: u64) -> Outcome {
        Outcome {
            of,
            session: self.session,
            status: OutcomeStatus::Unknown,
            class: self.labels.class,
            untrusted: self.labels.untrusted,
            truncated: false,
            bytes: 0,
            cause: None,
            exit: None,
            usage: None,
        }
    }
}

/// The memory of the log.
#[derive(Debug, Default)]
pub(crate) struct Books {
    open: BTreeMap<u64, OpenDecision>,
    live: BTreeSet<u64>,
    texts: HashMap<(SessionId, Hash32), u64>,
    order: VecDeque<(SessionId, Hash32)>,
}

impl Books {
    /// Takes one line of the log in; the lines must come in order.
    pub(crate) fn read(&mut self, line: &Line) {
        match &line.entry {
            Entry::Decision(decision) => {
                if let Arguments::Text(text) = &decision.arguments {
                    self.remember(&decision.session, text, line.seq);
                }
                if let (Some(_), Some(labels)) = (decision.decision.granted(), decision.labels) {
                    let session = decision.session.clone();
                    self.open.insert(line.seq, OpenDecision { session, labels });
                }
            }
            Entry::Outcome(Outcome { of, .. }) => {
                self.open.remove(of);
            }
            _ => {}
        }
    }

    /// A decision of this life of brokerd was stored; its end will come from a live ticket.
    pub(crate) fn committed(&mut self, seq: u64, decision: OpenDecision) {
        self.open.insert(seq, decision);
        self.live.insert(seq);
    }

    /// The end of a live decision was recorded.
    pub(crate) fn finished(&mut self, seq: u64) {
        self.open.remove(&seq);
        self.live.remove(&seq);
    }

    /// brokerd is gone and every sandbox with it: no decision is live any more.
    pub(crate) fn nothing_is_live(&mut self) {
        self.live.clear();
    }

    /// Takes out every open decision, for a log of which nothing is live.
    pub(crate) fn take_all_unknown(&mut self) -> BTreeMap<u64, OpenDecision> {
        self.live.clear();
        std::mem::take(&mut self.open)
    }

    /// Takes out an open decision that is no live ticket's, for the record that nobody saw its end.
    pub(crate) fn take_unknown(&mut self, seq: u64) -> Option<OpenDecision> {
        if self.live.contains(&seq) {
            return None;
        }
        self.open.remove(&seq)
    }

    /// How `text` is stored in the next record of `session`: in full, or by the line that holds it (formats.md
    /// section 5).
    pub(crate) fn stored_form(&self, session: &SessionId, text: &str) -> Arguments {
        match self.texts.get(&(session.clone(), digest(text.as_bytes()))) {
            Some(seq) => Arguments::SameAs { same_as: *seq },
            None => Arguments::Text(text.to_owned()),
        }
    }

    /// `text` stands in full in line `seq`. Of two lines that hold it the first counts.
    pub(crate) fn remember(&mut self, session: &SessionId, text: &str, seq: u64) {
        let key = (session.clone(), digest(text.as_bytes()));
        if self.texts.contains_key(&key) {
            return;
        }
        if self.order.len() >= MOST_TEXTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.texts.insert(key, seq);
    }
}

/// SHA-256 of `bytes`.
pub(crate) fn digest(bytes: &[u8]) -> Hash32 {
    Hash32::new(Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::history::tests::{decision_line, outcome_line};

    fn session() -> SessionId {
        SessionId::new("s").unwrap()
    }

    #[test]
    fn a_text_is_stored_in_full_once_for_each_session() {
        let mut books = Books::default();
        let text = Arguments::Text("{}".to_owned());
        assert_eq!(books.stored_form(&session(), "{}"), text);
        books.remember(&session(), "{}", 3);
        books.remember(&session(), "{}", 9);
        assert_eq!(
            books.stored_form(&session(), "{}"),
            Arguments::SameAs { same_as: 3 }
        );
        assert_eq!(books.stored_form(&SessionId::new("t").unwrap(), "{}"), text);
    }

    #[test]
    fn an_old_text_gives_way_and_is_stored_in_full_again() {
        let mut books = Books::default();
        for seq in 0..=MOST_TEXTS as u64 {
            books.remember(&session(), &seq.to_string(), seq);
        }
        assert_eq!(
            books.stored_form(&session(), "0"),
            Arguments::Text("0".to_owned())
        );
        assert_eq!(
            books.stored_form(&session(), "1"),
            Arguments::SameAs { same_as: 1 }
        );
    }

    #[test]
    fn a_decision_is_open_until_its_outcome_and_a_live_one_is_nobody_elses_to_close() {
        let mut books = Books::default();
        books.read(&decision_line(4, "s"));
        books.read(&decision_line(5, "s"));
        books.read(&outcome_line(6, 4, "s"));
        assert_eq!(books.take_unknown(4), None);
        let labels = Labels {
            class: proto::DataClass::Secret,
            untrusted: true,
        };
        let open = OpenDecision {
            session: session(),
            labels,
        };
        assert_eq!(books.take_unknown(5), Some(open.clone()));
        assert_eq!(books.take_unknown(5), None);
        books.committed(7, open.clone());
        assert_eq!(books.take_unknown(7), None);
        books.nothing_is_live();
        assert_eq!(books.take_unknown(7), Some(open.clone()));
        books.committed(8, open);
        books.finished(8);
        books.nothing_is_live();
        assert_eq!(books.take_unknown(8), None);
    }
}
