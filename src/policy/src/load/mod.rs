//! From the bytes of the configuration directory to a [`Policy`], or to every error in them.
//!
//! Supervisor, brokerd and `bxctl check` load the same bytes by this one road. No file is opened here; profiles are
//! another room's and only their names are looked at.

mod asks;
mod config;
mod document;
mod grant;
mod idle;
mod meant;
mod reading;
mod schema;
mod stores;
mod tool;
mod words;

use std::collections::BTreeMap;
use std::fmt;

use proto::config::Config;
use proto::profile::ProfileFile;
use proto::{GrantId, Hash32, InvalidId, ToolName};
use sha2::{Digest, Sha256};

use crate::policy::{GrantEntry, Policy, Tool};
use document::Document;
use words::Place;

/// A mistake in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoadError {
    /// The file, by its path below the configuration directory.
    pub file: String,
    /// The line, from 1; none when it is about something that is not there.
    pub line: Option<usize>,
    /// The rule that is broken, naming the thing that breaks it.
    pub rule: String,
    /// The way out.
    pub fix: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}; {}", self.rule, self.fix)
    }
}

impl std::error::Error for LoadError {}

/// What is right of a configuration, whatever is wrong beside it: for those who judge by more than the files, and are to
/// tell their mistakes together with those of the files. Nothing is ever decided by it: a grant that denies may be among
/// what is wrong.
#[derive(Debug, Default)]
pub struct Sound {
    config: Option<Config>,
    tools: Vec<Tool>,
    grants: Vec<GrantEntry>,
}

impl Sound {
    /// Takes what is right out of `files`, as [`Policy::load`] takes them.
    #[must_use]
    pub fn of(files: &BTreeMap<String, Vec<u8>>) -> Self {
        read(files).0
    }

    /// `config.toml`, or its defaults where it is not there; none if it holds a mistake.
    #[must_use]
    pub const fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// The tools without a mistake.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The tool of this name, if its file holds no mistake.
    #[must_use]
    pub fn tool(&self, name: &ToolName) -> Option<&Tool> {
        find(&self.tools, name)
    }

    /// The grants that could be read, with those of their paths that are written as they should be. Other parts of one may
    /// hold mistakes.
    #[must_use]
    pub fn grants(&self) -> &[GrantEntry] {
        &self.grants
    }
}

impl Policy {
    /// Loads one generation from file contents by path below the configuration directory: `config.toml`,
    /// `grants/<id>.toml`, `tools/<name>.toml`. Profiles (`profiles/**`) are hashed and not read.
    ///
    /// # Errors
    /// Every mistake in every file, ordered by file and line. Nothing is loaded in part.
    pub fn load(
        files: &BTreeMap<String, Vec<u8>>,
        generation: u64,
    ) -> Result<Self, Vec<LoadError>> {
        let (sound, mut errors) = read(files);
        match sound.config {
            Some(config) if errors.is_empty() => Ok(Self::new(
                generation,
                config,
                sound.tools,
                sound.grants,
                hashes(files),
            )),
            _ => {
                errors.sort();
                Err(errors)
            }
        }
    }
}

