//! `fs_list` on real directories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::run::{NOBODY, directory, give, root, tool, tool_as};

fn list(arguments: &Value) -> String {
    tool("fs_list", arguments).result()
}

/// The rows without header and notes, as type and name.
fn rows(text: &str) -> Vec<(String, String)> {
    text.lines()
        .skip(1)
        .filter(|line| !line.starts_with('['))
        .map(|line| (line[..7].trim().to_owned(), line[44..].to_owned()))
        .collect()
}

fn write(path: &Path, bytes: usize, seconds: u64) {
    let file = fs::File::create(path).unwrap();
    file.set_len(bytes as u64).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        .unwrap();
}

#[test]
fn entries_come_sorted_with_type_size_time_and_name() {
    let home = directory();
    write(&home.path().join("b.md"), 1234, 1_767_322_984);
    write(&home.path().join("a.md"), 0, 0);
    fs::create_dir(home.path().join("Z")).unwrap();
    mknodat(CWD, home.path().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let text = list(&json!({"path": home.path()}));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], format!("{}: 4 entries", home.path().display()));
    assert!(
        lines[1].starts_with("dir                -  20") && lines[1].ends_with("Z  Z/"),
        "{text}"
    );
    assert_eq!(lines[2], "file               0  1970-01-01T00:00:00Z  a.md");
    assert_eq!(lines[3], "file            1234  2026-01-02T03:03:04Z  b.md");
    assert_eq!(rows(&text)[3], ("pipe".into(), "pipe".into()));
    assert_eq!(lines.len(), 5);
}

#[test]
fn hidden_entries_are_counted_and_shown_when_asked_for() {
    let home = directory();
    for name in [".a", ".b", "c"] {
        write(&home.path().join(name), 1, 1);
    }
    let text = list(&json!({"path": home.path()}));
    assert_eq!(rows(&text), [("file".into(), "c".into())]);
    assert!(
        text.ends_with("[fs_list: 2 hidden entries not shown: hidden = true]\n"),
        "{text}"
    );
    let text = list(&json!({"path": home.path(), "hidden": true}));
    assert_eq!(rows(&text).len(), 3);
    assert!(!text.contains("not shown"), "{text}");
}

#[test]
fn links_show_their_target_and_whether_it_is_there() {
    let home = directory();
    write(&home.path().join("file"), 1, 1);
    fs::create_dir(home.path().join("sub")).unwrap();
    for (target, name) in [
        ("file", "1"),
        ("sub", "2"),
        ("gone", "3"),
        ("4", "4"),
        ("a\nb", "5"),
    ] {
        symlink(target, home.path().join(name)).unwrap();
    }
    let found: Vec<_> = rows(&list(&json!({"path": home.path(), "depth": 3})));
    let names: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "1 -> file",
            "2 -> sub/",
            "3 -> gone (broken: the target does not exist)",
            "4 -> 4 (broken: its symbolic links lead in a circle)",
            "5 -> \"a\\nb\" (broken: the target does not exist)",
            "file",
            "sub/",
        ]
    );
}

#[test]
fn depth_opens_so_many_levels_and_never_a_link() {
    let home = directory();
    fs::create_dir_all(home.path().join("a/b/c")).unwrap();
    write(&home.path().join("a/b/deep"), 1, 1);
    symlink(".", home.path().join("a/loop")).unwrap();
    let names = |depth: u64| -> Vec<String> {
        rows(&list(&json!({"path": home.path(), "depth": depth})))
            .into_iter()
            .map(|(_, name)| name)
            .collect()
    };
    assert_eq!(names(1), ["a/"]);
    assert_eq!(names(2), ["a/", "a/b/", "a/loop -> ./"]);
    assert_eq!(
        names(32),
        ["a/", "a/b/", "a/b/c/", "a/b/deep", "a/loop -> ./"]
    );
    let text = list(&json!({"path": home.path(), "depth": 2}));
    assert!(
        text.contains("1 directories at depth 2 not opened"),
        "{text}"
    );
    for depth in [0, 33] {
        let error = tool("fs_list", &json!({"path": home.path(), "depth": depth})).failure();
        assert!(error.contains("out of range"), "{error}");
    }
}

