//! Loading: the configuration as policy and profiles, and the rules that need the disk and so are nobody else's to
//! check (architecture.md section 4.5): grants keep away from boxmaker's own files, and nothing is written as root. What
//! `bxctl check` can see as well is checked by `confine::named` for both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use confine::accounts::Accounts;
use confine::host::Privilege;
use confine::judged::Judged;
use confine::launch::Means;
use confine::named::{Missing, Named, place_of, program};
use confine::profile::Profiles;
use ipc::Files;
use policy::{BindingAccess, GrantEntry, Policy, Sound};
use proto::GrantId;
use proto::grant::Mode;

use crate::broker::clock;
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

impl Directories {
    /// The program that confines itself and then becomes a tool.
    pub(crate) fn stage(&self) -> PathBuf {
        self.binaries.join("boxmaker-stage")
    }
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
    /// Why it can make no namespaces, if it cannot.
    pub(crate) refusal: Option<String>,
    /// Where the files are.
    pub(crate) config: PathBuf,
    /// What the owner should know although it is no mistake, each with its file and line.
    pub(crate) warnings: Vec<String>,
}

impl Loaded {
    /// The files that are there now and were not loaded as they are, or were loaded and are gone. What cannot be read has
    /// changed.
    pub(crate) fn changed(&self) -> Vec<String> {
        let now = Files::read(&self.config).unwrap_or_default().0;
        let names: BTreeSet<&String> = now.keys().chain(self.files.0.keys()).collect();
        let differs = |name: &&String| now.get(*name) != self.files.0.get(*name);
        names.into_iter().filter(differs).cloned().collect()
    }
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

/// One problem of no file's.
struct Problem {
    text: String,
    forbidden: bool,
}

impl LoadFailure {
    fn of(problems: Vec<Problem>) -> Self {
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
    let mut judged = Judged::of(&directories.config, generation, clock());
    let mut problems: Vec<Problem> = judged
        .unreadable
        .iter()
        .map(|error| Problem {
            text: format!("configuration: {error}; {}", error.way_out()),
            forbidden: error.is_forbidden(),
        })
        .collect();
    let sound = std::mem::take(&mut judged.sound);
    let guard = guard(directories, &sound, &mut problems);
    let means = Means::of_this_process(&directories.stage());
    let mut judge = Judge {
        // Where that could not be found out nothing is loaded.
        gives_users: means
            .as_ref()
            .is_ok_and(|means| means.privilege.gives_users()),
        binaries: &directories.binaries,
        accounts,
        judged: &mut judged,
    };
    let owners = judge.all(&sound, &guard);
    match (means, judged) {
        (
            Ok(Means { privilege, refusal }),
            Judged {
                files,
                policy: Some(policy),
                profiles: Some(profiles),
                mistakes,
                warnings,
                ..
            },
        ) if problems.is_empty() && mistakes.is_empty() => Ok(Loaded {
            files,
            policy,
            profiles,
            guard,
            owners,
            binaries: directories.binaries.clone(),
            privilege,
            refusal,
            config: directories.config.clone(),
            warnings: warnings.iter().map(ToString::to_string).collect(),
        }),
        (means, judged) => {
            problems.extend(means.err().map(|error| Problem {
                text: error.to_string(),
                forbidden: false,
            }));
            // By file and line.
            problems.extend(judged.mistakes.into_iter().map(|mistake| Problem {
                text: mistake.told.to_string(),
                forbidden: mistake.forbidden,
            }));
            Err(LoadFailure::of(problems))
        }
    }
}

fn guard(directories: &Directories, sound: &Sound, problems: &mut Vec<Problem>) -> Guard {
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
    for tool in sound.tools() {
        let what = format!("the program of tool {}", tool.name());
        protect(&what, &program(binaries, tool.file()));
    }
    guard
}

/// What the files are judged by, and where that is noted.
struct Judge<'a> {
    gives_users: bool,
    binaries: &'a Path,
    accounts: &'a Accounts,
    judged: &'a mut Judged,
}

impl Judge<'_> {
    /// Every rule that needs the disk. The users and groups that grants name come out.
    fn all(&mut self, sound: &Sound, guard: &Guard) -> BTreeMap<GrantId, (u32, u32)> {
        let profiles = Profiles::names(&self.judged.files.0);
        let named = Named {
            profiles: &profiles,
            binaries: self.binaries,
            accounts: self.accounts,
        };
        let mut found = Vec::new();
        if let Some(config) = sound.config() {
            found.extend(named.by_pool(config));
        }
        // Without root every sandbox has the uid of whoever started boxmaker.
        if self.gives_users
            && let Some(config) = sound.config()
        {
            found.extend(named.by_config(config));
        }
        for tool in sound.tools() {
            found.extend(named.by_tool(tool.name(), tool.file()));
        }
        let mut owners = BTreeMap::new();
        for grant in sound.grants() {
            for absent in named.by_paths(grant) {
                self.judged.warn(absent);
            }
            if grant.file().mode == Mode::Deny {
                continue;
            }
            match self.owner(&named, grant) {
                Ok(Some(owner)) => drop(owners.insert(grant.id().clone(), owner)),
                Ok(None) => {}
                Err(missing) => found.push(missing),
            }
            found.extend(paths(grant, guard));
        }
        found.extend(crate::stores::check(sound));
        for one in found {
            self.judged.add(one);
        }
        owners
    }

    /// The user and group that a grant names.
    fn owner(&self, named: &Named<'_>, grant: &GrantEntry) -> Result<Option<(u32, u32)>, Missing> {
        let wrong = |key, rule, fix: String| Missing {
            file: format!("grants/{}.toml", grant.id()),
            key,
            rule,
            fix,
            forbidden: false,
        };
        if let Some(user) = &grant.file().run_as
            && !self.gives_users
        {
            let rule = format!(
                "`as = {user:?}` needs root: without it every tool works as the user who started boxmaker"
            );
            return Err(wrong(vec!["as".to_owned()], rule, "remove it".to_owned()));
        }
        let user = named.by_grant(grant.id(), grant.file())?;
        let writes = |entry: &&policy::GrantedPath| entry.access() == BindingAccess::Write;
        for written in grant.paths().iter().filter(writes) {
            let path = written.path();
            let owner = match user {
                Some((uid, _)) => Some(uid),
                None => fs::metadata(path).ok().map(|metadata| metadata.uid()),
            };
            if owner == Some(0) {
                let key = match user {
                    Some(_) => vec!["as".to_owned()],
                    None => place_of(grant.file(), path),
                };
                let rule = format!("{written} would be written as root, which no tool may");
                let fix = format!("set `as` to another user, or give {path} to one");
                return Err(wrong(key, rule, fix));
            }
        }
        Ok(user)
    }
}

/// What is wrong with the places of a grant's paths.
fn paths(grant: &GrantEntry, guard: &Guard) -> Vec<Missing> {
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
        Some(Missing {
            file: format!("grants/{}.toml", grant.id()),
            key: place_of(grant.file(), path),
            forbidden: error.is_forbidden(),
            rule: error.to_string(),
            fix: fix.to_owned(),
        })
    };
    let paths: BTreeSet<&str> = grant
        .paths()
        .iter()
        .map(policy::GrantedPath::path)
        .collect();
    paths.into_iter().filter_map(judge).collect()
}

#[cfg(test)]
pub(crate) mod tests;
