//! The watch over one running brokerd: whether it gets ready, whether it answers, whether its tickets are committed.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use confine::launch::Killer;
use proto::audit::ExitCause;

use super::ROLE;
use crate::broker::Life;
use crate::up::Event;
use crate::voice;

/// How long brokerd may take until it says `ready`.
const START: Duration = Duration::from_secs(30);
/// How often it is asked whether it lives.
const PING: Duration = Duration::from_secs(10);
/// It is ended when this many pings have no answer.
const SILENT: u32 = 3;

/// Watches `life` from a thread of its own, until what this returns is dropped.
///
/// # Errors
/// The thread could not be started.
pub(super) fn keep(
    life: &Arc<Life>,
    killer: Killer,
    told: Sender<Event>,
) -> std::io::Result<Sender<()>> {
    let (keeper, ended) = channel();
    let life = Arc::clone(life);
    let watch = move || {
        let started = Instant::now();
        let mut pinged: Option<Instant> = None;
        loop {
            // Short until it is ready, because somebody waits for that.
            let tick = Duration::from_millis(if pinged.is_some() { 200 } else { 20 });
            if ended.recv_timeout(tick) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            life.expire();
            match pinged {
                None if life.is_ready() => {
                    pinged = Some(Instant::now());
                    // If nobody listens, the supervisor is ending.
                    let _ = told.send(Event::Ready);
                }
                None if started.elapsed() >= START => {
                    voice::remark(&format!(
                        "{ROLE} was not ready within {} s",
                        START.as_secs()
                    ));
                    killer.kill(ExitCause::Timeout);
                    return;
                }
                Some(last) if last.elapsed() >= PING => {
                    if life.ping() > SILENT {
                        voice::remark(&format!("{ROLE} left {SILENT} pings without an answer"));
                        killer.kill(ExitCause::Timeout);
                        return;
                    }
                    pinged = Some(Instant::now());
                }
                _ => {}
            }
        }
    };
    let thread = thread::Builder::new().name(format!("{ROLE} keeper"));
    thread.spawn(watch)?;
    Ok(keeper)
}
