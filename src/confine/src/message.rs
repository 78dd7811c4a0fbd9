//! What launcher and stage say to each other over the stage's standard input, and the names of the stage's steps.

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};

use ipc::wire::WireError;
use ipc::{Frame, Wire};
use proto::frame::FrameError;
use serde::{Deserialize, Serialize};

use crate::measure::Inside;
use crate::plan::{Base, Identity, Plan};

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// One step of the stage, in the order in which they are taken.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Step {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Step {
            /// Every step, in order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The step's name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

steps! {
    /// Outer: close every descriptor but the standard three.
    CloseDescriptors = "close-descriptors",
    /// Outer: read the plan.
    ReceivePlan = "receive-plan",
    /// Outer: enter the memory cgroup.
    JoinMemory = "join-memory",
    /// Outer: enter the pids cgroup.
    JoinPids = "join-pids",
    /// Outer: enter the cpu cgroup.
    JoinCpu = "join-cpu",
    /// Outer: set the limits of the process, and be the first that the kernel kills when memory runs out.
    Limits = "limits",
    /// Outer, without privileges: enter a user namespace, in which the others can be made.
    UnshareUser = "unshare-user",
    /// Outer: leave the supervisor's cgroup namespace.
    UnshareCgroup = "unshare-cgroup",
    /// Outer: leave its IPC namespace.
    UnshareIpc = "unshare-ipc",
    /// Outer: leave its UTS namespace.
    UnshareUts = "unshare-uts",
    /// Outer: leave its network namespace.
    UnshareNet = "unshare-net",
    /// Outer: leave its mount namespace.
    UnshareMount = "unshare-mount",
    /// Outer: let the next child be pid 1 of a namespace of its own.
    UnsharePid = "unshare-pid",
    /// Outer: start the inner stage.
    SpawnInner = "spawn-inner",
    /// Inner: a terminal session of its own, with no terminal.
    Session = "session",
    /// Inner: open its own namespaces, to show them.
    OpenNamespaces = "open-namespaces",
    /// Inner: build the new root, up to what is granted.
    Mounts = "mounts",
    /// Inner: make it the root and drop the old one. In a user namespace only when the granted trees are in it, because
    /// they are copied from the old one.
    Pivot = "pivot",
    /// Inner: set the host name.
    Hostname = "hostname",
    /// Inner: empty the bounding and the ambient set and lock them. Before the ids, because it needs a capability.
    Bounding = "bounding",
    /// Inner: receive the plan, the trees and the tool's standard descriptors. A stage of the warm pool waits here.
    ReceiveTrees = "receive-trees",
    /// Inner, without namespaces: become the parent of every orphan, since there is no pid 1 to be.
    Subreaper = "subreaper",
    /// Inner, without namespaces: take the mark by which the launcher knows every process of the sandbox.
    Mark = "mark",
    /// Inner, without namespaces: bound the processes of the user, since nothing counts those of the sandbox.
    Processes = "processes",
    /// Inner: make the new root read-only.
    RootFlags = "root-flags",
    /// Inner: make the Landlock rules, while everything can still be opened.
    OpenRules = "open-rules",
    /// Inner: drop the supplementary groups.
    Groups = "groups",
    /// Inner: take the sandbox's gid.
    Gid = "gid",
    /// Inner: take the sandbox's uid.
    Uid = "uid",
    /// Inner: empty the other three capability sets.
    Capabilities = "capabilities",
    /// Inner: refuse core dumps and tracing. After the ids, because changing them sets it.
    Dumpable = "dumpable",
    /// Inner: die with the supervisor. After the ids, because changing them clears it.
    ParentDeath = "parent-death",
    /// Inner: try every canary while nothing holds it.
    CanariesBefore = "canaries-before",
    /// Inner: no new privileges, which the next two need.
    NoNewPrivs = "no-new-privs",
    /// Inner: Landlock's rules for files.
    LandlockFs = "landlock-fs",
    /// Inner: Landlock's rules for TCP.
    LandlockNet = "landlock-net",
    /// Inner: Landlock's scopes.
    LandlockScope = "landlock-scope",
    /// Inner: the system call filter, last because it refuses what the steps before it need.
    Seccomp = "seccomp",
    /// Inner: try the canaries again, read everything back, report.
    Report = "report",
    /// Inner: start the program as pid 2, once the launcher says so.
    Start = "start",
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the launcher tells the stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ToStage {
    /// To the outer stage; descriptors: the files by which the groups of `joins` are joined.
    Outer {
        namespaces: Vec<crate::plan::Namespace>,
        /// Whether the launcher writes the id maps of the user namespace, between `Started` and `Start`.
        mapped: bool,
        files: u32,
        pids: u32,
        joins: Vec<proto::Layer>,
    },
    /// To the inner stage: what it can do before it knows its plan.
    Base(Box<Ground>),
    /// To the inner stage; descriptors: standard input, output and error of the program.
    Inner(Box<Inner>),
    /// To the inner stage, as often as needed after `Inner`; descriptors: the next trees.
    Trees {},
    /// Start the program.
    Start {},
    /// Kill everything inside and report.
    Stop {},
}

/// What the inner stage needs to do what no call has a part in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ground {
    pub(crate) base: Base,
    /// Inode of the launcher's mount namespace: the stage mounts nothing while it is still in it.
    pub(crate) mount_namespace: u64,
    /// Inode of the launcher's UTS namespace: the stage changes no name while it is still in it.
    pub(crate) uts_namespace: u64,
}

