//! The broker: decides each tool call, tracks what each session has read, labels results, and has every decision
//! recorded before it takes effect.
//!
//! It holds no privilege. Sandboxes are built and records are written by the supervisor, whom it asks over its control
//! socket; the owner's command line asks it over a listener that the supervisor handed over. The decision itself is
//! the `policy` crate's.

mod asking;
mod bell;
mod broker;
mod calls;
mod clients;
mod control;
mod denials;
mod output;
mod questions;
mod refusal;
mod running;
mod start;
mod state;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ipc::role::Started;

pub use control::ReadEnd;
pub use start::StartError;

use bell::Bell;
use broker::Broker;
use control::{Control, Order};

/// How long an orderly end may take before what is left is closed as `unknown` by the next start.
const END: Duration = Duration::from_secs(5);

/// How often the denials of ended minutes are looked for.
const TICK: Duration = Duration::from_secs(1);

/// Why brokerd ended otherwise than by `stop`.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It did not start.
    #[error("cannot start: {0}")]
    Start(#[from] StartError),
    /// The line to the supervisor ended.
    #[error(transparent)]
    Line(#[from] ReadEnd),
}

/// What the reader of the control socket tells the main thread.
enum Event {
    Stop,
    End(ReadEnd),
}

/// Serves from `role_start` to `stop`. Threads of connections may outlive it by as long as their peers are silent: a
/// process ends after it.
///
/// # Errors
/// As [`RunError`]; the end of the control socket is one of them.
pub fn run(started: Started) -> Result<(), RunError> {
    let Some(ready) = start::start(started)? else {
        return Ok(());
    };
    let needs = |step| move |source| StartError::Io { step, source };
    let control = Control::new(ready.control, ready.next).map_err(needs("control socket"))?;
    let closing = Arc::new(Bell::new().map_err(needs("eventfd"))?);
    let broker = Arc::new(Broker::new(control, ready.policy, ready.sessions));
    let (tell, events) = channel();
    let reader = Arc::clone(&broker);
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            let stop = tell.clone();
            let end = reader.control.read(|order| match order {
                // The receiver is gone only when run is returning.
                Order::Stop => {
                    // Here, so that nothing the supervisor says after it starts another call.
                    reader.stop_calls();
                    let _ = stop.send(Event::Stop);
                }
                Order::Policy(policy, memory) => renew(&reader, policy.generation, memory),
            });
            let _ = tell.send(Event::End(end));
        })
        .map_err(needs("reader thread"))?;
    let (listener, bell, clients) = (ready.listener, Arc::clone(&closing), Arc::clone(&broker));
    thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || clients::accept(&clients, &listener, &bell))
        .map_err(needs("listener thread"))?;
    let ended = serve(&broker, &events, &closing);
    closing.ring();
    broker.control.close();
    ended
}

fn serve(broker: &Arc<Broker>, events: &Receiver<Event>, closing: &Bell) -> Result<(), RunError> {
    loop {
        match events.recv_timeout(TICK) {
            Ok(Event::Stop) => break,
            Ok(Event::End(end)) => return Err(end.into()),
            Err(RecvTimeoutError::Timeout) => broker.record_due_denials(),
            // The reader sends its end before it goes.
            Err(RecvTimeoutError::Disconnected) => return Err(ReadEnd::Closed.into()),
        }
    }
    closing.ring();
    let by = Instant::now() + END;
    broker.wait_idle(END);
    // In a thread, because a supervisor that answers no more must not keep this process.
    let (done, flushed) = channel();
    let last = Arc::clone(broker);
    let flush = thread::Builder::new().spawn(move || {
        last.flush_denials();
        let _ = done.send(());
    });
    if flush.is_ok() {
        let _ = flushed.recv_timeout(by.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Takes another generation of the policy, or says why not; calls are refused as stale then.
fn renew(broker: &Broker, generation: u64, memory: std::os::fd::OwnedFd) {
    match start::load(memory, generation) {
        Ok(policy) => broker.replace_policy(policy),
        Err(error) => report(format_args!(
            "generation {generation} is not taken: {error}"
        )),
    }
}

/// Says something on standard error, which is the supervisor's. If nobody takes it, nobody is there to miss it.
fn report(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "brokerd: {text}");
}
