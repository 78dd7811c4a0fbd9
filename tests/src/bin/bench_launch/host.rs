//! What has to be known of a machine to read its figures.

use std::fmt;
use std::path::Path;
use std::thread::available_parallelism;
use std::time::Duration;

use serde::Serialize;

use crate::Outcome;

/// The machine and the run.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    kernel: String,
    processors: usize,
    file_system: String,
    pub(crate) rounds: usize,
    seconds: f64,
    caution: &'static str,
}

impl Facts {
    /// Looks at the machine, and at the file system that holds `directory`.
    pub(crate) fn take(directory: &Path) -> Outcome<Self> {
        let uname = rustix::system::uname();
        let magic = rustix::fs::statfs(directory)?.f_type;
        // The numbers of linux/magic.h; another one is told as it is.
        let file_system = match magic {
            0xef53 => "ext4".to_owned(),
            0x0102_1994 => "tmpfs".to_owned(),
            0x9123_683e => "btrfs".to_owned(),
            0x5846_5342 => "xfs".to_owned(),
            0x794c_7630 => "overlayfs".to_owned(),
            other => format!("{other:#x}"),
        };
        Ok(Self {
            kernel: uname.release().to_string_lossy().into_owned(),
            processors: available_parallelism()?.get(),
            file_system,
            rounds: 0,
            seconds: 0.0,
            caution: "the machine is noisy and its load is in every time; only ratios of one run compare",
        })
    }

    pub(crate) fn after(mut self, rounds: usize, time: Duration) -> Self {
        self.rounds = rounds;
        self.seconds = time.as_secs_f64();
        self
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kernel {}, {} processors, log on {}; {}",
            self.kernel, self.processors, self.file_system, self.caution
        )
    }
}
