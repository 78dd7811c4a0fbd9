//! `bxctl sessions`: the sessions that the log knows, as brokerd tells them.

use proto::client::SessionListReply;
use proto::{DataClass, Timestamp};

use crate::moment;
use crate::screen::Tone;
use crate::table::{Cell, Fit, Table};

/// The sessions as a table, times as seen at `now`.
#[must_use]
pub fn table(reply: &SessionListReply, now: Timestamp) -> Table {
    let mut table = Table::new(&[
        ("session", Fit::Wrap),
        ("state", Fit::Whole),
        ("taint", Fit::Whole),
        ("untrusted", Fit::Whole),
        ("calls", Fit::Number),
        ("denied", Fit::Number),
        ("last", Fit::Whole),
    ]);
    for session in &reply.sessions {
        table.row(vec![
            Cell::new(session.session.as_str()),
            if session.open {
                Cell::new("open").tone(Tone::Good)
            } else {
                "ended".into()
            },
            class(session.taint),
            if session.untrusted {
                Cell::new("yes").tone(Tone::Warning)
            } else {
                "no".into()
            },
            session.calls.to_string().into(),
            session.denied.to_string().into(),
            moment::ago(now, session.last).into(),
        ]);
    }
    table
}

fn class(class: DataClass) -> Cell {
    let tone = if class == DataClass::Secret {
        Tone::Warning
    } else {
        Tone::Plain
    };
    Cell::new(class.to_string()).tone(tone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_listed_with_times_as_people_say_them() {
        let reply: SessionListReply = serde_json::from_str(
            r#"{"sessions": [{"session": "s-2", "open": true, "taint": "secret", "untrusted": true, "calls": 12,
                "denied": 3, "last": "2026-09-17T08:02:00.000Z"}, {"session": "s-1", "open": false, "taint":
                "private", "untrusted": false, "calls": 0, "denied": 0, "last": "2026-09-16T08:02:00.000Z"}]}"#,
        )
        .unwrap();
        let now = "2026-09-17T08:05:00.000Z".parse().unwrap();
        assert_eq!(
            table(&reply, now).render(80, false),
            "session  state  taint    untrusted  calls  denied  last\n\
             s-2      open   secret   yes           12       3  3 min ago\n\
             s-1      ended  private  no             0       0  1 day ago\n"
        );
    }
}
