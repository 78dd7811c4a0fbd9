//! The writer: stamps entries, appends them, and shares one fsync among those that wait together. A failed write or
//! fsync is final (architecture.md section 4.3): what the kernel then has on the medium cannot be known.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use proto::{Entry, Hash32, Line, Timestamp};

use crate::MAX_LINE;
use crate::anchor::{AnchorFile, Anchored};
use crate::day::Day;
use crate::disk::{Disk, Sink, write_whole};
use crate::lock::Lock;

/// Where the writer takes the time from; it may jump, the log does not go back with it.
pub type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// Where an entry went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its sequence.
    pub seq: u64,
    /// Its time: the later of the clock and the line before.
    pub time: Timestamp,
}

/// How far the log has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The sequence that the next entry gets.
    pub next: u64,
    /// The time of the last line, if there is one.
    pub time: Option<Timestamp>,
    /// The anchor names a line before this sequence, and every line before it is behind the anchor.
    pub anchored: u64,
    /// The bytes of all day files together.
    pub bytes: u64,
    /// Whether it has refused an entry for its size, and so refuses everything that begins.
    pub full: bool,
    /// Why the ledger takes no more entries, if it does not.
    pub closed: Option<String>,
}

/// Why an entry was not appended, or is not known to be durable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// A write or an fsync failed, now or before.
    #[error(
        "the audit log is closed ({reason}): nothing runs without a record; make room on its disk or mend that, and restart \
         boxmaker"
    )]
    Closed {
        /// The first failure.
        reason: String,
    },
    /// The log with this line would be larger than it may be, now or before. What ends is still taken.
    #[error(
        "the audit log has {bytes} bytes, and with this record it would have more than the {most} of [audit] max_bytes: \
         nothing begins without a record; raise max_bytes and restart boxmaker, or stop it and move the log and its \
         anchor away together to begin a new one"
    )]
    Full {
        /// Its size.
        bytes: u64,
        /// Its greatest size.
        most: u64,
    },
    /// The line would be longer than [`MAX_LINE`]. The ledger stays open.
    #[error("the record has {length} bytes, at most {MAX_LINE} are allowed")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// Recovery entries are written by [`Ledger::open`] alone. The ledger stays open.
    #[error("a recovery entry is the ledger's own and is not appended for anyone")]
    Reserved,
    /// The entry has no JSON form. The ledger stays open.
    #[error("the record cannot be encoded: {reason}")]
    Encode {
        /// The encoder's words.
        reason: String,
    },
}

/// The one writer of a log. Shared by threads; dropping it makes every line durable, if it can.
pub struct Ledger {
    core: Mutex<Core>,
    /// Told whenever a shared fsync has ended.
    synced: Condvar,
    clock: Clock,
    _lock: Lock,
}

/// What the lock of [`Ledger`] guards.
pub(crate) struct Core {
    pub(crate) audit: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    /// The file of the newest day, once there is one.
    pub(crate) file: Option<(Day, Arc<dyn Sink>)>,
    pub(crate) anchor: AnchorFile,
    pub(crate) next: u64,
    pub(crate) prev: Hash32,
    pub(crate) time: Option<Timestamp>,
    /// No line gets an earlier time: the start of the newest day whose file holds a byte.
    pub(crate) floor: Timestamp,
    /// Every line with a lower sequence is durable.
    pub(crate) durable: u64,
    /// The anchor names the line before this sequence, and none after it.
    pub(crate) anchored: u64,
    /// Whether a thread is in an fsync, without the lock. There is one at a time, because the kernel tells a failure
    /// to one of them only.
    pub(crate) syncing: bool,
    /// The size of all day files.
    pub(crate) bytes: u64,
    /// The size beyond which nothing begins.
    pub(crate) most: u64,
    /// Whether something was refused for that size. It stays so, or the small would still begin where the large do not.
    pub(crate) full: bool,
    pub(crate) closed: Option<String>,
}

/// What an entry announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something that begins with it, or that it alone is about.
    Begins,
    /// The end of what has begun, or what the ledger and its keeper do themselves.
    Goes,
}

impl Core {
    /// Refuses what begins with a line of `length` bytes if the log would be too large.
    fn fits(&mut self, kind: Kind, length: usize) -> Result<(), AppendError> {
        let with = self.bytes.saturating_add(length as u64);
        if kind == Kind::Goes || (!self.full && with <= self.most) {
            return Ok(());
        }
        self.full = true;
        Err(self.too_large())
    }

