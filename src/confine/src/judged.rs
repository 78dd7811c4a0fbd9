//! A configuration read and judged as a whole, for those who use it and those who only check it: what is right of it,
//! and every mistake of every file, so that none hides another. Nothing is decided by what is right of a configuration
//! that is wrong.

use std::collections::BTreeSet;
use std::path::Path;

use ipc::{Files, FilesError};
use policy::{LoadError, Policy, Sound};
use proto::Timestamp;

use crate::named::Missing;
use crate::profile::Profiles;

/// One mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// What is wrong, where, and the way out.
    pub told: LoadError,
    /// Whether it may be right, and this user may not look.
    pub forbidden: bool,
}

/// A configuration directory, judged.
#[derive(Debug)]
pub struct Judged {
    /// What was read; an empty file stands for each that was not.
    pub files: Files,
    /// Why something was not read, or may be changed by others.
    pub unreadable: Vec<FilesError>,
    /// The policy, if everything was read and no grant, tool or configuration holds a mistake.
    pub policy: Option<Policy>,
    /// The profiles, if everything was read and none holds a mistake.
    pub profiles: Option<Profiles>,
    /// What is right of tools, grants and configuration.
    pub sound: Sound,
    /// Every mistake, by file and line.
    pub mistakes: BTreeSet<Mistake>,
    /// What the owner should know although it is no mistake, likewise.
    pub warnings: BTreeSet<LoadError>,
    unread: BTreeSet<String>,
    /// Where the mistakes are that the files hold by themselves.
    wrong: BTreeSet<(String, Option<usize>)>,
}

impl Judged {
    /// Reads `directory`, as `generation` of the policy. `now` tells which grants have expired. What the host has is not
    /// asked here; who asks adds what it finds.
    #[must_use]
    pub fn of(directory: &Path, generation: u64, now: Timestamp) -> Self {
        let (files, unreadable, unread) = match Files::read(directory) {
            Ok(files) => (files, Vec::new(), BTreeSet::new()),
            Err(unreadable) => (unreadable.stand_ins(), unreadable.errors, unreadable.unread),
        };
        let mut judged = Self {
            sound: Sound::of(&files.0),
            policy: None,
            profiles: None,
            mistakes: BTreeSet::new(),
            warnings: BTreeSet::new(),
            files,
            unreadable,
            unread,
            wrong: BTreeSet::new(),
        };
        judged.load(generation, now);
        judged
    }

    fn load(&mut self, generation: u64, now: Timestamp) {
        let (policy, wrong) = split(Policy::load(&self.files.0, generation));
        self.take(wrong);
        // A profile is made of those that it extends: without all of them nothing can be said of any.
        let all = !self.unread.iter().any(|name| name.starts_with("profiles/"));
        let (profiles, wrong) = split(Profiles::load(&self.files.0));
        self.take(wrong.into_iter().filter(|_| all).collect());
        if self.unreadable.is_empty() {
            self.profiles = profiles;
            self.policy = policy;
        }
        if let Some(policy) = &self.policy {
            self.warnings.extend(policy.warnings(&self.files.0, now));
        }
    }

    fn take(&mut self, wrong: Vec<LoadError>) {
        for told in wrong {
            if !self.unread.contains(&told.file) {
                self.wrong.insert((told.file.clone(), told.line));
                self.mistakes.insert(Mistake {
                    told,
                    forbidden: false,
                });
            }
        }
    }

    /// Adds something that was found on the host, at the line that names it. A value that is a mistake by itself is not told
    /// a second time; items of a list, which may share a line, are.
    pub fn add(&mut self, found: Missing) {
        let (forbidden, single) = (found.forbidden, found.key.len() == 1);
        let told = self.at_its_line(found);
        let place = (told.file.clone(), told.line);
        if !single || !self.wrong.contains(&place) {
            self.mistakes.insert(Mistake { told, forbidden });
        }
    }

    /// Adds something that is no mistake, at the line that names it.
    pub fn warn(&mut self, found: Missing) {
        let told = self.at_its_line(found);
        self.warnings.insert(told);
    }

    fn at_its_line(&self, found: Missing) -> LoadError {
        let key: Vec<&str> = found.key.iter().map(String::as_str).collect();
        let bytes = self.files.0.get(&found.file);
        LoadError {
            line: bytes.and_then(|bytes| policy::line_of(bytes, &key)),
            file: found.file,
            rule: found.rule,
            fix: found.fix,
        }
    }
}

