//! The acts by name, what they need, and which function does them.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::report::Report;
use crate::{files, inspect, processes};

/// One act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    Touch,
    Append,
    Read,
    Shadow,
    RootWrite,
    Environ,
    SetId,
    Socket,
    Ptrace,
    Kill,
    Fork,
    Orphan,
    Flood,
    IgnoreTerm,
    Sleep,
    Inspect,
}

/// Every act with the arguments it uses and what it does.
const ACTS: &[(Act, &str)] = &[
    (Act::Touch, "path: create that file, which need not exist"),
    (Act::Append, "path, token: add one line to that file"),
    (
        Act::Read,
        "path: read that file; detail holds its first 200 bytes",
    ),
    (Act::Shadow, "read /etc/shadow"),
    (Act::RootWrite, "create a file in /, and remove it"),
    (Act::Environ, "read /proc/1/environ"),
    (
        Act::SetId,
        "path?: make a set-id file in that directory by open and by chmod, and remove it",
    ),
    (
        Act::Socket,
        "open sockets: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK",
    ),
    (Act::Ptrace, "attach to a child of its own"),
    (
        Act::Kill,
        "SIGKILL to pid 1; only asks whether it may where pid 1 is the machine's own",
    ),
    (
        Act::Fork,
        "count? = 512: start children until that many or refused, then end them",
    ),
    (
        Act::Orphan,
        "ms? = 3600000: leave a process behind that ignores SIGTERM, in a session of its own",
    ),
    (Act::Flood, "bytes? = 1073741824: write to standard output"),
    (
        Act::IgnoreTerm,
        "ms? = 3600000: block SIGTERM, SIGINT, SIGHUP and sleep",
    ),
    (Act::Sleep, "ms? = 3600000: sleep"),
    (Act::Inspect, "say everything that can be seen from inside"),
];

/// What to do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    pub(crate) acts: Vec<Act>,
    path: Option<PathBuf>,
    token: Option<String>,
    ms: Option<u64>,
    bytes: Option<u64>,
    count: Option<u64>,
}

/// Why nothing is done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    #[error("the arguments are not understood: {0}")]
    Json(#[from] serde_json::Error),
    #[error("an act needs path, which is not given: {0:?}")]
    NoPath(Act),
}

impl Arguments {
    pub(crate) fn parse(input: &[u8]) -> Result<Self, ArgumentError> {
        let arguments: Self = serde_json::from_slice(input)?;
        let needs_path = |act: &&Act| matches!(act, Act::Touch | Act::Append | Act::Read);
        match arguments.acts.iter().find(needs_path) {
            Some(act) if arguments.path.is_none() => Err(ArgumentError::NoPath(*act)),
            _ => Ok(arguments),
        }
    }

    /// Given, or checked to be not needed.
    fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or_else(|| Path::new("."))
    }

    fn ms(&self) -> u64 {
        self.ms.unwrap_or(3_600_000)
    }
}

impl Act {
    /// Does it and reports; an error is one of reporting.
    pub(crate) fn perform(self, arguments: &Arguments, report: &mut Report) -> io::Result<()> {
        match self {
            Self::Touch => report.touch(arguments.path()),
            Self::Append => files::append(
                report,
                arguments.path(),
                arguments.token.as_deref().unwrap_or("token"),
            ),
            Self::Read => files::read(report, "read", arguments.path()),
            Self::Shadow => files::read(report, "shadow", Path::new("/etc/shadow")),
            Self::Environ => files::read(report, "environ", Path::new("/proc/1/environ")),
            Self::RootWrite => files::root_write(report),
            Self::SetId => files::set_id(report, arguments.path()),
            Self::Socket => files::sockets(report),
            Self::Ptrace => processes::ptrace(report),
            Self::Kill => processes::kill(report),
            Self::Fork => processes::fork(report, arguments.count.unwrap_or(512)),
            Self::Orphan => processes::orphan(report, arguments.ms()),
            Self::Flood => files::flood(report, arguments.bytes.unwrap_or(1 << 30)),
            Self::IgnoreTerm => processes::ignore_term(report, arguments.ms()),
            Self::Sleep => processes::sleep(report, arguments.ms()),
            Self::Inspect => report.done("inspect", "self", inspect::everything()),
        }
    }
}

/// The acts, a line each.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "{\"acts\": [ACT, …], \"path\"?, \"token\"?, \"ms\"?, \"bytes\"?, \"count\"?}\n",
    );
    for (act, what) in ACTS {
        let name = serde_json::to_string(act).unwrap_or_default();
        text.push_str(&format!("  {:14} {what}\n", name.trim_matches('"')));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_that_needs_a_path_is_refused_without_one_before_any_is_done() {
        let error = Arguments::parse(br#"{"acts":["sleep","touch"],"ms":1}"#).unwrap_err();
        assert!(matches!(error, ArgumentError::NoPath(Act::Touch)));
        assert!(Arguments::parse(br#"{"acts":["sleep","touch"],"ms":1,"path":"/x"}"#).is_ok());
    }

    #[test]
    fn an_unknown_act_or_key_is_an_error_that_names_it() {
        let error = Arguments::parse(br#"{"acts":["dance"]}"#)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("dance") && error.contains("touch"),
            "{error}"
        );
        assert!(Arguments::parse(br#"{"acts":[],"pth":"/x"}"#).is_err());
    }
}
