//! Whose the granted trees are inside a sandbox, and who the sandbox is for that (architecture.md section 4.5).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::{GrantedTree, LaunchError};
use crate::identity::{IdentityError, Mapper};
use crate::plan::Identity;

/// Trees as the stage gets them, and who it is to be.
pub(super) struct Owned {
    pub(super) identity: Identity,
    pub(super) trees: Vec<OwnedFd>,
    /// Where the stage finds each tree, if it has to copy them itself.
    pub(super) sources: Option<Vec<String>>,
    /// Who owns each tree as the sandbox is to see it.
    pub(super) owners: Vec<u32>,
    /// Why the uid is not the sandbox's alone, if it is not.
    pub(super) shared: Option<String>,
}

impl Owned {
    /// Copies the trees and maps their owners to `identity`, which is the sandbox's alone. Where a map is refused the
    /// sandbox takes the owner's identity instead, and the reason becomes a gap.
    pub(super) fn mapped(
        mapper: &Mapper,
        identity: Identity,
        trees: &[GrantedTree],
    ) -> Result<Self, LaunchError> {
        let mut owned = Self::try_map(mapper, identity, trees)?;
        if let Err(((uid, gid), reason)) = owned.1 {
            owned = Self::try_map(mapper, Identity { uid, gid }, trees)?;
            owned.0.shared = Some(reason);
        }
        Ok(owned.0)
    }

    /// Copies and maps; the second part is the first tree whose map was refused, with its owner and the reason.
    fn try_map(
        mapper: &Mapper,
        identity: Identity,
        trees: &[GrantedTree],
    ) -> Result<(Self, Result<(), Refused>), LaunchError> {
        let mut owned = Self {
            identity,
            trees: Vec::new(),
            sources: None,
            owners: Vec::new(),
            shared: None,
        };
        let mut mapped = Ok(());
        for tree in trees {
            let copy = Mapper::copy(tree.descriptor.as_fd())?;
            let result = mapper.map(copy.as_fd(), tree.owner, identity)?;
            mapped = mapped.and(result.map_err(|reason| (tree.owner, reason)));
            owned.trees.push(copy);
            owned.owners.push(owner_inside(tree, identity)?);
        }
        Ok((owned, mapped))
    }

    /// With the right to change ids, but not to map them: a uid of its own, and where there are trees the identity of their
    /// owner. In a user namespace of its own the stage copies the trees for itself, as in [`Self::held`].
    pub(super) fn of_owner(
        identity: Identity,
        trees: Vec<GrantedTree>,
        own_users: bool,
    ) -> Result<Self, LaunchError> {
        let first = trees.first().map(|tree| tree.owner);
        let identity = first.map_or(identity, |(uid, gid)| Identity { uid, gid });
        let owners = trees
            .iter()
            .map(|tree| owner_inside(tree, identity))
            .collect::<Result<_, _>>()?;
        let sources = trees.iter().map(|tree| path(&tree.descriptor));
        let sources = own_users.then(|| sources.collect::<Result<_, _>>());
        Ok(Self {
            identity,
            owners,
            sources: sources.transpose()?,
            trees: trees.into_iter().map(|tree| tree.descriptor).collect(),
            shared: first.map(|(uid, _)| {
                let lacking = match own_users {
                    true => "CAP_SYS_ADMIN",
                    false => "namespaces",
                };
                format!("no tree can be mapped without {lacking}, so it works as uid {uid}, who owns what is granted")
            }),
        })
    }

    /// Without privileges: one uid, the caller's own, and trees that the stage copies for itself in its user namespace,
    /// where copies of this process could not be attached.
    pub(super) fn held(trees: Vec<GrantedTree>) -> Result<Self, LaunchError> {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let sources = trees
            .iter()
            .map(|tree| path(&tree.descriptor))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            identity: Identity { uid, gid },
            owners: Vec::new(),
            trees: trees.into_iter().map(|tree| tree.descriptor).collect(),
            sources: Some(sources),
            shared: Some(match uid {
                0 => "without all capabilities of root, every sandbox has uid 0 and its groups"
                    .to_owned(),
                uid => format!(
                    "started by a plain user, every sandbox has uid {uid} and the user's groups; started as root, each \
                     gets a uid of its own"
                ),
            }),
        })
    }
}

/// The owner of a tree whose map was refused, and why it was.
type Refused = ((u32, u32), String);

/// The path that an open file or directory has now.
fn path(descriptor: &OwnedFd) -> Result<String, LaunchError> {
    let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let path = std::fs::read_link(link).map_err(IdentityError::Copy)?;
    path.into_os_string().into_string().map_err(|path| {
        IdentityError::Copy(std::io::Error::other(format!("{path:?} is not UTF-8"))).into()
    })
}

/// The owner that a mapped tree has inside: the map makes `tree.owner` and the sandbox change places and leaves
/// everybody else who they are.
fn owner_inside(tree: &GrantedTree, identity: Identity) -> Result<u32, LaunchError> {
    let owner = rustix::fs::fstat(&tree.descriptor)
        .map_err(|errno| IdentityError::Copy(errno.into()))?
        .st_uid;
    Ok(if owner == tree.owner.0 {
        identity.uid
    } else if owner == identity.uid {
        tree.owner.0
    } else {
        owner
    })
}
