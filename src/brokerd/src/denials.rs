//! Many equal denials become one counted record, so that a caller who asks without end cannot fill the log
//! (protocol.md section 6). Pure: both clocks are arguments.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::{DenyReason, SessionId, Timestamp};

/// How many equal denials have a record of their own in each [`WINDOW`].
pub(crate) const OWN_RECORDS: u32 = 8;

/// The minute of "8 equal denials a minute"; it begins with the first of them.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// How many different denials of one session are told apart in a minute. Past that, a caller that invents tool names
/// would still fill log and memory, so the rest counts under [`ANY_TOOL`].
pub(crate) const KINDS: usize = 64;

/// Stands for the tools that are not told apart; no tool can have this name.
pub(crate) const ANY_TOOL: &str = "*";

/// What is to be done about a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It gets a record of its own.
    Record,
    /// It was counted and will be in a later [`Counted`].
    Count,
}

/// The denials of one kind beyond those with a record of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The session.
    pub(crate) session: SessionId,
    /// The tool as the caller named it, or [`ANY_TOOL`].
    pub(crate) tool: String,
    /// The reason they share.
    pub(crate) reason: DenyReason,
    /// How many; at least 1.
    pub(crate) count: u64,
    /// When the first of them was.
    pub(crate) first: Timestamp,
    /// When the last of them was.
    pub(crate) last: Timestamp,
}

#[derive(Debug)]
struct Window {
    since: Duration,
    own: u32,
    counted: Option<(u64, Timestamp, Timestamp)>,
}

impl Window {
    fn add(&mut self, time: Timestamp) {
        let (count, first) = self
            .counted
            .map_or((0, time), |(count, first, _)| (count, first));
        self.counted = Some((count + 1, first, time));
    }
}

/// The denials of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    sessions: BTreeMap<SessionId, BTreeMap<(String, DenyReason), Window>>,
    ended: Vec<Counted>,
}

impl Denials {
    /// Takes a denial. `elapsed` is a clock that only rises and measures the minute; `time` is what the record says.
    pub(crate) fn note(
        &mut self,
        session: &SessionId,
        tool: &str,
        reason: DenyReason,
        elapsed: Duration,
        time: Timestamp,
    ) -> Verdict {
        self.end_windows(|window| elapsed.saturating_sub(window.since) >= WINDOW);
        let kinds = self.sessions.entry(session.clone()).or_default();
        let mut key = (tool.to_owned(), reason);
        let mut own = 0;
        if !kinds.contains_key(&key) && kinds.len() >= KINDS {
            key.0 = ANY_TOOL.to_owned();
            own = OWN_RECORDS;
        }
        let window = kinds.entry(key).or_insert(Window {
            since: elapsed,
            own,
            counted: None,
        });
        if window.own < OWN_RECORDS {
            window.own += 1;
            return Verdict::Record;
        }
        window.add(time);
        Verdict::Count
    }

    /// Takes a denial that never gets a record of its own, because its session had too many. The tools of such denials
    /// are not told apart.
    pub(crate) fn count(
        &mut self,
        session: &SessionId,
        reason: DenyReason,
        elapsed: Duration,
        time: Timestamp,
    ) {
        self.end_windows(|window| elapsed.saturating_sub(window.since) >= WINDOW);
        let kinds = self.sessions.entry(session.clone()).or_default();
        let window = kinds
            .entry((ANY_TOOL.to_owned(), reason))
            .or_insert(Window {
                since: elapsed,
                own: OWN_RECORDS,
                counted: None,
            });
        window.add(time);
    }

    /// What was counted in the minutes that have ended by `elapsed`.
    pub(crate) fn due(&mut self, elapsed: Duration) -> Vec<Counted> {
        self.end_windows(|window| elapsed.saturating_sub(window.since) >= WINDOW);
        std::mem::take(&mut self.ended)
    }

