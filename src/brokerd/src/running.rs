//! A call from its commit to its answer: its output is drained, its end awaited, its result labelled, its outcome
//! recorded (protocol.md section 5).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use proto::audit::{ExitCause, ExitStatus, OutcomeStatus};
use proto::broker::{Exited, Finish};
use proto::client::ToolResponse;
use proto::frame::MAX_FRAME;
use proto::{Envelope, Labels, Level, Message};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::broker::{Broker, internal};
use crate::calls::{CommittedCall, Unanswered};
use crate::control::{Control, ControlError};
use crate::output::{FLOOD, Head, Tail};
use crate::report;

/// Why brokerd gave a running call up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenUp {
    Flood,
    CallerGone,
    Stopping,
}

/// What is left of a call when its sandbox is empty and its streams are drained.
struct Drained {
    exited: Exited,
    stdout: Head,
    stderr: Tail,
    given_up: Option<GivenUp>,
    caller_gone: bool,
}

impl Broker {
    /// Sees a committed call to its end, and gives the answer once its outcome is recorded.
    pub(crate) fn follow(
        &self,
        call: CommittedCall<'_>,
        caller: &UnixStream,
    ) -> Result<ToolResponse, Unanswered> {
        let (session, seq, ticket) = (call.session.clone(), call.seq, call.ticket);
        let (labels, level, max_output) = (call.labels, call.level, call.max_output);
        let drained = drain(&self.control, call, caller);
        // Before the outcome is recorded and before a byte goes out: whatever is decided in this session from here on
        // counts on this result having been read. A call whose end could not be seen counts just the same.
        let now = self.now();
        self.sessions().delivered(&session, seq, labels, now);
        let drained = drained.map_err(|error| {
            self.control.abort(ticket);
            Unanswered::Error(internal(error))
        })?;
        let (response, truncated) = response(&drained, labels, level, max_output);
        let (status, bytes) = match &response {
            ToolResponse::Result { content, .. } => (OutcomeStatus::Result, content.len()),
            ToolResponse::Failed { message, .. } => (OutcomeStatus::Failed, message.len()),
            ToolResponse::PendingApproval { .. } | ToolResponse::Denied { .. } => {
                (OutcomeStatus::Failed, 0)
            }
        };
        let finished = self.control.finish(Finish {
            ticket,
            status,
            class: labels.class,
            untrusted: labels.untrusted,
            truncated,
            bytes: if drained.caller_gone { 0 } else { bytes as u64 },
        });
        match finished {
            Ok(_) => {}
            Err(ControlError::Closed) => {
                return Err(Unanswered::Error(internal(ControlError::Closed)));
            }
            // The decision is in the log and the tool has run; a lost outcome is rebuilt as unknown.
            Err(error) => report(format_args!(
                "the outcome of {seq} is not recorded: {error}"
            )),
        }
        if drained.caller_gone {
            return Err(Unanswered::Gone);
        }
        Ok(response)
    }
}

