//! Finds the record of a call that was just made: from the end of the log, without reading all of it. A help for
//! people and never a proof: only `bxctl audit verify` says whether the log is whole.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use proto::audit::Decision;
use proto::{CallId, Entry, Line, SessionId};

/// How far back is looked, in bytes of each of the last two day files: several of the longest records.
const REACH: u64 = 4 * 1_048_576;

/// The one decision of `session` about `tool` with a call number above `after`, and its number in the log; `None`
/// if the log cannot be read, holds none near its end, or holds several, so that none is certainly the one.
#[must_use]
pub fn decision(
    audit: &Path,
    session: &SessionId,
    tool: &str,
    after: CallId,
) -> Option<(u64, Decision)> {
    let mut days: Vec<PathBuf> = fs::read_dir(audit)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    days.sort();
    let mut found = None;
    for day in days.iter().rev().take(2) {
        for stored in tail(day)?.split(|byte| *byte == b'\n') {
            // What does not parse was cut by the reach, or is a torn line.
            let Ok(Line {
                seq,
                entry: Entry::Decision(decision),
                ..
            }) = serde_json::from_slice::<Line>(stored)
            else {
                continue;
            };
            // A record holds the first 64 characters of a name (protocol.md section 6).
            let same_tool = tool.chars().take(64).eq(decision.tool.chars());
            if decision.session == *session && decision.call > after && same_tool {
                if found.is_some() {
                    return None;
                }
                found = Some((seq, *decision));
            }
        }
    }
    found
}

fn tail(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok().filter(fs::Metadata::is_file)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(REACH)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(REACH).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::sample;

    fn stored(repeat: usize) -> tempfile::TempDir {
        let audit = tempfile::tempdir().unwrap();
        let mut text = String::from("torn{\n");
        for _ in 0..repeat {
            for line in sample::lines() {
                text.push_str(&serde_json::to_string(&line).unwrap());
                text.push('\n');
            }
        }
        fs::write(audit.path().join("2026-09-17.jsonl"), text).unwrap();
        fs::write(audit.path().join("2026-09-18.jsonl"), "").unwrap();
        audit
    }

    fn find(audit: &Path, session: &str, tool: &str, after: u64) -> Option<u64> {
        decision(audit, &session.parse().unwrap(), tool, CallId(after)).map(|(seq, _)| seq)
    }

    #[test]
    fn the_record_is_found_by_session_tool_and_call() {
        let audit = stored(1);
        assert_eq!(find(audit.path(), "s-2", "fs_write", 0), Some(7));
        assert_eq!(find(audit.path(), "s-1", "fs_read", 1), Some(5));
    }

    #[test]
    fn what_is_not_certain_is_not_found() {
        let audit = stored(1);
        assert_eq!(
            find(audit.path(), "s-1", "fs_read", 0),
            None,
            "two calls match"
        );
        assert_eq!(
            find(audit.path(), "s-1", "fs_read", 2),
            None,
            "no call is that late"
        );
        assert_eq!(find(audit.path(), "s-3", "fs_read", 0), None);
        assert_eq!(
            find(&audit.path().join("missing"), "s-1", "fs_read", 1),
            None
        );
    }
}
