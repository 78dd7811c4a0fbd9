//! SIGINT, SIGTERM and SIGHUP while a call is on its way. The first cuts the connection, which gives the call up and
//! leaves bxctl the time to say so; the next ends bxctl at once. A signal that is ignored when bxctl starts stays so.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

#[derive(Debug, Default)]
struct State {
    signal: Option<i32>,
    stream: Option<UnixStream>,
}

/// Watches for signals, from its making to the end of the process.
#[derive(Debug)]
pub(super) struct Interrupt(Arc<Mutex<State>>);

impl Interrupt {
    /// Takes the signals over.
    ///
    /// # Errors
    /// As sigaction(2), pipe(2) and pthread_create(3).
    pub(super) fn watch() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignored(&status);
        let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let mut signals = Signals::new(heeded.filter(|signal| !has(ignored, *signal)))?;
        let state = Arc::<Mutex<State>>::default();
        let told = Arc::clone(&state);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    let mut state = told.lock().unwrap_or_else(PoisonError::into_inner);
                    if state.signal.is_some() {
                        die(signal);
                    }
                    state.signal = Some(signal);
                    cut(&state);
                }
            })?;
        Ok(Self(state))
    }

    /// From now on the first signal ends the connection that `stream` belongs to; at once, if it came already.
    ///
    /// # Errors
    /// As fcntl(2) with `F_DUPFD_CLOEXEC`.
    pub(super) fn cuts(&self, stream: &UnixStream) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.stream = Some(stream.try_clone()?);
        if state.signal.is_some() {
            cut(&state);
        }
        Ok(())
    }

    /// The first signal, if one came.
    pub(super) fn signal(&self) -> Option<i32> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.signal
    }
}

/// Both ends see the end of the stream: brokerd that its caller is gone, and bxctl that no answer comes.
fn cut(state: &State) {
    if let Some(stream) = &state.stream {
        // It fails only if the connection has ended.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Ends this process as `signal` would have, so that a shell sees that it was interrupted and stops its script.
pub(crate) fn die(signal: i32) -> ExitCode {
    // Returns only for a signal that the library does not know; the status is the one a shell shows.
    let _ = emulate_default_handler(signal);
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
}

/// The mask of ignored signals in the text of `/proc/PID/status` (proc(5)).
fn ignored(status: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .unwrap_or_default();
    u64::from_str_radix(line.trim(), 16).unwrap_or(0)
}

/// Whether a mask of signals holds `signal`; the lowest bit is signal 1.
fn has(mask: u64, signal: i32) -> bool {
    let bit = u32::try_from(signal - 1).unwrap_or(u32::MAX);
    mask.checked_shr(bit).is_some_and(|rest| rest & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read_from_the_status_of_the_process() {
        let mask = ignored("Name:\tbxctl\nSigBlk:\tffff\nSigIgn:\t0000000000000003\n");
        assert!(has(mask, SIGHUP) && has(mask, SIGINT) && !has(mask, SIGTERM));
        assert_eq!(ignored("Name:\tbxctl\n"), 0);
        assert!(!has(u64::MAX, 65));
    }
}
