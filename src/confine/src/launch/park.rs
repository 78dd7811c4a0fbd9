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

use super::sandbox::{Sandbox, remove};
use super::{LaunchError, unexpected};
use crate::cgroup::{Backend, Group};
use crate::message::{FromStage, ToStage, receive, send};
use crate::plan::{Limits, Namespace, Plan};

/// How long the stage may take from its start to its report.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a parked stage was made for. It can serve every plan that has the same one, and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) profile: String,
    namespaces: Vec<Namespace>,
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
            namespaces: plan.namespaces.clone(),
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

/// Starts stages.
#[derive(Debug)]
pub(super) struct Parker {
    stage: PathBuf,
    backend: Backend,
    /// For the user namespace of a stage, where this process may write them.
    maps: Option<Maps>,
    next: AtomicU64,
}

impl Parker {
    pub(super) const fn new(stage: PathBuf, backend: Backend, maps: Option<Maps>) -> Self {
        Self {
            stage,
            backend,
            maps,
            next: AtomicU64::new(0),
        }
    }

    /// Starts a stage and waits until its inner half runs.
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
        let mut outer = self.spawn(far)?;
        let maps = self.maps.as_ref().map(|maps| (maps, outer.id()));
        let sandbox = match outer_half(&near, kind, &group, maps) {
            Ok((pid, handle)) => Ok(Sandbox::new(near, pid, handle, group)),
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
        Ok(sandbox)
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
    let maps = maps.filter(|_| kind.namespaces.contains(&Namespace::User));
    let (joins, files): (Vec<_>, Vec<_>) = group.join_files()?.into_iter().unzip();
    let descriptors: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    let message = ToStage::Outer {
        namespaces: kind.namespaces.clone(),
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
