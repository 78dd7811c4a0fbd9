//! From a budget to what the sandbox gets: trees that are held open, and variables. The rules of grants hold: no link on the
//! way, nothing of boxmaker's own, nothing written as root.

use std::collections::BTreeMap;
use std::env;
use std::path::{Component, Path, PathBuf};

use confine::launch::GrantedTree;
use confine::plan::{Access, Mount};
use confine::resolve::{ResolveError, Root};
use policy::budget::{Budget, Effect};

use crate::guard::{Guard, GuardError};
use crate::load::Directories;

/// What a budget comes to on this host.
#[derive(Debug)]
pub(super) struct Grants {
    /// The trees, parents first.
    pub(super) mounts: Vec<Mount>,
    /// Their descriptors, in the same order.
    pub(super) trees: Vec<GrantedTree>,
    /// The variables, with their values here.
    pub(super) env: BTreeMap<String, String>,
}

/// Why a budget gives nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrantsError {
    /// It leads upwards.
    #[error("{effect}: a path in a budget holds no ..; write where it leads")]
    Upwards {
        /// As it was written.
        effect: String,
    },
    /// The path is no text.
    #[error(
        "{effect}: this directory has a name that is not UTF-8; write a path that begins with /"
    )]
    Text {
        /// As it was written.
        effect: String,
    },
    /// Nothing is there.
    #[error("{}: there is no such file or directory; make it first, or grant the directory that will hold it", .0.display())]
    Missing(PathBuf),
    /// It may not be granted.
    #[error("{error}; {fix}")]
    Guarded {
        /// Why.
        error: GuardError,
        /// The way out.
        fix: &'static str,
    },
    /// It cannot be opened.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Its owner is root.
    #[error(
        "{}: it belongs to root, and nothing is written as root; give it to a user, or run boxmaker as the user who is to write \
         there", .0.display()
    )]
    AsRoot(PathBuf),
    /// A variable that holds no text.
    #[error("env:{0}: its value is not UTF-8; leave it away, or set it to another value")]
    Value(String),
}

impl Grants {
    /// Finds everything that `budget` names. A relative path is taken from the current directory. `gives_users` says whether the
    /// program works as the owner of what is granted, and not as whoever runs this.
    ///
    /// # Errors
    /// As [`GrantsError`], about the first thing that is wrong.
    pub(super) fn of(
        budget: &Budget,
        directories: &Directories,
        home: &Path,
        gives_users: bool,
    ) -> Result<Self, GrantsError> {
        let mut guard = Guard::default();
        let own = [
            ("the home of boxmaker", directories.home.as_path()),
            ("the configuration", &directories.config),
            ("the log of runs", home),
            (
                "the directory of boxmaker's binaries",
                &directories.binaries,
            ),
        ];
        for (what, path) in own {
            guard.protect(what, path).map_err(guarded)?;
        }
        let mut wanted: BTreeMap<PathBuf, (bool, bool)> = BTreeMap::new();
        let mut env = BTreeMap::new();
        for effect in budget.effects() {
            match effect {
                Effect::Read(path) => wanted.entry(whole(path, effect)?).or_default().0 = true,
                Effect::Write(path) => wanted.entry(whole(path, effect)?).or_default().1 = true,
                Effect::Env(name) => {
                    // What is not set here cannot be known there.
                    if let Some(value) = env::var_os(name) {
                        let value = value
                            .into_string()
                            .map_err(|_| GrantsError::Value(name.clone()))?;
                        env.insert(name.clone(), value);
                    }
                }
                Effect::Io => {}
            }
        }
        let mut grants = Self {
            mounts: Vec::new(),
            trees: Vec::new(),
            env,
        };
        // In this order a directory comes before what lies in it.
        for path in wanted.keys() {
            let (read, write) = around(&wanted, path);
            grants.add(path, (read, write), &guard, gives_users)?;
        }
        Ok(grants)
    }

    fn add(
        &mut self,
        path: &Path,
        (read, write): (bool, bool),
        guard: &Guard,
        gives_users: bool,
    ) -> Result<(), GrantsError> {
        guard.admit(path).map_err(guarded)?;
        let missing = || GrantsError::Missing(path.to_owned());
        let root = Root::open(path)?.ok_or_else(missing)?;
        let resolved = root.resolve(path)?.ok_or_else(missing)?;
        // What was looked at and what is held are the same.
        guard
            .judge_held(path, &resolved.descriptor)
            .map_err(guarded)?;
        if write && resolved.owner.0 == 0 && gives_users {
            return Err(GrantsError::AsRoot(path.to_owned()));
        }
        let access = match (resolved.directory, read, write) {
            (_, _, false) => Access::Read,
            (true, false, true) => Access::WriteTree,
            (true, true, true) => Access::ReadWriteTree,
            (false, false, true) => Access::WriteFiles,
            (false, true, true) => Access::ReadWriteFiles,
        };
        let text = path.to_str().ok_or_else(|| GrantsError::Text {
            effect: path.display().to_string(),
        })?;
        self.mounts.push(Mount::Tree {
            path: text.to_owned(),
            directory: resolved.directory,
            access,
            exec: false,
        });
        self.trees.push(GrantedTree {
            descriptor: resolved.descriptor,
            owner: resolved.owner,
        });
        Ok(())
    }
}