fn split<T>(loaded: Result<T, Vec<LoadError>>) -> (Option<T>, Vec<LoadError>) {
    match loaded {
        Ok(value) => (Some(value), Vec::new()),
        Err(errors) => (None, errors),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const TOOL: &str = "description = \"x\"\nkind = \"stdio\"\ncommand = [\"/usr/bin/true\"]\nprofile = \"own\"\n\
                        side_effect = false\narguments = { type = \"object\" }\n";

    struct Directory(tempfile::TempDir);

    impl Directory {
        fn new() -> Self {
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
            let directory = tempfile::tempdir().unwrap();
            for below in ["grants", "tools", "profiles"] {
                fs::create_dir(directory.path().join(below)).unwrap();
            }
            Self(directory)
        }

        fn file(&self, name: &str, text: &str) {
            fs::write(self.0.path().join(name), text).unwrap();
        }

        fn judged(&self) -> Judged {
            Judged::of(self.0.path(), 1, Timestamp::from_millis(0))
        }
    }

    fn told(judged: &Judged) -> Vec<String> {
        let told = judged.mistakes.iter();
        told.map(|mistake| format!("{}:{:?}", mistake.told.file, mistake.told.line))
            .collect()
    }

    #[test]
    fn what_was_not_read_is_no_mistake_and_makes_none_of_what_names_it() {
        let directory = Directory::new();
        directory.file("tools/t.toml", TOOL);
        directory.file(
            "grants/g.toml",
            "tool = \"t\"\nmode = \"auto\"\nmax_taint = \"private\"\n",
        );
        directory.file("profiles/own.toml", "extends = \"mine\"\n");
        directory.file("profiles/mine.toml", "seccomp = [\"base\"]\n");
        let judged = directory.judged();
        assert!(judged.policy.is_some() && judged.profiles.is_some());
        assert_eq!(told(&judged), [""; 0]);
        // What names the missing one is right, what is wrong beside it is told, and nothing is loaded.
        for (away, file) in [
            ("tools/t.toml", "grants/x.toml"),
            ("profiles/mine.toml", "tools/x.toml"),
        ] {
            let path = directory.0.path().join(away);
            let kept = directory.0.path().join("kept");
            fs::rename(&path, &kept).unwrap();
            symlink("nowhere", &path).unwrap();
            directory.file(file, "colour = 1\n");
            let judged = directory.judged();
            fs::rename(&kept, &path).unwrap();
            fs::remove_file(directory.0.path().join(file)).unwrap();
            assert_eq!(judged.unreadable.len(), 1, "{judged:?}");
            assert!(judged.policy.is_none() && judged.profiles.is_none());
            let files: BTreeSet<String> = judged
                .mistakes
                .iter()
                .map(|one| one.told.file.clone())
                .collect();
            assert!(files.iter().eq([file]), "{files:?}");
        }
        assert_eq!(told(&directory.judged()), [""; 0]);
    }

    #[test]
    fn an_open_file_is_not_loaded_although_all_were_read() {
        use std::os::unix::fs::PermissionsExt;
        let directory = Directory::new();
        let grants = directory.0.path().join("grants");
        fs::set_permissions(&grants, fs::Permissions::from_mode(0o777)).unwrap();
        let judged = directory.judged();
        assert!(judged.policy.is_none() && judged.profiles.is_none());
        assert_eq!(judged.unreadable.len(), 1);
        fs::set_permissions(&grants, fs::Permissions::from_mode(0o755)).unwrap();
        let judged = directory.judged();
        assert!(judged.policy.is_some() && judged.profiles.is_some());
    }

    #[test]
    fn what_the_host_lacks_is_told_once_at_its_line_and_items_of_a_list_each() {
        let directory = Directory::new();
        directory.file(
            "grants/g.toml",
            "as = \"a b\"\ntool = \"t\"\nmode = \"auto\"\nmax_taint = \"private\"\nconstraints.paths = [\"read:/a\", \"read:/b/*\"]\n",
        );
        let mut judged = directory.judged();
        let found = |key: &[&str], rule: &str| Missing {
            file: "grants/g.toml".to_owned(),
            key: key.iter().map(|&key| key.to_owned()).collect(),
            rule: rule.to_owned(),
            fix: "-".to_owned(),
            forbidden: false,
        };
        let before = told(&judged).len();
        assert_eq!(before, 3, "{judged:?}");
        judged.add(found(&["as"], "no such user"));
        assert_eq!(told(&judged).len(), before);
        judged.add(found(&["constraints", "paths", "0"], "not there"));
        judged.add(found(&["mode"], "odd"));
        assert_eq!(told(&judged).len(), before + 2);
        judged.warn(found(&["constraints", "paths", "0"], "not there"));
        assert_eq!(judged.warnings.first().unwrap().line, Some(5));
    }
}
