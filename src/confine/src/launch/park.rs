//! The first half of a launch, which no call has a part in: a group with its limits, and a stage that has left the
//! supervisor's namespaces and waits for its plan. Knows nothing of trees, identities or programs.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ipc::Wire;
use proto::Layer;

use super::sandbox::{Sandbox, Seen, remove};
use super::{LaunchError, unexpected};
use crate::cgroup::{Backend, Group};
use crate::message::{FromStage, Ground, NAMESPACES, ToStage, receive, send};
use crate::plan::{Base, Limits, Plan};

/// How long the stage may take from its start to its report.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a parked stage was made for. It can serve every plan that has the same one, and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) profile: String,
    base: Base,
    limits: Limits,
}

impl Kind {
    pub(super) fn of(plan: &Plan) -> Self {
        // How long the program may run is counted by the launcher, from the start.
        let limits = Limits {
            wall_ms: 0,
            ..plan.limits.clone()
        };
        Self {
            profile: plan.profile.clone(),
            base: Base::of(plan),
            limits,
        }
    }
}

/// The id maps of a user namespace that has all users and groups of this process's own, each as itself.
#[derive(Debug)]
pub(super) struct Maps {
    uids: String,
    gids: String,
}

impl Maps {
    /// # Errors
    /// This process's own maps cannot be read.
    pub(super) fn of_this_process() -> io::Result<Self> {
        let read = |name: &str| -> io::Result<String> {
            let text = fs::read_to_string(format!("/proc/self/{name}"))?;
            Ok(each_as_itself(&text))
        };
        Ok(Self {
            uids: read("uid_map")?,
            gids: read("gid_map")?,
        })
    }

    fn write(&self, process: u32) -> Result<(), LaunchError> {
        for (name, text) in [("uid_map", &self.uids), ("gid_map", &self.gids)] {
            let path = format!("/proc/{process}/{name}");
            fs::write(&path, text).map_err(|source| LaunchError::Map { path, source })?;
        }
        Ok(())
    }
}

/// The ids inside of a map, mapped to themselves (user_namespaces(7)).
fn each_as_itself(map: &str) -> String {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (inside, _, count) = (words.next()?, words.next()?, words.next()?);
        Some(format!("{inside} {inside} {count}\n"))
    };
    map.lines().filter_map(line).collect()
}

/// The namespaces of this process, by device and inode.
#[derive(Debug)]
pub(super) struct Namespaces(Vec<(Layer, (u64, u64))>);

impl Namespaces {
    /// # Errors
    /// They cannot be seen.
    pub(super) fn of_this_process() -> io::Result<Self> {
        let of = |(name, layer): &(&str, Layer)| {
            let stat = rustix::fs::stat(format!("/proc/self/ns/{name}"))?;
            Ok((*layer, (stat.st_dev, stat.st_ino)))
        };
        NAMESPACES
            .iter()
            .map(of)
            .collect::<io::Result<_>>()
            .map(Self)
    }

    fn inode(&self, of: Layer) -> u64 {
        let found = self.0.iter().find(|(layer, _)| *layer == of);
        found.map_or(0, |(_, (_, inode))| *inode)
    }

    /// Whether each one that a stage showed is another one.
    fn compare(&self, shown: &[OwnedFd]) -> Seen {
        let same = |((layer, own), shown): (&(Layer, (u64, u64)), &OwnedFd)| {
            let result = match rustix::fs::fstat(shown) {
                Ok(stat) if (stat.st_dev, stat.st_ino) == *own => {
                    Err("it is in the supervisor's namespace".to_owned())
                }
                Ok(_) => Ok(()),
                Err(errno) => Err(format!("its namespace cannot be read: {errno}")),
            };
            (*layer, result)
        };
        self.0.iter().zip(shown).map(same).collect()
    }
}

/// What the host's paths were that a root is made of, by device and inode: a waiting stage has the files that were there,
/// and is no use when others are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Views(Vec<Option<(u64, u64)>>);

impl Views {
    pub(super) fn now(kind: &Kind) -> Self {
        let at = |path| {
            let stat = rustix::fs::stat(path).ok()?;
            Some((stat.st_dev, stat.st_ino))
        };
        Self(kind.base.views().map(at).collect())
    }
}

