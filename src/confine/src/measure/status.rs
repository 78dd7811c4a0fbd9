//! `/proc/<pid>/status` (proc_pid_status(5)), read from inside and from outside and compared.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// The lines that confinement is judged by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Real, effective, saved and file system uid.
    pub uid: Vec<u32>,
    /// The same of the gid.
    pub gid: Vec<u32>,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Inheritable, permitted, effective, bounding and ambient set.
    pub capabilities: [u64; 5],
    /// Whether privileges can no longer grow.
    pub no_new_privs: bool,
    /// Seccomp mode: 0 off, 1 strict, 2 filter.
    pub seccomp: u8,
}

/// The names of the capability lines, in the order of [`Status::capabilities`].
pub const CAPABILITY_LINES: [&str; 5] = ["CapInh", "CapPrm", "CapEff", BOUNDING_LINE, "CapAmb"];

/// The name of the line of the bounding set.
pub const BOUNDING_LINE: &str = "CapBnd";

/// A line that is missing or is not what the kernel documents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {0} of status is missing or malformed")]
pub struct StatusError(&'static str);

impl Status {
    /// Reads the text of a status file.
    ///
    /// # Errors
    /// Names the line that is missing or malformed.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let lines: HashMap<&str, &str> = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .collect();
        let line = |name: &'static str| {
            lines
                .get(name)
                .map(|value| value.trim())
                .ok_or(StatusError(name))
        };
        let ids = |name: &'static str| -> Result<Vec<u32>, StatusError> {
            let parse = |word: &str| word.parse().map_err(|_| StatusError(name));
            line(name)?.split_ascii_whitespace().map(parse).collect()
        };
        let mut capabilities = [0; 5];
        for (value, name) in capabilities.iter_mut().zip(CAPABILITY_LINES) {
            *value = u64::from_str_radix(line(name)?, 16).map_err(|_| StatusError(name))?;
        }
        Ok(Self {
            uid: ids("Uid")?,
            gid: ids("Gid")?,
            groups: ids("Groups")?,
            capabilities,
            no_new_privs: line("NoNewPrivs")? == "1",
            seccomp: line("Seccomp")?
                .parse()
                .map_err(|_| StatusError("Seccomp"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_status_is_understood() {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let status = Status::parse(&text).unwrap();
        assert_eq!(status.uid, [rustix::process::getuid().as_raw(); 4]);
        assert!(!status.no_new_privs);
    }

    #[test]
    fn a_missing_line_is_named() {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let without = text.replace("NoNewPrivs:", "Other:");
        assert_eq!(Status::parse(&without), Err(StatusError("NoNewPrivs")));
    }
}