#[test]
fn a_limit_keeps_the_first_by_name_and_counts_the_rest() {
    let home = directory();
    for number in 0..50 {
        write(&home.path().join(format!("{number:02}")), 1, 1);
    }
    let text = list(&json!({"path": home.path(), "limit": 3}));
    let names: Vec<_> = rows(&text).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["00", "01", "02"]);
    assert!(text.contains("[fs_list: 47 more not shown"), "{text}");
    assert_eq!(
        rows(&list(&json!({"path": home.path(), "limit": 50}))).len(),
        50
    );
    for limit in [0, 5001] {
        let error = tool("fs_list", &json!({"path": home.path(), "limit": limit})).failure();
        assert!(error.contains("out of range"), "{error}");
    }
}

#[test]
fn a_name_cannot_forge_a_line() {
    let home = directory();
    write(&home.path().join(OsStr::from_bytes(b"a\nfile 1 x")), 1, 1);
    write(&home.path().join(OsStr::from_bytes(b"b\xff")), 1, 1);
    let names: Vec<_> = rows(&list(&json!({"path": home.path()})))
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(names, [r#""a\nfile 1 x""#, r#""b\xff""#]);
}

#[test]
fn a_file_is_one_line_and_what_is_not_there_an_error() {
    let home = directory();
    let path = home.path().join("file");
    write(&path, 7, 1);
    let text = list(&json!({"path": path}));
    assert!(text.starts_with("file               7  1970"), "{text}");
    assert!(text.trim_end().ends_with("/file"), "{text}");
    let broken = home.path().join("broken");
    symlink("gone", &broken).unwrap();
    assert!(list(&json!({"path": broken})).contains("broken -> gone (broken"));
    let error = tool("fs_list", &json!({"path": home.path().join("none")})).failure();
    assert!(error.contains("none: it does not exist"), "{error}");
    let text = list(&json!({"path": broken.parent().unwrap().join(".")}));
    assert_eq!(rows(&text).len(), 2);
}

#[test]
fn an_empty_directory_is_said_to_be_empty() {
    let home = directory();
    assert_eq!(
        list(&json!({"path": home.path()})),
        format!("{}: no entries\n", home.path().display())
    );
}

#[test]
fn what_may_not_be_read_is_shown_as_such_and_the_rest_is_listed() {
    if !root("listing as another user") {
        return;
    }
    let home = directory();
    let closed = home.path().join("closed");
    fs::create_dir(&closed).unwrap();
    write(&closed.join("inside"), 1, 1);
    give(&closed, NOBODY, 0o700);
    // May be read but not passed through: names are there, their files cannot be examined.
    let names_only = home.path().join("names");
    fs::create_dir(&names_only).unwrap();
    write(&names_only.join("inside"), 1, 1);
    give(&names_only, NOBODY, 0o744);
    write(&home.path().join("open"), 1, 1);
    let arguments = json!({"path": home.path(), "depth": 2});
    let found = rows(&tool_as(NOBODY + 1, "fs_list", &arguments).result());
    let names: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names[0], "closed/ (cannot be listed: permission denied)");
    assert_eq!(names[1], "names/");
    assert!(
        names[2].contains("cannot be examined: permission denied"),
        "{names:?}"
    );
    assert_eq!(found[2].0, "file");
    assert_eq!(names[3], "open");
    let found = rows(&tool_as(NOBODY, "fs_list", &arguments).result());
    let names: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(
        names,
        ["closed/", "closed/inside", "names/", "names/inside", "open"]
    );
    let error = tool_as(NOBODY + 1, "fs_list", &json!({"path": closed})).failure();
    assert!(
        error.contains("cannot list") && error.contains("permission denied"),
        "{error}"
    );
}
