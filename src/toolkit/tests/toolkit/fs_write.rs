//! `fs_write` on real files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Resource;
use serde_json::{Value, json};

use crate::run::{How, NOBODY, directory, give, names, root, tool, tool_as, tool_with};

fn write(arguments: &Value) -> String {
    tool("fs_write", arguments).result()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_file_is_created_then_replaced_whole_and_nothing_else_is_left() {
    let home = directory();
    let path = home.path().join("a.md");
    let text = write(&json!({"path": path, "content": "one\n"}));
    assert_eq!(
        text,
        format!("4 bytes written to {}: created\n", path.display())
    );
    let first = fs::metadata(&path).unwrap().ino();
    let text = write(&json!({"path": path, "content": "grüße"}));
    assert_eq!(
        text,
        format!("7 bytes written to {}: replaced 4 bytes\n", path.display())
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "grüße");
    assert_ne!(
        fs::metadata(&path).unwrap().ino(),
        first,
        "it was written in place"
    );
    write(&json!({"path": path, "content": ""}));
    assert_eq!(fs::read(&path).unwrap(), b"");
    assert_eq!(names(home.path()), ["a.md"]);
}

#[test]
fn who_has_the_old_file_open_keeps_the_old_content() {
    let home = directory();
    let path = home.path().join("a.md");
    fs::write(&path, "old").unwrap();
    let mut open = fs::File::open(&path).unwrap();
    write(&json!({"path": path, "content": "new"}));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut open, &mut text).unwrap();
    assert_eq!(text, "old");
}

#[test]
fn permission_bits_are_kept_and_set_id_bits_are_not() {
    let home = directory();
    let path = home.path().join("script");
    for (before, after) in [
        (0o600, 0o600),
        (0o755, 0o755),
        (0o440, 0o440),
        (0o6711, 0o711),
        (0o1644, 0o644),
    ] {
        let _ = fs::remove_file(&path);
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
        let text = write(&json!({"path": path, "content": "y"}));
        assert_eq!(mode(&path), after, "{before:o}");
        assert_eq!(
            text.contains("set-id bits were dropped"),
            before & 0o6000 != 0,
            "{text}"
        );
    }
}

#[test]
fn create_refuses_what_exists_and_creates_what_does_not() {
    let home = directory();
    let path = home.path().join("a.md");
    let arguments = json!({"path": path, "content": "one", "mode": "create"});
    assert!(write(&arguments).ends_with("a.md: created\n"));
    let error = tool("fs_write", &arguments).failure();
    assert!(
        error.contains("a.md exists already: mode = \"replace\""),
        "{error}"
    );
    assert_eq!(names(home.path()), ["a.md"]);
    assert_eq!(fs::read_to_string(path).unwrap(), "one");
}

#[test]
fn append_adds_to_the_end_and_creates_if_need_be() {
    let home = directory();
    let path = home.path().join("log");
    let arguments = json!({"path": path, "content": "line\n", "mode": "append"});
    assert!(write(&arguments).ends_with("log: created\n"));
    let inode = fs::metadata(&path).unwrap().ino();
    assert!(write(&arguments).ends_with("log: appended after 5 bytes\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "line\nline\n");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
}

#[test]
fn appends_at_once_lose_and_mix_nothing() {
    let home = directory();
    let path = home.path().join("log");
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let line = format!("{}\n", writer.to_string().repeat(20_000));
            let arguments = json!({"path": path, "content": line, "mode": "append"});
            std::thread::spawn(move || write(&arguments))
        })
        .collect();
    writers
        .into_iter()
        .for_each(|writer| drop(writer.join().unwrap()));
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text
        .lines()
        .map(|line| (line.len(), &line[..1], line))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 8);
    for (number, (length, first, line)) in lines.into_iter().enumerate() {
        assert_eq!((length, first), (20_000, number.to_string().as_str()));
        assert!(line.bytes().all(|byte| byte == first.as_bytes()[0]));
    }
}

