//! Facts of a file in the words that every tool uses. Pure.

use proto::Timestamp;
use rustix::fs::FileType;

/// One short word for a type of file.
pub(crate) const fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "dir",
        FileType::Symlink => "link",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "chardev",
        FileType::BlockDevice => "blkdev",
        FileType::Unknown => "unknown",
    }
}

/// Seconds since 1970 in UTC, as `2026-01-31T08:00:00Z`.
pub(crate) fn time(seconds: i64) -> String {
    let Ok(seconds) = u64::try_from(seconds) else {
        return "before 1970".to_owned();
    };
    let text = Timestamp::from_millis(seconds.saturating_mul(1000)).to_string();
    text.split_once('.')
        .map_or_else(|| text.clone(), |(whole, _)| format!("{whole}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_of_utc() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(1_767_322_984), "2026-01-02T03:03:04Z");
        assert_eq!(time(-1), "before 1970");
    }
}
