//! Loading: the configuration as policy and profiles, and the rules that need the disk and so are nobody else's to
//! check (architecture.md section 4.5): grants keep away from boxmaker's own files, and nothing is written as root. What
//! `bxctl check` can see as well is checked by `confine::named` for both.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use confine::accounts::Accounts;
use confine::host::Privilege;
use confine::named::{Missing, Named, program};
use confine::profile::Profiles;
use ipc::Files;
use policy::{BindingAccess, GrantEntry, LoadError, Policy};
use proto::GrantId;
use proto::grant::Mode;

use crate::guard::{Guard, GuardError};

/// Where a supervisor's things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directories {
    /// `BOXMAKER_HOME`.
    pub(crate) home: PathBuf,
    /// The configuration.
    pub(crate) config: PathBuf,
    /// The supervisor's own binary and those beside it.
    pub(crate) binaries: PathBuf,
}

/// One generation of everything that was loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The bytes it was loaded from.
    pub(crate) files: Files,
    /// The policy.
    pub(crate) policy: Policy,
    /// The profiles.
    pub(crate) profiles: Profiles,
    /// What keeps grants away from boxmaker's own files.
    pub(crate) guard: Guard,
    /// The user and group of each grant that names a user.
    pub(crate) owners: BTreeMap<GrantId, (u32, u32)>,
    /// Where boxmaker's own binaries are.
    pub(crate) binaries: PathBuf,
    /// What this process may do.
    pub(crate) privilege: Privilege,
}

/// Why nothing was loaded: every problem, one a line, each with its file, the rule and the way out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadFailure {
    /// Something is wrong.
    #[error("the configuration is not usable:\n{}", .0.join("\n"))]
    Wrong(Vec<String>),
    /// Nothing that was seen is wrong, but not everything was seen.
    #[error(
        "permission denied: this user may not look at all that the configuration names:\n{}\nrun boxmaker as root, or as \
         the user whose files these are", .0.join("\n")
    )]
    Forbidden(Vec<String>),
}

/// One problem.
struct Problem {
    text: String,
    forbidden: bool,
}

impl Problem {
    fn wrong(text: impl ToString) -> Self {
        Self {
            text: text.to_string(),
            forbidden: false,
        }
    }
}

impl From<Vec<Problem>> for LoadFailure {
    fn from(problems: Vec<Problem>) -> Self {
        let forbidden = problems.iter().all(|problem| problem.forbidden);
        let texts = problems.into_iter().map(|problem| problem.text).collect();
        if forbidden {
            Self::Forbidden(texts)
        } else {
            Self::Wrong(texts)
        }
    }
}

/// Loads the configuration directory as `generation`.
///
/// # Errors
/// As [`LoadFailure`].
pub(crate) fn load(directories: &Directories, generation: u64) -> Result<Loaded, LoadFailure> {
    load_on(directories, generation, &Accounts::of_host())
}

/// [`load`] with the users of the host.
fn load_on(
    directories: &Directories,
    generation: u64,
    accounts: &Accounts,
) -> Result<Loaded, LoadFailure> {
    let config = &directories.config;
    let files = Files::read(config).map_err(|error| {
        vec![Problem {
            text: format!("configuration: {error}; {}", error.way_out()),
            forbidden: error.is_forbidden(),
        }]
    })?;
    let (policy, profiles) = match (Policy::load(&files.0, generation), Profiles::load(&files.0)) {
        (Ok(policy), Ok(profiles)) => (policy, profiles),
        (policy, profiles) => {
            let mut problems = Vec::new();
            problems.extend(policy.err().into_iter().flatten().map(Problem::wrong));
            problems.extend(profiles.err().into_iter().flatten().map(Problem::wrong));
            return Err(problems.into());
        }
    };
    let privilege = Privilege::of_this_process().map_err(|error| vec![Problem::wrong(error)])?;
    let judge = Judge {
        files: &files,
        privilege,
        named: Named {
            profiles: &profiles,
            binaries: &directories.binaries,
            accounts,
        },
    };
    let mut problems = Vec::new();
    let guard = guard(directories, &policy, &mut problems);
    let owners = judge.all(&policy, &guard, &mut problems);
    if problems.is_empty() {
        Ok(Loaded {
            files,
            policy,
            profiles,
            guard,
            owners,
            binaries: directories.binaries.clone(),
            privilege,
        })
    } else {
        Err(problems.into())
    }
}

fn guard(directories: &Directories, policy: &Policy, problems: &mut Vec<Problem>) -> Guard {
    let mut guard = Guard::default();
    let mut protect = |what: &str, path: &Path| {
        if let Err(error) = guard.protect(what, path) {
            problems.push(Problem {
                forbidden: error.is_forbidden(),
                text: error.to_string(),
            });
        }
    };
    let Directories {
        home,
        config,
        binaries,
    } = directories;
    protect("the home of boxmaker", home);
    protect("the configuration", config);
    protect("the directory of boxmaker's binaries", binaries);
    for tool in policy.tools() {
        let what = format!("the program of tool {}", tool.name());
        protect(&what, &program(binaries, tool.file()));
    }
    guard
}