/// Starts stages.
#[derive(Debug)]
pub(super) struct Parker {
    stage: PathBuf,
    backend: Backend,
    /// For the user namespace of a stage, where this process may write them.
    maps: Option<Maps>,
    own: Namespaces,
    next: AtomicU64,
}

impl Parker {
    pub(super) const fn new(
        stage: PathBuf,
        backend: Backend,
        maps: Option<Maps>,
        own: Namespaces,
    ) -> Self {
        Self {
            stage,
            backend,
            maps,
            own,
            next: AtomicU64::new(0),
        }
    }

    /// Starts a stage and has it do what no call has a part in; [`Self::shown()`] waits until that is done.
    ///
    /// # Errors
    /// As [`LaunchError`]; nothing of it is left.
    pub(super) fn park(&self, kind: &Kind) -> Result<Sandbox, LaunchError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let group = self.backend.create(&number.to_string(), &kind.limits)?;
        let (near, far) = Wire::pair().map_err(LaunchError::Spawn)?;
        near.stream()
            .set_read_timeout(Some(PATIENCE))
            .map_err(LaunchError::Spawn)?;
        // Before the stage opens them: whatever changes in between is found to have changed.
        let views = Views::now(kind);
        let mut outer = self.spawn(far)?;
        let maps = self.maps.as_ref().map(|maps| (maps, outer.id()));
        let sandbox = match outer_half(&near, kind, &group, maps) {
            Ok((pid, handle)) => Ok(Sandbox::new(near, pid, handle, group, views)),
            Err(error) => {
                // Whatever half is alive ends when its socket closes.
                drop(near);
                remove(&group);
                Err(error)
            }
        };
        // The outer half ends by itself; once it has, the inner half is this process's child.
        let ended = outer.wait().map_err(LaunchError::Spawn);
        let sandbox = sandbox?;
        ended?;
        let ground = Ground {
            base: kind.base.clone(),
            mount_namespace: self.own.inode(Layer::Mount),
            uts_namespace: self.own.inode(Layer::Uts),
        };
        send(sandbox.wire(), &ToStage::Base(Box::new(ground)), &[])?;
        Ok(sandbox)
    }

    /// What the namespaces of a sandbox are; waits until the stage has shown them.
    ///
    /// # Errors
    /// As [`LaunchError`]: a step of the stage failed, for example.
    pub(super) fn shown(&self, sandbox: &mut Sandbox) -> Result<Seen, LaunchError> {
        if let Some(shown) = sandbox.namespaces.take() {
            return Ok(shown);
        }
        match receive(sandbox.wire())? {
            (FromStage::Waiting {}, shown) => Ok(self.own.compare(&shown)),
            (other, _) => Err(unexpected(other)),
        }
    }

    fn spawn(&self, far: Wire) -> Result<Child, LaunchError> {
        Command::new(&self.stage)
            .arg("outer")
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(far.into_stream())))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| LaunchError::Program {
                path: self.stage.clone(),
                source,
            })
    }
}

fn outer_half(
    wire: &Wire,
    kind: &Kind,
    group: &Group,
    maps: Option<(&Maps, u32)>,
) -> Result<(u32, OwnedFd), LaunchError> {
    let maps = maps.filter(|_| kind.base.copies_trees());
    let (joins, files): (Vec<_>, Vec<_>) = group.join_files()?.into_iter().unzip();
    let descriptors: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    let message = ToStage::Outer {
        namespaces: kind.base.namespaces.clone(),
        mapped: maps.is_some(),
        files: kind.limits.files,
        pids: kind.limits.pids,
        joins,
    };
    send(wire, &message, &descriptors)?;
    if let Some((maps, outer)) = maps {
        match receive(wire)? {
            (FromStage::Started {}, _) => {}
            (other, _) => return Err(unexpected(other)),
        }
        maps.write(outer)?;
        send(wire, &ToStage::Start {}, &[])?;
    }
    match receive(wire)? {
        (FromStage::Spawned { pid }, mut handle) if handle.len() == 1 => {
            Ok((pid, handle.remove(0)))
        }
        (other, _) => Err(unexpected(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::each_as_itself;

    #[test]
    fn a_map_of_all_users_has_every_line_of_the_own_one() {
        assert_eq!(
            each_as_itself("         0          0 4294967295\n"),
            "0 0 4294967295\n"
        );
        assert_eq!(
            each_as_itself("0 71001 1\n1 720000 65535\n"),
            "0 0 1\n1 1 65535\n"
        );
    }
}
