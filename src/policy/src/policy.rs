//! A loaded generation of the policy: tools and grants that passed every rule of loading, indexed by tool.
//!
//! Values of these types come from [`Policy::load`](crate::Policy::load) alone, so that whoever holds one need not
//! check it again.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::config::Config;
use proto::grant::{Grant, Mode};
use proto::tool::ToolFile;
use proto::{GrantId, Hash32, ToolName};

use crate::command::Word;
use crate::paths::{BindingAccess, GrantedPath, single_root};

/// A tool that passed every rule of loading.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub(crate) name: ToolName,
    pub(crate) file: ToolFile,
    pub(crate) words: Vec<Word>,
}

impl Tool {
    /// Its name: the stem of its file.
    #[must_use]
    pub const fn name(&self) -> &ToolName {
        &self.name
    }

    /// Its file.
    #[must_use]
    pub const fn file(&self) -> &ToolFile {
        &self.file
    }

    /// Whether it declares any argument as a path. If not, a grant's whole paths are bound for each of its calls.
    #[must_use]
    pub fn declares_paths(&self) -> bool {
        !self.file.resources.is_empty()
    }

    /// Whether it has side effects by its own file: it says so, or it declares a path that it writes
    /// (policy.md section 4).
    #[must_use]
    pub fn has_side_effects(&self) -> bool {
        self.file.side_effect || self.file.resources.values().any(|r| r.writes())
    }
}

/// A grant that passed every rule of loading.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantEntry {
    pub(crate) id: GrantId,
    pub(crate) file: Grant,
    pub(crate) paths: Vec<GrantedPath>,
}

impl GrantEntry {
    /// Its id: the stem of its file.
    #[must_use]
    pub const fn id(&self) -> &GrantId {
        &self.id
    }

    /// Its file.
    #[must_use]
    pub const fn file(&self) -> &Grant {
        &self.file
    }

    /// Its `constraints.paths`.
    #[must_use]
    pub fn paths(&self) -> &[GrantedPath] {
        &self.paths
    }

    /// The one path that all its entries name, if they do: what relative paths are joined to.
    #[must_use]
    pub fn single_root(&self) -> Option<&str> {
        single_root(&self.paths)
    }

    /// Whether a call of `tool` under this grant has side effects: the tool has, or it declares no path argument and
    /// so gets the whole of a path that this grant lets it write.
    #[must_use]
    pub fn has_side_effects(&self, tool: &Tool) -> bool {
        let writes = self
            .paths
            .iter()
            .any(|p| p.access() == BindingAccess::Write);
        tool.has_side_effects() || (!tool.declares_paths() && writes)
    }

    pub(crate) fn denies(&self) -> bool {
        self.file.mode == Mode::Deny
    }
}

/// Everything that decides about the calls of one tool. Both lists are ordered by id.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) tool: Arc<Tool>,
    pub(crate) grants: Vec<Arc<GrantEntry>>,
    pub(crate) denies: Vec<Arc<GrantEntry>>,
}

/// One generation of the owner's policy.
#[derive(Debug, Clone)]
pub struct Policy {
    generation: u64,
    config: Config,
    // By text, because a caller's tool name is a text that need not be a name.
    entries: BTreeMap<String, Entry>,
    grants: BTreeMap<GrantId, Arc<GrantEntry>>,
    hashes: BTreeMap<String, Hash32>,
}

impl Policy {
    /// Puts together what was loaded. A grant of a tool that is not there is not possible, and is dropped.
    pub(crate) fn new(
        generation: u64,
        config: Config,
        tools: Vec<Tool>,
        grants: Vec<GrantEntry>,
        hashes: BTreeMap<String, Hash32>,
    ) -> Self {
        let entry = |tool: Tool| Entry {
            tool: Arc::new(tool),
            grants: Vec::new(),
            denies: Vec::new(),
        };
        let mut entries: BTreeMap<String, Entry> = tools
            .into_iter()
            .map(|tool| (tool.name.as_str().to_owned(), entry(tool)))
            .collect();
        let grants: BTreeMap<GrantId, Arc<GrantEntry>> = grants
            .into_iter()
            .map(|grant| (grant.id.clone(), Arc::new(grant)))
            .collect();
        for grant in grants.values() {
            if let Some(entry) = entries.get_mut(grant.file.tool.as_str()) {
                let list = if grant.denies() {
                    &mut entry.denies
                } else {
                    &mut entry.grants
                };
                list.push(Arc::clone(grant));
            }
        }
        Self {
            generation,
            config,
            entries,
            grants,
            hashes,
        }
    }

    /// Its number, as the supervisor counts them.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// `config.toml`, or its defaults.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Every tool, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.entries.values().map(|entry| entry.tool.as_ref())
    }

    /// One tool.
    #[must_use]
    pub fn tool(&self, name: &ToolName) -> Option<&Tool> {
        Some(self.entry(name.as_str())?.tool.as_ref())
    }

    /// Every grant, by id; deny grants included.
    pub fn grants(&self) -> impl Iterator<Item = &GrantEntry> {
        self.grants.values().map(Arc::as_ref)
    }

    /// One grant.
    #[must_use]
    pub fn grant(&self, id: &GrantId) -> Option<&GrantEntry> {
        self.grants.get(id).map(Arc::as_ref)
    }

    /// SHA-256 of every file it was loaded from, profiles included, by path below the configuration directory.
    #[must_use]
    pub fn hashes(&self) -> BTreeMap<String, Hash32> {
        self.hashes.clone()
    }

    /// What decides about each tool, by its name.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    pub(crate) fn entry(&self, tool: &str) -> Option<&Entry> {
        self.entries.get(tool)
    }
}
