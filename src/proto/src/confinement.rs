//! The outcome of a launch: what really holds, built from measurements and nothing else
//! (architecture.md section 4.1).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::Hash32;

/// How much holds; ordered `none < partial < full`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// File access, system calls or privileges are not held.
    None,
    /// Those three are held, and something else is a gap.
    Partial,
    /// No gap at all.
    Full,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        })
    }
}

macro_rules! layers {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// One thing that confinement consists of; the rows of the table in architecture.md section 4.1.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Layer {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Layer {
            /// Every layer, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The layer as it stands on the wire and in `waive`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

layers! {
    /// A mount namespace of its own.
    Mount = "mount",
    /// A pid namespace of its own.
    Pid = "pid",
    /// A network namespace of its own.
    Net = "net",
    /// An IPC namespace of its own.
    Ipc = "ipc",
    /// A UTS namespace of its own.
    Uts = "uts",
    /// A cgroup namespace of its own.
    CgroupNs = "cgroup-ns",
    /// A user id that nobody else uses, no groups, granted trees mapped to it.
    Uid = "uid",
    /// All five capability sets empty and locked.
    Caps = "caps",
    /// No new privileges.
    Nnp = "nnp",
    /// The system call filter.
    Seccomp = "seccomp",
    /// Landlock rules for files.
    LandlockFs = "landlock-fs",
    /// Landlock rules for TCP.
    LandlockNet = "landlock-net",
    /// Landlock scopes for abstract sockets and signals.
    LandlockScope = "landlock-scope",
    /// The memory limit.
    Memory = "memory",
    /// The limit on processes and threads.
    Pids = "pids",
    /// The limit on processor time.
    Cpu = "cpu",
    /// No descriptor but the ones the plan names.
    Descriptors = "descriptors",
    /// A session without a controlling terminal.
    Terminal = "terminal",
    /// Resource limits of the process.
    Rlimits = "rlimits",
    /// No core dump, no tracing by processes of the same uid.
    Dumpable = "dumpable",
    /// Dies with the supervisor.
    ParentDeath = "parent-death",
    /// Every mount carries the flags of the plan and none is left over.
    MountFlags = "mount-flags",
    /// What the supervisor reads from outside agrees.
    Outside = "outside",
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A layer that does not hold, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The layer that is missing.
    pub layer: Layer,
    /// What was seen, for example `kernel ABI 2 has no TCP rules`.
    pub reason: String,
}

/// A part of a layer that holds by reasoning and not by an act that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asserted {
    /// The layer it belongs to; the layer itself is measured.
    pub layer: Layer,
    /// The part, for example `x32` or `make_block`.
    pub what: String,
}

/// What one sandbox was measured to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// The level that the gaps leave.
    pub level: Level,
    /// The layers that hold, in the order of [`Layer::ALL`].
    pub layers: Vec<Layer>,
    /// Parts of held layers that no act can prove from inside.
    pub asserted: Vec<Asserted>,
    /// The layers that do not hold.
    pub gaps: Vec<Gap>,
    /// Gaps that the configuration waives, so that they did not stop the launch.
    pub waived: Vec<Layer>,
    /// The Landlock ABI of the kernel, 0 when there is none.
    pub landlock_abi: u8,
    /// SHA-256 of the plan's canonical JSON.
    pub plan: Hash32,
}

impl Confinement {
    /// The gap of `layer`, if it has one.
    #[must_use]
    pub fn gap(&self, layer: Layer) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.layer == layer)
    }

    /// Whether a launch that needs `required` may go on: the level is enough, or every gap is waived.
    /// `Level::None` never passes, whatever is waived (protocol.md section 4).
    #[must_use]
    pub fn satisfies(&self, required: Level) -> bool {
        // A level below full without a gap to explain it is nothing that anybody could have waived.
        let waived =
            !self.gaps.is_empty() && self.gaps.iter().all(|gap| self.waived.contains(&gap.layer));
        self.level != Level::None && (self.level >= required || waived)
    }
}
