//! The files that the documents show, as a reader would type them: they load, and nothing is warned of. The same for the
//! files of the demo, and for those of `profiles/examples`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use confine::profile::Profiles;
use policy::Policy;
use proto::Timestamp;

use crate::files::{all, directory};

type Files = BTreeMap<String, Vec<u8>>;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    fs::read_to_string(path).unwrap()
}

/// The files that a document shows: each block of TOML is named by its first line, `# NAME`, or by the last line before
/// it that is not empty, which holds `CONFIG/NAME` in backquotes.
fn shown(document: &str) -> Files {
    let mut files = Files::new();
    let mut parts = document.split("\n```toml\n");
    let mut before = parts.next().unwrap();
    for part in parts {
        let (text, after) = part.split_once("\n```\n").unwrap();
        let first = text.lines().next().unwrap();
        let name = match first.strip_prefix("# ") {
            Some(name) => name,
            None => {
                let line = before.trim_end().lines().next_back().unwrap();
                let named = line
                    .split('`')
                    .find_map(|part| part.strip_prefix("CONFIG/"));
                named.unwrap()
            }
        };
        files.insert(name.to_owned(), text.as_bytes().to_vec());
        before = after;
    }
    files
}

#[track_caller]
fn loads_without_a_word(files: &Files) {
    let policy = Policy::load(files, 1).unwrap_or_else(|errors| {
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"))
    });
    Profiles::load(files).unwrap();
    let now = Timestamp::from(std::time::SystemTime::now());
    assert_eq!(policy.warnings(files, now), []);
}

#[test]
fn what_the_readme_shows_loads_without_a_word() {
    let files = shown(&document("README.md"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["grants/notes.toml", "tools/count_words.toml"]);
    loads_without_a_word(&files);
}

#[test]
fn what_the_guide_shows_loads_without_a_word() {
    let mut files = shown(&document("docs/guide.md"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["grants/notes.toml", "tools/count_words.toml"]);
    // What the guide has its reader copy and change.
    files.insert(
        "tools/fs_read.toml".to_owned(),
        fs::read(directory().join("tools/fs_read.toml")).unwrap(),
    );
    let notes = String::from_utf8(files["grants/notes.toml"].clone()).unwrap();
    let count = notes.replace("tool = \"fs_read\"", "tool = \"count_words\"");
    assert_ne!(count, notes);
    files.insert("grants/count.toml".to_owned(), count.into_bytes());
    loads_without_a_word(&files);
    // As a plain user does: above the table, and not below it.
    let partial = "confinement = \"partial\"\n";
    let above = notes.replace("[constraints]", &format!("{partial}[constraints]"));
    files.insert("grants/notes.toml".to_owned(), above.into_bytes());
    loads_without_a_word(&files);
    let below = format!("{notes}\n{partial}");
    files.insert("grants/notes.toml".to_owned(), below.into_bytes());
    let errors = Policy::load(&files, 1).unwrap_err();
    assert!(errors[0].rule.contains("belongs above it"), "{}", errors[0]);
}

#[test]
fn the_examples_load_without_a_word() {
    loads_without_a_word(&all());
}

#[test]
fn the_files_of_the_demo_load_without_a_word() {
    let mut files: Files = all();
    files.retain(|name, _| name.starts_with("tools/") || name.starts_with("profiles/"));
    for below in ["tools", "grants"] {
        for entry in fs::read_dir(directory().join("demo").join(below)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}/{}", entry.file_name().to_str().unwrap());
            let text = fs::read_to_string(entry.path()).unwrap();
            let text = text.replace("@FILES@", "/srv/demo");
            files.insert(name, text.into_bytes());
        }
    }
    assert!(files.contains_key("grants/misbehave.toml"));
    loads_without_a_word(&files);
}