/// What the files are judged by.
struct Judge<'a> {
    files: &'a Files,
    privilege: Privilege,
    named: Named<'a>,
}

impl Judge<'_> {
    /// Every rule that needs the disk. The users and groups that grants name come out.
    fn all(
        &self,
        policy: &Policy,
        guard: &Guard,
        problems: &mut Vec<Problem>,
    ) -> BTreeMap<GrantId, (u32, u32)> {
        // Without root every sandbox has the uid of whoever started boxmaker.
        if self.privilege == Privilege::Root {
            let missing = self.named.by_config(policy.config());
            problems.extend(missing.into_iter().map(|one| self.missing(one)));
        }
        for tool in policy.tools() {
            let missing = self.named.by_tool(tool.name(), tool.file());
            problems.extend(missing.into_iter().map(|one| self.missing(one)));
        }
        let mut owners = BTreeMap::new();
        for grant in policy
            .grants()
            .filter(|grant| grant.file().mode != Mode::Deny)
        {
            match self.owner(grant) {
                Ok(Some(owner)) => drop(owners.insert(grant.id().clone(), owner)),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
            problems.extend(self.paths(grant, guard));
        }
        problems.extend(crate::stores::check(policy).into_iter().map(Problem::wrong));
        owners
    }

    /// A problem at the line of `file` that holds `key`.
    fn problem(&self, file: &str, key: &[&str], rule: String, fix: impl Into<String>) -> Problem {
        let bytes = self.files.0.get(file);
        Problem::wrong(LoadError {
            file: file.to_owned(),
            line: bytes.and_then(|bytes| policy::line_of(bytes, key)),
            rule,
            fix: fix.into(),
        })
    }

    fn missing(&self, missing: Missing) -> Problem {
        Problem {
            forbidden: missing.forbidden,
            ..self.problem(&missing.file, &[missing.key], missing.rule, missing.fix)
        }
    }

    /// The user and group that a grant names.
    fn owner(&self, grant: &GrantEntry) -> Result<Option<(u32, u32)>, Problem> {
        let file = format!("grants/{}.toml", grant.id());
        if let (Some(user), Privilege::UserNamespace) = (&grant.file().run_as, self.privilege) {
            let rule = format!(
                "`as = {user:?}` needs root: without it every tool works as the user who started boxmaker"
            );
            return Err(self.problem(&file, &["as"], rule, "remove it"));
        }
        let named = self.named.by_grant(grant.id(), grant.file());
        let named = named.map_err(|missing| self.missing(missing))?;
        let writes = |entry: &&policy::GrantedPath| entry.access() == BindingAccess::Write;
        for written in grant.paths().iter().filter(writes) {
            let path = written.path();
            let owner = match named {
                Some((uid, _)) => Some(uid),
                None => fs::metadata(path).ok().map(|metadata| metadata.uid()),
            };
            if owner == Some(0) {
                let key = match named {
                    Some(_) => vec!["as".to_owned()],
                    None => place_of(grant, path),
                };
                let key: Vec<&str> = key.iter().map(String::as_str).collect();
                let rule = format!("{written} would be written as root, which no tool may");
                let fix = format!("set `as` to another user, or give {path} to one");
                return Err(self.problem(&file, &key, rule, fix));
            }
        }
        Ok(named)
    }

    fn paths(&self, grant: &GrantEntry, guard: &Guard) -> Vec<Problem> {
        let file = format!("grants/{}.toml", grant.id());
        let judge = |path| {
            let error = guard.admit(Path::new(path)).err()?;
            let fix = match &error {
                GuardError::Own { .. } => {
                    "no grant may reach boxmaker's own files: grant a path beside them"
                }
                GuardError::Linked { .. } => {
                    "a link can be turned elsewhere: grant the path that it leads to"
                }
                GuardError::Look { .. } if error.is_forbidden() => "look as root",
                GuardError::Look { .. } => "grant a path that can be looked at",
            };
            let key = place_of(grant, path);
            let key: Vec<&str> = key.iter().map(String::as_str).collect();
            Some(Problem {
                forbidden: error.is_forbidden(),
                ..self.problem(&file, &key, error.to_string(), fix)
            })
        };
        let paths: std::collections::BTreeSet<&str> = grant
            .paths()
            .iter()
            .map(policy::GrantedPath::path)
            .collect();
        paths.into_iter().filter_map(judge).collect()
    }
}

/// Where a grant's file names `path`.
fn place_of(grant: &GrantEntry, path: &str) -> Vec<String> {
    let names = |text: &String| text.split_once(':').is_some_and(|(_, named)| named == path);
    let place = grant.file().constraints.paths.iter().position(names);
    let mut key = vec!["constraints".to_owned(), "paths".to_owned()];
    key.extend(place.map(|place| place.to_string()));
    key
}

#[cfg(test)]
pub(crate) mod tests;
