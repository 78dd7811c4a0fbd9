//! One call next to the tool that it names: which paths it uses, and what they are under a given grant.
//!
//! A relative path means something else under each grant, so nothing here is absolute before a grant is named.

use proto::tool::ToolFile;
use serde_json::{Map, Value};

use crate::paths::{self, Binding, BindingAccess, GrantedPath, PathRule};
use crate::policy::{GrantEntry, Tool};

/// A call whose arguments passed check 3.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a Tool,
    pub(crate) arguments: &'a Map<String, Value>,
    named: Vec<Named<'a>>,
}

/// A path argument that the call holds, for one access.
#[derive(Debug)]
struct Named<'a> {
    argument: &'a str,
    access: BindingAccess,
    path: Result<&'a str, Misspelt>,
}

/// Why a value is no path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misspelt {
    #[error("it is no string")]
    Type,
    #[error("{0}")]
    Rule(PathRule),
}

/// A path argument that a grant does not cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Uncovered<'a> {
    pub(crate) argument: &'a str,
    pub(crate) why: Why,
}

/// Why it does not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Why {
    /// The same under every grant.
    #[error("{0}")]
    Misspelt(Misspelt),
    /// The same under every grant.
    #[error("{0}")]
    KernelTree(PathRule),
    #[error(
        "the path is relative and the grant has no single path to join it to: write it whole, from / on"
    )]
    Relative,
    #[error("the grant states no paths")]
    NoPaths,
    #[error("no {access} path of the grant holds {path:?}")]
    Outside { access: BindingAccess, path: String },
}

impl<'a> Call<'a> {
    /// Finds the path arguments that the call holds; one that is absent is not used.
    pub(crate) fn new(tool: &'a Tool, arguments: &'a Map<String, Value>) -> Self {
        Self {
            tool,
            arguments,
            named: named(&tool.file, arguments),
        }
    }

    /// What the call may use under `grant`: its path arguments, each beneath a granted path for the same access; or
    /// the grant's whole paths, if the tool declares no path argument; or nothing, if it does and the call names none.
    pub(crate) fn bind(&self, grant: &GrantEntry) -> Result<Vec<Binding>, Uncovered<'a>> {
        if !self.tool.declares_paths() {
            return Ok(grant.paths.iter().map(whole).collect());
        }
        let root = grant.single_root();
        self.named
            .iter()
            .map(|named| named.bind(grant, root))
            .collect()
    }

    /// Whether one of `denied` overlaps what the call would use under `grant`. Whether a path would be read or
    /// written makes no difference, here or in the entry: who denies a place denies it. Without a grant only absolute
    /// paths can be compared.
    pub(crate) fn touches(&self, denied: &[GrantedPath], grant: Option<&GrantEntry>) -> bool {
        let hit = |path: &str| denied.iter().any(|d| paths::overlap(d.path(), path));
        if !self.tool.declares_paths() {
            return grant.is_some_and(|grant| grant.paths.iter().any(|p| hit(p.path())));
        }
        let root = grant.and_then(GrantEntry::single_root);
        let mut located = self.named.iter().filter_map(|named| match named.path {
            Ok(path) => paths::absolute(path, root),
            Err(_) => None,
        });
        located.any(|path| hit(&path))
    }
}

fn named<'a>(tool: &'a ToolFile, arguments: &'a Map<String, Value>) -> Vec<Named<'a>> {
    let present = tool.resources.iter().filter_map(|(argument, resource)| {
        let path = match arguments.get(argument)? {
            Value::String(text) => paths::spelling(text)
                .map(|()| text.as_str())
                .map_err(Misspelt::Rule),
            _ => Err(Misspelt::Type),
        };
        let for_access = move |access| Named {
            argument,
            access,
            path,
        };
        Some(BindingAccess::of(*resource).map(for_access))
    });
    present.flatten().collect()
}

fn whole(granted: &GrantedPath) -> Binding {
    Binding {
        root: granted.path().to_owned(),
        path: granted.path().to_owned(),
        access: granted.access(),
        whole: true,
    }
}

impl<'a> Named<'a> {
    fn bind(&self, grant: &GrantEntry, root: Option<&str>) -> Result<Binding, Uncovered<'a>> {
        let uncovered = |why| Uncovered {
            argument: self.argument,
            why,
        };
        let path = self.path.map_err(|error| uncovered(Why::Misspelt(error)))?;
        if grant.paths.is_empty() {
            return Err(uncovered(Why::NoPaths));
        }
        let path = paths::absolute(path, root).ok_or_else(|| uncovered(Why::Relative))?;
        // A grant for `/` holds them by its spelling, and must not.
        paths::kernel_tree(&path).map_err(|error| uncovered(Why::KernelTree(error)))?;
        let holding = grant
            .paths
            .iter()
            .filter(|p| p.access() == self.access && paths::beneath(&path, p.path()));
        // The innermost: a link may lead out of no granted path that holds the call's.
        match holding.max_by_key(|p| p.path().len()) {
            Some(innermost) => Ok(Binding {
                root: innermost.path().to_owned(),
                path,
                access: self.access,
                whole: false,
            }),
            None => Err(uncovered(Why::Outside {
                access: self.access,
                path,
            })),
        }
    }
}
