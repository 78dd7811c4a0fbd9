//! The owner's files, judged by the code that brokerd and the supervisor judge them by. Reads the directory and
//! nothing else; what is wrong comes out as a list of complaints.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use confine::profile::Profiles;
use ipc::{Files, FilesError};
use policy::Policy;
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
    /// The directory or a file in it could not be read.
    #[error("{source}\n  {help}")]
    Unreadable {
        /// What happened.
        source: FilesError,
        /// What to do.
        help: String,
    },
    /// The files break rules.
    #[error(
        "the configuration in {directory} cannot be used:\n{}  `bxctl check` says when it can",
        list(complaints)
    )]
    Wrong {
        /// Where it is.
        directory: PathBuf,
        /// What is wrong with it.
        complaints: Vec<Complaint>,
    },
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

/// Reads and judges the configuration in `directory`. The generation is 1: nobody runs under it.
///
/// # Errors
/// [`ConfigurationError`]; `Wrong` holds every complaint, in the order of files and lines.
pub fn load(directory: &Path) -> Result<Configuration, ConfigurationError> {
    let files = read(directory)?;
    let mut complaints = Vec::new();
    let policy = Policy::load(&files.0, 1).map_err(|errors| {
        complaints.extend(errors.into_iter().map(|error| Complaint {
            file: error.file,
            line: error.line,
            rule: error.rule,
            fix: error.fix,
        }));
    });
    let profiles = Profiles::load(&files.0).map_err(|errors| {
        complaints.extend(errors.into_iter().map(|error| Complaint {
            file: error.file,
            line: error.line,
            rule: error.rule,
            fix: error.fix,
        }));
    });
    match (policy, profiles) {
        (Ok(policy), Ok(profiles)) => Ok(Configuration {
            files,
            policy,
            profiles,
        }),
        _ => {
            complaints.sort();
            Err(ConfigurationError::Wrong {
                directory: directory.to_owned(),
                complaints,
            })
        }
    }
}

/// The schema of one tool's arguments, from its own file alone: mistakes elsewhere do not matter here. `None` if
/// there is no such tool, or its file breaks a rule.
///
/// # Errors
/// The directory could not be read.
pub fn schema(directory: &Path, tool: &str) -> Result<Option<Schema>, ConfigurationError> {
    let name = format!("tools/{tool}.toml");
    let files = read(directory)?.0;
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

fn read(directory: &Path) -> Result<Files, ConfigurationError> {
    Files::read(directory).map_err(|source| {
        let help = match &source {
            FilesError::Read { path, .. } if source.is_forbidden() => place::who_may(path),
            _ => source.way_out(),
        };
        ConfigurationError::Unreadable { source, help }
    })
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
