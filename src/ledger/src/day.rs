//! A UTC day as the name of a file, and the list of day files of a directory. Knows nothing of what they hold.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use proto::Timestamp;

use crate::FileError;

/// How the name of a day file ends.
const SUFFIX: &str = ".jsonl";

/// One UTC day, `YYYY-MM-DD`; orders as the days do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(String);

impl Day {
    /// The day in which `time` lies.
    pub(crate) fn of(time: Timestamp) -> Self {
        let mut text = time.to_string();
        text.truncate(10);
        Self(text)
    }

    /// The day whose file has this name, if it is one.
    pub(crate) fn of_file(name: &str) -> Option<Self> {
        let text = name.strip_suffix(SUFFIX)?;
        let first: Timestamp = format!("{text}T00:00:00.000Z").parse().ok()?;
        let day = Self::of(first);
        (day.0 == text).then_some(day)
    }

    /// Its first millisecond.
    pub(crate) fn start(&self) -> Timestamp {
        let text = format!("{}T00:00:00.000Z", self.0);
        text.parse().unwrap_or(Timestamp::from_millis(0)) // every Day was made from a time, so this parses
    }

    /// The name of its file.
    pub(crate) fn file_name(&self) -> String {
        format!("{}{SUFFIX}", self.0)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a directory holds that ends like a day file.
#[derive(Debug, Default)]
pub(crate) struct DayFiles {
    /// The days that have a file, in order.
    pub(crate) days: Vec<Day>,
    /// The first name, in order, that ends like a day file and names no day.
    pub(crate) misnamed: Option<String>,
    /// Whether the directory is there.
    pub(crate) present: bool,
}

/// Lists the day files of `directory`; a directory that does not exist has none. Other names are left alone.
pub(crate) fn list(directory: &Path) -> Result<DayFiles, FileError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DayFiles::default()),
        Err(error) => return Err(FileError::on("list", directory)(error)),
    };
    let mut found = DayFiles {
        present: true,
        ..DayFiles::default()
    };
    let mut misnamed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FileError::on("list", directory))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match Day::of_file(&name) {
            Some(day) => found.days.push(day),
            None if name.ends_with(SUFFIX) => misnamed.push(name),
            None => {}
        }
    }
    found.days.sort();
    found.misnamed = misnamed.into_iter().min();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_the_utc_date_of_the_time() {
        let last: Timestamp = "2026-09-17T23:59:59.999Z".parse().unwrap();
        let next = Timestamp::from_millis(last.as_millis() + 1);
        assert_eq!(Day::of(last).file_name(), "2026-09-17.jsonl");
        assert_eq!(Day::of(next).file_name(), "2026-09-18.jsonl");
        assert_eq!(Day::of(next).start(), next);
        assert!(Day::of(last) < Day::of(next));
    }

    #[test]
    fn only_a_real_date_names_a_day_file() {
        assert!(Day::of_file("2024-02-29.jsonl").is_some());
        for name in [
            "2026-02-29.jsonl",
            "2026-13-01.jsonl",
            "2026-1-01.jsonl",
            "2026-01-01.json",
            "x2026-01-01.jsonl",
            ".jsonl",
        ] {
            assert_eq!(Day::of_file(name), None, "{name}");
        }
    }
}
