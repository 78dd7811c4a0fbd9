//! From the bytes of profile files to checked profiles: each file is checked by itself, so that an error names the file
//! it stands in, and then merged with what it extends.

use std::collections::{BTreeMap, BTreeSet};

use policy::LoadError;
use proto::profile::ProfileFile;

use super::values::{self, Wrong};
use super::{Limits, Profile};
use crate::plan::Namespace;
use crate::seccomp;

/// The profiles that are there without any file, each by its name.
macro_rules! built_in {
    ($($name:literal,)+) => {
        &[$(($name, include_str!(concat!("../../../../profiles/", $name, ".toml"))),)+]
    };
}

const BUILT_IN: &[(&str, &str)] = built_in! {
    "tools/base",
    "tools/git",
    "tools/node",
    "tools/python",
    "tools/shell",
    "roles/brokerd",
};

/// One file, checked by itself.
struct Checked {
    path: String,
    bytes: Vec<u8>,
    file: ProfileFile,
    /// Whether every value of it is right; if not, it is there to be extended, and nothing that is merged of it counts.
    sound: bool,
}

impl Checked {
    /// An error at the deepest part of `key` that the file holds.
    fn error(&self, key: &[&str], wrong: Wrong) -> LoadError {
        LoadError {
            file: self.path.clone(),
            line: policy::line_of(&self.bytes, key),
            rule: wrong.rule,
            fix: wrong.fix,
        }
    }
}

