//! The columns: the same acts without a sandbox, in ours as root, in ours as a plain user, in ours as one who can make no
//! namespaces, and in bubblewrap. All of them start on the same stand, so that each has the same to lose.

use std::collections::BTreeMap;

use proto::Confinement;
use serde::Deserialize;

use super::start::{Start, end_of_starter, left};
use super::table::Outside;
use super::{Room, Row};

pub use super::start::bubblewrap_works;

/// Where the acts are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Without a sandbox, as root but for rows of the plain user's.
    Free,
    /// In ours, started by root.
    Root,
    /// In ours, started by the plain user.
    Rootless,
    /// In bubblewrap's, started by the plain user.
    Bubblewrap,
    /// In ours, started by the plain user where no namespaces can be made.
    Bare,
}

/// How ours is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    /// The steps and parts that are left out, by the tests' own stage; none by the shipped one.
    pub without: Vec<String>,
    /// A filter that the probe puts on itself.
    pub filter: Option<Vec<u8>>,
    /// Whether it waited in the warm pool before.
    pub pooled: bool,
}

/// What one act came to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Answer {
    outcome: String,
    errno: String,
    /// In words.
    pub detail: String,
}

impl Answer {
    /// `ok`, `held`, the errno, the signal; or that there was none.
    #[must_use]
    pub fn word(&self) -> &str {
        match self.outcome.as_str() {
            "refused" => &self.errno,
            "killed" => &self.detail,
            other => other,
        }
    }

    fn missing(detail: &str) -> Self {
        Self {
            outcome: "missing".to_owned(),
            errno: String::new(),
            detail: detail.to_owned(),
        }
    }

    fn seen(done: bool, detail: &str) -> Self {
        Self {
            outcome: if done { "ok" } else { "held" }.to_owned(),
            errno: String::new(),
            detail: detail.to_owned(),
        }
    }
}

/// What all acts of a run came to, in the order of the rows.
#[derive(Debug)]
pub struct Ran {
    /// One for each row.
    pub answers: Vec<Answer>,
    /// What was measured, where ours was launched; of the last launch.
    pub confinement: Option<Confinement>,
    /// Why a sandbox of ours was not launched.
    pub failed: Option<String>,
}

impl Column {
    /// Whether the sandbox is ours.
    #[must_use]
    pub const fn ours(self) -> bool {
        matches!(self, Self::Root | Self::Rootless | Self::Bare)
    }

    /// Tries every row in `room`.
    ///
    /// # Panics
    /// The column cannot be set up.
    #[must_use]
    pub fn run(self, room: &Room, rows: &[Row], stage: &Stage) -> Ran {
        let mut batches: BTreeMap<(bool, usize), Vec<usize>> = BTreeMap::new();
        let asked = |(_, row): &(usize, &Row)| !row.expected(self).is_no_question();
        for (index, row) in rows.iter().enumerate().filter(asked) {
            let user = self == Self::Free && row.user;
            let batch = if row.alone { index + 1 } else { 0 };
            batches.entry((user, batch)).or_default().push(index);
        }
        let mut answers = vec![Answer::missing("it was not tried"); rows.len()];
        let (mut confinement, mut failed) = (None, None);
        for ((user, _), batch) in batches {
            let mut start = Start {
                column: self,
                room,
                stage,
                user,
                input: batch
                    .iter()
                    .map(|&index| format!("{index} {}\n", room.act(&rows[index].act, self)))
                    .collect(),
                watch_processor: false,
            };
            if let [index] = *batch
                && let Some(outside) = rows[index].outside
            {
                answers[index] = seen_from_outside(&mut start, outside, index);
                continue;
            }
            let ended = start.to_its_end();
            let told = parse(&ended.said);
            if self.ours() && ended.confinement.is_none() {
                failed = Some(ended.said.clone());
            }
            confinement = ended.confinement.or(confinement);
            for index in batch {
                let none = || Answer::missing("it ended before");
                answers[index] = told.get(&index).cloned().unwrap_or_else(none);
            }
        }
        Ran {
            answers,
            confinement,
            failed,
        }
    }
}

/// What comes of an act that succeeds by itself.
fn seen_from_outside(start: &mut Start<'_>, outside: Outside, index: usize) -> Answer {
    if outside == Outside::Orphaned {
        // It does not end by itself.
        start
            .input
            .push_str(&format!("0 stay {}\n", start.room.nonce()));
        return match end_of_starter(start) {
            Ok(left) => Answer::seen(left, "after the end of who started it"),
            Err(why) => Answer::missing(&why),
        };
    }
    start.watch_processor = outside == Outside::Unthrottled;
    let ended = start.to_its_end();
    match parse(&ended.said).remove(&index) {
        None => Answer::missing(&format!("all that was said: {}", ended.said)),
        Some(answer) if answer.word() != "ok" => answer,
        Some(_) if outside == Outside::Told => {
            Answer::seen(start.room.victim_was_told(), "by the kernel")
        }
        Some(_) if outside == Outside::Left => Answer::seen(left(start), "after its end"),
        Some(answer) => match (&ended.confinement, ended.throttled) {
            (None, _) => answer,
            (Some(_), Some(held_back)) => Answer::seen(!held_back, "its group's processor time"),
            (Some(_), None) => Answer::missing("its group's processor time cannot be seen"),
        },
    }
}

/// The answers by the number of their row.
fn parse(said: &str) -> BTreeMap<usize, Answer> {
    #[derive(Deserialize)]
    struct Line {
        id: String,
        #[serde(flatten)]
        answer: Answer,
    }
    said.lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
        .filter_map(|line| Some((line.id.parse().ok()?, line.answer)))
        .collect()
}
