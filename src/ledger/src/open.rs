//! The start of the writer: takes the lock, reads the whole log past its anchor, and ends what a crash left torn.

use std::sync::Arc;

use proto::{Hash32, Timestamp};
use sha2::{Digest, Sha256};

use crate::anchor::AnchorFile;
use crate::chain::State;
use crate::day::{self, Day};
use crate::disk::{Disk, Host, write_whole};
use crate::lock::{Lock, LockError};
use crate::walk::{self, Broken, WalkError};
use crate::writer::{AppendError, Clock, Core, Kind, Ledger};
use crate::{FileError, Paths};

/// What a start found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The torn bytes that were ended and announced, if there were any; the last stretch of them, if a start that was
    /// cut short left several.
    pub recovered: Option<Recovered>,
    /// How many lines the log has, the recovery entries of this start included.
    pub lines: u64,
}

/// Torn bytes that stay in the log, outside the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The name of their day file.
    pub file: String,
    /// Where they begin.
    pub offset: u64,
    /// How many there are, without the newline that ends them now.
    pub length: u64,
    /// Their SHA-256.
    pub sha256: Hash32,
    /// The sequence of the entry that announces them.
    pub seq: u64,
}

/// Why a log was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process holds it, or the lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It is not what was written.
    #[error(
        "the audit log is broken at {0}: every line must be what was written; see `bxctl audit verify`, put the files \
         back from a copy, or move the log and its anchor away to begin a new one"
    )]
    Broken(Broken),
    /// A file or directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The recovery entry could not be written.
    #[error("cannot announce a torn line: {0}")]
    Append(#[from] AppendError),
}

impl From<WalkError> for OpenError {
    fn from(error: WalkError) -> Self {
        match error {
            WalkError::Broken(broken) => Self::Broken(broken),
            WalkError::File(error) => Self::File(error),
        }
    }
}

impl Ledger {
    /// Opens the log as its one writer and brings it to a sound end: the whole chain and the anchor are checked, a torn
    /// last line is ended and announced by a durable recovery entry, and every line is durable and behind the anchor.
    /// The directory is made if it is missing; the one above it must exist.
    ///
    /// # Errors
    /// [`OpenError`]. A log that is broken, ends before its anchor, or has none although it is not empty is not opened
    /// and not changed (architecture.md section 6).
    pub fn open(paths: &Paths, clock: Clock) -> Result<(Self, Opened), OpenError> {
        Self::open_on(Arc::new(Host), paths, clock)
    }

    /// [`Ledger::open`] with the disk that it writes to.
    pub(crate) fn open_on(
        disk: Arc<dyn Disk>,
        paths: &Paths,
        clock: Clock,
    ) -> Result<(Self, Opened), OpenError> {
        disk.directory(&paths.audit)
            .map_err(FileError::on("make", &paths.audit))?;
        let lock = Lock::take(&paths.audit)?;
        let end = walk::whole(paths)?;
        let State {
            next,
            prev,
            time,
            mut outside,
            ..
        } = match &end.torn {
            Some(torn) => end.state.with_torn(torn),
            None => end.state,
        };
        let anchored = end.anchor.as_ref().and_then(|anchor| anchor.lines.last());
        let anchored = anchored.map_or(0, |line| line.seq + 1);
        let file = match end.last {
            Some(day) => {
                let path = paths.audit.join(day.file_name());
                let sink = disk.append(&path).map_err(FileError::on("open", &path))?;
                if end.torn.is_some() {
                    write_whole(&*sink, b"\n")
                        .map_err(FileError::on("end the torn line of", &path))?;
                }
                // Without the anchor: whether the last line is a member is settled only by the recovery entry.
                sink.sync().map_err(FileError::on("sync", &path))?;
                Some((Arc::unwrap_or_clone(day), sink))
            }
            None => None,
        };
        let anchor = AnchorFile::open(Arc::clone(&disk), &paths.anchor, end.anchor, end.days)
            .map_err(FileError::on("open", &paths.anchor))?;
        let mut core = Core {
            audit: paths.audit.clone(),
            disk,
            floor: file
                .as_ref()
                .map_or(Timestamp::from_millis(0), |(day, _)| Day::start(day)),
            file,
            anchor,
            next,
            prev,
            time,
            durable: next,
            anchored,
            syncing: false,
            bytes: 0,
            most: u64::MAX,
            full: false,
            closed: None,
        };
        let mut recovered = None;
        let now = clock();
        while let Some(stretch) = outside.pop_front() {
            let appended = core.write(now, stretch.announcement(), Kind::Goes)?;
            recovered = Some(Recovered {
                file: stretch.place.day.file_name(),
                offset: stretch.place.offset,
                length: stretch.length,
                sha256: stretch.sha256(),
                seq: appended.seq,
            });
        }
        if core.anchored < core.next {
            core.sync()?;
        }
        core.bytes = size(paths)?;
        let opened = Opened {
            recovered,
            lines: core.next,
        };
        Ok((Self::new(core, clock, lock), opened))
    }
}

/// The bytes of all day files together.
fn size(paths: &Paths) -> Result<u64, FileError> {
    let mut bytes = 0_u64;
    for day in day::list(&paths.audit)?.days {
        let path = paths.audit.join(day.file_name());
        let file = std::fs::metadata(&path).map_err(FileError::on("look at", &path))?;
        bytes = bytes.saturating_add(file.len());
    }
    Ok(bytes)
}

/// SHA-256 of `bytes`.
pub(crate) fn digest(bytes: &[u8]) -> Hash32 {
    Hash32::new(Sha256::digest(bytes).into())
}
