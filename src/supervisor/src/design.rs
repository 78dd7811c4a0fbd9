//! From a permit to everything a sandbox needs: its plan, its trees, its input. `prepare` and `explain` both come
//! through here, so what is explained is what is launched.

use std::path::{Path, PathBuf};

use confine::derive::{derive, let_read};
use confine::host::{Host, HostError, Privilege};
use confine::launch::GrantedTree;
use confine::named::program;
use confine::plan::{Access, Mount, Plan, Program};
use confine::resolve::ResolveError;
use policy::{BindingAccess, GrantedPath, Permit};
use proto::DenyReason;
use proto::grant::Mode;
use proto::tool::ToolKind;

use crate::books::digest;
use crate::guard::GuardError;
use crate::in_full;
use crate::load::Loaded;
use crate::narrow::{NarrowError, Tree, narrow};
use crate::place::Place;

/// Why a permitted call gets no sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The check that failed.
    pub(crate) reason: DenyReason,
    /// Why, for the owner.
    pub(crate) detail: String,
    /// Whether it is only that this process may not look, so that another user may get the sandbox.
    pub(crate) forbidden: bool,
}

impl Refusal {
    pub(crate) fn new(reason: DenyReason, detail: impl ToString) -> Self {
        Self {
            reason,
            detail: detail.to_string(),
            forbidden: false,
        }
    }
}

/// A sandbox that could be built.
#[derive(Debug)]
pub(crate) struct Design {
    /// Everything it will be.
    pub(crate) plan: Plan,
    /// Its trees, in the order of the plan.
    pub(crate) trees: Vec<GrantedTree>,
    /// What is written to its standard input; none where that is `/dev/null`.
    pub(crate) input: Option<String>,
}

/// Resolves what `permit` binds and derives the plan of its sandbox.
///
/// # Errors
/// `path_outside` for what leads out of the grant or into boxmaker's own files, `denied_by_grant` for what a deny grant
/// holds, `launch_failed` for everything else.
pub(crate) fn design(loaded: &Loaded, permit: Permit) -> Result<Design, Refusal> {
    let (tool, grant) = (permit.tool(), permit.grant());
    let launch = |detail: String| Refusal::new(DenyReason::LaunchFailed, detail);
    let mut trees = narrow(permit.bindings(), &loaded.guard).map_err(|error| refuse(&error))?;
    if loaded.privilege == Privilege::Bare {
        write_as_around(&mut trees, grant.paths());
    }
    check_denied(loaded, tool.name(), &trees)?;

    let named = loaded.owners.get(grant.id()).copied();
    let (mut mounts, mut read) = (Vec::new(), Vec::new());
    let mut granted = Vec::new();
    for tree in trees {
        let owner = named.unwrap_or(tree.root_owner);
        let shown = tree.path.display();
        if tree.access.writes() && owner.0 == 0 {
            let way = "set `as` in the grant to another user";
            return Err(launch(format!("{shown} would be written as root; {way}")));
        }
        let Some(path) = tree.path.to_str() else {
            return Err(launch(format!("{shown} is not UTF-8")));
        };
        for file in &tree.read {
            read.push(path_text(file)?);
        }
        mounts.push(Mount::Tree {
            path: path.to_owned(),
            directory: tree.resolved.directory,
            access: tree.access,
            exec: false,
        });
        granted.push(GrantedTree {
            descriptor: tree.resolved.descriptor,
            owner,
        });
    }

    let name = &tool.file().profile;
    let Some(profile) = loaded.profiles.get(name) else {
        return Err(launch(format!("there is no profile {name:?}")));
    };
    let executable = program(&loaded.binaries, tool.file());
    let host = Host::take(profile, &executable, loaded.privilege).map_err(|error| Refusal {
        forbidden: matches!(&error, HostError::Look { source, .. } if is_forbidden(source)),
        ..launch(in_full(&error))
    })?;
    let mut argv = permit.argv();
    if let Some(first) = argv.first_mut() {
        *first = path_text(&executable)?;
    }
    let program = Program {
        argv,
        env: std::collections::BTreeMap::new(),
        cwd: working_directory(permit.cwd()),
        input: digest(permit.input().as_bytes()),
    };
    let required = grant.file().confinement;
    let mut plan = derive(profile, program, &mounts, required, &host)
        .map_err(|error| launch(in_full(&error)))?;
    for file in &read {
        let_read(&mut plan, file).map_err(|error| launch(in_full(&error)))?;
    }
    let timeout = u64::try_from(tool.file().timeout.as_millis()).unwrap_or(u64::MAX);
    plan.limits.wall_ms = plan.limits.wall_ms.min(timeout);
    let input = match tool.file().kind {
        ToolKind::Stdio => Some(permit.input().to_owned()),
        ToolKind::Argv => None,
    };
    Ok(Design {
        plan,
        trees: granted,
        input,
    })
}

