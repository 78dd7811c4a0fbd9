//! The table of rows: one line for each act, with what it is to answer in every column.
//!
//! `what it is | act | without a sandbox | ours as root | ours without root | bubblewrap | remarks`
//!
//! An answer is `ok`, `held`, an errno, or the signal that killed it; `/` separates answers that are equally right, `=` is
//! the answer of the column to the left, `any` is whatever the settings of the host make of it. Remarks are separated by
//! `;`: `user` (without a sandbox the plain user tries it), `alone` (it gets a launch of its own), `layer NAME` (not judged
//! where the launch says that this layer is a gap, unless `bare` says what is right), `outside WHAT` (the act succeeds, and what comes of it is seen from
//! outside; a launch of its own), `bare ANSWER` (in ours where no namespaces can be made, if it is not what it is in ours
//! without root; `-` if the act makes no sense there), `why TEXT` (why the act cannot simply succeed without a sandbox).

use super::column::{Answer, Column};

macro_rules! areas {
    ($($area:literal,)+) => {
        /// The table, by area.
        pub const AREAS: &[(&str, &str)] = &[
            $(($area, include_str!(concat!("../../escape/rows/", $area, ".txt"))),)+
        ];
    };
}

areas! {
    "files",
    "modes",
    "mounts",
    "processes",
    "privilege",
    "calls",
    "network",
    "resources",
    "information",
}

/// What is looked at from outside, after an act that itself succeeds everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// Whether what it has started is there after the program's end.
    Left,
    /// Whether that is there after the end of who started all of it, while process 1 of the sandbox is stopped.
    Orphaned,
    /// Whether it got all the processor time that it wanted at once.
    Unthrottled,
    /// Whether the victim has a signal that it keeps back.
    Told,
}

/// The answers that are right for one row in one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected(Vec<String>);

impl Expected {
    /// Whether nothing is asked there.
    #[must_use]
    pub fn is_no_question(&self) -> bool {
        self.0 == ["-"]
    }

    /// Whether this answer is one of them. One that could not be tried, or that did not come, never is.
    #[must_use]
    pub fn is(&self, answer: &Answer) -> bool {
        let word = answer.word();
        let tried = !matches!(word, "unable" | "silent" | "missing");
        self.is_no_question() || tried && self.0.iter().any(|one| one == "any" || one == word)
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(" or "))
    }
}

/// One row.
#[derive(Debug, Clone)]
pub struct Row {
    /// What it is about, in words.
    pub name: String,
    /// The act and its words, with `@` names for what the room has.
    pub act: String,
    answers: [Expected; 5],
    /// Without a sandbox the plain user tries it.
    pub user: bool,
    /// Nothing else runs in its sandbox.
    pub alone: bool,
    /// What is right without namespaces is said for itself.
    pub bare: bool,
    /// The layer that refuses, where a launch may lack it.
    pub layer: Option<String>,
    /// Who says what came of it, if not the act.
    pub outside: Option<Outside>,
}

impl Row {
    /// What is right in a column.
    #[must_use]
    pub const fn expected(&self, column: Column) -> &Expected {
        &self.answers[column as usize]
    }
}

/// The rows of an area's text.
///
/// # Panics
/// A line is no row, or a row whose act does not succeed without a sandbox does not say why.
#[must_use]
pub fn rows(text: &str) -> Vec<Row> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(row)
        .collect()
}

fn row(line: &str) -> Row {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, act, free, root, rootless, bubblewrap, remarks @ ..] = fields.as_slice() else {
        panic!("{line:?} has no answer for every column");
    };
    let mut answers: Vec<Expected> = Vec::new();
    for text in [free, root, rootless, bubblewrap] {
        let expected = match (*text, answers.last()) {
            ("=", Some(before)) => before.clone(),
            (text, _) => Expected(text.split('/').map(str::to_owned).collect()),
        };
        answers.push(expected);
    }
    // Without namespaces it is as without root, where nothing else is said.
    answers.push(answers[Column::Rootless as usize].clone());
    let mut row = Row {
        name: (*name).to_owned(),
        act: (*act).to_owned(),
        answers: answers.try_into().unwrap(),
        user: false,
        alone: false,
        bare: false,
        layer: None,
        outside: None,
    };
    let mut reason = false;
    for remark in remarks
        .iter()
        .flat_map(|text| text.split(';'))
        .map(str::trim)
    {
        match remark.split_once(' ') {
            _ if remark.is_empty() => {}
            _ if remark == "user" => row.user = true,
            _ if remark == "alone" => row.alone = true,
            Some(("bare", answer)) => {
                let answers = answer.split('/').map(str::to_owned).collect();
                row.answers[Column::Bare as usize] = Expected(answers);
                row.bare = true;
            }
            Some(("layer", layer)) => row.layer = Some(layer.to_owned()),
            Some(("why", _)) => reason = true,
            Some(("outside", what)) => {
                row.alone = true;
                row.outside = Some(match what {
                    "left" => Outside::Left,
                    "orphaned" => Outside::Orphaned,
                    "unthrottled" => Outside::Unthrottled,
                    "told" => Outside::Told,
                    _ => panic!("{line:?}: nobody looks at {what:?}"),
                });
            }
            _ => panic!("{line:?}: {remark:?} is no remark"),
        }
    }
    let succeeds = row.expected(Column::Free).0 == ["ok"];
    assert!(
        succeeds || reason,
        "{line:?} does not say why it cannot succeed without a sandbox"
    );
    row
}