/// What the inner stage needs of a call, besides descriptors.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Inner {
    pub(crate) plan: Plan,
    pub(crate) identity: Identity,
    /// Descriptors that follow: the trees, and of a bare sandbox its scratch directory and one for canaries.
    pub(crate) trees: usize,
    /// Where each tree is on the host, if the stage itself has to copy it: in a user namespace the launcher's copies
    /// could not be attached.
    pub(crate) sources: Option<Vec<String>>,
    /// Whether its ids are fixed: in a user namespace with one uid, where groups cannot be dropped.
    pub(crate) one_user: bool,
    /// The Landlock ABI that the launcher found.
    pub(crate) landlock_abi: u8,
    /// What a sandbox without namespaces needs besides.
    pub(crate) bare: Option<Bare>,
}

/// What a sandbox without namespaces needs besides its plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bare {
    /// The path of its scratch directory.
    pub(crate) scratch: String,
    /// The limit that marks its processes.
    pub(crate) mark: u64,
}

/// What the stage tells the launcher.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FromStage {
    /// The inner stage is running; descriptor: its pidfd.
    Spawned { pid: u32 },
    /// What no call has a part in is done; descriptors: the namespaces of [`NAMESPACES`], in that order.
    Waiting {},
    /// Everything is in place and measured.
    Report(Box<Inside>),
    /// The program was started; of an outer half, that it has entered a user namespace and waits for its id maps.
    Started {},
    /// The program could not be started.
    NotStarted { detail: String },
    /// The sandbox is empty but for the stage.
    Ended {
        exit: proto::audit::ExitStatus,
        cpu_ms: u64,
        max_rss: u64,
    },
    /// A step failed; the stage is gone.
    Failed { step: Step, detail: String },
}

/// The namespaces whose descriptors a waiting stage shows: the name below `/proc/self/ns` and the layer it is about.
pub(crate) const NAMESPACES: &[(&str, proto::Layer)] = &[
    ("mnt", proto::Layer::Mount),
    ("pid", proto::Layer::Pid),
    ("net", proto::Layer::Net),
    ("ipc", proto::Layer::Ipc),
    ("uts", proto::Layer::Uts),
    ("cgroup", proto::Layer::CgroupNs),
];

/// Why a message between launcher and stage did not pass.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The frame failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The frame could not be sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The body is not a message.
    #[error("not a message: {0}")]
    Json(#[from] serde_json::Error),
    /// The other side is gone.
    #[error("the other side closed the socket")]
    Closed,
}

pub(crate) fn send(
    wire: &Wire,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), MessageError> {
    Ok(wire.send(&serde_json::to_vec(message)?, descriptors)?)
}

pub(crate) fn receive<T: serde::de::DeserializeOwned>(
    wire: &Wire,
) -> Result<(T, Vec<OwnedFd>), MessageError> {
    let Frame { body, descriptors } = wire.receive()?.ok_or(MessageError::Closed)?;
    Ok((serde_json::from_slice(&body)?, descriptors))
}

/// A message to the stage, read and written again, for the fuzz targets.
///
/// # Errors
/// It is no message.
#[cfg(fuzzing)]
pub fn to_stage_again(body: &[u8]) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&serde_json::from_slice::<ToStage>(body)?)
}

/// A message from the stage, read and written again, with what it reports, for the fuzz targets.
///
/// # Errors
/// It is no message.
#[cfg(fuzzing)]
pub fn from_stage_again(body: &[u8]) -> serde_json::Result<(Vec<u8>, Option<Inside>)> {
    let message: FromStage = serde_json::from_slice(body)?;
    let text = serde_json::to_vec(&message)?;
    Ok(match message {
        FromStage::Report(inside) => (text, Some(*inside)),
        _ => (text, None),
    })
}