/// Without mounts, what is to be read in a tree that is written is written too. Where the grant says so anyway the plan
/// says it as well; where it does not there will be no plan.
fn write_as_around(trees: &mut [Tree], granted: &[GrantedPath]) {
    let written: Vec<PathBuf> = trees
        .iter()
        .filter(|tree| tree.access.writes())
        .map(|tree| tree.path.clone())
        .collect();
    for tree in trees.iter_mut().filter(|tree| !tree.access.writes()) {
        let holding = granted
            .iter()
            .filter(|entry| tree.path.starts_with(entry.path()));
        let innermost = holding.clone().map(|entry| entry.path().len()).max();
        let may_write = holding
            .filter(|entry| Some(entry.path().len()) == innermost)
            .any(|entry| entry.access() == BindingAccess::Write);
        if may_write && written.iter().any(|outer| tree.path.starts_with(outer)) {
            tree.access = Access::ReadWriteFiles;
        }
    }
}

/// Where a tool starts: `root`, or beside it where it is no directory. Not in `/` then, because what a call names below
/// a file binds nothing, and the same name below `/` may be something of the view.
fn working_directory(root: String) -> String {
    if root == "/" || std::fs::metadata(&root).is_ok_and(|metadata| metadata.is_dir()) {
        return root;
    }
    let parent = Path::new(&root).parent().and_then(Path::to_str);
    match parent {
        Some("/") | None => "/dev".to_owned(),
        Some(parent) => parent.to_owned(),
    }
}

fn path_text(path: &Path) -> Result<String, Refusal> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        let detail = format!("{} is not UTF-8", path.display());
        Refusal::new(DenyReason::LaunchFailed, detail)
    })
}

fn refuse(error: &NarrowError) -> Refusal {
    let reason = match error {
        NarrowError::Resolve(ResolveError::Open { .. })
        | NarrowError::Guard(GuardError::Look { .. }) => DenyReason::LaunchFailed,
        NarrowError::Resolve(_) | NarrowError::Guard(_) | NarrowError::Changed(_) => {
            DenyReason::PathOutside
        }
    };
    let forbidden = match error {
        NarrowError::Resolve(ResolveError::Open { source, .. }) => is_forbidden(source),
        NarrowError::Guard(error) => error.is_forbidden(),
        _ => false,
    };
    Refusal {
        forbidden,
        ..Refusal::new(reason, in_full(error))
    }
}

fn is_forbidden(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}

/// Deny grants once more, on what the paths of the call turned out to be: a link must not lead into a denied path, and
/// the directory that a write needs must not hold one, because its tool could write there too.
fn check_denied(loaded: &Loaded, tool: &proto::ToolName, trees: &[Tree]) -> Result<(), Refusal> {
    let denies = |grant: &&policy::GrantEntry| {
        grant.file().mode == Mode::Deny && grant.file().tool == *tool && !grant.paths().is_empty()
    };
    for grant in loaded.policy.grants().filter(denies) {
        for denied in grant.paths() {
            let place = Place::of(Path::new(denied.path())).map_err(|error| {
                let detail = format!("cannot look at {}: {error}", denied.path());
                Refusal::new(DenyReason::LaunchFailed, detail)
            })?;
            for tree in trees {
                let held = Place::held(&tree.resolved.descriptor).map_err(|error| {
                    let detail = format!("cannot look at {}: {error}", tree.path.display());
                    Refusal::new(DenyReason::LaunchFailed, detail)
                })?;
                if held.overlaps(&place) {
                    let detail = format!(
                        "the call needs {}, which overlaps {} of deny grant {}",
                        tree.path.display(),
                        denied.path(),
                        grant.id()
                    );
                    return Err(Refusal::new(DenyReason::DeniedByGrant, detail));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
