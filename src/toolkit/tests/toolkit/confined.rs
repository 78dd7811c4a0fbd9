//! Writing with nothing but the rights that a write grant gives, and on a full disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus,
};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use serde_json::json;

use crate::run::{TOOLKIT, directory, names, root, tool};

/// Runs `body` on a thread whose children may execute programs and have only `rights` on `path` besides.
fn with_rights<T: Send + 'static>(
    path: &Path,
    rights: BitFlags<AccessFs>,
    body: impl FnOnce() -> T + Send + 'static,
) -> T {
    with_all_rights(&[(path.to_owned(), rights)], body)
}

/// The same with rights on several paths.
fn with_all_rights<T: Send + 'static>(
    rights: &[(PathBuf, BitFlags<AccessFs>)],
    body: impl FnOnce() -> T + Send + 'static,
) -> T {
    let rights = rights.to_vec();
    thread::spawn(move || {
        let mut ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(ABI::V5))
            .unwrap()
            .create()
            .unwrap();
        let execute = AccessFs::Execute | AccessFs::ReadFile;
        let programs = ["/usr", "/lib", "/lib64", "/bin", "/nix/store"].map(PathBuf::from);
        for program in programs
            .into_iter()
            .chain([PathBuf::from(TOOLKIT)])
            .filter(|path| path.exists())
        {
            ruleset = ruleset
                .add_rule(PathBeneath::new(PathFd::new(program).unwrap(), execute))
                .unwrap();
        }
        for (path, rights) in rights {
            ruleset = ruleset
                .add_rule(PathBeneath::new(PathFd::new(path).unwrap(), rights))
                .unwrap();
        }
        assert_ne!(
            ruleset.restrict_self().unwrap().ruleset,
            RulesetStatus::NotEnforced
        );
        body()
    })
    .join()
    .unwrap()
}

/// What a call that writes one file gets on the file's directory.
fn write_files() -> BitFlags<AccessFs> {
    AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile
}

/// Runs `body` on a thread with a mount namespace of its own.
fn with_mounts<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )
        .unwrap();
        body()
    })
    .join()
    .unwrap()
}

#[test]
fn replacing_creating_and_appending_need_no_right_to_read() {
    let home = directory();
    let at = |name: &str| home.path().join(name);
    fs::write(at("old"), "old").unwrap();
    let (old, new, log) = (at("old"), at("new"), at("log"));
    with_rights(home.path(), write_files(), move || {
        let error = tool("fs_read", &json!({"path": old})).failure();
        assert!(error.contains("permission denied"), "{error}");
        assert!(
            tool("fs_list", &json!({"path": old.parent()}))
                .failure()
                .contains("permission denied")
        );
        let text = tool("fs_write", &json!({"path": old, "content": "replaced"})).result();
        assert!(text.ends_with("old: replaced 3 bytes\n"), "{text}");
        let text = tool(
            "fs_write",
            &json!({"path": new, "content": "created", "mode": "create"}),
        )
        .result();
        assert!(text.ends_with("new: created\n"), "{text}");
        let append = json!({"path": log, "content": "line\n", "mode": "append"});
        tool("fs_write", &append).result();
        tool("fs_write", &append).result();
    });
    assert_eq!(
        tool("fs_read", &json!({"path": at("old")})).result(),
        "replaced"
    );
    assert_eq!(fs::read_to_string(at("new")).unwrap(), "created");
    assert_eq!(fs::read_to_string(at("log")).unwrap(), "line\nline\n");
    assert_eq!(names(home.path()), ["log", "new", "old"]);
}

