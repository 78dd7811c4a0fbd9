//! `bxctl check`: every mistake of the configuration that can be seen without starting anything, or how much there is of
//! it, and what is left to `boxmaker up`.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use confine::accounts::Accounts;
use confine::judged::{Judged, Mistake};
use confine::named::Named;
use confine::profile::Profiles;
use serde::Serialize;

use crate::configuration::Complaint;
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
    /// What the owner should know although it is no error.
    pub warnings: Vec<Complaint>,
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
    /// On `judged`, what was read of `directory`: whether the host has what it names. `binaries` is where boxmaker's own are.
    #[must_use]
    pub fn of(mut judged: Judged, directory: &Path, binaries: &Path) -> Self {
        let accounts = Accounts::of_host();
        let sound = std::mem::take(&mut judged.sound);
        let profiles = Profiles::names(&judged.files.0);
        let named = Named {
            profiles: &profiles,
            binaries,
            accounts: &accounts,
        };
        if let Some(config) = sound.config() {
            let missing = named.by_pool(config);
            missing.into_iter().for_each(|one| judged.add(one));
        }
        // Whoever owns the configuration starts boxmaker, and only root's sandboxes have uids of the range.
        if directory.metadata().is_ok_and(|found| found.uid() == 0)
            && let Some(config) = sound.config()
        {
            named
                .by_config(config)
                .into_iter()
                .for_each(|one| judged.add(one));
        }
        for tool in sound.tools() {
            let missing = named.by_tool(tool.name(), tool.file());
            missing.into_iter().for_each(|one| judged.add(one));
        }
        for grant in sound.grants() {
            if let Err(missing) = named.by_grant(grant.id(), grant.file()) {
                judged.add(missing);
            }
            named
                .by_paths(grant)
                .into_iter()
                .for_each(|one| judged.warn(one));
        }
        let (unseen, errors): (Vec<_>, Vec<_>) = judged
            .mistakes
            .into_iter()
            .partition(|mistake| mistake.forbidden);
        let told = |mistakes: Vec<Mistake>| {
            let told = mistakes.into_iter().map(|mistake| mistake.told.into());
            told.collect::<Vec<Complaint>>()
        };
        let counts = match (&judged.policy, &judged.profiles) {
            (Some(policy), Some(profiles)) if errors.is_empty() => Some(Counts {
                grants: policy.grants().count(),
                tools: policy.tools().count(),
                profiles: profiles.iter().count(),
            }),
            _ => None,
        };
        Self {
            ok: counts.is_some(),
            counts,
            errors: told(errors),
            unseen: told(unseen),
            warnings: judged.warnings.into_iter().map(Complaint::from).collect(),
            left_to_up: LEFT.iter().map(|(word, _)| *word).collect(),
        }
    }

    /// One line for each error and each warning, or the line that says `ok` and the one that says what was left.
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
        for warning in &self.warnings {
            text.push_str(&format!("warning: {warning}\n"));
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
