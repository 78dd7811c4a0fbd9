//! Identity: granted trees that belong to the sandbox's own uid inside while they go on belonging to their owner outside
//! (mount_setattr(2), "ID-mapped mounts").

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipc::Wire;
use rustix::mount::OpenTreeFlags;

use crate::message::{FromStage, receive};
use crate::plan::Identity;

/// Why an identity could not be had.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The tree could not be copied.
    #[error("cannot copy the granted tree: {0}")]
    Copy(io::Error),
    /// The user namespace that carries the map could not be made.
    #[error("cannot make a user namespace for the id map: {0}")]
    Namespace(String),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies trees and maps the owner of their files to a sandbox's identity.
#[derive(Debug)]
pub(crate) struct Mapper {
    stage: PathBuf,
    /// A user namespace costs milliseconds, so each swap is made once.
    namespaces: Mutex<HashMap<(u32, u32, u32, u32), OwnedFd>>,
}

/// How long the child that holds the namespace may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most maps that are kept.
const CACHE: usize = 256;

impl Mapper {
    pub(crate) fn new(stage: PathBuf) -> Self {
        Self {
            stage,
            namespaces: Mutex::default(),
        }
    }

    /// Copies the tree at `descriptor` alone, without what is mounted below it.
    pub(crate) fn copy(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, IdentityError> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        rustix::mount::open_tree(descriptor, "", flags)
            .map_err(|errno| IdentityError::Copy(errno.into()))
    }

    /// Swaps `owner` and `identity` in the copied tree. `Ok(Err(reason))` says that the kernel or the file system
    /// refuses maps, which is a gap and no failure.
    pub(crate) fn map(
        &self,
        tree: BorrowedFd<'_>,
        owner: (u32, u32),
        identity: Identity,
    ) -> Result<Result<(), String>, IdentityError> {
        if owner == (identity.uid, identity.gid) {
            return Ok(Ok(()));
        }
        let key = (owner.0, owner.1, identity.uid, identity.gid);
        let mut namespaces = lock(&self.namespaces);
        if !namespaces.contains_key(&key) {
            if namespaces.len() >= CACHE {
                namespaces.clear();
            }
            match self.namespace(key) {
                Ok(namespace) => drop(namespaces.insert(key, namespace)),
                Err(IdentityError::Namespace(reason)) => return Ok(Err(reason)),
                Err(other) => return Err(other),
            }
        }
        let Some(namespace) = namespaces.get(&key) else {
            return Ok(Err("no map".to_owned()));
        };
        let mapped = composefs_ioctls::mount::mount_setattr_idmap(tree, namespace.as_fd());
        Ok(mapped.map_err(|error| format!("the file system refuses id maps: {error}")))
    }

    /// A user namespace whose maps are the identity but for the swap. A one-line map would leave every other owner
    /// without a number, and writes into directories with a foreign group would fail.
    fn namespace(
        &self,
        (owner, group, uid, gid): (u32, u32, u32, u32),
    ) -> Result<OwnedFd, IdentityError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            IdentityError::Namespace(format!("{what}: {error}"))
        };
        let (near, far) = Wire::pair().map_err(|error| failed("socket", &error))?;
        near.stream()
            .set_read_timeout(Some(PATIENCE))
            .map_err(|error| failed("socket", &error))?;
        let mut child = Command::new(&self.stage)
            .arg("userns")
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(far.into_stream())))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed("stage", &error))?;
        let held = match receive::<FromStage>(&near) {
            Ok((FromStage::Started {}, _)) => {
                let process = PathBuf::from(format!("/proc/{}", child.id()));
                fs::write(process.join("uid_map"), swap(owner, uid))
                    .and_then(|()| fs::write(process.join("gid_map"), swap(group, gid)))
                    .and_then(|()| fs::File::open(process.join("ns/user")))
                    .map(OwnedFd::from)
                    .map_err(|error| failed("id map", &error))
            }
            Ok((FromStage::Failed { detail, .. }, _)) => Err(IdentityError::Namespace(detail)),
            Ok(_) => Err(failed("stage", &"unexpected message")),
            Err(error) => Err(failed("stage", &error)),
        };
        drop(near);
        child.wait().map_err(|error| failed("stage", &error))?;
        held
    }
}

/// The lines of a map that is the identity but for `one` and `other`, which change places (user_namespaces(7)).
fn swap(one: u32, other: u32) -> String {
    // The number 4294967295 means "no id" and cannot be mapped.
    const END: u32 = u32::MAX;
    let (low, high) = (one.min(other), one.max(other));
    let mut lines = String::new();
    let mut line = |inside: u32, outside: u32, count: u32| {
        if count > 0 {
            lines.push_str(&format!("{inside} {outside} {count}\n"));
        }
    };
    line(0, 0, low);
    if low == high {
        line(low, low, END - low);
        return lines;
    }
    line(low, high, 1);
    line(low + 1, low + 1, high - low - 1);
    line(high, low, 1);
    line(high + 1, high + 1, END - high - 1);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_covers_every_id_once() {
        assert_eq!(
            swap(1000, 1_879_048_208),
            "0 0 1000\n1000 1879048208 1\n1001 1001 1879047207\n1879048208 1000 1\n\
             1879048209 1879048209 2415919086\n"
        );
        assert_eq!(swap(0, 5), "0 5 1\n1 1 4\n5 0 1\n6 6 4294967289\n");
        assert_eq!(swap(7, 7), "0 0 7\n7 7 4294967288\n");
    }
}
