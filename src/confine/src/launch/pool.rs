//! The warm pool: stages that wait for their plan, made ahead by a thread of its own, for kinds of plans that were asked
//! for before. Each is used once. A kind that nothing asks for any more gives way to a newer one.
//!
//! A parked stage has done what no call has a part in, up to the granted trees. Everything else, from these to the
//! measurement, is done for the call as in a cold launch, by the same code.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::LaunchError;
use super::park::{Kind, Parker, Views};
use super::sandbox::Sandbox;

/// How many kinds of plans stages are kept for.
const KINDS: usize = 8;

/// How long a stage that is to be made lets launches go first: a program that does little has ended by then.
const HOLD_BACK: Duration = Duration::from_millis(10);

/// How many stages wait, for each profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolSizes {
    /// For a tool's profile that is not named; a role's profile has none, for a role starts once.
    pub tools: u8,
    /// For a profile by its name.
    pub named: BTreeMap<String, u8>,
}

impl PoolSizes {
    fn of(&self, profile: &str) -> usize {
        let tools = || {
            if profile.starts_with("roles/") {
                0
            } else {
                self.tools
            }
        };
        self.named
            .get(profile)
            .copied()
            .unwrap_or_else(tools)
            .into()
    }

    fn none(&self) -> bool {
        self.tools == 0 && self.named.values().all(|size| *size == 0)
    }
}

/// Hands out stages. Dropping it ends every stage that waits.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    refill: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    parker: Parker,
    sizes: PoolSizes,
    state: Mutex<State>,
    changed: Condvar,
    /// How many launches are under way.
    launches: AtomicUsize,
}

/// A launch that is under way, for which the pool holds back. Over when it is dropped.
#[derive(Debug)]
pub(super) struct Underway(Arc<Shared>);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.launches.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_all();
    }
}

#[derive(Debug)]
struct State {
    /// The kind asked for last stands last.
    shelves: Vec<Shelf>,
    /// This process's table of mounts; a change makes it readable with `POLLPRI` (proc_pid_mountinfo(5)).
    mounts: File,
    /// How often it changed: a stage that was begun before the last change is outdated.
    changes: u64,
    ended: bool,
}

#[derive(Debug)]
struct Shelf {
    kind: Kind,
    waiting: Vec<Sandbox>,
}

impl Pool {
    /// Starts with no stage at all: what to keep is learned from what is asked for.
    ///
    /// # Errors
    /// The table of mounts cannot be opened, or no thread can be started.
    pub(super) fn new(parker: Parker, sizes: PoolSizes) -> io::Result<Self> {
        let state = State {
            shelves: Vec::new(),
            mounts: File::open("/proc/self/mountinfo")?,
            changes: 0,
            ended: false,
        };
        let thread = !sizes.none();
        let shared = Arc::new(Shared {
            parker,
            sizes,
            state: Mutex::new(state),
            changed: Condvar::new(),
            launches: AtomicUsize::new(0),
        });
        let filled = Arc::clone(&shared);
        let refill = match thread {
            true => Some(
                thread::Builder::new()
                    .name("pool".to_owned())
                    .spawn(move || filled.refill())?,
            ),
            false => None,
        };
        Ok(Self { shared, refill })
    }

    /// How many stages wait.
    pub(super) fn waiting(&self) -> usize {
        let state = lock(&self.shared.state);
        state.shelves.iter().map(|shelf| shelf.waiting.len()).sum()
    }

    /// Says that a launch begins.
    pub(super) fn launching(&self) -> Underway {
        self.shared.launches.fetch_add(1, Ordering::Relaxed);
        Underway(Arc::clone(&self.shared))
    }

    pub(super) fn parker(&self) -> &Parker {
        &self.shared.parker
    }

