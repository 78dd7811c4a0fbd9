//! `fs_stat` on real names.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::run::{NOBODY, directory, root, tool};

/// The lines of an answer as names and values, without the path.
fn facts(path: &Path) -> Vec<(String, String)> {
    let text = tool("fs_stat", &json!({"path": path})).result();
    assert!(text.ends_with('\n'), "{text}");
    let fact = |line: &str| (line[..10].trim().to_owned(), line[10..].to_owned());
    text.lines().skip(1).map(fact).collect()
}

fn fact(path: &Path, name: &str) -> Option<String> {
    let found = facts(path).into_iter().find(|(of, _)| of == name);
    found.map(|(_, value)| value)
}

#[test]
fn a_file_has_type_size_mode_owner_and_times() {
    let home = directory();
    let path = home.path().join("a.md");
    fs::write(&path, "text").unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_322_984);
    file.set_modified(time).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    fs::hard_link(&path, home.path().join("b.md")).unwrap();
    let value = |name| fact(&path, name).unwrap();
    assert_eq!(value("type"), "file");
    assert!(value("size").starts_with("4 bytes, "), "{}", value("size"));
    assert_eq!(value("mode"), "0640 rw-r-----");
    assert_eq!(value("names"), "2");
    assert_eq!(value("modified"), "2026-01-02T03:03:04Z");
    assert!(value("changed").starts_with("20") && value("accessed").starts_with("20"));
    let own = format!(
        "uid {} (this tool's own)",
        rustix::process::geteuid().as_raw()
    );
    assert_eq!(value("owner"), own);
    if root("giving a file away") {
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        assert_eq!(value("owner"), format!("uid {NOBODY}"));
        assert_eq!(value("group"), format!("gid {NOBODY}"));
    }
}

#[test]
fn a_link_is_itself_and_says_what_it_leads_to() {
    let home = directory();
    fs::write(home.path().join("file"), "text").unwrap();
    for (name, target, leads) in [
        ("1", "file", "a file of 4 bytes"),
        ("2", ".", "a dir"),
        ("3", "gone", "nothing: it does not exist"),
        ("4", "4", "nothing: its symbolic links lead in a circle"),
    ] {
        let link = home.path().join(name);
        symlink(target, &link).unwrap();
        assert_eq!(fact(&link, "type").unwrap(), "link");
        assert_eq!(fact(&link, "size"), None);
        assert_eq!(fact(&link, "target").unwrap(), target);
        assert_eq!(fact(&link, "leads to").unwrap(), leads);
    }
    assert_eq!(fact(home.path(), "target"), None);
}

#[test]
fn other_things_have_their_type_and_what_is_not_there_is_an_error() {
    let home = directory();
    assert_eq!(fact(home.path(), "type").unwrap(), "dir");
    let null = Path::new("/dev/null");
    assert_eq!(fact(null, "type").unwrap(), "chardev");
    assert_eq!(fact(null, "device").unwrap(), "1:3");
    let error = tool("fs_stat", &json!({"path": home.path().join("none")})).failure();
    assert!(
        error.contains("cannot examine") && error.contains("it does not exist"),
        "{error}"
    );
}

#[test]
fn a_name_cannot_forge_a_line() {
    let home = directory();
    let path = home.path().join("a\nmode      0777 rwxrwxrwx");
    fs::write(&path, "").unwrap();
    let text = tool("fs_stat", &json!({"path": path})).result();
    assert_eq!(text.matches("\nmode").count(), 1, "{text}");
    let link = home.path().join("link");
    symlink("b\nmode", &link).unwrap();
    assert_eq!(fact(&link, "target").unwrap(), "\"b\\nmode\"");
}
