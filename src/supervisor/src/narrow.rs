//! From what a permit binds to the trees of one sandbox (architecture.md section 4.4): the grant intersected with the
//! call, resolved by descriptor.
//!
//! - A file or directory that is read is bound alone, by its inode.
//! - A file that is written is bound by its directory, because an atomic replace needs that; the directory must lie
//!   beneath the granted path. If the granted path is the file itself, the file alone is bound.
//! - A file that is both read and written stays in the directory that is bound for writing, and alone may be read there:
//!   a mount of its own could not be replaced. Only where one of the granted paths is the file itself it gets that mount.
//! - A tool that declares no path argument gets the whole granted path.
//! - What does not exist binds nothing: the tool meets the same ENOENT as anyone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use confine::plan::Access;
use confine::resolve::{ResolveError, Resolved, Root};
use policy::{Binding, BindingAccess};

use crate::guard::{Guard, GuardError};

/// One tree of a sandbox, held open.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Where it appears: the path as the call spells it.
    pub(crate) path: PathBuf,
    /// What it holds open.
    pub(crate) resolved: Resolved,
    /// What may be done in it.
    pub(crate) access: Access,
    /// Files in it that may be read, whatever `access` says.
    pub(crate) read: Vec<PathBuf>,
    /// Owner and group of the granted path it lies beneath.
    pub(crate) root_owner: (u32, u32),
}

/// Why a binding is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NarrowError {
    /// It could not be resolved beneath its root.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// It touches boxmaker's own files.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// Two looks at one path found two files.
    #[error("{0} became another file while it was looked at")]
    Changed(PathBuf),
}

/// Resolves `bindings`; trees come out by path, a parent before what lies in it, each path once.
///
/// # Errors
/// As [`NarrowError`], of the first binding that has one.
pub(crate) fn narrow(bindings: &[Binding], guard: &Guard) -> Result<Vec<Tree>, NarrowError> {
    let mut trees: BTreeMap<PathBuf, Tree> = BTreeMap::new();
    let mut edited = Vec::new();
    for binding in bindings {
        let Some(tree) = resolve(binding)? else {
            continue;
        };
        guard.judge_held(&tree.path, &tree.resolved.descriptor)?;
        if !tree.resolved.directory && stays(binding, bindings) {
            edited.push(tree.path);
            continue;
        }
        match trees.get_mut(&tree.path) {
            None => {
                trees.insert(tree.path.clone(), tree);
            }
            Some(other) => {
                let same = other.resolved.device == tree.resolved.device
                    && other.resolved.inode == tree.resolved.inode;
                if !same {
                    return Err(NarrowError::Changed(tree.path));
                }
                other.access = join(other.access, tree.access);
            }
        }
    }
    write_through(bindings, &mut trees);
    for file in edited {
        // Its directory is there, because the same call writes the file.
        if let Some(tree) = file.parent().and_then(|parent| trees.get_mut(parent)) {
            tree.read.push(file);
        }
    }
    // A map of paths is ordered by components, so a parent comes before what lies in it.
    Ok(trees.into_values().collect())
}

/// Whether a file that is read stays in the directory that is bound for writing it. Both granted paths hold that
/// directory, so whatever stands at the name when the sandbox looks, even a link that was just put there, is granted.
fn stays(read: &Binding, bindings: &[Binding]) -> bool {
    let within = |binding: &Binding| !binding.whole && binding.path != binding.root;
    let writes = |other: &Binding| {
        other.access == BindingAccess::Write && other.path == read.path && within(other)
    };
    read.access == BindingAccess::Read && within(read) && bindings.iter().any(writes)
}

/// A file that one call both reads and writes, where one granted path is the file itself, stands as a mount of its own in
/// the directory that may be bound for writing. Were that mount for reading only, it would hide the file from the writer.
fn write_through(bindings: &[Binding], trees: &mut BTreeMap<PathBuf, Tree>) {
    for binding in bindings {
        if binding.access == BindingAccess::Write
            && let Some(tree) = trees.get_mut(Path::new(&binding.path))
            && tree.access == Access::Read
        {
            tree.access = Access::ReadWriteFiles;
        }
    }
}

fn resolve(binding: &Binding) -> Result<Option<Tree>, NarrowError> {
    let root_path = Path::new(&binding.root);
    let path = Path::new(&binding.path);
    let Some(root) = Root::open(root_path)? else {
        return Ok(None);
    };
    let root_owner = root.itself().owner;
    let tree = |path: &Path, resolved, access| Tree {
        path: path.to_owned(),
        resolved,
        access,
        read: Vec::new(),
        root_owner,
    };
    let found = root.resolve(path)?;
    if binding.access == BindingAccess::Read {
        return Ok(found.map(|found| tree(path, found, Access::Read)));
    }
    let Some(found) = found else {
        // A new file: its directory is what a writer needs, if that exists. Nothing lies above the root.
        let parent = path.parent().filter(|_| path != root_path);
        let directory = match parent {
            Some(parent) => root.resolve(parent)?.map(|found| (parent, found)),
            None => None,
        };
        return Ok(directory
            .filter(|(_, found)| found.directory)
            .map(|(parent, found)| tree(parent, found, Access::WriteFiles)));
    };
    if found.directory {
        let access = if binding.whole {
            Access::WriteTree
        } else {
            Access::WriteFiles
        };
        return Ok(Some(tree(path, found, access)));
    }
    match path.parent().filter(|_| path != root_path) {
        None => Ok(Some(tree(path, found, Access::WriteFiles))),
        Some(parent) => Ok(root
            .resolve(parent)?
            .map(|found| tree(parent, found, Access::WriteFiles))),
    }
}

/// What one path may be used for when two bindings name it.
const fn join(one: Access, other: Access) -> Access {
    let reads = reads(one) || reads(other);
    let tree = changes_tree(one) || changes_tree(other);
    let writes = one.writes() || other.writes();
    match (reads, writes, tree) {
        (true, _, true) => Access::ReadWriteTree,
        (false, _, true) => Access::WriteTree,
        (true, true, false) => Access::ReadWriteFiles,
        (false, true, false) => Access::WriteFiles,
        (_, false, false) => Access::Read,
    }
}

const fn reads(access: Access) -> bool {
    !matches!(access, Access::WriteFiles | Access::WriteTree)
}

const fn changes_tree(access: Access) -> bool {
    matches!(access, Access::WriteTree | Access::ReadWriteTree)
}

#[cfg(test)]
mod tests;
