//! What `launch-probe` is told and what it tells: one launch of the probe in a sandbox as the supervisor makes it.

use std::path::PathBuf;

use confine::plan::Access;
use proto::Confinement;
use proto::audit::{ExitCause, ExitStatus};
use serde::{Deserialize, Serialize};

/// One launch.
#[derive(Debug, Serialize, Deserialize)]
pub struct Launch {
    /// The stage.
    pub stage: PathBuf,
    /// The program that runs in the sandbox; it is told to read its acts.
    pub probe: PathBuf,
    /// A filter that it puts on itself before.
    pub filter: Option<PathBuf>,
    /// The profile, as a file.
    pub profile: String,
    /// The granted trees.
    pub trees: Vec<(PathBuf, Access)>,
    /// Its acts. `@staged` and `@parked` in them are the host's numbers of a sandbox that waits for its start, and of a
    /// stage that waits for its plan, both of whoever launches.
    pub input: String,
    /// Whether the stage has waited for its plan before it gets it.
    pub pooled: bool,
    /// Where sandboxes without namespaces have their directories.
    pub sandboxes: PathBuf,
    /// How long it may take.
    pub wall_ms: u64,
    /// Whether to look at its processor time.
    pub watch_processor: bool,
}

impl Launch {
    /// Whether its acts name what waits.
    #[must_use]
    pub fn names_who_waits(&self) -> bool {
        self.input.contains("@staged") || self.input.contains("@parked")
    }
}

/// The processes that wait.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Waiting {
    /// Process 1 of a sandbox that is built and measured, and whose start is not decided.
    pub staged: u32,
    /// A stage of the warm pool.
    pub parked: u32,
}

impl Waiting {
    /// Puts their numbers into acts.
    #[must_use]
    pub fn named(&self, acts: &str) -> String {
        acts.replace("@staged", &self.staged.to_string())
            .replace("@parked", &self.parked.to_string())
    }
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Launched {
    /// What was measured.
    pub confinement: Confinement,
    /// Why it ended.
    pub cause: ExitCause,
    /// How.
    pub exit: Option<ExitStatus>,
    /// Whether it was held back from the processor, if that was looked at and can be seen.
    pub throttled: Option<bool>,
    /// What the program wrote.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}