#[test]
fn an_edit_needs_to_read_one_file_beside_the_right_to_write() {
    let home = directory();
    let at = |name: &str| home.path().join(name);
    fs::write(at("one"), "old").unwrap();
    fs::write(at("two"), "old").unwrap();
    let (one, two) = (at("one"), at("two"));
    let both = [
        (home.path().to_owned(), write_files()),
        (one.clone(), AccessFs::ReadFile.into()),
    ];
    with_all_rights(&both, move || {
        let edit = |path: &Path| json!({"path": path, "old": "old", "new": "new"});
        let text = tool("fs_edit", &edit(&one)).result();
        assert!(text.ends_with("3 bytes before, 3 now\n"), "{text}");
        for path in [&one, &two] {
            let error = tool("fs_edit", &edit(path)).failure();
            assert!(
                error.contains("permission denied; an edit needs"),
                "{error}"
            );
        }
    });
    assert_eq!(fs::read_to_string(at("one")).unwrap(), "new");
    assert_eq!(fs::read_to_string(at("two")).unwrap(), "old");
    assert_eq!(names(home.path()), ["one", "two"]);
}

#[test]
fn with_a_right_on_one_file_it_is_written_in_place() {
    let home = directory();
    let path = home.path().join("one");
    fs::write(&path, "a long old text").unwrap();
    let inside = path.clone();
    with_rights(&path, AccessFs::WriteFile | AccessFs::Truncate, move || {
        let text = tool("fs_write", &json!({"path": inside, "content": "new"})).result();
        assert!(
            text.contains("[fs_write: written in place, not atomically"),
            "{text}"
        );
        tool(
            "fs_write",
            &json!({"path": inside, "content": "er", "mode": "append"}),
        )
        .result();
        let beside = inside.with_file_name("two");
        let error = tool("fs_write", &json!({"path": beside, "content": "x"})).failure();
        assert!(error.contains("permission denied"), "{error}");
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
    assert_eq!(names(home.path()), ["one"]);
}

#[test]
fn a_directory_where_no_file_may_be_made_gets_no_temporary_one() {
    let home = directory();
    let path = home.path().join("one");
    fs::write(&path, "old").unwrap();
    let inside = path.clone();
    let rights = AccessFs::WriteFile | AccessFs::Truncate;
    with_rights(home.path(), rights, move || {
        let text = tool("fs_write", &json!({"path": inside, "content": "new"})).result();
        assert!(
            text.contains("because its directory takes no new file"),
            "{text}"
        );
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(names(home.path()), ["one"]);
}

#[test]
fn a_file_that_is_a_mount_point_is_written_in_place_and_no_temporary_file_stays() {
    if !root("mounting") {
        return;
    }
    let home = directory();
    let path = home.path().join("one");
    fs::write(&path, "a long old text").unwrap();
    let inside = path.clone();
    with_mounts(move || {
        mount_bind(&inside, &inside).unwrap();
        let text = tool("fs_write", &json!({"path": inside, "content": "new"})).result();
        assert!(
            text.contains("in place, not atomically, because nothing may be renamed over it"),
            "{text}"
        );
        assert_eq!(fs::read_to_string(&inside).unwrap(), "new");
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(names(home.path()), ["one"]);
}

#[test]
fn a_full_disk_leaves_the_old_file_whole_and_no_temporary_one() {
    if !root("mounting") {
        return;
    }
    let home = directory();
    let at = home.path().to_owned();
    with_mounts(move || {
        let size = c"size=64k".to_owned();
        mount("tmpfs", &at, "tmpfs", MountFlags::empty(), size.as_c_str()).unwrap();
        let path = at.join("one");
        fs::write(&path, "old").unwrap();
        let large = "x".repeat(100_000);
        let error = tool("fs_write", &json!({"path": path, "content": large})).failure();
        assert!(
            error.contains("the disk is full; free some space"),
            "{error}"
        );
        assert!(error.contains("nothing was changed"), "{error}");
        tool(
            "fs_write",
            &json!({"path": at.join("two"), "content": large, "mode": "create"}),
        )
        .failure();
        assert_eq!(names(&at), ["one"]);
        // In place, too: the space is reserved before a byte is changed.
        mount_bind(&path, &path).unwrap();
        let error = tool("fs_write", &json!({"path": path, "content": large})).failure();
        assert!(error.contains("nothing was changed"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let small = "x".repeat(30_000);
        tool("fs_write", &json!({"path": path, "content": small})).result();
        assert_eq!(fs::read_to_string(&path).unwrap(), small);
        assert_eq!(names(&at), ["one"]);
    });
}
