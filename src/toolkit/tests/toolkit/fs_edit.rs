//! `fs_edit` on real files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};

use crate::run::{NOBODY, directory, give, names, root, tool, tool_as};

fn edit(path: &Path, old: &str, new: &str) -> Value {
    json!({"path": path, "old": old, "new": new})
}

#[test]
fn one_text_is_replaced_whole_and_nothing_else_is_left() {
    let home = directory();
    let path = home.path().join("a.md");
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap();
    let text = tool("fs_edit", &edit(&path, "two\n", "zwei\nund\n")).result();
    let shown = path.display();
    assert_eq!(
        text,
        format!("1 occurrence replaced in {shown}, line 2: 14 bytes before, 19 now\n")
    );
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "one\nzwei\nund\nthree\n"
    );
    let after = fs::metadata(&path).unwrap();
    assert_ne!(after.ino(), before.ino(), "it was written in place");
    assert_eq!(after.mode(), before.mode());
    assert_eq!(names(home.path()), ["a.md"]);
}

#[test]
fn what_is_ambiguous_or_absent_is_refused_with_its_lines_and_nothing_is_changed() {
    let home = directory();
    let path = home.path().join("a.md");
    let content = "key = 1\nother\n  key = 1\nkey =  2\n";
    fs::write(&path, content).unwrap();
    let before = fs::metadata(&path).unwrap();
    let count = |count: u64| {
        let mut arguments = edit(&path, "key = 1", "key = 3");
        arguments["count"] = json!(count);
        arguments
    };
    for (arguments, parts) in [
        (
            edit(&path, "key = 1", "x"),
            &[
                "occurs 2 times",
                "lines 1 and 3",
                "count = 2 to replace all",
            ][..],
        ),
        (count(3), &["occurs 2 times", "not count = 3 times"]),
        (
            edit(&path, "key = 2", "x"),
            &["does not occur", "other white space", "line 4"],
        ),
        (edit(&path, "kEy", "x"), &["does not occur", "fs_read"]),
        (edit(&path, "", "x"), &["old is empty"]),
        (edit(&path, "other", "other"), &["nothing would change"]),
        (count(0), &["out of range"]),
        (count(10_001), &["out of range"]),
    ] {
        let error = tool("fs_edit", &arguments).failure();
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    let after = fs::metadata(&path).unwrap();
    assert_eq!(
        (after.ino(), after.mtime_nsec()),
        (before.ino(), before.mtime_nsec())
    );
    tool("fs_edit", &count(2)).result();
    let edited = content.replace("key = 1", "key = 3");
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
}

#[test]
fn line_ends_marks_and_encodings_are_kept() {
    let home = directory();
    let path = home.path().join("a.txt");
    let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    };
    let (before, after) = ("a\r\nb ü\r\n", "a\r\nc\r\n€ ü\r\n");
    let marked = |text: &str| format!("\u{feff}{text}");
    let cases: [(Vec<u8>, Vec<u8>); 4] = [
        (before.into(), after.into()),
        (marked(before).into(), marked(after).into()),
        (
            wide(&marked(before), u16::to_le_bytes),
            wide(&marked(after), u16::to_le_bytes),
        ),
        (
            wide(&marked(before), u16::to_be_bytes),
            wide(&marked(after), u16::to_be_bytes),
        ),
    ];
    for (before, after) in cases {
        fs::write(&path, &before).unwrap();
        tool("fs_edit", &edit(&path, "a\nb", "a\nc\n€")).result();
        assert_eq!(fs::read(&path).unwrap(), after);
    }
    // Bytes that are no text stay, if the edit says nothing that would need to know what they are.
    fs::write(&path, b"caf\xe9 one\ncaf\xe9 two\n").unwrap();
    tool("fs_edit", &edit(&path, "two", "three")).result();
    assert_eq!(fs::read(&path).unwrap(), b"caf\xe9 one\ncaf\xe9 three\n");
    let error = tool("fs_edit", &edit(&path, "three", "drei ü")).failure();
    assert!(
        error.contains("no valid UTF-8") && error.contains("ASCII"),
        "{error}"
    );
}

#[test]
fn what_is_no_text_or_too_much_is_refused() {
    let home = directory();
    let path = home.path().join("a");
    fs::write(&path, b"\x89PNG\r\n\x1a\n\0\0old").unwrap();
    let error = tool("fs_edit", &edit(&path, "old", "new")).failure();
    assert!(error.contains("is no text (PNG image)"), "{error}");
    fs::write(&path, b"\xff\xfea\0b").unwrap();
    let error = tool("fs_edit", &edit(&path, "old", "new")).failure();
    assert!(error.contains("no valid UTF-16 little-endian"), "{error}");
    let file = fs::File::create(&path).unwrap();
    file.set_len(16 * 1024 * 1024 + 1).unwrap();
    let error = tool("fs_edit", &edit(&path, "old", "new")).failure();
    assert!(error.contains("at most 16777216"), "{error}");
    let mut most = "old ".to_owned();
    most.push_str(&"x".repeat(16 * 1024 * 1024 - 4));
    fs::write(&path, &most).unwrap();
    tool("fs_edit", &edit(&path, "old", "new")).result();
    let error = tool("fs_edit", &edit(home.path(), "old", "new")).failure();
    assert!(error.contains("is a directory"), "{error}");
    let error = tool("fs_edit", &edit(&home.path().join("none"), "old", "new")).failure();
    assert!(error.contains("it does not exist"), "{error}");
    assert_eq!(names(home.path()), ["a"]);
}

#[test]
fn a_link_to_a_neighbour_is_followed_and_stays_and_one_elsewhere_is_refused() {
    let home = directory();
    let path = home.path().join("real");
    fs::write(&path, "old").unwrap();
    let link = home.path().join("link");
    symlink("real", &link).unwrap();
    let text = tool("fs_edit", &edit(&link, "old", "new")).result();
    assert!(text.contains("is a symbolic link, which stays"), "{text}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let away = home.path().join("away");
    symlink("/etc/hostname", &away).unwrap();
    let error = tool("fs_edit", &edit(&away, "old", "new")).failure();
    assert!(error.contains("outside its directory"), "{error}");
}

#[test]
fn what_may_not_be_read_or_replaced_is_refused_or_written_in_place() {
    if !root("editing as another user") {
        return;
    }
    let home = directory();
    let path = home.path().join("a");
    fs::write(&path, "old").unwrap();
    give(&path, NOBODY, 0o200);
    let error = tool_as(NOBODY, "fs_edit", &edit(&path, "old", "new")).failure();
    assert!(
        error.contains("cannot read") && error.contains("a grant"),
        "{error}"
    );
    give(&path, NOBODY, 0o600);
    // The directory is root's: the file cannot be replaced, but it may be written.
    let text = tool_as(NOBODY, "fs_edit", &edit(&path, "old", "new")).result();
    assert!(
        text.contains("[fs_edit: written in place, not atomically"),
        "{text}"
    );
    give(&path, NOBODY, 0o400);
    let error = tool_as(NOBODY, "fs_edit", &edit(&path, "new", "old")).failure();
    assert!(error.contains("permission denied") && error.contains("nothing was changed"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}
