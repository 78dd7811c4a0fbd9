//! What the owner's files name and this host must have: profiles, programs, users, and uids that are nobody's. Asked
//! when files are loaded to be used and when they are only checked, so that both say the same. What a grant may reach
//! is not known here.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use policy::{GrantEntry, GrantedPath};
use proto::config::{Config, OTHER_TOOLS};
use proto::grant::{Grant, Mode};
use proto::tool::ToolFile;
use proto::{GrantId, ToolName};

use crate::accounts::Accounts;

/// Something that a file names and the host has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The file, by its path below the configuration directory.
    pub file: String,
    /// The key that names it: tables, the key, and for an item of a list its number.
    pub key: Vec<String>,
    /// What is wrong.
    pub rule: String,
    /// The way out.
    pub fix: String,
    /// Whether it may be there, and this user may not look.
    pub forbidden: bool,
}

/// The host as the files are judged by it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The names of the profiles there are.
    pub profiles: &'a BTreeSet<String>,
    /// Where boxmaker's own binaries are.
    pub binaries: &'a Path,
    /// The users there are.
    pub accounts: &'a Accounts,
}

/// The program that `tool` names: an absolute path, or one of boxmaker's own binaries.
#[must_use]
pub fn program(binaries: &Path, tool: &ToolFile) -> PathBuf {
    // Joining an absolute path gives that path.
    binaries.join(tool.command.first().map_or("", String::as_str))
}

impl Named<'_> {
    /// The profile and the program of a tool.
    #[must_use]
    pub fn by_tool(&self, name: &ToolName, tool: &ToolFile) -> Vec<Missing> {
        let missing = |key: &str, rule, fix, forbidden| Missing {
            file: format!("tools/{name}.toml"),
            key: vec![key.to_owned()],
            rule,
            fix,
            forbidden,
        };
        let mut all = Vec::new();
        let profile = &tool.profile;
        if !self.profiles.contains(profile) {
            let names = self.profiles.iter().map(String::as_str);
            let fix = match policy::nearest(profile, names) {
                Some(near) => {
                    format!("did you mean {near:?}? otherwise write profiles/{profile}.toml")
                }
                None => format!(
                    "write profiles/{profile}.toml, or name one that exists, such as tools/base"
                ),
            };
            let rule = format!("there is no profile {profile:?}");
            all.push(missing("profile", rule, fix, false));
        }
        let path = program(self.binaries, tool);
        let shown = path.display();
        let mut wrong = |rule: String, fix: &str, forbidden| {
            all.push(missing("command", rule, fix.to_owned(), forbidden));
        };
        match fs::metadata(&path) {
            Err(error) => {
                let forbidden = error.kind() == io::ErrorKind::PermissionDenied;
                let fix = if forbidden {
                    "look as root"
                } else {
                    "install it or correct `command`"
                };
                wrong(format!("program {shown}: {error}"), fix, forbidden);
            }
            Ok(found) if !found.is_file() => {
                wrong(
                    format!("program {shown} is not a file"),
                    "correct `command`",
                    false,
                );
            }
            Ok(found) if found.permissions().mode() & 0o111 == 0 => wrong(
                format!("program {shown} is not executable"),
                "chmod +x it or correct `command`",
                false,
            ),
            Ok(_) => {}
        }
        all
    }

    /// The uid and gid of the user that a grant names, if it names one. A deny grant names none.
    ///
    /// # Errors
    /// There is no such user.
    pub fn by_grant(&self, id: &GrantId, grant: &Grant) -> Result<Option<(u32, u32)>, Missing> {
        let Some(user) = grant.run_as.as_ref().filter(|_| grant.mode != Mode::Deny) else {
            return Ok(None);
        };
        let missing = |rule, fix: &str| Missing {
            file: format!("grants/{id}.toml"),
            key: vec!["as".to_owned()],
            rule,
            fix: fix.to_owned(),
            forbidden: false,
        };
        match self.accounts.user(user) {
            Ok(Some(owner)) => Ok(Some(owner)),
            Ok(None) => Err(missing(
                format!("there is no user {user:?}"),
                "name a user of /etc/passwd or a number",
            )),
            Err(error) => Err(missing(
                format!("`as = {user:?}`: cannot read /etc/passwd: {error}"),
                "name the user by number",
            )),
        }
    }

    /// The granted or denied paths that are not there. That is no mistake: a path is looked up at each call, so a call finds
    /// nothing until something is there, and what is there from then on. What this user may not look at is left out.
    #[must_use]
    pub fn by_paths(&self, grant: &GrantEntry) -> Vec<Missing> {
        let consequence = match grant.file().mode {
            Mode::Deny => "nothing is denied until it is",
            Mode::Auto | Mode::Ask => "a call finds nothing until it is",
        };
        let absent = |path: &Path| {
            let kinds = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
            fs::symlink_metadata(path).is_err_and(|error| kinds.contains(&error.kind()))
        };
        let paths = grant
            .paths()
            .iter()
            .filter(|path| absent(Path::new(path.path())));
        let missing = |path: &GrantedPath| Missing {
            file: format!("grants/{}.toml", grant.id()),
            key: place_of(grant.file(), path.path()),
            rule: format!("{} is not there: {consequence}", path.path()),
            fix: "correct the path, or make it, for which boxmaker need not be started again"
                .to_owned(),
            forbidden: false,
        };
        paths.map(missing).collect()
    }

    /// What `[pool]` of `config.toml` names and is not there.
    #[must_use]
    pub fn by_pool(&self, config: &Config) -> Vec<Missing> {
        let absent = |profile: &&String| {
            *profile != OTHER_TOOLS && !self.profiles.contains(profile.as_str())
        };
        let missing = |profile: &String| {
            let near = policy::nearest(profile, self.profiles.iter().map(String::as_str));
            Missing {
                file: "config.toml".to_owned(),
                key: vec!["pool".to_owned(), profile.clone()],
                rule: format!("there is no profile {profile:?} for which stages could wait"),
                fix: match near {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("name one that exists, or {OTHER_TOOLS:?} for all of tools"),
                },
                forbidden: false,
            }
        };
        config.pool.keys().filter(absent).map(missing).collect()
    }

    /// The uids of sandboxes, which are to be nobody's.
    #[must_use]
    pub fn by_config(&self, config: &Config) -> Vec<Missing> {
        let (first, count) = config.uid_range;
        let last = first.saturating_add(count.saturating_sub(1));
        let wrong = |rule, fix: &str| Missing {
            file: "config.toml".to_owned(),
            key: vec!["uid_range".to_owned()],
            rule,
            fix: fix.to_owned(),
            forbidden: false,
        };
        match self.accounts.within(first, last) {
            Ok(taken) => taken
                .iter()
                .map(|taken| {
                    wrong(
                        format!(
                            "`uid_range` {first} to {last} holds {taken}: a sandbox shares its uid and gid with nobody"
                        ),
                        "write a range that nobody has",
                    )
                })
                .collect(),
            Err(error) => vec![wrong(
                format!("`uid_range`: cannot read who has uids of their own in /etc: {error}"),
                "make /etc/passwd, group, subuid and subgid readable",
            )],
        }
    }
}

/// Where a grant's file names `path`.
#[must_use]
pub fn place_of(grant: &Grant, path: &str) -> Vec<String> {
    let names = |text: &String| text.split_once(':').is_some_and(|(_, named)| named == path);
    let place = grant.constraints.paths.iter().position(names);
    let mut key = vec!["constraints".to_owned(), "paths".to_owned()];
    key.extend(place.map(|place| place.to_string()));
    key
}

#[cfg(test)]
mod tests;
