//! Finds the record of a call that was just made: from the end of the log, without reading all of it. A help for
//! people and never a proof: only `bxctl audit verify` says whether the log is whole.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use proto::audit::{Decision, SessionEvent};
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
    let entries = entries(audit, session)?;
    match decisions(&entries, tool, after).as_slice() {
        [(seq, decision)] => Some((*seq, (*decision).clone())),
        _ => None,
    }
}

/// Every entry about `session` near the end of the log, with its number; `None` if the log cannot be read, or if the
/// opening of the session is not among them, so that something after it may be out of reach too.
#[must_use]
pub fn since_opened(audit: &Path, session: &SessionId) -> Option<Vec<(u64, Entry)>> {
    let entries = entries(audit, session)?;
    let opens = |(_, entry): &(u64, Entry)| matches!(entry, Entry::Session { event, .. } if *event != SessionEvent::Ended);
    entries.iter().any(opens).then_some(entries)
}

/// The decisions among `entries` about `tool` with a call number above `after`.
#[must_use]
pub fn decisions<'a>(
    entries: &'a [(u64, Entry)],
    tool: &str,
    after: CallId,
) -> Vec<(u64, &'a Decision)> {
    // A record holds the first 64 characters of a name (protocol.md section 6).
    let same_tool = |decision: &Decision| tool.chars().take(64).eq(decision.tool.chars());
    entries
        .iter()
        .filter_map(|(seq, entry)| match entry {
            Entry::Decision(decision) => Some((*seq, &**decision)),
            _ => None,
        })
        .filter(|(_, decision)| decision.call > after && same_tool(decision))
        .collect()
}

fn entries(audit: &Path, session: &SessionId) -> Option<Vec<(u64, Entry)>> {
    let mut days: Vec<PathBuf> = fs::read_dir(audit)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    days.sort();
    let mut found = Vec::new();
    for day in days.iter().skip(days.len().saturating_sub(2)) {
        for stored in tail(day)?.split(|byte| *byte == b'\n') {
            // What does not parse was cut by the reach, or is a torn line.
            if let Ok(line) = serde_json::from_slice::<Line>(stored)
                && of(&line.entry) == Some(session)
            {
                found.push((line.seq, line.entry));
            }
        }
    }
    Some(found)
}

/// The session that an entry is about.
fn of(entry: &Entry) -> Option<&SessionId> {
    match entry {
        Entry::Decision(decision) => Some(&decision.session),
        Entry::Outcome(outcome) => Some(&outcome.session),
        Entry::Approval(approval) => Some(&approval.session),
        Entry::Session { session, .. } | Entry::Denials { session, .. } => Some(session),
        Entry::Role { .. } | Entry::Policy { .. } | Entry::Recovery { .. } => None,
    }
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