#[test]
fn a_link_is_followed_inside_its_directory_and_nowhere_else() {
    let home = directory();
    let (inside, outside) = (home.path().join("in"), home.path().join("out"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "untouched").unwrap();
    let target = inside.join("target");
    fs::write(&target, "old").unwrap();
    let long = inside.join("../in/target");
    for says in [
        Path::new("target"),
        Path::new("./target"),
        target.as_path(),
        long.as_path(),
    ] {
        let link = inside.join("link");
        let _ = fs::remove_file(&link);
        symlink(says, &link).unwrap();
        for mode in ["replace", "append"] {
            let content = format!("{mode} by {}", says.display());
            let text = write(&json!({"path": link, "content": content, "mode": mode}));
            assert!(
                text.contains("link is a symbolic link, which stays; its target was written"),
                "{text}"
            );
            assert!(fs::read_to_string(&target).unwrap().ends_with(&content));
            assert!(link.is_symlink() && !target.is_symlink());
        }
    }
    for says in [
        "../out/file",
        "../out/new",
        "/etc/hostname",
        "gone/file",
        "..",
        "../out/",
    ] {
        let link = inside.join("away");
        let _ = fs::remove_file(&link);
        symlink(says, &link).unwrap();
        for mode in ["replace", "create", "append"] {
            let error = tool(
                "fs_write",
                &json!({"path": link, "content": "x", "mode": mode}),
            )
            .failure();
            assert!(
                error.contains(&format!(
                    "is a symbolic link to {says}, outside its directory"
                )),
                "{error}"
            );
        }
    }
    assert_eq!(names(&outside), ["file"]);
    assert_eq!(
        fs::read_to_string(outside.join("file")).unwrap(),
        "untouched"
    );
    symlink("circle", inside.join("circle")).unwrap();
    let error = tool(
        "fs_write",
        &json!({"path": inside.join("circle"), "content": "x"}),
    )
    .failure();
    assert!(error.contains("leads in a circle"), "{error}");
    symlink("dangling-target", inside.join("dangling")).unwrap();
    write(&json!({"path": inside.join("dangling"), "content": "x"}));
    assert_eq!(
        fs::read_to_string(inside.join("dangling-target")).unwrap(),
        "x"
    );
}

#[test]
fn what_is_no_file_or_has_no_directory_is_refused_and_nothing_is_made() {
    let home = directory();
    let at = |name: &str| home.path().join(name);
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::write(at("file"), "x").unwrap();
    let before = names(home.path());
    for mode in ["replace", "create", "append"] {
        let refused = |path: &Path| {
            tool(
                "fs_write",
                &json!({"path": path, "content": "y", "mode": mode}),
            )
            .failure()
        };
        assert!(refused(&at("pipe")).contains("is not a regular file"));
        assert!(refused(home.path()).contains("is a directory: name a file in it"));
        assert!(refused(&at("new/")).contains("is a directory"));
        assert!(refused(&at("new/.")).contains("is a directory"));
        assert!(refused(&at("..")).contains("is a directory"));
        assert!(refused(Path::new("/")).contains("is a directory"));
        let error = refused(&at("no/new"));
        assert!(
            error.contains("/no does not exist here: this tool makes no directories"),
            "{error}"
        );
        assert!(refused(&at("file/new")).contains("a part of the path is a file"));
        assert!(refused(&at(&"n".repeat(256))).contains("a name in it is too long"));
    }
    assert_eq!(names(home.path()), before);
    write(&json!({"path": at(&"n".repeat(255)), "content": "y"}));
    assert_eq!(names(home.path()).len(), 3);
}

#[test]
fn a_relative_path_is_taken_from_the_working_directory() {
    let home = directory();
    let how = How {
        cwd: Some(home.path().to_owned()),
        ..How::default()
    };
    let text = tool_with("fs_write", &json!({"path": "a.md", "content": "x"}), &how).result();
    assert_eq!(text, "1 bytes written to a.md: created\n");
    assert_eq!(names(home.path()), ["a.md"]);
}

#[test]
fn a_file_over_the_limit_is_an_error_that_leaves_the_old_one_and_no_other() {
    let home = directory();
    let path = home.path().join("a.md");
    fs::write(&path, "old").unwrap();
    let content = "x".repeat(10_000);
    let how = How {
        limit: Some((Resource::Fsize, 5000)),
        ..How::default()
    };
    let error = tool_with("fs_write", &json!({"path": path, "content": content}), &how).failure();
    assert!(error.contains("larger than a file may be here"), "{error}");
    assert!(error.contains("nothing was changed"), "{error}");
    let new = json!({"path": home.path().join("new"), "content": content, "mode": "create"});
    tool_with("fs_write", &new, &how).failure();
    assert_eq!(names(home.path()), ["a.md"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    let how = How {
        limit: Some((Resource::Fsize, 10_000)),
        ..How::default()
    };
    tool_with("fs_write", &json!({"path": path, "content": content}), &how).result();
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
    let append = json!({"path": path, "content": "xyz", "mode": "append"});
    let how = How {
        limit: Some((Resource::Fsize, 10_002)),
        ..How::default()
    };
    let error = tool_with("fs_write", &append, &how).failure();
    assert!(error.contains("2 of 3 bytes were appended"), "{error}");
}

#[test]
fn another_users_directory_takes_no_file_and_ones_own_does() {
    if !root("writing as another user") {
        return;
    }
    let home = directory();
    let theirs = home.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    give(&theirs, NOBODY, 0o755);
    let arguments = json!({"path": theirs.join("a.md"), "content": "x"});
    let error = tool_as(NOBODY + 1, "fs_write", &arguments).failure();
    assert!(
        error.contains("permission denied") && error.contains("nothing was changed"),
        "{error}"
    );
    assert_eq!(names(&theirs), [""; 0]);
    tool_as(NOBODY, "fs_write", &arguments).result();
    assert_eq!(fs::metadata(theirs.join("a.md")).unwrap().uid(), NOBODY);
}

#[test]
fn a_writable_file_in_a_closed_directory_is_written_in_place_and_that_is_said() {
    if !root("writing as another user") {
        return;
    }
    let home = directory();
    let path = home.path().join("a.md");
    fs::write(&path, "a longer old text").unwrap();
    give(&path, NOBODY, 0o640);
    let inode = fs::metadata(&path).unwrap().ino();
    let text = tool_as(NOBODY, "fs_write", &json!({"path": path, "content": "new"})).result();
    assert!(
        text.contains("replaced 17 bytes\n[fs_write: written in place, not atomically"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(
        (mode(&path), fs::metadata(&path).unwrap().ino()),
        (0o640, inode)
    );
    assert_eq!(names(home.path()), ["a.md"]);
}

#[test]
fn owner_and_group_stay_for_root_and_for_others_the_group_gains_nothing() {
    if !root("writing as another user") {
        return;
    }
    let home = directory();
    let path = home.path().join("a.md");
    fs::write(&path, "old").unwrap();
    give(&path, NOBODY, 0o660);
    let text = write(&json!({"path": path, "content": "by root"}));
    let kept = fs::metadata(&path).unwrap();
    assert_eq!(
        (kept.uid(), kept.gid(), mode(&path)),
        (NOBODY, NOBODY, 0o660),
        "{text}"
    );
    give(home.path(), NOBODY + 1, 0o755);
    fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
    let text = tool_as(
        NOBODY + 1,
        "fs_write",
        &json!({"path": path, "content": "by another"}),
    )
    .result();
    let changed = fs::metadata(&path).unwrap();
    assert_eq!(
        (changed.uid(), changed.gid(), mode(&path)),
        (NOBODY + 1, NOBODY + 1, 0o644)
    );
    assert!(
        text.contains("it now belongs to uid 64988, before to uid 64987"),
        "{text}"
    );
    assert!(
        text.contains("its group is now 64988, before 64987"),
        "{text}"
    );
}

#[test]
fn other_hard_links_keep_the_old_content_and_that_is_said() {
    let home = directory();
    let (path, other) = (home.path().join("a"), home.path().join("b"));
    fs::write(&path, "old").unwrap();
    fs::hard_link(&path, &other).unwrap();
    let text = write(&json!({"path": path, "content": "new"}));
    assert!(
        text.contains("1 other hard links keep the old content"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&other).unwrap(), "old");
}