/// What may be done with `path`: what is said of it, and of each directory that holds it.
fn around(wanted: &BTreeMap<PathBuf, (bool, bool)>, path: &Path) -> (bool, bool) {
    let said = path.ancestors().filter_map(|above| wanted.get(above));
    said.fold((false, false), |all, one| (all.0 | one.0, all.1 | one.1))
}

/// An absolute path, without `.` and without slashes that mean nothing.
fn whole(path: &str, effect: &Effect) -> Result<PathBuf, GrantsError> {
    let text = || GrantsError::Text {
        effect: effect.to_string(),
    };
    let absolute = std::path::absolute(path).map_err(|_| text())?;
    if absolute
        .components()
        .any(|part| part == Component::ParentDir)
    {
        return Err(GrantsError::Upwards {
            effect: effect.to_string(),
        });
    }
    Ok(absolute.components().collect())
}

fn guarded(error: GuardError) -> GrantsError {
    let fix = match &error {
        GuardError::Own { .. } => {
            "no program may reach boxmaker's own files: grant what lies beside them"
        }
        GuardError::Linked { .. } => "grant the path that the link leads to",
        GuardError::Look { .. } => "grant a path that can be looked at",
    };
    GrantsError::Guarded { error, fix }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            for directory in ["home", "config", "log", "bin", "notes/deep", "out"] {
                fs::create_dir_all(host.path(directory)).unwrap();
            }
            fs::write(host.path("notes/a"), "a").unwrap();
            fs::set_permissions(host.path("notes/a"), fs::Permissions::from_mode(0o644)).unwrap();
            host
        }

        fn path(&self, below: &str) -> PathBuf {
            fs::canonicalize(self.0.path()).unwrap().join(below)
        }

        /// What a budget comes to, in which `@` is this place.
        fn of(&self, budget: &str) -> Result<Vec<(String, Access)>, String> {
            self.of_user(budget, false)
        }

        fn of_user(&self, budget: &str, as_root: bool) -> Result<Vec<(String, Access)>, String> {
            let text = budget.replace('@', &self.path("").display().to_string());
            let directories = Directories {
                home: self.path("home"),
                config: self.path("config"),
                binaries: self.path("bin"),
            };
            let budget = Budget::parse(&text).unwrap();
            let log = self.path("log");
            let grants = Grants::of(&budget, &directories, &log, as_root);
            let grants = grants.map_err(|error| error.to_string())?;
            assert_eq!(grants.mounts.len(), grants.trees.len());
            let top = self.path("").display().to_string();
            let mounts = grants.mounts.into_iter().map(|mount| match mount {
                Mount::Tree { path, access, .. } => (path.replacen(&top, "", 1), access),
                other => panic!("{other:?}"),
            });
            Ok(mounts.collect())
        }
    }

    fn is(path: &str, access: Access) -> (String, Access) {
        (path.to_owned(), access)
    }

    #[test]
    fn a_budget_gives_what_it_says_and_what_a_directory_has_holds_in_it() {
        let host = Host::new();
        assert_eq!(host.of(""), Ok(vec![]));
        assert_eq!(host.of("io,env:NOT_SET_ANYWHERE"), Ok(vec![]));
        assert_eq!(
            host.of("fs:read:@notes/,fs:write:@out"),
            Ok(vec![
                is("notes", Access::Read),
                is("out", Access::WriteTree)
            ])
        );
        assert_eq!(
            host.of("fs:write:@notes,fs:read:@notes"),
            Ok(vec![is("notes", Access::ReadWriteTree)])
        );
        assert_eq!(
            host.of("fs:write:@notes/a,fs:read:@notes"),
            Ok(vec![
                is("notes", Access::Read),
                is("notes/a", Access::ReadWriteFiles)
            ])
        );
        assert_eq!(
            host.of("fs:read:@notes/./deep,fs:write:@notes"),
            Ok(vec![
                is("notes", Access::WriteTree),
                is("notes/deep", Access::ReadWriteTree)
            ])
        );
    }

    #[test]
    fn what_no_grant_may_hold_no_budget_may() {
        let host = Host::new();
        symlink(host.path("notes"), host.path("link")).unwrap();
        for (budget, says) in [
            ("fs:read:@home", "the home of boxmaker"),
            ("fs:read:@config/grants", "the configuration"),
            ("fs:write:@log", "the log of runs"),
            ("fs:read:@bin", "boxmaker's binaries"),
            ("fs:read:@", "contains or lies in"),
            ("fs:read:@link", "leads through a link"),
            ("fs:read:@link/a", "leads through a link"),
            ("fs:read:@not/there", "there is no such file"),
            ("fs:read:@notes/../notes", "holds no .."),
        ] {
            let error = host.of(budget).unwrap_err();
            assert!(error.contains(says), "{budget}: {error}");
            assert!(error.contains("; "), "{error}");
        }
    }

    #[test]
    fn nothing_is_written_as_root() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: nothing_is_written_as_root: only root has files of root's to write");
            return;
        }
        let host = Host::new();
        let error = host.of_user("fs:write:@out", true).unwrap_err();
        assert!(error.contains("nothing is written as root"), "{error}");
        assert_eq!(
            host.of_user("fs:read:@out", true),
            Ok(vec![is("out", Access::Read)])
        );
        std::os::unix::fs::chown(host.path("out"), Some(1000), Some(1000)).unwrap();
        assert_eq!(
            host.of_user("fs:write:@out", true),
            Ok(vec![is("out", Access::WriteTree)])
        );
    }
}
