//! Measuring: what the stage reads back of itself, what the launcher reads of it from outside, and the judgement that
//! turns both into a [`proto::Confinement`]. A layer holds because something was tried or read, never because a step
//! did not fail.

pub mod canary;
pub mod judge;
pub(crate) mod mark;
mod readings;
pub mod status;

use proto::Layer;
use serde::{Deserialize, Serialize};

pub(crate) use readings::Readings;

/// The terminal in the text of a `stat` file and the mounts in that of a `mountinfo`, for the fuzz targets.
#[cfg(fuzzing)]
#[must_use]
pub fn read_proc(stat: &str, mountinfo: &str) -> (Option<i64>, Vec<SeenMount>) {
    let mounts = mountinfo.lines().filter_map(readings::mount);
    (readings::terminal(stat).ok(), mounts.collect())
}

/// One act that was tried before a layer and again after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// The layer it is about.
    pub layer: Layer,
    /// The right, port or call it is about, for example `write_file`.
    pub what: String,
    /// The errno before, 0 for success.
    pub before: i32,
    /// The errno after, 0 for success.
    pub after: i32,
    /// Whether the two together prove that the layer, and only it, refused.
    pub proven: bool,
}

/// One mount as `/proc/self/mountinfo` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenMount {
    /// Where it is.
    pub path: String,
    /// Its own options, without those of its file system.
    pub options: Vec<String>,
}

/// A soft and a hard limit; `None` is no limit.
pub type SeenLimit = (Option<u64>, Option<u64>);

/// What the stage read of itself after its last restricting step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inside {
    /// `/proc/self/status`.
    pub status: status::Status,
    /// The secure bits (capabilities(7)).
    pub secure_bits: u32,
    /// Whether it can be dumped or traced by its own uid.
    pub dumpable: bool,
    /// The signal it gets when its parent ends.
    pub parent_death: Option<i32>,
    /// Whether orphans of its descendants become its children.
    pub subreaper: bool,
    /// Its hard limit on real-time scheduling, which marks the processes of a sandbox without namespaces; not read in others.
    pub mark: Option<u64>,
    /// Its process id in its own namespace.
    pub pid: i32,
    /// Its terminal session.
    pub session: i32,
    /// The device number of its terminal, 0 for none.
    pub terminal: i64,
    /// Its limit on core dumps.
    pub core: SeenLimit,
    /// Its limit on descriptors.
    pub files: SeenLimit,
    /// Its limit on processes of its uid in its user namespace.
    pub processes: SeenLimit,
    /// Descriptors that it does not know, or that the program would inherit.
    pub descriptors: Vec<String>,
    /// Its mounts; none are read where it has the host's.
    pub mounts: Vec<SeenMount>,
    /// The host name.
    pub hostname: String,
    /// The name of its NIS domain.
    pub domain: String,
    /// The owner of the root of each granted tree; none where it has the host's ids.
    pub owners: Vec<u32>,
    /// The acts that were tried.
    pub tried: Vec<Tried>,
    /// Why foreign architectures are not all killed, if the interpreter found that.
    pub foreign: Option<String>,
}