    /// A stage of this kind that waited, or a new one.
    ///
    /// # Errors
    /// As [`LaunchError`], of a new one.
    pub(super) fn take(&self, kind: &Kind) -> Result<Sandbox, LaunchError> {
        let waited = match self.refill {
            Some(_) => self.shared.take(kind),
            None => None,
        };
        match waited {
            Some(sandbox) => Ok(sandbox),
            None => self.shared.parker.park(kind),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.refill.take() {
            // It cannot have panicked without having said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn take(&self, kind: &Kind) -> Option<Sandbox> {
        if self.sizes.of(&kind.profile) == 0 {
            return None;
        }
        let mut outdated = Vec::new();
        let views = Views::now(kind);
        let mut state = lock(&self.state);
        if state.mounts_changed() {
            state.changes += 1;
            outdated.extend(
                state
                    .shelves
                    .iter_mut()
                    .flat_map(|shelf| shelf.waiting.drain(..)),
            );
        }
        let place = state.shelves.iter().position(|shelf| shelf.kind == *kind);
        let mut shelf = place.map_or_else(
            || Shelf {
                kind: kind.clone(),
                waiting: Vec::new(),
            },
            |place| state.shelves.remove(place),
        );
        // One that was killed while it waited, or has other files than the host has now, is no use; it is removed like any
        // other.
        let mut taken = None;
        while taken.is_none() {
            match shelf.waiting.pop() {
                Some(sandbox) if sandbox.lives() && sandbox.views == views => {
                    taken = Some(sandbox);
                }
                Some(useless) => outdated.push(useless),
                None => break,
            }
        }
        state.shelves.push(shelf);
        if state.shelves.len() > KINDS {
            outdated.extend(state.shelves.remove(0).waiting);
        }
        drop(state);
        self.changed.notify_one();
        // Ending a sandbox takes longer than a lock should be held.
        drop(outdated);
        taken
    }

    /// Parks stages until the pool ends. A kind whose stage cannot be made is not tried again until it is asked for.
    fn refill(&self) {
        let mut failed: Vec<Kind> = Vec::new();
        let mut state = lock(&self.state);
        while !state.ended {
            let Some(kind) = state.wanted(&self.sizes, &failed) else {
                state = wait(&self.changed, state);
                failed.clear();
                continue;
            };
            state = self.hold_back(state);
            if state.ended {
                break;
            }
            let begun = state.changes;
            drop(state);
            let parked = self.parker.park(&kind).and_then(|mut sandbox| {
                sandbox.namespaces = Some(self.parker.shown(&mut sandbox)?);
                Ok(sandbox)
            });
            state = lock(&self.state);
            let current = state.changes == begun;
            match (parked, state.shelf(&kind)) {
                (Ok(sandbox), Some(shelf)) if current => shelf.waiting.insert(0, sandbox),
                (Ok(sandbox), _) => {
                    drop(state);
                    drop(sandbox);
                    state = lock(&self.state);
                }
                // Whoever needs one meets the same error and reports it.
                (Err(_), _) => failed.push(kind),
            }
        }
        let left: Vec<_> = state.shelves.drain(..).collect();
        drop(state);
        drop(left);
    }

    /// Waits for the launches that are under way, whose processors a new stage would take, though not for long.
    fn hold_back<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let begun = Instant::now();
        while !state.ended && self.launches.load(Ordering::Relaxed) > 0 {
            let Some(left) = HOLD_BACK.checked_sub(begun.elapsed()) else {
                break;
            };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }
}

impl State {
    fn shelf(&mut self, kind: &Kind) -> Option<&mut Shelf> {
        self.shelves.iter_mut().find(|shelf| shelf.kind == *kind)
    }

    /// The kind asked for last of which fewer wait than should.
    fn wanted(&self, sizes: &PoolSizes, failed: &[Kind]) -> Option<Kind> {
        let short = |shelf: &&Shelf| {
            shelf.waiting.len() < sizes.of(&shelf.kind.profile) && !failed.contains(&shelf.kind)
        };
        Some(self.shelves.iter().rev().find(short)?.kind.clone())
    }

    /// Whether anything was mounted or unmounted since the last time this was asked. What cannot be asked has changed.
    fn mounts_changed(&self) -> bool {
        let mut watched = [PollFd::new(&self.mounts, PollFlags::PRI)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match rustix::event::poll(&mut watched, Some(&now)) {
            Ok(0) => false,
            Ok(_) | Err(_) => true,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a>(changed: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    changed.wait(state).unwrap_or_else(PoisonError::into_inner)
}
