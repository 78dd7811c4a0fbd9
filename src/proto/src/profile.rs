//! Confinement profiles, `profiles/**.toml`: what every sandbox of a kind looks like (formats.md section 4).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One profile file, before `extends` is resolved; every key is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// The profile this one adds to, for example `tools/base`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// Namespaces of its own: `mount pid net ipc uts cgroup`, and `user?` for when the supervisor is not root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// Host paths that are visible and read-only; those that do not exist are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Vec<String>>,
    /// Programs that may be executed besides the tool's own; `*` stands for anything within one component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Vec<String>>,
    /// The environment, in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// System call sets, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Vec<String>>,
    /// Limits.
    #[serde(default)]
    pub limits: LimitsFile,
}

/// The `[limits]` of a profile; sizes in `K`, `M`, `G` (powers of 1024).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsFile {
    /// Memory of all processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Processor time, in percent of one processor, for example `150%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Open descriptors of one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// The longest life, for example `60s`; a tool's own `timeout` may be shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<String>,
    /// Size of the private `/tmp`; its inodes are limited to one for each 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<String>,
}
