//! Threads that answer brokerd's requests, counted, so that the end of brokerd can wait for all of them and a flood
//! of requests makes no flood of threads.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::lock;

/// With this many threads busy, a short request is answered by the thread that reads. Requests that may take long are
/// bounded by the tickets.
const MANY: usize = 96;

/// The threads of one life of brokerd.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    busy: Mutex<usize>,
    idle: Condvar,
}

impl Workers {
    /// Does short `work` in a thread of its own, or here if many are busy.
    pub(crate) fn brief(self: &Arc<Self>, name: &str, work: impl FnOnce() + Send + 'static) {
        if *lock(&self.busy) >= MANY {
            work();
        } else {
            self.spawn(name, work);
        }
    }

    /// Does `work` in a thread of its own, or here if none can be had.
    pub(crate) fn spawn(self: &Arc<Self>, name: &str, work: impl FnOnce() + Send + 'static) {
        *lock(&self.busy) += 1;
        let token = Token(Arc::clone(self));
        // Shared, because a failed spawn would otherwise take the work with it.
        let work = Arc::new(Mutex::new(Some(work)));
        let theirs = Arc::clone(&work);
        let run = move || {
            let _token = token;
            take_and_run(&theirs);
        };
        if thread::Builder::new()
            .name(name.to_owned())
            .spawn(run)
            .is_err()
        {
            take_and_run(&work);
        }
    }

    /// Waits until no thread is busy; `false` if `limit` passed before.
    pub(crate) fn wait_idle(&self, limit: Duration) -> bool {
        let busy = lock(&self.busy);
        let waited = self.idle.wait_timeout_while(busy, limit, |busy| *busy > 0);
        let (busy, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *busy == 0
    }
}

fn take_and_run<W: FnOnce()>(work: &Mutex<Option<W>>) {
    let work = lock(work).take();
    if let Some(work) = work {
        work();
    }
}

/// Counts one thread as busy until it is dropped, also by a panic.
struct Token(Arc<Workers>);

impl Drop for Token {
    fn drop(&mut self) {
        *lock(&self.0.busy) -= 1;
        self.0.idle.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn waiting_ends_when_the_last_thread_does() {
        let workers = Arc::new(Workers::default());
        let (go, wait) = channel::<()>();
        let (done, seen) = channel();
        workers.spawn("test", move || {
            wait.recv().unwrap();
            done.send(()).unwrap();
        });
        assert!(!workers.wait_idle(Duration::ZERO));
        go.send(()).unwrap();
        assert!(workers.wait_idle(Duration::from_secs(30)));
        seen.try_recv().unwrap();
    }

    #[test]
    fn with_many_threads_busy_the_caller_does_short_work_itself() {
        let workers = Arc::new(Workers::default());
        let mut gates = Vec::new();
        for _ in 0..MANY {
            let (go, wait) = channel::<()>();
            gates.push(go);
            // It ends when its gate is dropped.
            workers.spawn("test", move || assert!(wait.recv().is_err()));
        }
        let here = thread::current().id();
        let (done, seen) = channel();
        let other = done.clone();
        workers.brief("test", move || done.send(thread::current().id()).unwrap());
        assert_eq!(seen.try_recv().unwrap(), here);
        workers.spawn("test", move || other.send(thread::current().id()).unwrap());
        assert_ne!(seen.recv_timeout(Duration::from_secs(30)).unwrap(), here);
        drop(gates);
        assert!(workers.wait_idle(Duration::from_secs(30)));
    }
}