    /// Everything that was counted; no minute is open after it.
    pub(crate) fn flush(&mut self) -> Vec<Counted> {
        self.end_windows(|_| true);
        std::mem::take(&mut self.ended)
    }

    fn end_windows(&mut self, ends: impl Fn(&Window) -> bool) {
        for (session, kinds) in &mut self.sessions {
            kinds.retain(|(tool, reason), window| {
                if !ends(window) {
                    return true;
                }
                if let Some((count, first, last)) = window.counted {
                    self.ended.push(Counted {
                        session: session.clone(),
                        tool: tool.clone(),
                        reason: *reason,
                        count,
                        first,
                        last,
                    });
                }
                false
            });
        }
        self.sessions.retain(|_, kinds| !kinds.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn id(text: &str) -> SessionId {
        SessionId::new(text).unwrap()
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn eight_equal_denials_are_recorded_and_the_rest_of_the_minute_is_counted_once() {
        let mut denials = Denials::default();
        let verdicts: Vec<_> = (0..1000)
            .map(|n| denials.note(&id("s"), "t", DenyReason::NoGrant, seconds(1), at(n)))
            .collect();
        assert_eq!(verdicts[..8], [Verdict::Record; 8]);
        assert_eq!(verdicts[8..], [Verdict::Count; 992]);
        assert_eq!(denials.due(seconds(60)), vec![]);
        let counted = denials.due(seconds(61));
        assert_eq!(
            counted,
            vec![Counted {
                session: id("s"),
                tool: "t".into(),
                reason: DenyReason::NoGrant,
                count: 992,
                first: at(8),
                last: at(999),
            }]
        );
        assert_eq!(denials.due(seconds(200)), vec![]);
    }

    #[test]
    fn eight_denials_leave_nothing_to_count() {
        let mut denials = Denials::default();
        for n in 0..8 {
            denials.note(&id("s"), "t", DenyReason::NoGrant, seconds(1), at(n));
        }
        assert_eq!(denials.flush(), vec![]);
    }

    #[test]
    fn another_session_tool_or_reason_has_eight_of_its_own() {
        let mut denials = Denials::default();
        let mut note = |session, tool, reason| {
            (0..9)
                .map(|n| denials.note(&id(session), tool, reason, seconds(0), at(n)))
                .filter(|verdict| *verdict == Verdict::Record)
                .count()
        };
        assert_eq!(note("s", "t", DenyReason::NoGrant), 8);
        assert_eq!(note("s", "u", DenyReason::NoGrant), 8);
        assert_eq!(note("s", "t", DenyReason::PathOutside), 8);
        assert_eq!(note("r", "t", DenyReason::NoGrant), 8);
        assert_eq!(denials.flush().len(), 4);
    }

    #[test]
    fn a_new_minute_has_eight_again_and_the_old_count_is_not_lost() {
        let mut denials = Denials::default();
        for n in 0..20 {
            denials.note(&id("s"), "t", DenyReason::NoGrant, seconds(0), at(n));
        }
        let again = denials.note(&id("s"), "t", DenyReason::NoGrant, seconds(60), at(70));
        assert_eq!(again, Verdict::Record);
        let counts: Vec<_> = denials.flush().iter().map(|ended| ended.count).collect();
        assert_eq!(counts, vec![12]);
    }

    #[test]
    fn invented_tool_names_are_counted_together_once_there_are_too_many() {
        let mut denials = Denials::default();
        let own = (0..10_000)
            .map(|n| {
                let tool = format!("invented{n}");
                denials.note(&id("s"), &tool, DenyReason::UnknownTool, seconds(0), at(n))
            })
            .filter(|verdict| *verdict == Verdict::Record)
            .count();
        assert_eq!(own, KINDS);
        let counted = denials.flush();
        assert_eq!(counted.len(), 1);
        assert_eq!(
            (counted[0].tool.as_str(), counted[0].count),
            (ANY_TOOL, 10_000 - KINDS as u64)
        );
    }
}
