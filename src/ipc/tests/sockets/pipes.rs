//! Pipes as witnesses: whoever holds the reading end sees when the last copy of the writing end is gone.

use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The reading ends of some pipes whose writing ends are passed on.
pub(crate) struct Witness {
    readers: Vec<PipeReader>,
    writers: Vec<OwnedFd>,
}

impl Witness {
    /// `count` pipes.
    pub(crate) fn new(count: usize) -> Self {
        let (readers, writers) = (0..count)
            .map(|_| std::io::pipe().unwrap())
            .map(|(reader, writer)| (reader, OwnedFd::from(writer)))
            .unzip();
        Self { readers, writers }
    }

    /// The writing ends, to pass on.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.writers.iter().map(AsFd::as_fd).collect()
    }

    /// Closes the own copies, and waits until nobody else holds a writing end: the end of every pipe.
    pub(crate) fn sees_all_closed(mut self) {
        self.writers.clear();
        for reader in &mut self.readers {
            assert!(ready(reader.as_fd()), "a descriptor was left open");
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).unwrap();
            assert!(rest.is_empty());
        }
    }

    /// Closes the own copies, and checks that `received` are the writing ends of these pipes in this order, still open.
    pub(crate) fn sees_open(mut self, received: Vec<OwnedFd>) {
        self.writers.clear();
        assert_eq!(received.len(), self.readers.len());
        for (index, (reader, descriptor)) in self.readers.iter_mut().zip(received).enumerate() {
            let said = [u8::try_from(index).unwrap()];
            std::fs::File::from(descriptor).write_all(&said).unwrap();
            let mut heard = Vec::new();
            reader.read_to_end(&mut heard).unwrap();
            assert_eq!(heard, said);
        }
    }
}

/// Waits up to 30 s for something to read, or the end.
pub(crate) fn ready(descriptor: BorrowedFd<'_>) -> bool {
    let mut wanted = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: 30,
        tv_nsec: 0,
    };
    loop {
        match poll(&mut wanted, Some(&limit)) {
            Ok(count) => return count == 1,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => panic!("poll: {errno}"),
        }
    }
}
