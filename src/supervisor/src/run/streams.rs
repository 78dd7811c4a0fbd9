//! The standard streams of the program. A pipe without a name and the null device are handed to it as they are. A file, a
//! terminal, a socket or another device stays with boxmaker, which copies: with one of these in hand the program could do
//! more than read and write, such as change the mode of the file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::{self, JoinHandle};

use confine::launch::StageStdio;
use rustix::fs::{FileType, FsWord};

use crate::stdio::Pipe;

/// The file system of pipes without a name (`PIPEFS_MAGIC` of `linux/magic.h`).
const PIPES: FsWord = 0x5049_5045;

/// Streams that are copied, before the program runs.
#[derive(Debug, Default)]
pub(super) struct Streams {
    input: Option<(OwnedFd, OwnedFd)>,
    outputs: Vec<(OwnedFd, OwnedFd)>,
}

/// The threads that copy.
#[derive(Debug)]
pub(super) struct Pumps(Vec<JoinHandle<()>>);

impl Streams {
    /// Looks at the standard descriptors of this process; the program's come out beside.
    ///
    /// # Errors
    /// One of them is closed, or no pipe can be had.
    pub(super) fn of_this_process() -> io::Result<(Self, StageStdio)> {
        let mut streams = Self::default();
        let stdin = match passable(io::stdin().as_fd())? {
            Some(itself) => itself,
            None => {
                let pipe = Pipe::new()?;
                streams.input = Some((own(io::stdin().as_fd())?, pipe.write));
                pipe.read
            }
        };
        let mut output = |of: BorrowedFd<'_>| -> io::Result<OwnedFd> {
            if let Some(itself) = passable(of)? {
                return Ok(itself);
            }
            let pipe = Pipe::new()?;
            streams.outputs.push((pipe.read, own(of)?));
            Ok(pipe.write)
        };
        let stdout = output(io::stdout().as_fd())?;
        let stderr = output(io::stderr().as_fd())?;
        let ends = StageStdio {
            stdin,
            stdout,
            stderr,
        };
        Ok((streams, ends))
    }

    /// Starts to copy.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn pump(self) -> io::Result<Pumps> {
        if let Some((from, to)) = self.input {
            // Never waited for: it may wait for whoever types, who has nothing more to say to a program that has ended.
            let _ = pump(from, to)?;
        }
        let outputs = self.outputs.into_iter();
        Ok(Pumps(
            outputs
                .map(|(from, to)| pump(from, to))
                .collect::<io::Result<_>>()?,
        ))
    }
}

impl Pumps {
    /// Waits until everything that the program wrote has been written.
    pub(super) fn finish(self) {
        for pump in self.0 {
            // It cannot have panicked without having said so.
            let _ = pump.join();
        }
    }
}

/// The stream itself, if the program may have it.
fn passable(stream: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let stat = rustix::fs::fstat(stream)?;
    let passes = match FileType::from_raw_mode(stat.st_mode) {
        // One with a name is a file of somebody's.
        FileType::Fifo => rustix::fs::fstatfs(stream)?.f_type == PIPES,
        FileType::CharacterDevice => {
            let null = rustix::fs::stat("/dev/null")?;
            null.st_rdev == stat.st_rdev
        }
        _ => false,
    };
    passes.then(|| own(stream)).transpose()
}

fn own(stream: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    stream.try_clone_to_owned()
}

/// Copies to the end of one of them. What cannot be written any more has no reader, and the writer hears of that.
fn pump(from: OwnedFd, to: OwnedFd) -> io::Result<JoinHandle<()>> {
    let copy = move || {
        let (mut from, mut to) = (File::from(from), File::from(to));
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    if to.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    };
    thread::Builder::new().name("stream".to_owned()).spawn(copy)
}
