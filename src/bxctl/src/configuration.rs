//! The owner's files, judged by the code that brokerd and the supervisor judge them by. Reads the directory and
//! nothing else; what is wrong comes out as a list of complaints.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use confine::judged::Judged;
use confine::profile::Profiles;
use ipc::{Files, FilesError};
use policy::{LoadError, Policy};
use proto::Timestamp;
use proto::tool::Schema;
use serde::Serialize;

use crate::place;
use crate::visible;

/// Something that is wrong with one file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Complaint {
    /// The file, below the configuration directory.
    pub file: String,
    /// The line, from 1, where it can be told.
    pub line: Option<usize>,
    /// What is wrong, and the rule it breaks.
    pub rule: String,
    /// The way out.
    pub fix: String,
}

impl From<LoadError> for Complaint {
    fn from(error: LoadError) -> Self {
        let LoadError {
            file,
            line,
            rule,
            fix,
        } = error;
        Self {
            file,
            line,
            rule,
            fix,
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible::line(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(
            f,
            ": {}; {}",
            visible::line(&self.rule),
            visible::line(&self.fix)
        )
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The directory or files in it could not be read, or others may change them.
    #[error("{}", unread(problems, complaints))]
    Unreadable {
        /// What happened, each time with what to do. At least one.
        problems: Vec<(FilesError, String)>,
        /// What is wrong with the files that could be read.
        complaints: Vec<Complaint>,
    },
    /// The files break rules.
    #[error(
        "the configuration in {} cannot be used:\n{}  `bxctl check` says when it can", directory.display(),
        list(complaints)
    )]
    Wrong {
        /// Where it is.
        directory: PathBuf,
        /// What is wrong with it.
        complaints: Vec<Complaint>,
    },
}

fn unread(problems: &[(FilesError, String)], complaints: &[Complaint]) -> String {
    let mut told: Vec<String> = problems
        .iter()
        .map(|(error, help)| format!("{error}\n  {help}"))
        .collect();
    told.extend(complaints.iter().map(ToString::to_string));
    told.join("\n")
}

fn list(complaints: &[Complaint]) -> String {
    complaints
        .iter()
        .map(|complaint| format!("{complaint}\n"))
        .collect()
}

/// A configuration without errors.
#[derive(Debug)]
pub struct Configuration {
    /// The bytes that it was read from.
    pub files: Files,
    /// Tools and grants.
    pub policy: Policy,
    /// Profiles, the built-in ones included.
    pub profiles: Profiles,
}

/// Reads and judges the configuration in `directory`, by its files alone. The generation is 1: nobody runs under it.
///
/// # Errors
/// [`ConfigurationError`], with every complaint, in the order of files and lines.
pub fn load(directory: &Path, now: Timestamp) -> Result<Configuration, ConfigurationError> {
    let judged = Judged::of(directory, 1, now);
    let complaints = complaints(&judged);
    match judged {
        Judged {
            files,
            policy: Some(policy),
            profiles: Some(profiles),
            ..
        } => Ok(Configuration {
            files,
            policy,
            profiles,
        }),
        Judged { unreadable, .. } => Err(failure(directory, unreadable, complaints)),
    }
}

/// The mistakes of a judged configuration.
fn complaints(judged: &Judged) -> Vec<Complaint> {
    let told = judged.mistakes.iter();
    told.map(|mistake| mistake.told.clone().into()).collect()
}

/// Why a configuration with `complaints` is not used.
pub(crate) fn failure(
    directory: &Path,
    unreadable: Vec<FilesError>,
    complaints: Vec<Complaint>,
) -> ConfigurationError {
    if unreadable.is_empty() {
        return ConfigurationError::Wrong {
            directory: directory.to_owned(),
            complaints,
        };
    }
    let with_help = |error: FilesError| {
        let help = match &error {
            FilesError::Read { path, .. } if error.is_forbidden() => place::who_may(path),
            _ => error.way_out(),
        };
        (error, help)
    };
    ConfigurationError::Unreadable {
        problems: unreadable.into_iter().map(with_help).collect(),
        complaints,
    }
}

/// That boxmaker runs with other files than these, which changed after it read them.
#[must_use]
pub fn stale(changed: &[String]) -> String {
    format!(
        "changed since boxmaker was started, and not loaded: {}; stop `boxmaker up` and start it again",
        some(changed)
    )
}

/// The names of files, only some of many.
#[must_use]
pub fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| visible::line(name))
        .collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

/// The schema of one tool's arguments, from its own file alone: mistakes elsewhere do not matter here. `None` if
/// there is no such tool, or its file breaks a rule.
///
/// # Errors
/// The directory could not be read.
pub fn schema(directory: &Path, tool: &str) -> Result<Option<Schema>, ConfigurationError> {
    let name = format!("tools/{tool}.toml");
    let files = match Files::read(directory) {
        Ok(files) => files.0,
        Err(unreadable) if unreadable.rest.0.contains_key(&name) => unreadable.rest.0,
        Err(unreadable) => return Err(failure(directory, unreadable.errors, Vec::new())),
    };
    let own: BTreeMap<_, _> = files
        .into_iter()
        .filter(|(path, _)| *path == name)
        .collect();
    let policy = Policy::load(&own, 1).ok();
    Ok(policy.and_then(|policy| {
        policy
            .tools()
            .next()
            .map(|tool| tool.file().arguments.clone())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_file_line_rule_and_way_out() {
        let complaint = Complaint {
            file: "grants/a.toml".to_owned(),
            line: Some(3),
            rule: "mode is \u{1b}missing".to_owned(),
            fix: "write one".to_owned(),
        };
        assert_eq!(
            complaint.to_string(),
            "grants/a.toml:3: mode is \\x1bmissing; write one"
        );
        let complaint = Complaint {
            line: None,
            ..complaint
        };
        assert_eq!(
            complaint.to_string(),
            "grants/a.toml: mode is \\x1bmissing; write one"
        );
    }
}
