//! `bxctl check`: every mistake of the configuration that can be seen without starting anything, or how much there is of
//! it, and what is left to `boxmaker up`.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use confine::accounts::Accounts;
use confine::named::{Missing, Named};
use serde::Serialize;

use crate::configuration::{Complaint, Configuration};
use crate::visible::count;

/// What only `boxmaker up` checks, in the words of `--json` and of people: whoever asks here may not be who starts it.
const LEFT: [(&str, &str); 2] = [
    (
        "granted_paths",
        "where granted paths lead and whose they are",
    ),
    ("as_without_root", "`as`, if it runs without root"),
];

/// The answer as JSON and, by [`Verdict::text`], in words.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether there is no error.
    pub ok: bool,
    /// Grants, tools and profiles; absent when there are errors.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// What is wrong, by file and line.
    pub errors: Vec<Complaint>,
    /// What could not be looked at by this user, and may be right or wrong.
    pub unseen: Vec<Complaint>,
    /// What is not looked at here.
    pub left_to_up: Vec<&'static str>,
}

/// How much was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "each field counts what it is named for")]
pub struct Counts {
    pub grants: usize,
    pub tools: usize,
    /// The built-in ones included.
    pub profiles: usize,
}

impl Verdict {
    /// On a configuration whose files are right by themselves: whether the host has what they name. `binaries` is where
    /// boxmaker's own are.
    #[must_use]
    pub fn of(configuration: &Configuration, directory: &Path, binaries: &Path) -> Self {
        let accounts = Accounts::of_host();
        let named = Named {
            profiles: &configuration.profiles,
            binaries,
            accounts: &accounts,
        };
        let mut missing = Vec::new();
        // Whoever owns the configuration starts boxmaker, and only root's sandboxes have uids of the range.
        if directory.metadata().is_ok_and(|found| found.uid() == 0) {
            missing.extend(named.by_config(configuration.policy.config()));
        }
        for tool in configuration.policy.tools() {
            missing.extend(named.by_tool(tool.name(), tool.file()));
        }
        for grant in configuration.policy.grants() {
            missing.extend(named.by_grant(grant.id(), grant.file()).err());
        }
        let (unseen, wrong): (Vec<_>, Vec<_>) =
            missing.into_iter().partition(|missing| missing.forbidden);
        let told = |missing: Vec<Missing>| {
            let told = missing.into_iter().map(|one| complaint(one, configuration));
            let mut told: Vec<Complaint> = told.collect();
            told.sort();
            told
        };
        let (unseen, errors) = (told(unseen), told(wrong));
        if !errors.is_empty() {
            return Self {
                unseen,
                ..Self::bad(errors)
            };
        }
        let counts = Counts {
            grants: configuration.policy.grants().count(),
            tools: configuration.policy.tools().count(),
            profiles: configuration.profiles.iter().count(),
        };
        Self {
            ok: true,
            counts: Some(counts),
            unseen,
            ..Self::bad(errors)
        }
    }

    /// On one that cannot be used.
    #[must_use]
    pub fn bad(errors: Vec<Complaint>) -> Self {
        Self {
            ok: false,
            counts: None,
            errors,
            unseen: Vec::new(),
            left_to_up: LEFT.iter().map(|(word, _)| *word).collect(),
        }
    }

    /// One line for each error, or the line that says `ok` and the one that says what was left.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text: String = self
            .errors
            .iter()
            .map(|error| format!("{error}\n"))
            .collect();
        for unseen in &self.unseen {
            text.push_str(&format!("not seen: {unseen}\n"));
        }
        if let Some(Counts {
            grants,
            tools,
            profiles,
        }) = self.counts
        {
            let left = LEFT.map(|(_, words)| words).join("; ");
            text.push_str(&format!(
                "ok: {}, {}, {}\nleft to `boxmaker up`: {left}\n",
                count(grants, "grant"),
                count(tools, "tool"),
                count(profiles, "profile"),
            ));
        }
        text
    }
}

fn complaint(missing: Missing, configuration: &Configuration) -> Complaint {
    let bytes = configuration.files.0.get(&missing.file);
    Complaint {
        line: bytes.and_then(|bytes| policy::line_of(bytes, &[missing.key])),
        file: missing.file,
        rule: missing.rule,
        fix: missing.fix,
    }
}
