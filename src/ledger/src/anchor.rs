//! The anchor: a file outside the log that names the hashes of lines known to be durable, `seq hash` on each line.
//! It is how a log that was cut, or rewritten with new hashes, is told from a sound one (formats.md section 5).

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::Hash32;

use crate::FileError;
use crate::day::Day;
use crate::disk::{Disk, Sink, write_whole};
use crate::lines;
use crate::walk::Broken;

/// How many of the newest lines a rotation keeps, and how many are added before the next one.
pub(crate) const KEPT: usize = 4096;

/// The longest anchor that is read, in bytes; rotation keeps it far below.
const MAX_ANCHOR: u64 = 64 << 20;

/// One whole line of the anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anchored {
    /// The line of the log that it names.
    pub(crate) seq: u64,
    /// SHA-256 of that line's stored bytes.
    pub(crate) hash: Hash32,
}

/// An anchor as it was read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// Its whole lines; `seq` rises.
    pub(crate) lines: Vec<Anchored>,
    /// Whether bytes without a newline followed them, which say nothing.
    pub(crate) torn: bool,
}

/// What is wrong with an anchor that was read.
#[derive(Debug)]
pub(crate) enum AnchorError {
    /// It could not be read.
    File(FileError),
    /// It is not an anchor; the place is in it.
    Garbled(Broken),
}

/// The name of the anchor as error texts give it.
pub(crate) fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// Reads an anchor, or none where there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Anchor>, AnchorError> {
    let file = match lines::open(path) {
        Ok(file) => file,
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(AnchorError::File(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_ANCHOR)
        .read_to_end(&mut bytes)
        .map_err(|error| AnchorError::File(FileError::on("read", path)(error)))?;
    parse(&bytes, path).map(Some).map_err(AnchorError::Garbled)
}

pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<Anchor, Broken> {
    let mut anchor = Anchor::default();
    let mut offset = 0;
    for (index, piece) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let Some(text) = piece.strip_suffix(b"\n") else {
            anchor.torn = true;
            break;
        };
        let line = parse_line(text).filter(|line| {
            anchor
                .lines
                .last()
                .is_none_or(|before| before.seq < line.seq)
        });
        match line {
            Some(line) => anchor.lines.push(line),
            None => {
                return Err(Broken {
                    file: name(path),
                    line: index as u64 + 1,
                    offset,
                    seq: None,
                    reason: "it is not `seq hash` with a seq above that of the line before"
                        .to_owned(),
                });
            }
        }
        offset += piece.len() as u64;
    }
    Ok(anchor)
}

fn parse_line(text: &[u8]) -> Option<Anchored> {
    let (seq, hash) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    let line = Anchored {
        seq: seq.parse().ok()?,
        hash: hash.parse().ok()?,
    };
    (line.to_string().as_bytes() == text).then_some(line)
}

impl std::fmt::Display for Anchored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.seq, self.hash)
    }
}

/// The anchor as the writer of the log keeps it.
pub(crate) struct AnchorFile {
    path: PathBuf,
    disk: Arc<dyn Disk>,
    sink: Arc<dyn Sink>,
    lines: Vec<(Anchored, Day)>,
    /// Lines added since the last rotation.
    added: usize,
}

