//! `fs_search` on real directories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::{NOBODY, directory, give, root, tool, tool_as};

/// A directory with these files.
fn filled(files: &[(&str, &str)]) -> TempDir {
    let home = directory();
    for (name, content) in files {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    home
}

/// Searches `home` for `pattern` with more arguments.
fn call(home: &Path, pattern: &str, more: &Value) -> Value {
    let mut arguments = json!({"path": home, "pattern": pattern});
    let more = more.as_object().unwrap().clone();
    arguments.as_object_mut().unwrap().extend(more);
    arguments
}

/// The rows without the path of the directory, and the notes.
fn found(home: &Path, pattern: &str, more: &Value) -> (Vec<String>, Vec<String>) {
    let text = tool("fs_search", &call(home, pattern, more)).result();
    let prefix = format!("{}/", home.display());
    let lines = text.lines().map(|line| line.replace(&prefix, ""));
    lines.partition(|line| !line.starts_with("[fs_search: "))
}

fn rows(home: &Path, pattern: &str, more: &Value) -> Vec<String> {
    found(home, pattern, more).0
}

#[test]
fn matches_come_with_path_and_line_in_order_of_name() {
    let home = filled(&[
        ("b.md", "one\ntwo\n"),
        ("a/z.md", "nothing\nat all, two"),
        ("a.md", "two two\r\n"),
    ]);
    let (rows, notes) = found(home.path(), "two", &json!({}));
    assert_eq!(
        rows,
        ["a/z.md:2:at all, two", "a.md:1:two two", "b.md:2:two"]
    );
    assert_eq!(notes, ["[fs_search: 3 matches in 3 of 3 files]"]);
    let (rows, notes) = found(home.path(), "three", &json!({}));
    assert_eq!(
        (rows.len(), notes.as_slice()),
        (0, &["[fs_search: no match in 3 files]".to_owned()][..])
    );
    // One file by its own name.
    let file = home.path().join("b.md");
    let text = tool("fs_search", &call(&file, "two", &json!({}))).result();
    let row = format!(
        "{}:2:two\n[fs_search: 1 match in 1 of 1 file]\n",
        file.display()
    );
    assert_eq!(text, row);
}

#[test]
fn a_pattern_is_a_regular_expression_or_with_literal_a_text() {
    let home = filled(&[("a", "a.c\nabc\nABC\nx\r\n[a")]);
    let lines = |pattern: &str, more: Value| -> Vec<String> {
        let rows = rows(home.path(), pattern, &more);
        rows.into_iter()
            .map(|row| row.split_once(':').unwrap().1.to_owned())
            .collect()
    };
    assert_eq!(lines("a.c", json!({})), ["1:a.c", "2:abc"]);
    assert_eq!(lines("a.c", json!({"literal": true})), ["1:a.c"]);
    assert_eq!(lines("[a", json!({"literal": true})), ["5:[a"]);
    assert_eq!(
        lines("a.c", json!({"ignore_case": true})),
        ["1:a.c", "2:abc", "3:ABC"]
    );
    assert_eq!(lines("^x$", json!({})), ["4:x"]);
    assert_eq!(lines("^$", json!({})), [""; 0]);
    for (pattern, part) in [
        (
            "[a",
            "no regular expression: unclosed character class; literal = true",
        ),
        ("a{99999999}", "no regular expression"),
        ("(?=a)", "look-around"),
        ("a\\nb", "no regular expression"),
        ("", "pattern is empty"),
        ("a\nb", "pattern holds a line end"),
    ] {
        let error = tool("fs_search", &call(home.path(), pattern, &json!({}))).failure();
        assert!(error.contains(part), "{pattern:?}: {error}");
    }
}

#[test]
fn lines_around_a_match_are_marked_and_groups_are_apart() {
    let home = filled(&[
        ("a", "1\n2\nx3\n4\n5\n6\n7\nx8\nx9\n"),
        ("b", "x1\n2\n"),
        ("c", "nothing\n"),
    ]);
    let (rows, _) = found(home.path(), "x", &json!({"context": 1}));
    let expected = [
        "a-2-2", "a:3:x3", "a-4-4", "--", "a-7-7", "a:8:x8", "a:9:x9", "--", "b:1:x1", "b-2-2",
    ];
    assert_eq!(rows, expected);
    let (rows, _) = found(home.path(), "x", &json!({"context": 2}));
    assert!(!rows[..9].contains(&"--".to_owned()), "{rows:?}");
    assert_eq!(rows.len(), 9 + 1 + 2);
}

#[test]
fn a_limit_stops_the_answer_and_an_offset_goes_on_there() {
    let home = filled(&[("a", "x1\nx2\n-\nx3\n"), ("b", "x4\n"), ("c", "x5\n-\n")]);
    let page = |offset: u64| found(home.path(), "x", &json!({"limit": 2, "offset": offset}));
    let (first, notes) = page(0);
    assert_eq!(first, ["a:1:x1", "a:2:x2"]);
    assert_eq!(
        notes,
        ["[fs_search: matches 1 to 2 shown, more follow: offset = 2, or search for less]"]
    );
    let (second, notes) = page(2);
    assert_eq!(second, ["a:4:x3", "b:1:x4"]);
    assert!(
        notes[0].contains("matches 3 to 4 shown, more follow: offset = 4"),
        "{notes:?}"
    );
    let (third, notes) = page(4);
    assert_eq!(third, ["c:1:x5"]);
    assert_eq!(
        notes,
        ["[fs_search: 5 matches in 3 of 3 files, the first 4 not shown]"]
    );
    assert_eq!(page(5).0, [""; 0]);
    // The lines between a match that is passed over and one that is shown belong to the latter.
    let rows = rows(
        home.path(),
        "x",
        &json!({"offset": 2, "limit": 1, "context": 1}),
    );
    assert_eq!(rows, ["a-3--", "a:4:x3"]);
    for (name, value) in [("limit", 0), ("limit", 2001), ("context", 11)] {
        let error = tool("fs_search", &call(home.path(), "x", &json!({name: value}))).failure();
        assert!(
            error.contains(&format!("{name} = {value} is out of range")),
            "{error}"
        );
    }
}

#[test]
fn pages_joined_are_the_whole() {
    let text: String = (0..300)
        .map(|n| format!("{}{n}\n", if n % 7 == 0 { "x" } else { "" }))
        .collect();
    let home = filled(&[("a", &text), ("b", "y\n"), ("c/d", &text), ("e", "x\0x")]);
    let whole = rows(home.path(), "x", &json!({}));
    assert_eq!(whole.len(), 2 * 43 + 1);
    let mut joined = Vec::new();
    loop {
        let more = json!({"limit": 10, "offset": joined.len()});
        let (rows, notes) = found(home.path(), "x", &more);
        joined.extend(rows);
        if !notes[0].contains("more follow") {
            break;
        }
    }
    assert_eq!(joined, whole);
}

#[test]
fn hidden_files_are_left_out_and_counted_unless_asked_for() {
    let home = filled(&[("a", "x"), (".b", "x"), (".c/d", "x"), (".c/e", "x")]);
    let (rows, notes) = found(home.path(), "x", &json!({}));
    assert_eq!(rows, ["a:1:x"]);
    assert_eq!(
        notes[0],
        "[fs_search: 2 hidden entries not searched: hidden = true]"
    );
    let (rows, notes) = found(home.path(), "x", &json!({"hidden": true}));
    assert_eq!(rows, [".b:1:x", ".c/d:1:x", ".c/e:1:x", "a:1:x"]);
    assert_eq!(notes.len(), 1, "{notes:?}");
    // What the call names itself is searched.
    let (rows, _) = found(&home.path().join(".c"), "x", &json!({}));
    assert_eq!(rows, ["d:1:x", "e:1:x"]);
}

#[test]
fn ignore_files_are_respected_below_the_path_unless_asked_not_to() {
    let home = filled(&[
        (".gitignore", "*.log\n/build/\na{b\n"),
        ("a.log", "x"),
        ("a.md", "x"),
        ("build/b.md", "x"),
        ("sub/.ignore", "c.*\n!d.log\n"),
        ("sub/c.md", "x"),
        ("sub/d.log", "x"),
        ("sub/build/e.md", "x"),
    ]);
    let (rows, notes) = found(home.path(), "x", &json!({}));
    assert_eq!(rows, ["a.md:1:x", "sub/build/e.md:1:x", "sub/d.log:1:x"]);
    assert!(
        notes[0].contains("ignore rules: ") && notes[0].contains("line 3"),
        "{notes:?}"
    );
    assert!(
        notes.iter().any(|note| note.contains("ignored = true")),
        "{notes:?}"
    );
    let (rows, notes) = found(home.path(), "x", &json!({"ignored": true}));
    assert_eq!(rows.len(), 6);
    assert!(
        !notes.iter().any(|note| note.contains("ignore")),
        "{notes:?}"
    );
    // Rules above the path are not known here.
    let (rows, _) = found(&home.path().join("sub"), "x", &json!({}));
    assert_eq!(rows, ["build/e.md:1:x", "d.log:1:x"]);
}

#[test]
fn globs_choose_among_what_is_searched_and_add_nothing() {
    let home = filled(&[
        (".gitignore", "c.md\n"),
        ("a.md", "x"),
        ("b.txt", "x"),
        ("c.md", "x"),
        (".d.md", "x"),
        ("sub/e.md", "x"),
        ("sub/f.rs", "x"),
    ]);
    let rows = |globs: Value| rows(home.path(), "x", &json!({"globs": globs}));
    assert_eq!(rows(json!(["*.md"])), ["a.md:1:x", "sub/e.md:1:x"]);
    assert_eq!(rows(json!(["*.{txt,rs}"])), ["b.txt:1:x", "sub/f.rs:1:x"]);
    assert_eq!(rows(json!(["/*.md"])), ["a.md:1:x"]);
    assert_eq!(rows(json!(["!sub/"])), ["a.md:1:x", "b.txt:1:x"]);
    assert_eq!(rows(json!(["*.md", "!sub/**"])), ["a.md:1:x"]);
    assert_eq!(rows(json!(["sub/**"])), ["sub/e.md:1:x", "sub/f.rs:1:x"]);
    for globs in [json!(["[a"]), json!([""]), json!(["*.md", "a{b"])] {
        let arguments = call(home.path(), "x", &json!({"globs": globs}));
        let error = tool("fs_search", &arguments).failure();
        assert!(error.contains("in globs is no glob"), "{error}");
    }
}

#[test]
fn a_binary_file_is_named_and_not_dumped() {
    let home = filled(&[("text", "needle\n")]);
    let text = ["needle\n".repeat(20), "hay\n".repeat(50_000)].concat();
    let late = [text.as_bytes(), b"\0\x01\x02 needle\n"].concat();
    fs::write(home.path().join("late"), late).unwrap();
    fs::write(home.path().join("early"), b"\0\0\0 needle \xff\n needle").unwrap();
    fs::write(home.path().join("image"), b"\x89PNG\r\n\x1a\nneedle \xff").unwrap();
    fs::write(home.path().join("other"), b"\0\0\0 nothing").unwrap();
    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    fs::write(home.path().join("wide"), wide("\u{feff}a\nneedle \u{fc}\n")).unwrap();
    let more = json!({"limit": 2000});
    let (rows, notes) = found(home.path(), "needle", &more);
    assert_eq!(
        rows,
        [
            "early: a binary file, which matches",
            "image: a binary file, which matches",
            "late: a binary file, which matches",
            "text:1:needle",
            "wide:2:needle \u{fc}",
        ]
    );
    assert_eq!(notes, ["[fs_search: 5 matches in 5 of 6 files]"]);
}

#[test]
fn a_long_line_is_cut_around_its_match() {
    let long = format!("{}needle{}\n", "a".repeat(100_000), "b".repeat(100_000));
    let home = filled(&[("a", &long)]);
    let rows = rows(home.path(), "needle", &json!({}));
    assert_eq!(rows.len(), 1);
    assert!(
        rows[0].contains("aneedleb") && rows[0].len() < 600,
        "{}",
        rows[0].len()
    );
    assert!(rows[0].contains("[99900 bytes …]") && rows[0].ends_with("bytes]"));
}

#[test]
fn an_answer_has_a_size_and_can_be_continued() {
    let line = format!("{}\n", "x".repeat(390));
    let home = filled(&[("a", &line.repeat(1500))]);
    let (first, notes) = found(home.path(), "x", &json!({"limit": 2000}));
    let bytes: usize = first.iter().map(String::len).sum();
    assert!(bytes < 200_000 && first.len() > 300, "{bytes}");
    let next = format!("offset = {}", first.len());
    assert!(notes[0].contains(&next), "{notes:?}");
}

#[test]
fn links_and_pipes_are_not_searched_and_a_named_link_is_followed() {
    let home = filled(&[("sub/a", "x")]);
    symlink("sub", home.path().join("link")).unwrap();
    symlink("sub/a", home.path().join("linked")).unwrap();
    mknodat(CWD, home.path().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert_eq!(rows(home.path(), "x", &json!({})), ["sub/a:1:x"]);
    assert_eq!(rows(&home.path().join("link"), "x", &json!({})), ["a:1:x"]);
    let linked = tool(
        "fs_search",
        &call(&home.path().join("linked"), "x", &json!({})),
    );
    assert!(linked.result().contains("linked:1:x"));
    let error = tool(
        "fs_search",
        &call(&home.path().join("pipe"), "x", &json!({})),
    )
    .failure();
    assert!(error.contains("is a named pipe"), "{error}");
    let error = tool(
        "fs_search",
        &call(&home.path().join("none"), "x", &json!({})),
    )
    .failure();
    assert!(error.contains("it does not exist"), "{error}");
}

#[test]
fn a_name_cannot_forge_a_row() {
    let home = directory();
    fs::write(home.path().join(OsStr::from_bytes(b"a\nb:1:x")), "x").unwrap();
    let text = tool("fs_search", &call(home.path(), "x", &json!({}))).result();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains(r"a\nb:1:x"), "{text}");
}

#[test]
fn what_may_not_be_read_is_told_and_the_rest_is_searched() {
    if !root("searching as another user") {
        return;
    }
    let home = filled(&[("closed/a", "x"), ("locked", "x"), ("open", "x")]);
    give(&home.path().join("closed"), NOBODY, 0o700);
    give(&home.path().join("locked"), NOBODY, 0o600);
    let arguments = call(home.path(), "x", &json!({}));
    let text = tool_as(NOBODY + 1, "fs_search", &arguments).result();
    assert!(text.contains("/open:1:x\n"), "{text}");
    for name in ["closed", "locked"] {
        let note = text.lines().find(|line| line.contains(name)).unwrap();
        assert!(note.starts_with("[fs_search: not searched: "), "{text}");
        assert!(note.contains("permission denied"), "{text}");
    }
    assert!(
        text.ends_with("[fs_search: 1 match in 1 of 1 file]\n"),
        "{text}"
    );
}
