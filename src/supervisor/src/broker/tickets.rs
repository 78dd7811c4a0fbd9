//! The calls that are between `prepare` and `finish`: which step each has reached, and what it may do next
//! (protocol.md sections 4 and 5). Knows nothing of sandboxes but that dropping a prepared one kills it and that a
//! running one can be stopped, so its rules are tested without any.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use proto::audit::{ExitCause, ExitStatus};
use proto::{CallId, GrantId, SessionId, Ticket};

use super::call::{
    COMMIT_WITHIN, Call, Ended, MOST_LIVE, Prepared, RefusedCall, Stop, TicketError,
};
use crate::lock;

/// The most refused sandboxes whose measurement is kept for the record of the denial.
const MOST_REFUSED: usize = 64;

/// Numbers tickets; one for the life of the supervisor, so that no number returns when brokerd does.
#[derive(Debug, Default)]
pub(crate) struct Numbers(AtomicU64);

impl Numbers {
    fn next(&self) -> Ticket {
        Ticket(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

#[derive(Debug)]
enum Slot<S, K> {
    /// The sandbox is being built.
    Preparing,
    /// It stands and waits for its commit.
    Prepared {
        prepared: Box<Prepared<S>>,
        until: Instant,
    },
    /// Its decision is being stored; `aborted` if it was given up meanwhile.
    Committing { aborted: bool },
    /// The tool was started.
    Running { killer: K },
    /// The sandbox is empty; `finish` is due.
    Ended(Box<Ended>),
}

#[derive(Debug)]
struct Inner<S, K> {
    slots: BTreeMap<Ticket, Slot<S, K>>,
    refused: VecDeque<(Ticket, RefusedCall)>,
    closed: bool,
}

/// Every ticket of one life of brokerd.
#[derive(Debug)]
pub(crate) struct Tickets<S, K> {
    inner: Mutex<Inner<S, K>>,
}

impl<S, K: Stop + Clone> Tickets<S, K> {
    pub(crate) const fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                slots: BTreeMap::new(),
                refused: VecDeque::new(),
                closed: false,
            }),
        }
    }

    /// A new ticket for a sandbox that is going to be built.
    pub(crate) fn reserve(&self, numbers: &Numbers) -> Result<Ticket, TicketError> {
        let mut inner = lock(&self.inner);
        if inner.closed {
            return Err(TicketError::Closed);
        }
        if inner.slots.len() >= MOST_LIVE {
            return Err(TicketError::Full);
        }
        let ticket = numbers.next();
        inner.slots.insert(ticket, Slot::Preparing);
        Ok(ticket)
    }

    /// The sandbox of `ticket` stands. If the table was closed meanwhile it is killed.
    pub(crate) fn prepared(
        &self,
        ticket: Ticket,
        prepared: Prepared<S>,
        now: Instant,
    ) -> Result<(), TicketError> {
        let prepared = Box::new(prepared);
        let mut inner = lock(&self.inner);
        if inner.closed {
            inner.slots.remove(&ticket);
            drop(inner);
            drop(prepared);
            return Err(TicketError::Closed);
        }
        let until = now + COMMIT_WITHIN;
        let slot = Slot::Prepared { prepared, until };
        inner.slots.insert(ticket, slot);
        Ok(())
    }

    /// The sandbox of `ticket` was refused; what was measured is kept for the record of the denial.
    pub(crate) fn refused(&self, ticket: Ticket, refused: RefusedCall) {
        let mut inner = lock(&self.inner);
        inner.slots.remove(&ticket);
        if inner.refused.len() >= MOST_REFUSED {
            inner.refused.pop_front();
        }
        inner.refused.push_back((ticket, refused));
    }

    /// The refused sandbox of `ticket`, once, if it was for this call.
    pub(crate) fn take_refused(
        &self,
        ticket: Ticket,
        session: &SessionId,
        call: CallId,
        tool: &str,
    ) -> Result<RefusedCall, TicketError> {
        let mut inner = lock(&self.inner);
        let found = inner.refused.iter().position(|(number, refused)| {
            let is = &refused.call;
            *number == ticket
                && is.session == *session
                && is.call == call
                && is.tool.as_str() == tool
        });
        found
            .and_then(|index| inner.refused.remove(index))
            .map(|(_, refused)| refused)
            .ok_or(TicketError::NotRefused(ticket))
    }

    /// Takes the prepared call out to be committed under `grant`, if `may` it. After an error nothing has changed.
    pub(crate) fn begin_commit(
        &self,
        ticket: Ticket,
        grant: &GrantId,
        may: impl FnOnce(&Call) -> Result<(), TicketError>,
    ) -> Result<Prepared<S>, TicketError> {
        let mut inner = lock(&self.inner);
        match inner.slots.get(&ticket) {
            Some(Slot::Prepared { prepared, .. }) if prepared.call.grant != *grant => {
                return Err(TicketError::OtherGrant {
                    ticket,
                    prepared: prepared.call.grant.clone(),
                    named: grant.clone(),
                });
            }
            Some(Slot::Prepared { prepared, .. }) => may(&prepared.call)?,
            _ => return Err(TicketError::NotPrepared(ticket)),
        }
        match inner
            .slots
            .insert(ticket, Slot::Committing { aborted: false })
        {
            Some(Slot::Prepared { prepared, .. }) => Ok(*prepared),
            // The lock was held since the look above.
            _ => Err(TicketError::NotPrepared(ticket)),
        }
    }

    /// Whether a call whose decision was just stored may still start.
    pub(crate) fn may_start(&self, ticket: Ticket) -> bool {
        let inner = lock(&self.inner);
        !inner.closed
            && matches!(
                inner.slots.get(&ticket),
                Some(Slot::Committing { aborted: false })
            )
    }

    /// The tool was started. If it was given up meanwhile it is stopped at once.
    pub(crate) fn running(&self, ticket: Ticket, killer: K) {
        let mut inner = lock(&self.inner);
        let aborted = inner.closed
            || !matches!(
                inner.slots.get(&ticket),
                Some(Slot::Committing { aborted: false })
            );
        let other = killer.clone();
        inner.slots.insert(ticket, Slot::Running { killer });
        drop(inner);
        if aborted {
            other.stop(ExitCause::Aborted);
        }
    }

    /// The sandbox of `ticket` is empty.
    pub(crate) fn ended(&self, ticket: Ticket, ended: Ended) {
        let slot = Slot::Ended(Box::new(ended));
        lock(&self.inner).slots.insert(ticket, slot);
    }

    /// The end of `ticket`, once; the ticket is gone then.
    pub(crate) fn finish(&self, ticket: Ticket) -> Result<Ended, TicketError> {
        let mut inner = lock(&self.inner);
        if !matches!(inner.slots.get(&ticket), Some(Slot::Ended(_))) {
            return Err(TicketError::NotEnded(ticket));
        }
        match inner.slots.remove(&ticket) {
            Some(Slot::Ended(ended)) => Ok(*ended),
            // The lock was held since the look above.
            _ => Err(TicketError::NotEnded(ticket)),
        }
    }

    /// A look at the end of `ticket`, to judge a `finish` before it is taken.
    pub(crate) fn exit_of(&self, ticket: Ticket) -> Option<Option<ExitStatus>> {
        match lock(&self.inner).slots.get(&ticket) {
            Some(Slot::Ended(ended)) => Some(ended.exit),
            _ => None,
        }
    }

    /// Forgets a ticket whose sandbox is gone without a record of a start.
    pub(crate) fn forget(&self, ticket: Ticket) {
        let slot = lock(&self.inner).slots.remove(&ticket);
        drop(slot);
    }

    /// Gives a call up, before its commit or after. A ticket that is gone or has ended is left as it is, because an
    /// abort may cross with an end.
    pub(crate) fn abort(&self, ticket: Ticket) {
        let mut inner = lock(&self.inner);
        let mut dropped = None;
        let mut stopped = None;
        match inner.slots.get_mut(&ticket) {
            Some(Slot::Prepared { .. }) => dropped = inner.slots.remove(&ticket),
            Some(Slot::Committing { aborted }) => *aborted = true,
            Some(Slot::Running { killer }) => stopped = Some(killer.clone()),
            Some(Slot::Preparing | Slot::Ended(_)) | None => {}
        }
        drop(inner);
        drop(dropped);
        if let Some(killer) = stopped {
            killer.stop(ExitCause::Aborted);
        }
    }

    /// Kills the prepared sandboxes whose time for a commit is over at `now`, and names them.
    pub(crate) fn expire(&self, now: Instant) -> Vec<Ticket> {
        let mut inner = lock(&self.inner);
        let late: Vec<Ticket> = inner
            .slots
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Prepared { until, .. } if *until <= now))
            .map(|(ticket, _)| *ticket)
            .collect();
        let slots: Vec<_> = late
            .iter()
            .filter_map(|ticket| inner.slots.remove(ticket))
            .collect();
        drop(inner);
        drop(slots);
        late
    }

    /// Takes no new call, kills every prepared sandbox and stops every running tool.
    pub(crate) fn close(&self) {
        let mut inner = lock(&self.inner);
        inner.closed = true;
        let mut dropped = Vec::new();
        let mut stopped = Vec::new();
        for (ticket, slot) in std::mem::take(&mut inner.slots) {
            match slot {
                Slot::Prepared { prepared, .. } => dropped.push(prepared),
                Slot::Running { killer } => {
                    stopped.push(killer.clone());
                    inner.slots.insert(ticket, Slot::Running { killer });
                }
                other => {
                    inner.slots.insert(ticket, other);
                }
            }
        }
        drop(inner);
        drop(dropped);
        for killer in stopped {
            killer.stop(ExitCause::Aborted);
        }
    }

    /// How many sandboxes there are: being built, waiting or running.
    pub(crate) fn sandboxes(&self) -> u64 {
        let inner = lock(&self.inner);
        let live = inner
            .slots
            .values()
            .filter(|slot| !matches!(slot, Slot::Ended(_)));
        live.count() as u64
    }
}

#[cfg(test)]
mod tests;
