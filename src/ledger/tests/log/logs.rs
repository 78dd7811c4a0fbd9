//! Logs to test with: written by the ledger, or put together line by line with any fault wanted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ledger::{Broken, Clock, Entry, Ledger, Line, OpenError, Opened, Paths, Report, Sound};
use proto::audit::{RoleEvent, SessionEvent};
use proto::{Hash32, SessionId, Timestamp};
use sha2::{Digest, Sha256};

/// A home in a temporary directory, and the clock of its ledgers.
pub(crate) struct Home {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) clock: Arc<AtomicU64>,
}

impl Home {
    /// An empty home at noon of 2026-09-17.
    pub(crate) fn new() -> Self {
        let home = Self {
            // In memory where there is such a place: files are written over thousands of times, which a medium feels.
            directory: tempfile::tempdir_in("/dev/shm")
                .unwrap_or_else(|_| tempfile::tempdir().unwrap()),
            clock: Arc::default(),
        };
        home.set_clock("2026-09-17T12:00:00.000Z");
        home
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths {
            audit: self.directory.path().join("audit"),
            anchor: self.directory.path().join("anchor"),
        }
    }

    pub(crate) fn set_clock(&self, time: &str) {
        let time: Timestamp = time.parse().unwrap();
        self.clock.store(time.as_millis(), Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> Clock {
        let clock = Arc::clone(&self.clock);
        Box::new(move || Timestamp::from_millis(clock.load(Ordering::Relaxed)))
    }

    pub(crate) fn open(&self) -> Result<(Ledger, Opened), OpenError> {
        Ledger::open(&self.paths(), self.clock())
    }

    /// Opens a log that is to be sound.
    pub(crate) fn ledger(&self) -> Ledger {
        self.open().unwrap().0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.paths().audit.join(name)
    }

    pub(crate) fn anchor(&self) -> Vec<u8> {
        fs::read(self.paths().anchor).unwrap()
    }

    pub(crate) fn set_anchor(&self, bytes: impl AsRef<[u8]>) {
        fs::write(self.paths().anchor, bytes).unwrap();
    }

    /// The day files and their bytes.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        fs::read_dir(self.paths().audit)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .map(|path| {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read(path).unwrap())
            })
            .collect()
    }

    /// Makes the day files exactly these.
    pub(crate) fn set_files(&self, files: &BTreeMap<String, Vec<u8>>) {
        fs::create_dir_all(self.paths().audit).unwrap();
        for name in self
            .files()
            .keys()
            .filter(|name| !files.contains_key(*name))
        {
            fs::remove_file(self.file(name)).unwrap();
        }
        for (name, bytes) in files {
            fs::write(self.file(name), bytes).unwrap();
        }
    }

    pub(crate) fn verify(&self) -> Report {
        ledger::verify(&self.paths()).unwrap()
    }

    pub(crate) fn sound(&self) -> Sound {
        match self.verify() {
            Report::Sound(sound) => sound,
            Report::Broken(broken) => panic!("broken at {broken}"),
        }
    }

    pub(crate) fn broken(&self) -> Broken {
        match self.verify() {
            Report::Broken(broken) => broken,
            Report::Sound(sound) => panic!("taken for sound: {sound:?}"),
        }
    }

    /// The place at which the ledger refuses to open.
    pub(crate) fn refused(&self) -> Broken {
        match self.open() {
            Err(OpenError::Broken(broken)) => broken,
            other => panic!("not refused as broken: {other:?}"),
        }
    }

    pub(crate) fn read(&self) -> Vec<Line> {
        ledger::read(&self.paths())
            .map(|line| line.unwrap())
            .collect()
    }
}

/// An entry that tells `name`.
pub(crate) fn entry(name: &str) -> Entry {
    Entry::Session {
        session: SessionId::new(name).unwrap(),
        event: SessionEvent::Opened,
        by: "bxctl".to_owned(),
    }
}

/// Entries of several types, with text that JSON must escape.
pub(crate) fn entries() -> Vec<Entry> {
    let mut files = BTreeMap::new();
    files.insert("grants/notes.toml".to_owned(), hash(b"notes"));
    files.insert("tools/fs_read.toml".to_owned(), hash(b"read"));
    vec![
        Entry::Policy {
            generation: 1,
            files,
        },
        Entry::Role {
            role: "brokerd".to_owned(),
            pid: Some(71),
            event: Box::new(RoleEvent::Ended { exit: None }),
        },
        entry("first"),
        Entry::Session {
            session: SessionId::new("second").unwrap(),
            event: SessionEvent::Ended,
            by: "line\nbreak, quote \" and ü".to_owned(),
        },
    ]
}

