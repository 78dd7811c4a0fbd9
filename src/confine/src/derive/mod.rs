//! From profile, program, granted trees and host to the plan of one sandbox. Pure: the same input gives the same plan,
//! and nothing but the input is consulted.
//!
//! The root is built in this order, because later mounts lie on top of earlier ones: links and views, `/proc`, `/dev`,
//! `/tmp`, the granted trees, and last the programs that lie in a tree or in `/tmp`.

mod bare;
mod root;

use std::collections::BTreeSet;

use proto::Level;

use crate::host::{Host, Privilege};
use crate::plan::{Access, LandlockRule, Limits, Mount, Namespace, Plan, Program, Rule, Seccomp};
use crate::profile::{Profile, is_below};
use crate::seccomp::{self, SeccompError};
use root::Root;

/// The host name inside.
const HOSTNAME: &str = "boxmaker";

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    /// The program has no words, or a path or text in it that no program can be given.
    #[error("program: {0}")]
    Program(String),
    /// The facts are those of another program.
    #[error("the host was looked at for {looked_at}, not for {program}")]
    OtherProgram {
        /// The program of the call.
        program: String,
        /// The program of the facts.
        looked_at: String,
    },
    /// What is to be executed lies where a sandbox has something of its own.
    #[error("{path} cannot be executed: a sandbox has a {place} of its own")]
    OwnPlace {
        /// The program, loader or interpreter, or a link on the way to it.
        path: String,
        /// The directory.
        place: &'static str,
    },
    /// A granted tree that cannot be mounted where it belongs.
    #[error("granted tree {path}: {error}")]
    Tree {
        /// Where it would appear.
        path: String,
        /// Why not.
        error: TreeProblem,
    },
    /// The system call filter cannot be made.
    #[error("profile {profile}: {source}")]
    Seccomp {
        /// The profile that names the sets.
        profile: String,
        /// Why.
        source: SeccompError,
    },
}

/// What is wrong with a granted tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeProblem {
    /// It is not a tree at all.
    #[error("only granted trees can be added to a plan, not {0}")]
    NotATree(&'static str),
    /// Its path is not absolute, or holds `.`, `..`, doubled slashes or control characters.
    #[error("it has no plain absolute path; grant one without ., .., doubled or trailing slashes")]
    Path,
    /// It is, holds or lies in something the sandbox has of its own.
    #[error("a sandbox has a {0} of its own; grant another directory")]
    Own(&'static str),
    /// It is there twice.
    #[error("it is granted twice; join the two accesses")]
    Twice,
    /// A tree that holds it comes later and would cover it.
    #[error("it lies in {0}, which comes after it and would cover it; parents go first")]
    Order(String),
    /// Its path leads through a link that the sandbox has too.
    #[error("its path leads through the link {0}; grant the path that the link leads to")]
    ThroughLink(String),
    /// It would cover what has to be executed, and is `noexec` itself.
    #[error("it would cover {0}, which has to be executed; grant a smaller directory")]
    Covers(String),
    /// Something that is not a directory cannot hold another tree.
    #[error("it lies in {0}, which is a file")]
    InFile(String),
    /// Without a mount of its own it would be written with the tree around it.
    #[error(
        "it may only be read and lies in {0}, which may be written: without a mount namespace it would be written too; \
         grant directories that do not lie in one another"
    )]
    Inner(String),
    /// Without a mount of its own a program could be changed.
    #[error(
        "it may be written and holds {0}, which has to be executed: without a mount namespace that could be changed; grant \
         a smaller directory"
    )]
    Program(String),
    /// It was to be read in a tree that holds it, and no tree does.
    #[error("it lies in no granted directory of the plan")]
    InNone,
}