/// Whether the caller has closed its end. One that has only ended its writing still waits for an answer.
pub(crate) fn gone(caller: &UnixStream) -> bool {
    let mut polled = [PollFd::new(caller, PollFlags::empty())];
    let at_once = Timespec::default();
    rustix::event::poll(&mut polled, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// What is polled while a call runs.
#[derive(Clone, Copy)]
enum Source {
    Bell,
    Caller,
    Stdout,
    Stderr,
}

/// Reads both streams to their ends and waits for the end of the call.
///
/// # Errors
/// [`ControlError::Closed`] and [`ControlError::Wait`].
fn drain(
    control: &Control,
    call: CommittedCall<'_>,
    caller: &UnixStream,
) -> Result<Drained, ControlError> {
    let CommittedCall {
        ticket,
        watch,
        stdout,
        stderr,
        max_output,
        ..
    } = call;
    let (mut stdout, mut stderr) = (Some(stdout), Some(stderr));
    let (mut head, mut tail) = (Head::new(max_output), Tail::default());
    let flood = (max_output as u64).saturating_mul(FLOOD);
    let mut buffer = vec![0; 65_536];
    let mut caller_gone = false;
    let mut given_up = None;
    let mut give_up = |why| {
        if given_up.is_none() {
            given_up = Some(why);
            control.abort(ticket);
        }
    };
    let mut exited = None;
    loop {
        // Once the sandbox is empty nobody writes any more: what is not there now will never be.
        let at_once = exited.is_some();
        let mut sources = vec![(Source::Bell, watch.bell().as_fd(), PollFlags::IN)];
        if !caller_gone {
            sources.push((Source::Caller, caller.as_fd(), PollFlags::empty()));
        }
        for (source, stream) in [(Source::Stdout, &stdout), (Source::Stderr, &stderr)] {
            if let Some(stream) = stream {
                sources.push((source, stream.as_fd(), PollFlags::IN));
            }
        }
        let ready = poll(&sources, at_once).map_err(ControlError::Wait)?;
        let mut read = false;
        for source in ready {
            match source {
                Source::Bell => {
                    watch.bell().quiet();
                    if exited.is_none() {
                        exited = watch.exited()?;
                    }
                    if control.stopping() {
                        give_up(GivenUp::Stopping);
                    }
                }
                Source::Caller => {
                    caller_gone = true;
                    give_up(GivenUp::CallerGone);
                }
                Source::Stdout => {
                    read |= pump(&mut stdout, &mut buffer, |bytes| head.take(bytes));
                }
                Source::Stderr => {
                    read |= pump(&mut stderr, &mut buffer, |bytes| tail.take(bytes));
                }
            }
        }
        if head.total() > flood || tail.total() > flood {
            give_up(GivenUp::Flood);
        }
        if let (true, false, Some(exited)) = (at_once, read, exited) {
            return Ok(Drained {
                exited,
                stdout: head,
                stderr: tail,
                given_up,
                caller_gone,
            });
        }
    }
}

/// Waits until any source has something to say, and names those that have.
fn poll(
    sources: &[(Source, std::os::fd::BorrowedFd<'_>, PollFlags)],
    at_once: bool,
) -> io::Result<Vec<Source>> {
    let mut polled: Vec<_> = sources
        .iter()
        .map(|(_, descriptor, events)| PollFd::from_borrowed_fd(*descriptor, *events))
        .collect();
    let now = Timespec::default();
    match rustix::event::poll(&mut polled, at_once.then_some(&now)) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Vec::new()),
        Err(errno) => return Err(errno.into()),
    }
    let ready = sources
        .iter()
        .zip(&polled)
        .filter(|(_, polled)| !polled.revents().is_empty());
    Ok(ready.map(|((source, ..), _)| *source).collect())
}

/// Takes what a readable stream has; closes it at its end. Whether there was anything.
fn pump(stream: &mut Option<OwnedFd>, buffer: &mut [u8], take: impl FnOnce(&[u8])) -> bool {
    let Some(descriptor) = stream else {
        return false;
    };
    match rustix::io::read(&*descriptor, &mut *buffer) {
        Ok(count @ 1..) => {
            take(&buffer[..count]);
            true
        }
        Err(Errno::INTR | Errno::AGAIN) => false,
        // A stream that cannot be read has no more to say than one that ended.
        Ok(_) | Err(_) => {
            *stream = None;
            false
        }
    }
}

/// What the caller gets, and whether it was cut.
fn response(
    drained: &Drained,
    labels: Labels,
    level: Level,
    max_output: usize,
) -> (ToolResponse, bool) {
    let exited = &drained.exited;
    let Labels { class, untrusted } = labels;
    if (exited.cause, exited.exit) == (ExitCause::Exited, Some(ExitStatus::Code(0))) {
        let result = |content, truncated| ToolResponse::Result {
            content,
            class,
            untrusted,
            truncated,
            confinement: level,
        };
        let text = drained.stdout.text(room(result(String::new(), false)));
        return (result(text.text, text.truncated), text.truncated);
    }
    let tail = drained.stderr.text();
    let mut message = ending(exited, drained.given_up, max_output);
    if !tail.text.is_empty() {
        message.push('\n');
        message.push_str(&tail.text);
    }
    let failed = ToolResponse::Failed {
        message,
        class,
        untrusted,
    };
    (failed, tail.truncated)
}

/// How many bytes of encoded text still fit a frame with this answer, whatever its id.
fn room(empty: ToolResponse) -> usize {
    let envelope = Envelope::new(u64::MAX, Message::ToolResponse(empty));
    let taken = envelope.encode().map_or(MAX_FRAME, |body| body.len());
    MAX_FRAME.saturating_sub(taken)
}

/// How a call ended, in words.
fn ending(exited: &Exited, given_up: Option<GivenUp>, max_output: usize) -> String {
    match exited.cause {
        ExitCause::Exited => match exited.exit {
            Some(ExitStatus::Code(code)) => format!("ended with status {code}"),
            Some(ExitStatus::Signal(number)) => format!("killed by {}", signal(number)),
            None => "ended, and its status was not seen".to_owned(),
        },
        ExitCause::NotStarted => "could not be started".to_owned(),
        ExitCause::Timeout => {
            let wall = Duration::from_millis(exited.usage.wall_ms);
            match wall.as_secs() {
                0 => format!("stopped after {}ms", wall.as_millis()),
                seconds => format!("stopped after {seconds}s"),
            }
        }
        ExitCause::Memory => "killed: over its memory limit".to_owned(),
        ExitCause::Lost => "its sandbox ended from within, before the tool did".to_owned(),
        ExitCause::Aborted => match given_up {
            Some(GivenUp::Flood) => {
                format!("stopped: it wrote more than {FLOOD} times its limit of {max_output} bytes")
            }
            Some(GivenUp::CallerGone) => "stopped: its caller went away".to_owned(),
            Some(GivenUp::Stopping) | None => "stopped: boxmaker is stopping".to_owned(),
        },
    }
}

/// A signal's name (signal(7), the numbers of x86-64 and arm64).
fn signal(number: u8) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::from(number)
        .checked_sub(1)
        .and_then(|index| NAMES.get(index));
    name.map_or_else(|| format!("signal {number}"), |name| format!("SIG{name}"))
}

#[cfg(test)]
mod tests {
    use proto::Ticket;
    use proto::audit::Usage;

    use super::*;

    fn said(cause: ExitCause, exit: Option<ExitStatus>, wall_ms: u64) -> String {
        let usage = Usage {
            wall_ms,
            cpu_ms: None,
            max_rss: None,
        };
        let exited = Exited {
            ticket: Ticket(1),
            exit,
            cause,
            usage,
        };
        ending(&exited, None, 10)
    }

    #[test]
    fn every_end_is_said_in_words() {
        use ExitCause::{Exited, Memory, NotStarted, Timeout};
        let code = Some(ExitStatus::Code(3));
        assert_eq!(said(Exited, code, 0), "ended with status 3");
        let segv = Some(ExitStatus::Signal(11));
        assert_eq!(said(Exited, segv, 0), "killed by SIGSEGV");
        let real_time = Some(ExitStatus::Signal(40));
        assert_eq!(said(Exited, real_time, 0), "killed by signal 40");
        assert_eq!(said(NotStarted, None, 0), "could not be started");
        assert_eq!(said(Timeout, None, 30_012), "stopped after 30s");
        assert_eq!(said(Timeout, None, 512), "stopped after 512ms");
        assert_eq!(said(Memory, None, 0), "killed: over its memory limit");
    }

    #[test]
    fn a_caller_that_only_ended_its_writing_is_still_there() {
        let (own, other) = UnixStream::pair().unwrap();
        assert!(!gone(&own));
        other.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!gone(&own));
        drop(other);
        assert!(gone(&own));
    }
}
