//! `config.toml` (formats.md section 4): the keys that this version enforces; any other is a load error.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::confinement::Layer;
use crate::tool::duration;

/// Which cgroup back end limits are set with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupChoice {
    /// Each controller where the host has it, in v1 or in v2.
    #[default]
    Auto,
    /// v1, or the start fails.
    V1,
    /// v2, or the start fails.
    V2,
    /// No limits; they are gaps.
    None,
}

/// How the owner is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Approvals {
    /// How long a question can be answered.
    #[serde(with = "duration")]
    pub expiry: Duration,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            expiry: Duration::from_secs(600),
        }
    }
}

/// When a role that ended is started again, and when it is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Restart {
    /// The wait after the first end; it doubles with each further one within `window`.
    #[serde(with = "duration")]
    pub backoff_first: Duration,
    /// The longest wait.
    #[serde(with = "duration")]
    pub backoff_max: Duration,
    /// By how many percent of itself a wait may be shorter, drawn anew each time: 0 to 100.
    pub jitter: u8,
    /// This many ends within `window` are the last.
    pub give_up: NonZeroU32,
    /// How long an end counts. One good start does not clear it.
    #[serde(with = "duration")]
    pub window: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            backoff_first: Duration::from_millis(100),
            backoff_max: Duration::from_secs(30),
            jitter: 20,
            give_up: TEN,
            window: Duration::from_secs(300),
        }
    }
}

/// The ceilings of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionCeilings {
    /// After this many refused calls every further one is refused.
    pub denials: NonZeroU64,
}

impl Default for SessionCeilings {
    fn default() -> Self {
        Self {
            denials: NonZeroU64::MIN.saturating_add(999),
        }
    }
}

/// In `[pool]`, every profile of a tool that has no line of its own.
pub const OTHER_TOOLS: &str = "tools/*";

/// The audit log as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// The bytes of all its files beyond which no call, session or question begins.
    pub max_bytes: NonZeroU64,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            max_bytes: NonZeroU64::MIN.saturating_add((8 << 30) - 1),
        }
    }
}

const TEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

/// The owner's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Layers whose gaps do not stop a launch; the level stays what it is.
    pub waive: Vec<Layer>,
    /// First uid and number of uids that sandboxes use.
    pub uid_range: (u32, u32),
    /// Which cgroup back end to use.
    pub cgroup: CgroupChoice,
    /// When roles are started again.
    pub restart: Restart,
    /// How the owner is asked.
    pub approvals: Approvals,
    /// The ceilings of one session.
    pub session: SessionCeilings,
    /// The audit log as a whole.
    pub audit: Audit,
    /// How many stages wait for the calls of a profile, by its name; [`OTHER_TOOLS`] stands for those that are not named.
    pub pool: BTreeMap<String, u8>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            waive: Vec::new(),
            uid_range: (1_879_048_192, 65_536),
            cgroup: CgroupChoice::Auto,
            restart: Restart::default(),
            approvals: Approvals::default(),
            session: SessionCeilings::default(),
            audit: Audit::default(),
            pool: BTreeMap::new(),
        }
    }
}