impl AnchorFile {
    /// Takes over an anchor that the log was checked against; `days` are the days of the lines that it names. A torn
    /// line is taken away, and an anchor that does not exist is made, empty and durable, before the log's first line.
    ///
    /// # Errors
    /// What the disk refused.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        path: &Path,
        anchor: Option<Anchor>,
        days: Vec<Day>,
    ) -> io::Result<Self> {
        let sink = match anchor {
            Some(_) => disk.append(path)?,
            None => disk.create(path)?,
        };
        let anchor = anchor.unwrap_or_default();
        let mut file = Self {
            path: path.to_owned(),
            disk,
            sink,
            added: anchor.lines.len(),
            lines: anchor.lines.into_iter().zip(days).collect(),
        };
        if anchor.torn || file.added > 2 * KEPT {
            file.rotate()?;
        }
        Ok(file)
    }

    /// Whether it names no line yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds one line. The first one is durable when this returns, so that an empty anchor beside a log of more than
    /// one line is never the work of a crash.
    ///
    /// # Errors
    /// What the disk refused.
    pub(crate) fn add(&mut self, line: Anchored, day: Day) -> io::Result<()> {
        write_whole(&*self.sink, format!("{line}\n").as_bytes())?;
        if self.lines.is_empty() {
            self.sink.sync()?;
        }
        self.lines.push((line, day));
        self.added += 1;
        if self.added >= 2 * KEPT {
            self.rotate()?;
        }
        Ok(())
    }

    /// Keeps the newest [`KEPT`] lines and, of the older ones, the last of each day.
    fn rotate(&mut self) -> io::Result<()> {
        let newest = self.lines.len().saturating_sub(KEPT);
        let mut seen = BTreeSet::new();
        let mut kept: Vec<_> = std::mem::take(&mut self.lines)
            .into_iter()
            .enumerate()
            .rev()
            .filter(|(index, (_, day))| seen.insert(day.clone()) || *index >= newest)
            .map(|(_, line)| line)
            .collect();
        kept.reverse();
        let text: String = kept.iter().map(|(line, _)| format!("{line}\n")).collect();
        self.disk.replace(&self.path, text.as_bytes())?;
        self.sink = self.disk.append(&self.path)?;
        self.added = kept.len().min(KEPT);
        self.lines = kept;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Host;
    use proto::Timestamp;

    fn line(seq: u64) -> Anchored {
        Anchored {
            seq,
            hash: Hash32::new([7; 32]),
        }
    }

    fn refused(text: &str) -> Broken {
        parse(text.as_bytes(), Path::new("/home/anchor")).unwrap_err()
    }

    #[test]
    fn a_torn_last_line_is_ignored_even_if_it_parses() {
        let whole = format!("{}\n{}\n", line(3), line(4));
        let torn = format!("{whole}{}", line(5));
        for cut in whole.len()..=torn.len() {
            let anchor = parse(&torn.as_bytes()[..cut], Path::new("anchor")).unwrap();
            assert_eq!(anchor.lines, [line(3), line(4)]);
            assert_eq!(anchor.torn, cut > whole.len());
        }
    }

    #[test]
    fn a_garbled_line_is_refused_with_its_place() {
        let good = format!("{}\n", line(3));
        assert!(parse(good.as_bytes(), Path::new("anchor")).is_ok());
        for bad in [
            format!("0{}\n", line(4)),
            format!("+{}\n", line(4)),
            format!("{} \n", line(4)),
            format!("{}\n", line(4)).replace(' ', "  "),
            format!("{}\n", line(4)).replace("07", "0A"),
            format!("{}\n", line(3)),
            format!("{}\n", line(2)),
            "\n".to_owned(),
        ] {
            let broken = refused(&format!("{good}{bad}"));
            assert_eq!((broken.line, broken.offset), (2, 67), "{bad}");
            assert_eq!(broken.file, "anchor");
        }
    }

    #[test]
    fn rotation_keeps_the_newest_lines_and_one_of_each_older_day() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("anchor");
        let mut anchor = AnchorFile::open(Arc::new(Host), &path, None, Vec::new()).unwrap();
        // 24 lines a day, as if one came each hour.
        let day = |seq: u64| Day::of(Timestamp::from_millis(seq * 3_600_000));
        let total = 2 * KEPT as u64;
        for seq in 0..total {
            anchor.add(line(seq), day(seq)).unwrap();
        }
        let read = super::read(&path).unwrap().unwrap();
        assert!(!read.torn);
        let seqs: Vec<u64> = read.lines.iter().map(|line| line.seq).collect();
        let newest = total - KEPT as u64;
        // The day in which the newest lines begin has a newer line in them, so it needs none of its own.
        let expected: Vec<u64> = (0..newest)
            .filter(|seq| day(*seq) != day(seq + 1))
            .chain(newest..total)
            .collect();
        assert_eq!(seqs, expected);

        anchor.add(line(total), day(total)).unwrap();
        let again = super::read(&path).unwrap().unwrap();
        assert_eq!(again.lines.len(), seqs.len() + 1);
    }

    #[test]
    fn a_torn_line_is_taken_away_before_the_next_is_added() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("anchor");
        std::fs::write(&path, format!("{}\n4 0707", line(3))).unwrap();
        let read = super::read(&path).unwrap();
        let day = Day::of(Timestamp::from_millis(0));
        let mut anchor = AnchorFile::open(Arc::new(Host), &path, read, vec![day.clone()]).unwrap();
        anchor.add(line(4), day).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}\n{}\n", line(3), line(4)));
    }

    #[test]
    fn a_rotated_anchor_stays_with_the_group_that_may_read_it() {
        use std::os::unix::fs::{MetadataExt, chown};
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("anchor");
        let mut anchor = AnchorFile::open(Arc::new(Host), &path, None, Vec::new()).unwrap();
        // Without root the group stays what it was, which is this test's twin.
        let _ = chown(&path, None, Some(1_879_000_123));
        let look = || {
            let found = std::fs::metadata(&path).unwrap();
            (found.ino(), (found.gid(), found.mode() & 0o7777))
        };
        let (first, before) = look();
        let day = Day::of(Timestamp::from_millis(0));
        for seq in 0..2 * KEPT as u64 {
            anchor.add(line(seq), day.clone()).unwrap();
        }
        let (second, after) = look();
        assert_ne!(first, second, "it was rotated");
        assert_eq!(before, after);
        assert_eq!(after.1, 0o640);
    }
}
