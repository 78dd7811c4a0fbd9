//! Grants that load and let nothing run, or less than they look like. None of them widens anything, and a grant that
//! covers no call still has its say in labels, so these are warnings and no errors.

use std::collections::BTreeMap;

use proto::Timestamp;
use proto::tool::Resource;

use super::{LoadError, line_of};
use crate::paths::{BindingAccess, beneath};
use crate::policy::{GrantEntry, Policy, Tool};

impl Policy {
    /// What its owner should know although it is no mistake: grants that have expired at `now`, that a deny grant
    /// overrides altogether, or that hold no path for an argument of their tool. `files` are those that it was loaded
    /// from. Ordered by file and line.
    ///
    /// What is found is certain; a grant that several others hide only together is not found.
    #[must_use]
    pub fn warnings(&self, files: &BTreeMap<String, Vec<u8>>, now: Timestamp) -> Vec<LoadError> {
        let mut warnings = Vec::new();
        for entry in self.entries() {
            for grant in &entry.grants {
                let mut warn = |(key, rule, fix): (&[&str], String, String)| {
                    let file = format!("grants/{}.toml", grant.id());
                    let bytes = files.get(&file);
                    warnings.push(LoadError {
                        line: bytes.and_then(|bytes| line_of(bytes, key)),
                        file,
                        rule,
                        fix,
                    });
                };
                if let Some(end) = grant.file.expires.filter(|end| *end <= now) {
                    warn((
                        &["expires"],
                        format!("the grant lets nothing run: it expired at {end}"),
                        "write a later time, or remove the file".to_owned(),
                    ));
                }
                if let Some(deny) = entry
                    .denies
                    .iter()
                    .find(|deny| hides(deny, grant, &entry.tool))
                {
                    warn((
                        &["tool"],
                        format!(
                            "the grant lets nothing run: deny grant {} overrides every call that it covers",
                            deny.id()
                        ),
                        "remove one of the two, or narrow the deny grant".to_owned(),
                    ));
                }
                if let Some((rule, fix)) = no_path(grant, &entry.tool) {
                    let key: &[&str] = match grant.paths.is_empty() {
                        true => &["tool"],
                        false => &["constraints", "paths"],
                    };
                    warn((key, rule, fix));
                }
            }
        }
        warnings.sort();
        warnings
    }
}

/// Whether `deny` overrides `grant` in every call.
fn hides(deny: &GrantEntry, grant: &GrantEntry, tool: &Tool) -> bool {
    let denied = |path: &str| deny.paths.iter().any(|denied| beneath(path, denied.path()));
    let held = !grant.paths.is_empty() && grant.paths.iter().all(|path| denied(path.path()));
    // A call that names no path is touched by no deny grant that states paths.
    let named = !tool.declares_paths() || path_arguments(tool).any(|(_, _, required)| required);
    deny.paths.is_empty() || (held && named)
}

/// Why `grant` covers no call that names a path in one of the arguments of `tool`, and the way out.
fn no_path(grant: &GrantEntry, tool: &Tool) -> Option<(String, String)> {
    let held = |access| grant.paths.iter().any(|path| path.access() == access);
    let (argument, access, required) = path_arguments(tool)
        .filter_map(|(argument, resource, required)| {
            let access = BindingAccess::of(resource).find(|access| !held(*access))?;
            Some((argument, access, required))
        })
        // One that every call names is the graver one.
        .max_by_key(|(_, _, required)| *required)?;
    let name = tool.name();
    let rule = match required {
        true => format!(
            "the grant covers no call: every call of {name} names a path in `{argument}`, and the grant holds no \
             `{access}:` path"
        ),
        false => format!(
            "the grant covers only calls of {name} without `{argument}`: it holds no `{access}:` path"
        ),
    };
    let fix = match grant.paths.is_empty() {
        true => format!("write below a line [constraints]: paths = [\"{access}:/srv/notes\"]"),
        false => format!("add an entry such as \"{access}:/srv/notes\""),
    };
    Some((rule, fix))
}

/// The path arguments of `tool`, and whether every call names them.
fn path_arguments(tool: &Tool) -> impl Iterator<Item = (&str, Resource, bool)> {
    let required = &tool.file.arguments.required;
    let resources = tool.file.resources.iter();
    resources
        .map(|(argument, resource)| (argument.as_str(), *resource, required.contains(argument)))
}
