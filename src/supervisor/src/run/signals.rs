//! The signals by which a run is ended: the program gets none of them, its sandbox ends.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use confine::launch::Killer;
use proto::audit::ExitCause;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::lock;

/// Waits for the signals, from before the sandbox is built.
#[derive(Debug, Clone)]
pub(super) struct Signals(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// The first that came, 0 for none.
    seen: AtomicI32,
    killer: Mutex<Option<Killer>>,
}

impl Signals {
    /// # Errors
    /// They cannot be waited for.
    pub(super) fn wait_for() -> io::Result<Self> {
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
        let state = Arc::new(State::default());
        let own = Arc::clone(&state);
        let wait = move || {
            for signal in signals.forever() {
                let _ = own
                    .seen
                    .compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
                if let Some(killer) = &*lock(&own.killer) {
                    killer.kill(ExitCause::Aborted);
                }
            }
        };
        let thread = thread::Builder::new().name("signals".to_owned());
        thread.spawn(wait)?;
        Ok(Self(state))
    }

    /// Has `killer` end the sandbox when a signal comes, or now if one came before.
    pub(super) fn end(&self, killer: Killer) {
        let mut place = lock(&self.0.killer);
        if self.seen().is_some() {
            killer.kill(ExitCause::Aborted);
        }
        *place = Some(killer);
    }

    /// The first signal that came.
    pub(super) fn seen(&self) -> Option<i32> {
        Some(self.0.seen.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}