/// Loads everything; see [`super::Profiles::load`].
pub(super) fn load(
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<BTreeMap<String, Profile>, Vec<LoadError>> {
    let mut sources: BTreeMap<String, (String, Vec<u8>)> = BUILT_IN
        .iter()
        .map(|(name, text)| {
            let path = format!("built-in profile {name}");
            ((*name).to_owned(), (path, text.as_bytes().to_vec()))
        })
        .collect();
    for (path, bytes) in files {
        if let Some(name) = name_of(path) {
            sources.insert(name.to_owned(), (path.clone(), bytes.clone()));
        }
    }
    let mut errors = Vec::new();
    let mut checked = BTreeMap::new();
    for (name, (path, bytes)) in sources {
        let before = errors.len();
        let (file, wrong) = policy::profile_file(&path, &bytes);
        errors.extend(wrong);
        let mut one = Checked {
            path,
            bytes,
            // A file that cannot be read at all may still be meant where another one extends it.
            file: file.unwrap_or_default(),
            sound: true,
        };
        check(&name, &one, &mut errors);
        one.sound = errors.len() == before;
        checked.insert(name, one);
    }
    let mut profiles = BTreeMap::new();
    for (name, own) in &checked {
        match resolve(name, own, &checked) {
            Ok(Some(profile)) => {
                profiles.insert(name.clone(), profile);
            }
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        return Ok(profiles);
    }
    errors.sort();
    errors.dedup();
    Err(errors)
}

/// The names of the built-in profiles and of those that `files` hold, whatever is in them.
pub(super) fn names(files: &BTreeMap<String, Vec<u8>>) -> BTreeSet<String> {
    let built_in = BUILT_IN.iter().map(|(name, _)| *name);
    let own = files.keys().filter_map(|path| name_of(path));
    built_in.chain(own).map(str::to_owned).collect()
}

/// The name of the profile that a file of the configuration holds, if it holds one.
fn name_of(path: &str) -> Option<&str> {
    path.strip_prefix("profiles/")?.strip_suffix(".toml")
}

/// Every value of one file.
fn check(name: &str, one: &Checked, errors: &mut Vec<LoadError>) {
    let file = &one.file;
    let mut note = |key: &[&str], result: Result<(), Wrong>| {
        if let Err(wrong) = result {
            errors.push(one.error(key, wrong));
        }
    };
    note(&[], values::name(name));
    let mut each =
        |key: &str, list: &Option<Vec<String>>, rule: &dyn Fn(&str) -> Result<(), Wrong>| {
            for (place, text) in list.iter().flatten().enumerate() {
                note(&[key, &place.to_string()], rule(text));
            }
        };
    each("namespaces", &file.namespaces, &|text| {
        values::namespace(text).map(drop)
    });
    each("view", &file.view, &values::view);
    each("exec", &file.exec, &values::exec);
    let known = seccomp::names();
    each("seccomp", &file.seccomp, &|set| {
        values::one_of(set, &known, "system call set")
    });
    for (key, value) in file.env.iter().flatten() {
        note(&["env", key], values::variable(key, value));
    }
    for (key, wrong) in values::limits(&file.limits, Limits::DEFAULT).1 {
        note(&["limits", key], Err(wrong));
    }
}

/// Merges a profile with what it extends, the farthest ancestor first. None if one of them is not sound.
fn resolve(
    name: &str,
    own: &Checked,
    checked: &BTreeMap<String, Checked>,
) -> Result<Option<Profile>, LoadError> {
    let mut line: Vec<(&str, &Checked)> = vec![(name, own)];
    let mut last = own;
    while let Some(parent) = &last.file.extends {
        let Some((parent, next)) = checked.get_key_value(parent) else {
            let extends_it = |known: &str| line.iter().any(|(name, _)| *name == known);
            let known = checked.keys().map(String::as_str);
            let known: Vec<_> = known.filter(|known| !extends_it(known)).collect();
            let wrong = values::one_of(parent, &known, "profile").err();
            return Err(last.error(&["extends"], wrong.unwrap_or_default()));
        };
        if line.iter().any(|(seen, _)| seen == parent) {
            let wrong = Wrong {
                rule: format!("extends goes in a circle by way of {parent:?}"),
                fix: "give this profile another name, or extend another one".to_owned(),
            };
            return Err(last.error(&["extends"], wrong));
        }
        line.push((parent, next));
        last = next;
    }
    if line.iter().any(|(_, one)| !one.sound) {
        return Ok(None);
    }
    let merged = merge(name, &line).map_err(|wrong| own.error(&["seccomp"], wrong))?;
    Ok(Some(merged))
}

fn merge(name: &str, line: &[(&str, &Checked)]) -> Result<Profile, Wrong> {
    let mut limits = Limits::DEFAULT;
    let mut namespaces: Option<Vec<Namespace>> = None;
    let (mut view, mut exec, mut seccomp) = (Vec::new(), Vec::new(), Vec::new());
    let mut env = BTreeMap::new();
    for (_, one) in line.iter().rev() {
        let file = &one.file;
        if let Some(names) = &file.namespaces {
            let all = namespaces.get_or_insert_default();
            all.extend(
                names
                    .iter()
                    .filter_map(|name| values::namespace(name).ok().flatten()),
            );
        }
        add(&mut view, file.view.as_deref());
        add(&mut exec, file.exec.as_deref());
        add(&mut seccomp, file.seccomp.as_deref());
        env.extend(file.env.clone().unwrap_or_default());
        // Each file's own were checked by themselves, and no limit depends on another.
        limits = values::limits(&file.limits, limits).0;
    }
    if seccomp.is_empty() {
        let wrong = Wrong {
            rule: "no system call set is named, so nothing could run".to_owned(),
            fix: "say seccomp = [\"base\"], or extend a profile that does".to_owned(),
        };
        return Err(wrong);
    }
    let mut namespaces =
        namespaces.unwrap_or_else(|| values::NAMESPACES.map(|(_, one)| one).to_vec());
    namespaces.sort();
    namespaces.dedup();
    Ok(Profile {
        name: name.to_owned(),
        namespaces,
        view,
        exec,
        env,
        seccomp,
        limits,
    })
}

/// Adds what is new, in the order in which it is written.
fn add(list: &mut Vec<String>, more: Option<&[String]>) {
    for item in more.unwrap_or_default() {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}