/// Derives the plan of `program` under `profile` with the granted `trees`, whose order the plan keeps.
///
/// The environment is the profile's, and what `program.env` holds on top of it. Whether programs in a tree may be executed
/// is the profile's to say, not the caller's: `exec` of the given trees is not looked at. Narrowing any input never widens
/// the plan, and an empty list means nothing.
///
/// # Errors
/// [`DeriveError`]; nothing is left out silently but paths that the host does not have.
pub fn derive(
    profile: &Profile,
    program: Program,
    trees: &[Mount],
    required: Level,
    host: &Host,
) -> Result<Plan, DeriveError> {
    let mut program = program;
    for (key, value) in &profile.env {
        let known = program.env.entry(key.clone());
        known.or_insert_with(|| value.clone());
    }
    check_program(&program, host)?;
    let root = Root::build(profile, trees, host)?;
    let mut sets = profile.seccomp.clone();
    let mut landlock = rules(&root);
    let is_bare = host.privilege == Privilege::Bare;
    if is_bare {
        bare::check(&root).map_err(|(path, error)| DeriveError::Tree { path, error })?;
        bare::environment(&mut program.env);
        sets = bare::sets(&sets, &root, host.landlock_abi);
        landlock = bare::rules(landlock);
    }
    let mounts = root.into_mounts(&profile.limits);
    let filter = seccomp::filter(&sets).map_err(|source| DeriveError::Seccomp {
        profile: profile.name.clone(),
        source,
    })?;
    Ok(Plan {
        profile: profile.name.clone(),
        namespaces: namespaces(profile, host.privilege),
        hostname: HOSTNAME.to_owned(),
        landlock,
        mounts: if is_bare {
            bare::mounts(mounts)
        } else {
            mounts
        },
        seccomp: Seccomp {
            sets,
            program: filter.hash(),
        },
        limits: Limits {
            memory: profile.limits.memory,
            pids: profile.limits.pids,
            cpu: profile.limits.cpu,
            files: profile.limits.files,
            wall_ms: u64::try_from(profile.limits.wall.as_millis()).unwrap_or(u64::MAX),
        },
        program,
        required,
    })
}

/// Lets one file be read that lies in a granted directory of `plan`, which as a whole may only be written: what an edit
/// needs. The file gets no mount of its own, so that it can be replaced by a rename; a Landlock rule alone covers it, and
/// what is put in its place may be written and not read.
///
/// # Errors
/// [`DeriveError::Tree`] if `path` has no plain absolute spelling or no granted directory of the plan holds it.
pub fn let_read(plan: &mut Plan, path: &str) -> Result<(), DeriveError> {
    let refused = |error| DeriveError::Tree {
        path: path.to_owned(),
        error,
    };
    if !root::is_plain(path) {
        return Err(refused(TreeProblem::Path));
    }
    let holds =
        |(tree, directory, _): (&str, bool, _)| directory && tree != path && is_below(path, tree);
    if !plan.trees().any(holds) {
        return Err(refused(TreeProblem::InNone));
    }
    let rule = LandlockRule {
        path: path.to_owned(),
        rule: Rule::Tree(Access::Read),
    };
    if !plan.landlock.contains(&rule) {
        plan.landlock.push(rule);
    }
    Ok(())
}

/// The profile's namespaces, and without privileges the user namespace first, in which the others can be made. Where none
/// can be made there are none.
fn namespaces(profile: &Profile, privilege: Privilege) -> Vec<Namespace> {
    if privilege == Privilege::Bare {
        return Vec::new();
    }
    let user = (privilege == Privilege::UserNamespace).then_some(Namespace::User);
    user.into_iter()
        .chain(profile.namespaces.iter().copied())
        .collect()
}

fn check_program(program: &Program, host: &Host) -> Result<(), DeriveError> {
    let wrong = |what: String| Err(DeriveError::Program(what));
    let Some(path) = program.argv.first() else {
        return wrong("it has no words".to_owned());
    };
    if *path != host.program {
        return Err(DeriveError::OtherProgram {
            program: path.clone(),
            looked_at: host.program.clone(),
        });
    }
    if !program.cwd.starts_with('/') {
        return wrong(format!(
            "working directory {:?} is not absolute",
            program.cwd
        ));
    }
    let texts = program.argv.iter().chain(program.env.keys());
    let mut texts = texts.chain(program.env.values()).chain([&program.cwd]);
    if let Some(text) = texts.find(|text| text.contains('\0')) {
        return wrong(format!("{text:?} holds a NUL, which ends a word"));
    }
    let odd = |key: &&String| key.is_empty() || key.contains('=');
    match program.env.keys().find(odd) {
        Some(key) => wrong(format!("{key:?} cannot name a variable")),
        None => Ok(()),
    }
}

/// The Landlock rules that go with a root: what is mounted may be read, what has to be executed may be executed, and
/// trees are as they were granted.
fn rules(root: &Root<'_>) -> Vec<LandlockRule> {
    let mut rules = Vec::new();
    let mut add = |path: &str, rule| {
        rules.push(LandlockRule {
            path: path.to_owned(),
            rule,
        });
    };
    for view in root.views() {
        add(view, Rule::Read);
    }
    let executed: BTreeSet<&str> = root.executed().collect();
    for path in executed {
        add(path, Rule::Execute);
    }
    add("/proc", Rule::Read);
    for name in ["full", "null", "zero"] {
        add(&format!("/dev/{name}"), Rule::Device);
    }
    for name in ["random", "urandom"] {
        add(&format!("/dev/{name}"), Rule::Read);
    }
    add("/tmp", Rule::Scratch);
    for (path, access) in root.trees() {
        add(path, Rule::Tree(access));
    }
    rules
}

#[cfg(test)]
mod tests;
