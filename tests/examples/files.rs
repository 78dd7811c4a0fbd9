//! The example files by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use confine::profile::Profiles;
use policy::Policy;

/// Where they are.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles/examples")
}

/// Their bytes, by the names that they get below a configuration.
pub(crate) fn all() -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for below in ["tools", "grants", "profiles/tools"] {
        for entry in fs::read_dir(directory().join(below)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}/{}", entry.file_name().to_str().unwrap());
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

#[test]
fn all_examples_load_together() {
    let policy = Policy::load(&all(), 1).unwrap_or_else(|errors| {
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"))
    });
    let profiles = Profiles::load(&all()).unwrap();
    let mut used = BTreeSet::new();
    for tool in policy.tools() {
        let profile = tool.file().profile.as_str();
        assert!(profiles.get(profile).is_some(), "{profile}");
        used.insert(format!("profiles/{profile}.toml"));
    }
    for file in all().keys().filter(|name| name.starts_with("profiles/")) {
        assert!(used.contains(file), "{file} is of no use here");
    }
}

#[test]
fn every_example_tool_has_an_example_grant_and_a_row() {
    let policy = Policy::load(&all(), 1).unwrap();
    let readme = fs::read_to_string(directory().join("README.md")).unwrap();
    for tool in policy.tools() {
        let name = tool.name();
        assert!(
            policy.grants().any(|grant| grant.file().tool == *name),
            "{name}"
        );
        let listed = readme.contains(&format!("`{name}`"));
        assert!(listed, "README.md does not speak of {name}");
        let described = tool.file().arguments.properties.values();
        assert!(
            described
                .into_iter()
                .all(|property| property.description.is_some()),
            "{name}"
        );
    }
}

#[test]
fn no_example_lets_what_tools_write_be_read_as_trusted() {
    // The twin: with one word changed the examples do not load.
    let mut files = all();
    let drafts = "grants/fs_read-drafts.toml";
    let text = String::from_utf8(files[drafts].clone()).unwrap();
    files.insert(
        drafts.to_owned(),
        format!("untrusted = false\n{text}").into_bytes(),
    );
    let errors = Policy::load(&files, 1).unwrap_err();
    assert!(
        errors
            .iter()
            .all(|error| error.rule.contains("reads as trusted")),
        "{errors:?}"
    );
}
