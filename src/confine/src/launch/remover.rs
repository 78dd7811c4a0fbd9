//! Takes down sandboxes in which nothing runs any more, so that whoever waits for a program does not wait for the kernel to
//! take its namespaces apart.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::sandbox::Sandbox;

/// The most that wait. Who brings one more takes it down alone, so that ends keep up with launches.
const MOST: usize = 16;

/// A thread that takes down sandboxes. Dropping it waits until all are gone.
#[derive(Debug)]
pub(super) struct Remover {
    inbox: Inbox,
    thread: Option<JoinHandle<()>>,
}

/// Where sandboxes are handed over.
#[derive(Debug, Clone, Default)]
pub(super) struct Inbox(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    left: Vec<Sandbox>,
    /// Whether one is being taken down.
    busy: bool,
    ended: bool,
}

impl Remover {
    /// # Errors
    /// No thread can be started.
    pub(super) fn new() -> io::Result<Self> {
        let inbox = Inbox::default();
        let own = inbox.clone();
        let thread = thread::Builder::new()
            .name("remover".to_owned())
            .spawn(move || own.0.remove_all())?;
        Ok(Self {
            inbox,
            thread: Some(thread),
        })
    }

    pub(super) fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// Waits until nothing that was handed over before is left.
    pub(super) fn settle(&self) {
        let mut state = self.inbox.0.lock();
        while state.busy || !state.left.is_empty() {
            state = wait(&self.inbox.0.changed, state);
        }
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        self.inbox.0.lock().ended = true;
        self.inbox.0.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked without having said so.
            let _ = thread.join();
        }
    }
}

impl Inbox {
    /// Has a sandbox in which nothing runs taken down: by the thread, or by the caller where that has enough to do or has
    /// ended.
    pub(super) fn leave(&self, sandbox: Sandbox) {
        let mut state = self.0.lock();
        if state.ended || state.left.len() >= MOST {
            drop(state);
            drop(sandbox);
            return;
        }
        state.left.push(sandbox);
        drop(state);
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove_all(&self) {
        let mut state = self.lock();
        loop {
            if let Some(sandbox) = state.left.pop() {
                state.busy = true;
                drop(state);
                drop(sandbox);
                state = self.lock();
                state.busy = false;
                self.changed.notify_all();
            } else if state.ended {
                return;
            } else {
                state = wait(&self.changed, state);
            }
        }
    }
}

fn wait<'a>(changed: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    changed.wait(state).unwrap_or_else(PoisonError::into_inner)
}
