//! When a role that ended is started again (architecture.md section 6). Pure: the caller says what time it is.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The wait after the first end in the window; it doubles with each further one.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);
/// This many ends within the window are the last.
const GIVE_UP: usize = 10;
/// How long an end counts. One good start does not clear it.
const WINDOW: Duration = Duration::from_secs(300);

/// What follows the end of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Start it again after this time.
    After(Duration),
    /// It ended too often.
    GiveUp,
}

/// The ends of one role.
#[derive(Debug, Default)]
pub(crate) struct Ends(VecDeque<Instant>);

impl Ends {
    /// The role ended at `now`.
    pub(crate) fn ended(&mut self, now: Instant) -> Next {
        self.0
            .retain(|end| now.saturating_duration_since(*end) < WINDOW);
        self.0.push_back(now);
        if self.0.len() >= GIVE_UP {
            return Next::GiveUp;
        }
        let doublings = u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX);
        let wait = FIRST.saturating_mul(2_u32.saturating_pow(doublings));
        Next::After(wait.min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_and_the_tenth_end_is_the_last() {
        let mut ends = Ends::default();
        let now = Instant::now();
        let waits: Vec<Next> = (0..10).map(|_| ends.ended(now)).collect();
        let millis = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600];
        let expected: Vec<Next> = millis
            .into_iter()
            .map(|millis| Next::After(Duration::from_millis(millis)))
            .chain([Next::GiveUp])
            .collect();
        assert_eq!(waits, expected);
    }

    #[test]
    fn an_end_outside_the_window_does_not_count() {
        let mut ends = Ends::default();
        let first = Instant::now();
        for _ in 0..9 {
            ends.ended(first);
        }
        let mut same = Ends(ends.0.clone());
        let inside = first + WINDOW - Duration::from_millis(1);
        assert_eq!(same.ended(inside), Next::GiveUp);
        assert_eq!(ends.ended(first + WINDOW), Next::After(FIRST));
    }
}
