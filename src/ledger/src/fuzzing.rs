//! Doors for the fuzz targets to what is closed otherwise; only in builds with `--cfg fuzzing`.

use std::path::Path;
use std::sync::Arc;

use proto::{Hash32, Line, Timestamp};

use crate::anchor;
use crate::chain::Walker;
use crate::day::Day;
use crate::lines::{Place, RawLine};
use crate::open::digest;

/// Walks stored bytes as if they were one day's file, and gives the lines of the chain with their hashes as far as the
/// chain goes.
#[must_use]
pub fn walk(bytes: &[u8]) -> Vec<(Line, Hash32)> {
    let day = Arc::new(Day::of(Timestamp::from_millis(0)));
    let mut walker = Walker::default();
    let mut members = Vec::new();
    let mut offset = 0;
    for (index, piece) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let Some(text) = piece.strip_suffix(b"\n") else {
            break;
        };
        let raw = RawLine {
            place: Place {
                day: Arc::clone(&day),
                line: index as u64 + 1,
                offset,
            },
            bytes: text.to_vec(),
            ended: true,
        };
        offset += piece.len() as u64;
        match walker.take(&raw) {
            Ok(settled) => members.extend(settled),
            Err(_) => break,
        }
    }
    members.extend(walker.settle());
    let member = |member: Arc<crate::chain::Member>| (member.line.clone(), member.hash);
    members.into_iter().map(member).collect()
}

/// The hash by which the next line names stored bytes.
#[must_use]
pub fn hash(bytes: &[u8]) -> Hash32 {
    digest(bytes)
}

/// The sequences that an anchor of these bytes names, if it is one.
#[must_use]
pub fn anchored(bytes: &[u8]) -> Option<Vec<u64>> {
    let anchor = anchor::parse(bytes, Path::new("anchor")).ok()?;
    Some(anchor.lines.iter().map(|line| line.seq).collect())
}
