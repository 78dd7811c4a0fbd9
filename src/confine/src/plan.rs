//! The plan of one sandbox: plain data, derived from profile, tool, grant, call and host, and applied by the stage
//! to itself. Whoever holds a plan knows everything the sandbox will be; nothing else is consulted.

use std::collections::BTreeMap;

use proto::{Hash32, Level};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Where a plan has its scratch directory.
pub(crate) const SCRATCH: &str = "/tmp";

/// A kind of namespace that the stage makes for itself (namespaces(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Namespace {
    /// User and group ids, of which the sandbox has one each; made only where the supervisor is not root.
    User,
    /// Mount points.
    Mount,
    /// Process ids.
    Pid,
    /// Network devices, ports, abstract sockets.
    Net,
    /// System V IPC and POSIX message queues.
    Ipc,
    /// Host name.
    Uts,
    /// The root of the cgroup tree that is seen.
    Cgroup,
}

/// What a granted tree lets the sandbox do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read files and list directories.
    Read,
    /// Replace and create regular files; nothing is read. What a call that writes one file is narrowed to.
    WriteFiles,
    /// All of that, and make, remove and rename directories and links.
    WriteTree,
    /// `Read` and `WriteFiles`.
    ReadWriteFiles,
    /// `Read` and `WriteTree`.
    ReadWriteTree,
}

impl Access {
    /// Whether anything may be changed.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// One mount, symbolic link or directory of the sandbox's root, in the order they are made. A bare sandbox
/// ([`Plan::is_bare`]) mounts nothing: its trees are where they are on the host, and its scratch is a directory there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mount", rename_all = "snake_case", deny_unknown_fields)]
pub enum Mount {
    /// A host path, bound alone (never its submounts), read-only, `nosuid`, `nodev`.
    View {
        /// The same path outside and inside.
        path: String,
        /// Whether it is a directory.
        directory: bool,
    },
    /// A symbolic link, as the host has it.
    Link {
        /// Where it stands.
        path: String,
        /// What it says.
        target: String,
    },
    /// `/proc` of the own pid namespace, processes only (`subset=pid`).
    Proc,
    /// `/dev` with `null`, `zero`, `full`, `random`, `urandom`, the links to descriptors, and `shm` as a link to `/tmp`.
    Devices,
    /// A private `/tmp` in memory, owned by the sandbox's uid. In a bare sandbox a directory of its own, without these
    /// limits; `/tmp` stands for it in the plan, and becomes its path in the environment.
    Scratch {
        /// Its size in bytes.
        bytes: u64,
        /// Its inodes.
        inodes: u64,
    },
    /// A granted tree that the supervisor opened and passes by descriptor, in the order of these entries; `nosuid`,
    /// `nodev`, and read-only unless its access writes.
    Tree {
        /// Where it appears: the host path as the call spells it.
        path: String,
        /// Whether it is a directory.
        directory: bool,
        /// What may be done with it.
        access: Access,
        /// Whether programs in it may be executed.
        exec: bool,
    },
}

/// What a Landlock rule allows below its path; nothing else is allowed anywhere (landlock(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Read files and list directories.
    Read,
    /// Read and execute one file, or everything in a directory.
    Execute,
    /// Read and write existing files: device nodes.
    Device,
    /// Everything but executing and making device nodes: the scratch directory.
    Scratch,
    /// As the access of a tree.
    Tree(Access),
}

/// One Landlock rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandlockRule {
    /// A path inside the sandbox; a path that is not there grants nothing.
    pub path: String,
    /// What is allowed below it.
    pub rule: Rule,
}

/// The system call filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seccomp {
    /// The sets that are joined, by name.
    pub sets: Vec<String>,
    /// SHA-256 of their program; the stage refuses to install another one.
    pub program: Hash32,
}

/// Limits of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bytes of memory of all processes together.
    pub memory: u64,
    /// Processes and threads, the stage included.
    pub pids: u32,
    /// Processor time in percent of one processor.
    pub cpu: u32,
    /// Open descriptors of one process.
    pub files: u32,
    /// The longest life after the start, in milliseconds.
    pub wall_ms: u64,
}

