//! `bxctl check`: every mistake of the configuration, or how much there is of it.

use serde::Serialize;

use crate::configuration::{Complaint, Configuration};

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
    /// The configuration can be used.
    #[must_use]
    pub fn good(configuration: &Configuration) -> Self {
        let counts = Counts {
            grants: configuration.policy.grants().count(),
            tools: configuration.policy.tools().count(),
            profiles: configuration.profiles.iter().count(),
        };
        Self {
            ok: true,
            counts: Some(counts),
            errors: Vec::new(),
        }
    }

    /// It cannot.
    #[must_use]
    pub const fn bad(errors: Vec<Complaint>) -> Self {
        Self {
            ok: false,
            counts: None,
            errors,
        }
    }

    /// One line for each error, or the line that says `ok`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text: String = self
            .errors
            .iter()
            .map(|error| format!("{error}\n"))
            .collect();
        if let Some(Counts {
            grants,
            tools,
            profiles,
        }) = self.counts
        {
            text.push_str(&format!(
                "ok: {grants} grants, {tools} tools, {profiles} profiles\n"
            ));
        }
        text
    }
}
