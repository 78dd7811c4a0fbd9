//! Times and durations as people say and type them. No clock: the present is an argument. Everything is UTC.

use proto::Timestamp;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no time: write a day (2026-09-17), a day and time in UTC (2026-09-17T08:05), or how long ago (90s, 15m, 2h, 3d)"
)]
pub struct TimeError {
    /// What was given.
    pub text: String,
}

/// How long `then` is before `now`, in one unit: `3 min ago`; a time to come is `in 3 min`; past 30 days, the day.
#[must_use]
pub fn ago(now: Timestamp, then: Timestamp) -> String {
    let distance = now.as_millis().abs_diff(then.as_millis());
    let (count, unit) = match distance {
        0..SECOND => return "just now".to_owned(),
        SECOND..MINUTE => (distance / SECOND, "s"),
        MINUTE..HOUR => (distance / MINUTE, "min"),
        HOUR..DAY => (distance / HOUR, "h"),
        _ if distance < 2 * DAY => (1, "day"),
        _ if distance < 30 * DAY => (distance / DAY, "days"),
        _ => return day(then),
    };
    if then > now {
        format!("in {count} {unit}")
    } else {
        format!("{count} {unit} ago")
    }
}

/// A duration given in milliseconds: `43 ms`, `1.4 s`, `2 min 3 s`.
#[must_use]
pub fn duration(millis: u64) -> String {
    match millis {
        0..SECOND => format!("{millis} ms"),
        SECOND..MINUTE => format!("{}.{} s", millis / SECOND, millis % SECOND / 100),
        MINUTE..HOUR => format!("{} min {} s", millis / MINUTE, millis % MINUTE / SECOND),
        _ => format!("{} h {} min", millis / HOUR, millis % HOUR / MINUTE),
    }
}

/// The day of a time, `2026-09-17`.
#[must_use]
pub fn day(time: Timestamp) -> String {
    time.to_string().chars().take(10).collect()
}

/// The time of day, `08:05:00`.
#[must_use]
pub fn clock(time: Timestamp) -> String {
    time.to_string().chars().skip(11).take(8).collect()
}

/// Reads a time: `2026-09-17`, that day with a time to the minute, second or millisecond (`T` or a space between,
/// `Z` or nothing at the end), or a count of `s`, `m`, `h`, `d` or `w` before `now`.
///
/// # Errors
/// [`TimeError`] for anything else.
pub fn parse(text: &str, now: Timestamp) -> Result<Timestamp, TimeError> {
    before(text, now)
        .or_else(|| point(text))
        .ok_or_else(|| TimeError {
            text: text.to_owned(),
        })
}

fn before(text: &str, now: Timestamp) -> Option<Timestamp> {
    let unit = match text.chars().next_back()? {
        's' => SECOND,
        'm' => MINUTE,
        'h' => HOUR,
        'd' => DAY,
        'w' => 7 * DAY,
        _ => return None,
    };
    let count: u64 = text[..text.len() - 1].parse().ok()?;
    let span = count.checked_mul(unit)?;
    Some(Timestamp::from_millis(now.as_millis().saturating_sub(span)))
}

fn point(text: &str) -> Option<Timestamp> {
    // What is not said is taken from the beginning of the day, minute or second.
    const START: &str = "0000-00-00T00:00:00.000Z";
    let said = text.strip_suffix('Z').unwrap_or(text).replacen(' ', "T", 1);
    if !matches!(said.len(), 10 | 16 | 19 | 23) || !said.is_ascii() {
        return None;
    }
    format!("{said}{}", &START[said.len()..]).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn distances_are_said_in_one_unit() {
        let now = at("2026-09-17T08:05:00.000Z");
        for (then, said) in [
            ("2026-09-17T08:05:00.000Z", "just now"),
            ("2026-09-17T08:04:59.000Z", "1 s ago"),
            ("2026-09-17T08:02:00.000Z", "3 min ago"),
            ("2026-09-17T08:04:00.001Z", "59 s ago"),
            ("2026-09-17T06:00:00.000Z", "2 h ago"),
            ("2026-09-16T06:00:00.000Z", "1 day ago"),
            ("2026-09-07T06:00:00.000Z", "10 days ago"),
            ("2026-01-07T06:00:00.000Z", "2026-01-07"),
            ("2026-09-17T08:08:00.000Z", "in 3 min"),
        ] {
            assert_eq!(ago(now, at(then)), said);
        }
    }

    #[test]
    fn durations_are_said_to_a_useful_precision() {
        let said = [0, 43, 1449, 123_000, 3_720_000].map(duration);
        assert_eq!(said, ["0 ms", "43 ms", "1.4 s", "2 min 3 s", "1 h 2 min"]);
    }

    #[test]
    fn times_are_read_as_people_type_them() {
        let now = at("2026-09-17T08:05:00.000Z");
        for (typed, meant) in [
            ("2026-09-17", "2026-09-17T00:00:00.000Z"),
            ("2026-09-17T08:05", "2026-09-17T08:05:00.000Z"),
            ("2026-09-17 08:05:07", "2026-09-17T08:05:07.000Z"),
            ("2026-09-17T08:05:07.250Z", "2026-09-17T08:05:07.250Z"),
            ("90s", "2026-09-17T08:03:30.000Z"),
            ("2h", "2026-09-17T06:05:00.000Z"),
            ("1w", "2026-09-10T08:05:00.000Z"),
        ] {
            assert_eq!(parse(typed, now), Ok(at(meant)), "{typed}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for typed in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-09-17T8",
            "h",
            "-3h",
            "3x",
            "ü7-09-2026",
        ] {
            let error = parse(typed, Timestamp::from_millis(0)).unwrap_err();
            assert_eq!(error.text, typed);
        }
    }

    #[test]
    fn day_and_clock_are_the_parts_of_the_exact_time() {
        let time = at("2026-09-17T08:05:07.250Z");
        assert_eq!(
            (day(time).as_str(), clock(time).as_str()),
            ("2026-09-17", "08:05:07")
        );
    }
}