/// What is started as pid 2 of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program and its words; the program is an absolute path.
    pub argv: Vec<String>,
    /// The environment, in full.
    pub env: BTreeMap<String, String>,
    /// The working directory.
    pub cwd: String,
    /// SHA-256 of what is written to its standard input.
    pub input: Hash32,
}

/// Who the sandbox is on the host. Not part of the plan's hash: two calls that differ in nothing else have one plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The uid of every process inside.
    pub uid: u32,
    /// Their gid.
    pub gid: u32,
}

/// Everything one sandbox will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The profile it comes from.
    pub profile: String,
    /// The namespaces it makes; none if it is bare.
    pub namespaces: Vec<Namespace>,
    /// The host name inside.
    pub hostname: String,
    /// Its root, in order.
    pub mounts: Vec<Mount>,
    /// Its Landlock rules; every right, port and scope that the kernel's ABI knows is handled.
    pub landlock: Vec<LandlockRule>,
    /// Its system call filter.
    pub seccomp: Seccomp,
    /// Its limits.
    pub limits: Limits,
    /// What it runs.
    pub program: Program,
    /// The level it needs.
    pub required: Level,
}

/// The part of a plan that no call has a part in, which a stage can carry out before it knows the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    /// As in the plan.
    pub(crate) namespaces: Vec<Namespace>,
    /// As in the plan.
    pub(crate) hostname: String,
    /// The root without its granted trees.
    pub(crate) mounts: Vec<Mount>,
    /// How many of them come before the first tree; the others lie in one.
    pub(crate) early: usize,
    /// As in the plan.
    pub(crate) seccomp: Seccomp,
}

impl Base {
    pub(crate) fn of(plan: &Plan) -> Self {
        let is_tree = |mount: &&Mount| matches!(mount, Mount::Tree { .. });
        Self {
            namespaces: plan.namespaces.clone(),
            hostname: plan.hostname.clone(),
            mounts: plan
                .mounts
                .iter()
                .filter(|mount| !is_tree(mount))
                .cloned()
                .collect(),
            early: plan
                .mounts
                .iter()
                .take_while(|mount| !is_tree(mount))
                .count(),
            seccomp: plan.seccomp.clone(),
        }
    }

    /// As [`Plan::is_bare()`].
    pub(crate) const fn is_bare(&self) -> bool {
        self.namespaces.is_empty()
    }

    /// Whether the host's tree is dropped only after the granted trees were copied from it: in a user namespace of its
    /// own the stage cannot use copies of the launcher's (mount_namespaces(7)).
    pub(crate) fn copies_trees(&self) -> bool {
        self.namespaces.contains(&Namespace::User)
    }

    /// Where the host's files come from.
    pub(crate) fn views(&self) -> impl Iterator<Item = &str> {
        self.mounts.iter().filter_map(|mount| match mount {
            Mount::View { path, .. } => Some(path.as_str()),
            _ => None,
        })
    }
}

impl Plan {
    /// Whether it is the plan of a process that gives up what it can and stays in the supervisor's namespaces.
    #[must_use]
    pub const fn is_bare(&self) -> bool {
        self.namespaces.is_empty()
    }

    /// SHA-256 of the canonical JSON: the fields in the order of this file, maps by key, no white space.
    ///
    /// # Errors
    /// None that a plan can cause; the serialiser's type says otherwise.
    pub fn hash(&self) -> serde_json::Result<Hash32> {
        Ok(Hash32::new(
            Sha256::digest(serde_json::to_vec(self)?).into(),
        ))
    }

    /// The granted trees, in the order in which their descriptors are passed.
    pub fn trees(&self) -> impl Iterator<Item = (&str, bool, Access)> {
        self.mounts.iter().filter_map(|mount| match mount {
            Mount::Tree {
                path,
                directory,
                access,
                ..
            } => Some((path.as_str(), *directory, *access)),
            _ => None,
        })
    }
}
