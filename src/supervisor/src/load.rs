//! Loading: the configuration as policy and profiles, and the rules that need the disk and so are nobody else's to
//! check (architecture.md section 4.5): grants keep away from boxmaker's own files, programs are there, users exist.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use confine::host::Privilege;
use confine::profile::Profiles;
use ipc::Files;
use policy::{BindingAccess, GrantEntry, Policy, Tool};
use proto::GrantId;
use proto::grant::Mode;

use crate::accounts;
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

/// Loads the configuration directory as `generation`.
///
/// # Errors
/// Every problem that was found, one a line, each with its file, the rule and the way out.
pub(crate) fn load(directories: &Directories, generation: u64) -> Result<Loaded, Vec<String>> {
    let config = &directories.config;
    let files = Files::read(config).map_err(|error| {
        let way = "make the directory, or name another with --config or BOXMAKER_CONFIG";
        vec![format!("configuration: {error}; {way}")]
    })?;
    let (policy, profiles) = match (Policy::load(&files.0, generation), Profiles::load(&files.0)) {
        (Ok(policy), Ok(profiles)) => (policy, profiles),
        (policy, profiles) => {
            let mut problems = Vec::new();
            problems.extend(policy.err().into_iter().flatten().map(|e| e.to_string()));
            problems.extend(profiles.err().into_iter().flatten().map(|e| e.to_string()));
            return Err(problems);
        }
    };
    let privilege = Privilege::of_this_process().map_err(|error| vec![error.to_string()])?;
    let mut problems = Vec::new();
    let mut guard = Guard::default();
    let mut protect = |what: &str, path: &Path| {
        if let Err(error) = guard.protect(what, path) {
            problems.push(error.to_string());
        }
    };
    protect("the home of boxmaker", &directories.home);
    protect("the configuration", config);
    protect(
        "the directory of boxmaker's binaries",
        &directories.binaries,
    );
    for tool in policy.tools() {
        let what = format!("the program of tool {}", tool.name());
        protect(&what, &program(&directories.binaries, tool));
    }
    for tool in policy.tools() {
        problems.extend(check_tool(tool, &profiles, &directories.binaries));
    }
    let mut owners = BTreeMap::new();
    for grant in policy
        .grants()
        .filter(|grant| grant.file().mode != Mode::Deny)
    {
        match check_owner(grant, privilege) {
            Ok(Some(owner)) => drop(owners.insert(grant.id().clone(), owner)),
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
        problems.extend(check_paths(grant, &guard));
    }
    problems.extend(crate::stores::check(&policy));
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
        Err(problems)
    }
}

/// The program that `tool` names: an absolute path, or one of boxmaker's own binaries.
pub(crate) fn program(binaries: &Path, tool: &Tool) -> PathBuf {
    // Joining an absolute path gives that path.
    binaries.join(tool.file().command.first().map_or("", String::as_str))
}

fn check_tool(tool: &Tool, profiles: &Profiles, binaries: &Path) -> Vec<String> {
    let file = format!("tools/{}.toml", tool.name());
    let mut problems = Vec::new();
    let profile = &tool.file().profile;
    if profiles.get(profile).is_none() {
        problems.push(format!(
            "{file}: there is no profile {profile:?}; write profiles/{profile}.toml or name one that exists"
        ));
    }
    let path = program(binaries, tool);
    let shown = path.display();
    match fs::metadata(&path) {
        Err(error) => problems.push(format!(
            "{file}: program {shown}: {error}; install it or correct `command`"
        )),
        Ok(metadata) if !metadata.is_file() => problems.push(format!(
            "{file}: program {shown} is not a file; correct `command`"
        )),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => problems.push(format!(
            "{file}: program {shown} is not executable; chmod +x it or correct `command`"
        )),
        Ok(_) => {}
    }
    problems
}

/// The user and group that a grant names.
fn check_owner(grant: &GrantEntry, privilege: Privilege) -> Result<Option<(u32, u32)>, String> {
    let file = format!("grants/{}.toml", grant.id());
    if let (Some(user), Privilege::UserNamespace) = (&grant.file().run_as, privilege) {
        return Err(format!(
            "{file}: `as = {user:?}` needs root: without it every tool works as the user who started boxmaker; remove it"
        ));
    }
    let named = match &grant.file().run_as {
        None => None,
        Some(user) => match accounts::user(user) {
            Ok(Some(owner)) => Some(owner),
            Ok(None) => {
                let way = "name a user of /etc/passwd or a number";
                return Err(format!("{file}: there is no user {user:?}; {way}"));
            }
            Err(error) => return Err(format!("{file}: cannot read /etc/passwd: {error}")),
        },
    };
    let writes = |entry: &&policy::GrantedPath| entry.access() == BindingAccess::Write;
    for written in grant.paths().iter().filter(writes) {
        let path = written.path();
        let owner = match named {
            Some((uid, _)) => Some(uid),
            None => fs::metadata(path).ok().map(|metadata| metadata.uid()),
        };
        if owner == Some(0) {
            return Err(format!(
                "{file}: {written} would be written as root, which no tool may; set `as` to another user, or give \
                 {path} to one"
            ));
        }
    }
    Ok(named)
}

fn check_paths(grant: &GrantEntry, guard: &Guard) -> Vec<String> {
    let file = format!("grants/{}.toml", grant.id());
    let judge = |path| match guard.admit(Path::new(path)) {
        Ok(()) => None,
        Err(error @ GuardError::Own { .. }) => Some(format!(
            "{file}: {error}; no grant may reach boxmaker's own files: grant a path beside them"
        )),
        Err(error @ GuardError::Linked { .. }) => Some(format!(
            "{file}: {error}; a link can be turned elsewhere: grant the path that it leads to"
        )),
        Err(error) => Some(format!("{file}: {error}")),
    };
    let paths: std::collections::BTreeSet<&str> = grant
        .paths()
        .iter()
        .map(policy::GrantedPath::path)
        .collect();
    paths.into_iter().filter_map(judge).collect()
}

#[cfg(test)]
pub(crate) mod tests;
