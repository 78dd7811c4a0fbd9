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
    /// Its acts.
    pub input: String,
    /// How long it may take.
    pub wall_ms: u64,
    /// Whether to look at its processor time.
    pub watch_processor: bool,
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