    const fn too_large(&self) -> AppendError {
        AppendError::Full {
            bytes: self.bytes,
            most: self.most,
        }
    }

    fn usable(&self) -> Result<(), AppendError> {
        match &self.closed {
            Some(reason) => Err(AppendError::Closed {
                reason: reason.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Closes the ledger for good, if it is not closed yet; the first reason stays.
    fn close(&mut self, step: &str, error: &std::io::Error) -> AppendError {
        let reason = self
            .closed
            .get_or_insert_with(|| format!("{step}: {error}"));
        AppendError::Closed {
            reason: reason.clone(),
        }
    }

    fn stamp(&self, clock: Timestamp) -> Timestamp {
        clock.max(self.floor).max(self.time.unwrap_or(self.floor))
    }

    /// Whether a line of that time belongs into another file than the last one.
    fn rolls(&self, time: Timestamp) -> bool {
        self.file
            .as_ref()
            .is_none_or(|(day, _)| *day != Day::of(time))
    }

    /// Appends one line. No fsync may be running if it [rolls](Self::rolls).
    pub(crate) fn write(
        &mut self,
        now: Timestamp,
        entry: Entry,
        kind: Kind,
    ) -> Result<Appended, AppendError> {
        self.usable()?;
        let line = Line {
            seq: self.next,
            time: self.stamp(now),
            prev: self.prev,
            entry,
        };
        let mut bytes = serde_json::to_vec(&line).map_err(|error| AppendError::Encode {
            reason: error.to_string(),
        })?;
        if bytes.len() > MAX_LINE {
            return Err(AppendError::TooLong {
                length: bytes.len(),
            });
        }
        let hash = crate::open::digest(&bytes);
        bytes.push(b'\n');
        self.fits(kind, bytes.len())?;
        let (day, file) = self.file_of(line.time)?;
        if let Err(error) = write_whole(&*file, &bytes) {
            let step = format!("cannot write seq {} to {}", line.seq, day.file_name());
            return Err(self.close(&step, &error));
        }
        self.next += 1;
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        self.prev = hash;
        self.time = Some(line.time);
        if self.anchor.is_empty() {
            // The log's first line is behind the anchor before there is a second (see `AnchorFile::add`).
            self.sync()?;
        }
        Ok(Appended {
            seq: line.seq,
            time: line.time,
        })
    }

    /// The file for a line of that time. A new day's file is made after the old day's is durable as a whole, so that an
    /// fsync of the newest file is one of the log.
    fn file_of(&mut self, time: Timestamp) -> Result<(Day, Arc<dyn Sink>), AppendError> {
        if let Some((day, file)) = &self.file
            && !self.rolls(time)
        {
            return Ok((day.clone(), Arc::clone(file)));
        }
        if self.durable < self.next {
            self.sync()?;
        }
        let day = Day::of(time);
        match self.disk.create(&self.audit.join(day.file_name())) {
            Ok(file) => {
                self.file = Some((day.clone(), Arc::clone(&file)));
                Ok((day, file))
            }
            Err(error) => Err(self.close(&format!("cannot make {}", day.file_name()), &error)),
        }
    }

    /// Makes every line durable without letting go of the lock. No other fsync may be running.
    pub(crate) fn sync(&mut self) -> Result<(), AppendError> {
        self.usable()?;
        let Some((day, file)) = self.file.clone() else {
            return Ok(());
        };
        let result = file.sync();
        self.settle(self.next, self.prev, day, result)
    }

    /// Takes the result of an fsync that covers every line below `next`, whose last one has this hash and day.
    fn settle(
        &mut self,
        next: u64,
        hash: Hash32,
        day: Day,
        result: std::io::Result<()>,
    ) -> Result<(), AppendError> {
        if let Err(error) = result {
            let step = format!("cannot make {} durable", day.file_name());
            return Err(self.close(&step, &error));
        }
        self.usable()?;
        if self.anchored < next {
            let line = Anchored {
                seq: next - 1,
                hash,
            };
            if let Err(error) = self.anchor.add(line, day) {
                return Err(self.close("cannot write the anchor", &error));
            }
            self.anchored = next;
        }
        self.durable = self.durable.max(next);
        Ok(())
    }
}

impl Ledger {
    /// A ledger that goes on where `core` stands.
    pub(crate) fn new(core: Core, clock: Clock, lock: Lock) -> Self {
        Self {
            core: Mutex::new(core),
            synced: Condvar::new(),
            clock,
            _lock: lock,
        }
    }

    /// Sets the size, in bytes of all day files, beyond which nothing begins; without this there is none.
    pub fn limit(&self, most: u64) {
        self.lock().most = most;
    }

    /// Why nothing can begin, if the log has refused something for its size or has reached it.
    ///
    /// # Errors
    /// [`AppendError::Full`], [`AppendError::Closed`].
    pub fn open_for_more(&self) -> Result<(), AppendError> {
        let core = self.lock();
        core.usable()?;
        if core.full || core.bytes >= core.most {
            return Err(core.too_large());
        }
        Ok(())
    }

    /// Appends an entry with the next sequence, the time and the hash of the line before. It is written, not yet durable:
    /// for the records of ends (protocol.md section 6).
    ///
    /// # Errors
    /// [`AppendError`]; nothing was appended, or the ledger is closed.
    pub fn append(&self, entry: Entry) -> Result<Appended, AppendError> {
        self.append_locked(entry, Kind::Goes).1
    }

    /// [`Ledger::append_durable`] of an entry with which something begins: it is refused where the log would be larger than
    /// its [limit](Ledger::limit), and then everything that begins is.
    ///
    /// # Errors
    /// [`AppendError`]; the effect that the entry announces must not happen.
    pub fn begin(&self, entry: Entry) -> Result<Appended, AppendError> {
        self.durable(entry, Kind::Begins)
    }

    /// [`Ledger::append`], and returns when the line is durable and behind the anchor. Threads that wait at the same time
    /// share an fsync.
    ///
    /// # Errors
    /// [`AppendError`]; the effect that the entry announces must not happen.
    pub fn append_durable(&self, entry: Entry) -> Result<Appended, AppendError> {
        self.durable(entry, Kind::Goes)
    }

    fn durable(&self, entry: Entry, kind: Kind) -> Result<Appended, AppendError> {
        let (core, appended) = self.append_locked(entry, kind);
        let appended = appended?;
        self.wait_durable(core, appended.seq + 1)?;
        Ok(appended)
    }

    /// Returns when every line appended so far is durable.
    ///
    /// # Errors
    /// [`AppendError::Closed`].
    pub fn sync(&self) -> Result<(), AppendError> {
        let core = self.lock();
        let next = core.next;
        self.wait_durable(core, next)
    }

    /// How far the log has come, and whether it takes more.
    pub fn head(&self) -> Head {
        let core = self.lock();
        Head {
            next: core.next,
            time: core.time,
            anchored: core.anchored,
            bytes: core.bytes,
            full: core.full,
            closed: core.closed.clone(),
        }
    }

    fn append_locked(
        &self,
        entry: Entry,
        kind: Kind,
    ) -> (MutexGuard<'_, Core>, Result<Appended, AppendError>) {
        let now = (self.clock)();
        let mut core = self.lock();
        if matches!(entry, Entry::Recovery { .. }) {
            return (core, Err(AppendError::Reserved));
        }
        while core.syncing && core.rolls(core.stamp(now)) {
            core = self.wait(core);
        }
        let appended = core.write(now, entry, kind);
        (core, appended)
    }

    /// Waits until every line below `next` is durable: behind the fsync that is running, and then, if that one came too
    /// early, in one that this thread makes for all that were written by then.
    fn wait_durable<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        next: u64,
    ) -> Result<(), AppendError> {
        while core.durable < next {
            core.usable()?;
            if core.syncing {
                core = self.wait(core);
                continue;
            }
            let (covered, hash) = (core.next, core.prev);
            let Some((day, file)) = core.file.clone() else {
                return Ok(());
            };
            core.syncing = true;
            drop(core);
            let result = file.sync();
            core = self.lock();
            core.syncing = false;
            let settled = core.settle(covered, hash, day, result);
            self.synced.notify_all();
            settled?;
        }
        Ok(())
    }

    /// The guarded state. A thread that panicked with it may have left a line that the state does not know, so that is
    /// as final as a failed write.
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(poisoned)
    }

    fn wait<'a>(&self, core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        self.synced.wait(core).unwrap_or_else(poisoned)
    }
}

fn poisoned(error: PoisonError<MutexGuard<'_, Core>>) -> MutexGuard<'_, Core> {
    let mut core = error.into_inner();
    core.closed
        .get_or_insert_with(|| "a thread panicked while it wrote".to_owned());
    core
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger")
            .field("head", &self.head())
            .finish_non_exhaustive()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // Nobody is left to tell; the next start finds what was not written.
        let _ = self.sync();
    }
}
