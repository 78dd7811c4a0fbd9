//! A disk whose acts can be made to fail, stop or wait, and what the ledger makes of it.

mod closing;
mod crashes;
mod sharing;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use proto::audit::SessionEvent;
use proto::{Entry, SessionId, Timestamp};

use crate::disk::{Disk, Sink};
use crate::{Clock, Paths, Report, Sound};

/// What the disk does next.
#[derive(Debug, Default)]
struct Orders {
    /// Bytes and acts (a byte each) that it still takes; none is without end.
    budget: Option<u64>,
    /// What a write answers, to a file whose name ends so.
    write: Option<(&'static str, WriteFault)>,
    /// What each fsync answers.
    sync: Option<io::ErrorKind>,
    /// An fsync of a day file waits until so many lines were written since the disk was made.
    sync_after: u64,
    /// Lines of the log that were written.
    written: u64,
    /// Fsyncs of day files that ended.
    synced: u64,
    /// Fsyncs of day files that run.
    waiting: u64,
    /// The most of them that ran at one time.
    most_waiting: u64,
}

#[derive(Debug, Clone, Copy)]
enum WriteFault {
    Fails(io::ErrorKind),
    /// Only so many bytes are taken.
    Short(usize),
}

/// The disk, and the handle by which a test orders it about. It makes nothing durable.
#[derive(Debug, Clone, Default)]
struct Faulty(Arc<(Mutex<Orders>, Condvar)>);

impl Faulty {
    fn order<R>(&self, give: impl FnOnce(&mut Orders) -> R) -> R {
        let result = give(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        result
    }

    /// Waits up to 30 s until the disk is in a state.
    fn until(&self, state: impl Fn(&Orders) -> bool) {
        let orders = self.0.0.lock().unwrap();
        let (_orders, waited) = self
            .0
            .1
            .wait_timeout_while(orders, Duration::from_secs(30), |orders| !state(orders))
            .unwrap();
        assert!(!waited.timed_out(), "the disk never came into the state");
    }

    /// Spends the budget: how many of `cost` bytes are still taken.
    fn spend(&self, cost: u64) -> u64 {
        self.order(|orders| match &mut orders.budget {
            Some(left) => {
                let taken = cost.min(*left);
                *left -= taken;
                taken
            }
            None => cost,
        })
    }

    fn act(&self) -> io::Result<()> {
        if self.spend(1) == 1 {
            Ok(())
        } else {
            Err(gone())
        }
    }

    fn sink(&self, path: &Path, file: File) -> Arc<dyn Sink> {
        Arc::new(FaultySink {
            disk: self.clone(),
            name: path.file_name().unwrap().to_str().unwrap().to_owned(),
            file,
        })
    }
}

fn gone() -> io::Error {
    io::Error::other("the process was killed")
}

impl Disk for Faulty {
    fn directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn Sink>> {
        self.act()?;
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        assert_eq!(file.metadata()?.len(), 0, "{} is not new", path.display());
        Ok(self.sink(path, file))
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn Sink>> {
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(self.sink(path, file))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.act()?;
        fs::write(path, bytes)
    }
}

struct FaultySink {
    disk: Faulty,
    name: String,
    file: File,
}

impl FaultySink {
    fn is_log(&self) -> bool {
        self.name.ends_with(".jsonl")
    }
}

impl Sink for FaultySink {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let fault = self.disk.order(|orders| orders.write);
        let asked = match fault {
            Some((end, WriteFault::Fails(kind))) if self.name.ends_with(end) => {
                return Err(kind.into());
            }
            Some((end, WriteFault::Short(count))) if self.name.ends_with(end) => {
                count.min(bytes.len())
            }
            _ => bytes.len(),
        };
        let taken = self.disk.spend(asked as u64);
        if taken == 0 && asked > 0 {
            return Err(gone());
        }
        let taken = usize::try_from(taken).unwrap();
        (&self.file).write_all(&bytes[..taken])?;
        if self.is_log() {
            self.disk.order(|orders| orders.written += 1);
        }
        Ok(taken)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.act()?;
        if !self.is_log() {
            return Ok(());
        }
        self.disk.order(|orders| {
            orders.waiting += 1;
            orders.most_waiting = orders.most_waiting.max(orders.waiting);
        });
        self.disk
            .until(|orders| orders.written >= orders.sync_after);
        self.disk.order(|orders| {
            orders.waiting -= 1;
            orders.synced += 1;
            orders.sync.map_or(Ok(()), |kind| Err(kind.into()))
        })
    }
}

/// A home in memory where there is such a place: nothing here needs a medium, and there are thousands of homes.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

fn paths(home: &Path) -> Paths {
    Paths {
        audit: home.join("audit"),
        anchor: home.join("anchor"),
    }
}

/// A clock that stands at this time.
fn at(time: &str) -> Clock {
    let time: Timestamp = time.parse().unwrap();
    Box::new(move || time)
}

const NOON: &str = "2026-09-17T12:00:00.000Z";

fn entry(name: &str) -> Entry {
    Entry::Session {
        session: SessionId::new(name).unwrap(),
        event: SessionEvent::Opened,
        by: "bxctl".to_owned(),
    }
}

fn sound(paths: &Paths) -> Sound {
    match crate::verify(paths).unwrap() {
        Report::Sound(sound) => sound,
        Report::Broken(broken) => panic!("broken at {broken}"),
    }
}

/// The sessions that the log tells of, in order, recovery entries left out.
fn told(paths: &Paths) -> Vec<String> {
    crate::read(paths)
        .filter_map(|line| match line.unwrap().entry {
            Entry::Session { session, .. } => Some(session.to_string()),
            _ => None,
        })
        .collect()
}
