//! From the bytes of profile files to checked profiles: each file is checked by itself, so that an error names the file
//! it stands in, and then merged with what it extends.

use std::collections::BTreeMap;
use std::ops::Range;

use proto::profile::ProfileFile;

use super::values::{self, Wrong};
use super::{Limits, Profile, ProfileError};
use crate::plan::Namespace;
use crate::seccomp;

const BUILT_IN: &[(&str, &str)] = &[
    (
        "tools/base",
        include_str!("../../../../profiles/tools/base.toml"),
    ),
    (
        "roles/brokerd",
        include_str!("../../../../profiles/roles/brokerd.toml"),
    ),
];

/// One file, checked by itself.
struct Checked {
    path: String,
    text: String,
    file: ProfileFile,
}

impl Checked {
    fn error(&self, needle: &str, wrong: Wrong) -> ProfileError {
        ProfileError {
            file: self.path.clone(),
            line: line_of(&self.text, needle),
            rule: wrong.rule,
            fix: wrong.fix,
        }
    }
}

/// Loads everything; see [`super::Profiles::load`].
pub(super) fn load(
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<BTreeMap<String, Profile>, Vec<ProfileError>> {
    let mut sources: BTreeMap<String, (String, Vec<u8>)> = BUILT_IN
        .iter()
        .map(|(name, text)| {
            let path = format!("built-in profile {name}");
            ((*name).to_owned(), (path, text.as_bytes().to_vec()))
        })
        .collect();
    for (path, bytes) in files {
        let name = path
            .strip_prefix("profiles/")
            .and_then(|path| path.strip_suffix(".toml"));
        if let Some(name) = name {
            sources.insert(name.to_owned(), (path.clone(), bytes.clone()));
        }
    }
    let mut errors = Vec::new();
    let mut checked = BTreeMap::new();
    for (name, (path, bytes)) in sources {
        match read(&path, bytes) {
            Ok(one) => {
                check(&name, &one, &mut errors);
                checked.insert(name, one);
            }
            Err(error) => errors.push(error),
        }
    }
    let mut profiles = BTreeMap::new();
    if errors.is_empty() {
        for (name, own) in &checked {
            match resolve(name, own, &checked) {
                Ok(profile) => {
                    profiles.insert(name.clone(), profile);
                }
                Err(error) => errors.push(error),
            }
        }
    }
    if errors.is_empty() {
        return Ok(profiles);
    }
    errors.sort();
    errors.dedup();
    Err(errors)
}

fn read(path: &str, bytes: Vec<u8>) -> Result<Checked, ProfileError> {
    let error = |line, rule: String| ProfileError {
        file: path.to_owned(),
        line,
        rule,
        fix: "docs/formats.md lists the keys of a profile".to_owned(),
    };
    let text = String::from_utf8(bytes).map_err(|_| error(None, "it is not UTF-8".to_owned()))?;
    let file = toml::from_str(&text).map_err(|wrong| {
        let line = wrong
            .span()
            .map(|Range { start, .. }| line_at(&text, start));
        error(line, wrong.message().replace('\n', " "))
    })?;
    Ok(Checked {
        path: path.to_owned(),
        text,
        file,
    })
}

/// Every value of one file.
fn check(name: &str, one: &Checked, errors: &mut Vec<ProfileError>) {
    let file = &one.file;
    let mut note = |needle: &str, result: Result<(), Wrong>| {
        if let Err(wrong) = result {
            errors.push(one.error(needle, wrong));
        }
    };
    note("", values::name(name));
    for text in file.namespaces.iter().flatten() {
        note(text, values::namespace(text).map(drop));
    }
    for path in file.view.iter().flatten() {
        note(path, values::view(path));
    }
    for pattern in file.exec.iter().flatten() {
        note(pattern, values::exec(pattern));
    }
    for (key, value) in file.env.iter().flatten() {
        note(key, values::variable(key, value));
    }
    for set in file.seccomp.iter().flatten() {
        let known = seccomp::names();
        note(set, values::one_of(set, &known, "system call set"));
    }
    if let Err((key, wrong)) = values::limits(&file.limits, Limits::DEFAULT) {
        note(key, Err(wrong));
    }
}

/// Merges a profile with what it extends, the farthest ancestor first.
fn resolve(
    name: &str,
    own: &Checked,
    checked: &BTreeMap<String, Checked>,
) -> Result<Profile, ProfileError> {
    let mut line: Vec<(&str, &Checked)> = vec![(name, own)];
    let mut last = own;
    while let Some(parent) = &last.file.extends {
        let Some((parent, next)) = checked.get_key_value(parent) else {
            let known: Vec<_> = checked.keys().map(String::as_str).collect();
            let wrong = values::one_of(parent, &known, "profile").err();
            return Err(last.error("extends", wrong.unwrap_or_default()));
        };
        if line.iter().any(|(seen, _)| seen == parent) {
            let wrong = Wrong {
                rule: format!("extends goes in a circle by way of {parent:?}"),
                fix: "give this profile another name, or extend another one".to_owned(),
            };
            return Err(last.error("extends", wrong));
        }
        line.push((parent, next));
        last = next;
    }
    merge(name, &line).map_err(|(key, wrong)| own.error(key, wrong))
}

fn merge(name: &str, line: &[(&str, &Checked)]) -> Result<Profile, (&'static str, Wrong)> {
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
        limits = values::limits(&file.limits, limits)?;
    }
    if seccomp.is_empty() {
        let wrong = Wrong {
            rule: "no system call set is named, so nothing could run".to_owned(),
            fix: "say seccomp = [\"base\"], or extend a profile that does".to_owned(),
        };
        return Err(("seccomp", wrong));
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

/// The line on which a byte stands, from 1.
fn line_at(text: &str, byte: usize) -> usize {
    let before = text.get(..byte).unwrap_or(text);
    before.matches('\n').count() + 1
}

/// The first line that holds a value, outside comments as far as that can be told without parsing again.
fn line_of(text: &str, needle: &str) -> Option<usize> {
    if needle.is_empty() {
        return None;
    }
    let holds = |line: &str| !line.trim_start().starts_with('#') && line.contains(needle);
    text.lines().position(holds).map(|line| line + 1)
}
