//! When a role that ended is started again (architecture.md section 6), as `[restart]` of config.toml says. Pure: the
//! caller says what time it is, and gives the chance.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use proto::config::Restart;

/// What follows the end of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Start it again after this time.
    After(Duration),
    /// It ended too often.
    GiveUp,
}

/// The ends of one role.
#[derive(Debug)]
pub(crate) struct Ends<'a> {
    rule: &'a Restart,
    ends: VecDeque<Instant>,
    draw: fn() -> u16,
}

impl<'a> Ends<'a> {
    /// No ends yet.
    pub(crate) fn new(rule: &'a Restart) -> Self {
        Self::drawing(rule, chance)
    }

    /// As [`Ends::new`]; of each wait, as much of the part that `jitter` allows is left out as `draw` is of its range.
    fn drawing(rule: &'a Restart, draw: fn() -> u16) -> Self {
        let ends = VecDeque::new();
        Self { rule, ends, draw }
    }

    /// The role ended at `now`.
    pub(crate) fn ended(&mut self, now: Instant) -> Next {
        let window = self.rule.window;
        self.ends
            .retain(|end| now.saturating_duration_since(*end) < window);
        self.ends.push_back(now);
        let count = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        if count >= self.rule.give_up.get() {
            return Next::GiveUp;
        }
        let doubled = 2_u32.saturating_pow(count - 1);
        let wait = self.rule.backoff_first.saturating_mul(doubled);
        Next::After(self.shorten(wait.min(self.rule.backoff_max)))
    }

    fn shorten(&self, wait: Duration) -> Duration {
        // At most a day, so the product stays far below the greatest number.
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        let part = micros
            .saturating_mul(u64::from(self.rule.jitter))
            .saturating_mul(u64::from((self.draw)()));
        wait.saturating_sub(Duration::from_micros(part / 100 / u64::from(u16::MAX)))
    }
}

/// The keys of each new hasher differ, and nothing here must be hard to guess: roles that fell together must only not
/// rise together.
fn chance() -> u16 {
    let [first, second, ..] = RandomState::new().hash_one(()).to_ne_bytes();
    u16::from_ne_bytes([first, second])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> u16 {
        0
    }

    fn waits(rule: &Restart, draw: fn() -> u16) -> Vec<Next> {
        let now = Instant::now();
        let mut ends = Ends::drawing(rule, draw);
        let mut waits = Vec::new();
        while waits.last() != Some(&Next::GiveUp) {
            waits.push(ends.ended(now));
        }
        waits
    }

    fn after(millis: &[u64]) -> Vec<Next> {
        let after = |millis: &u64| Next::After(Duration::from_millis(*millis));
        let waits = millis.iter().map(after);
        waits.chain([Next::GiveUp]).collect()
    }

    #[test]
    fn the_wait_doubles_and_the_tenth_end_is_the_last() {
        let millis = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600];
        assert_eq!(waits(&Restart::default(), none), after(&millis));
    }

    #[test]
    fn the_owner_sets_the_waits_and_the_last_end() {
        let rule = Restart {
            backoff_first: Duration::from_millis(7),
            backoff_max: Duration::from_millis(20),
            give_up: 5.try_into().unwrap(),
            ..Restart::default()
        };
        assert_eq!(waits(&rule, none), after(&[7, 14, 20, 20]));
        let once = Restart {
            give_up: 1.try_into().unwrap(),
            ..rule
        };
        assert_eq!(waits(&once, none), [Next::GiveUp]);
    }

    #[test]
    fn many_ends_do_not_overflow_the_wait() {
        let rule = Restart {
            give_up: 200.try_into().unwrap(),
            ..Restart::default()
        };
        let longest = Next::After(Duration::from_secs(30));
        assert_eq!(waits(&rule, none)[198], longest);
    }

    #[test]
    fn jitter_shortens_a_wait_by_its_percent_at_most() {
        let rule = |jitter| Restart {
            jitter,
            give_up: 2.try_into().unwrap(),
            ..Restart::default()
        };
        let most = || u16::MAX;
        assert_eq!(waits(&rule(20), most), after(&[80]));
        assert_eq!(waits(&rule(20), none), after(&[100]));
        assert_eq!(waits(&rule(20), || u16::MAX / 5), after(&[96]));
        assert_eq!(waits(&rule(100), most), after(&[0]));
        assert_eq!(waits(&rule(0), most), after(&[100]));
    }

    #[test]
    fn chance_is_not_always_the_same() {
        let first = chance();
        assert!((0..1000).any(|_| chance() != first));
    }

    #[test]
    fn an_end_outside_the_window_does_not_count() {
        let rule = Restart::default();
        let mut ends = Ends::drawing(&rule, none);
        let first = Instant::now();
        for _ in 0..9 {
            ends.ended(first);
        }
        let mut same = Ends::drawing(&rule, none);
        same.ends.clone_from(&ends.ends);
        let inside = first + rule.window - Duration::from_millis(1);
        assert_eq!(same.ended(inside), Next::GiveUp);
        let again = ends.ended(first + rule.window);
        assert_eq!(again, Next::After(rule.backoff_first));
    }
}