pub(crate) fn hash(bytes: &[u8]) -> Hash32 {
    Hash32::new(Sha256::digest(bytes).into())
}

/// A log of three days, nine lines, each of them behind the anchor.
pub(crate) fn three_days() -> Home {
    let home = Home::new();
    let ledger = home.ledger();
    for day in ["2026-09-17", "2026-09-18", "2026-09-21"] {
        home.set_clock(&format!("{day}T08:00:00.000Z"));
        for entry in entries().into_iter().take(3) {
            ledger.append_durable(entry).unwrap();
        }
    }
    drop(ledger);
    home
}

/// One stored line, by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Stored {
    /// Whether `broken` names this line.
    pub(crate) fn is_named_by(&self, broken: &Broken) -> bool {
        (broken.file.as_str(), broken.line, broken.offset)
            == (self.file.as_str(), self.line, self.offset)
    }
}

/// The lines of the files, in order, without their newlines.
pub(crate) fn stored(files: &BTreeMap<String, Vec<u8>>) -> Vec<Stored> {
    let mut lines = Vec::new();
    for (file, bytes) in files {
        let mut offset = 0;
        for (index, piece) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            lines.push(Stored {
                file: file.clone(),
                line: index as u64 + 1,
                offset,
                bytes: piece.strip_suffix(b"\n").unwrap_or(piece).to_vec(),
            });
            offset += piece.len() as u64;
        }
    }
    lines
}

/// The files that hold these lines; only file and bytes of each count.
pub(crate) fn joined(lines: &[Stored]) -> BTreeMap<String, Vec<u8>> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for line in lines {
        let file = files.entry(line.file.clone()).or_default();
        file.extend_from_slice(&line.bytes);
        file.push(b'\n');
    }
    files
}

/// The anchor that names these lines by their position.
pub(crate) fn anchor_of<'a>(lines: impl IntoIterator<Item = (u64, &'a [u8])>) -> String {
    lines
        .into_iter()
        .map(|(seq, bytes)| format!("{seq} {}\n", hash(bytes)))
        .collect()
}

/// A log put together by hand, with whatever fault a test wants and everything else right.
#[derive(Debug, Default)]
pub(crate) struct Forged {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) anchor: String,
    pub(crate) seq: u64,
    pub(crate) prev: Option<Hash32>,
}

impl Forged {
    /// The line that would come next.
    pub(crate) fn line(&self, time: &str, entry: Entry) -> Line {
        Line {
            seq: self.seq,
            time: time.parse().unwrap(),
            prev: self.prev.unwrap_or(Hash32::ZERO),
            entry,
        }
    }

    /// Appends a line with the right sequence and hash to the file of its day.
    pub(crate) fn push(&mut self, time: &str, entry: Entry) -> &mut Self {
        let line = self.line(time, entry);
        self.push_bytes(&time[..10], &serde_json::to_vec(&line).unwrap())
    }

    /// Appends bytes as the next member of the chain.
    pub(crate) fn push_bytes(&mut self, day: &str, bytes: &[u8]) -> &mut Self {
        self.anchor += &anchor_of([(self.seq, bytes)]);
        self.seq += 1;
        self.prev = Some(hash(bytes));
        self.push_outside(day, bytes)
    }

    /// Appends bytes that the chain knows nothing of.
    pub(crate) fn push_outside(&mut self, day: &str, bytes: &[u8]) -> &mut Self {
        let file = self.files.entry(format!("{day}.jsonl")).or_default();
        file.extend_from_slice(bytes);
        file.push(b'\n');
        self
    }

    /// Where the next line of that day's file would begin.
    pub(crate) fn offset(&self, day: &str) -> u64 {
        self.files
            .get(&format!("{day}.jsonl"))
            .map_or(0, |bytes| bytes.len() as u64)
    }

    pub(crate) fn home(&self) -> Home {
        let home = Home::new();
        home.set_files(&self.files);
        home.set_anchor(&self.anchor);
        home
    }
}

/// The recovery entry for these bytes.
pub(crate) fn recovery(file: &str, offset: u64, bytes: &[u8]) -> Entry {
    Entry::Recovery {
        file: file.to_owned(),
        offset,
        length: bytes.len() as u64,
        sha256: hash(bytes),
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}