/// What is right of the files, and what is wrong with them.
fn read(files: &BTreeMap<String, Vec<u8>>) -> (Sound, Vec<LoadError>) {
    let mut errors = Vec::new();
    let mut config = Some(Config::default());
    let mut tools = Vec::new();
    let mut grants = Vec::new();
    // Tools before grants: a grant's rules depend on its tool.
    let names = tool_names(files);
    for (file, bytes) in files {
        match kind(file) {
            Kind::Profile => {}
            Kind::Config => {
                let document = Document::parse(file, bytes, &mut errors);
                let before = errors.len();
                config = document.and_then(|d| config::read(&d, &mut errors));
                config = config.filter(|_| errors.len() == before);
            }
            Kind::Tool(name) => {
                let document = Document::parse(file, bytes, &mut errors);
                match name {
                    Ok(name) => {
                        tools.extend(document.and_then(|d| tool::read(&d, name, &mut errors)))
                    }
                    Err(error) => errors.push(stem(file, &error)),
                }
            }
            Kind::Grant(Err(error)) => errors.push(stem(file, &error)),
            Kind::Grant(Ok(_)) => {}
            Kind::Stray => errors.push(LoadError {
                file: file.clone(),
                line: None,
                rule: "no part of boxmaker reads a file of this name".to_owned(),
                fix: "move it to grants/<id>.toml or tools/<name>.toml, or remove it".to_owned(),
            }),
        }
    }
    let mut documents = BTreeMap::new();
    for (file, bytes) in files {
        let Kind::Grant(id) = kind(file) else {
            continue;
        };
        let Some(document) = Document::parse(file, bytes, &mut errors) else {
            continue;
        };
        if let Ok(id) = id {
            grants.extend(grant::read(&document, &id, &tools, &names, &mut errors));
            documents.insert(id, document);
        }
    }
    stores::check(&grants, &documents, &mut errors);
    asks::check(&grants, &tools, &documents, &mut errors);
    let sound = Sound {
        config,
        tools,
        grants,
    };
    (sound, errors)
}

/// The line, from 1, at which a configuration file holds the deepest part of `path` that it holds, for those who judge
/// by more than the files: keys of tables, and the places of items of lists. None if it holds no part, or is no TOML.
#[must_use]
pub fn line_of(bytes: &[u8], path: &[&str]) -> Option<usize> {
    Document::parse("", bytes, &mut Vec::new())?.line(path)
}

/// Reads one profile file, whose words stand in one table with those of all files. What its values mean is for who makes
/// sandboxes to judge. Every mistake comes out, and what is right beside them.
#[must_use]
pub fn profile_file(file: &str, bytes: &[u8]) -> (Option<ProfileFile>, Vec<LoadError>) {
    let mut errors = Vec::new();
    let document = Document::parse(file, bytes, &mut errors);
    let read = document.and_then(|document| document.read(Place::Profile, &mut errors));
    (read, errors)
}

/// What a file is, by its path alone.
enum Kind {
    Config,
    Grant(Result<GrantId, InvalidId>),
    Tool(Result<ToolName, InvalidId>),
    Profile,
    Stray,
}

fn kind(file: &str) -> Kind {
    if file == "config.toml" {
        return Kind::Config;
    }
    let Some((directory, rest)) = file.split_once('/') else {
        return Kind::Stray;
    };
    match (directory, rest.strip_suffix(".toml")) {
        ("profiles", _) => Kind::Profile,
        ("grants", Some(stem)) if !stem.contains('/') => Kind::Grant(GrantId::new(stem)),
        ("tools", Some(stem)) if !stem.contains('/') => Kind::Tool(ToolName::new(stem)),
        _ => Kind::Stray,
    }
}

/// The names of all tool files, those that do not load included: a grant of one is not a second mistake.
fn tool_names(files: &BTreeMap<String, Vec<u8>>) -> Vec<ToolName> {
    let names = files.keys().filter_map(|file| match kind(file) {
        Kind::Tool(name) => name.ok(),
        _ => None,
    });
    names.collect()
}

fn stem(file: &str, error: &InvalidId) -> LoadError {
    LoadError {
        file: file.to_owned(),
        line: None,
        rule: format!("the file's name without `.toml`: {error}"),
        fix: "rename the file".to_owned(),
    }
}

/// What the record of a load says of these files: the SHA-256 of each, by its path below the configuration directory.
#[must_use]
pub fn hashes(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Hash32> {
    let hash = |bytes: &[u8]| Hash32::new(Sha256::digest(bytes).into());
    files
        .iter()
        .map(|(file, bytes)| (file.clone(), hash(bytes)))
        .collect()
}

/// The tool of a grant, if it loaded.
fn find<'a>(tools: &'a [Tool], name: &ToolName) -> Option<&'a Tool> {
    tools.iter().find(|tool| tool.name() == name)
}
