//! A bell that wakes a thread which waits in poll(2): eventfd(2) behind two words. Carries no data.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::EventfdFlags;
use rustix::io::Errno;

/// Readable from its first ring until it is quieted.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    /// A quiet bell.
    ///
    /// # Errors
    /// As eventfd(2).
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(rustix::event::eventfd(0, flags)?))
    }

    /// Wakes whoever polls it.
    pub(crate) fn ring(&self) {
        // The only failure of a write of 1 is a counter that is full, and then the bell is ringing already.
        while rustix::io::write(&self.0, &1_u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }

    /// Makes it quiet until the next ring.
    pub(crate) fn quiet(&self) {
        while rustix::io::read(&self.0, &mut [0_u8; 8][..]) == Err(Errno::INTR) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
