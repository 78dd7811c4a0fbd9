//! Which paths there are in a sandbox: all of them by a walk through its root from outside, and the ones that a tool
//! might look for by asking from inside.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use boxmaker_tests::binaries::{binary, skipped_without_root};
use confine::Plan;
use confine::plan::Mount;

use crate::room::{Granted, plan, prepare, run, text};

/// What stands at a path of the root.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Directory,
    File,
    Device,
    Link(PathBuf),
}

/// Everything in `root` but what lies in the mounts of the plan, which is the host's or the kernel's.
fn walk(root: &Path, plan: &Plan) -> BTreeMap<String, Entry> {
    let mut found = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(root.join(directory.trim_start_matches('/'))).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{directory}/{}", entry.file_name().to_str().unwrap());
            // Of what is mounted there; the directory knows only the place for it.
            let kind = entry.metadata().unwrap().file_type();
            let what = if kind.is_dir() {
                Entry::Directory
            } else if kind.is_symlink() {
                Entry::Link(fs::read_link(entry.path()).unwrap())
            } else if kind.is_char_device() {
                Entry::Device
            } else {
                Entry::File
            };
            if what == Entry::Directory && !is_foreign(plan, &path) {
                open.push(path.clone());
            }
            found.insert(path, what);
        }
    }
    found
}

/// Whether what lies below is not made by the stage.
fn is_foreign(plan: &Plan, at: &str) -> bool {
    plan.mounts.iter().any(|mount| match mount {
        Mount::View { path, .. } | Mount::Tree { path, .. } => path == at,
        Mount::Proc => at == "/proc",
        _ => false,
    })
}

/// What the plan says there is, with the directories that lead to it.
fn planned(plan: &Plan) -> BTreeMap<String, Entry> {
    let mut all = BTreeMap::new();
    let mut add = |path: &str, what| {
        let parents = Path::new(path).ancestors().skip(1);
        for parent in parents.filter(|parent| *parent != Path::new("/")) {
            all.entry(text(parent)).or_insert(Entry::Directory);
        }
        all.insert(path.to_owned(), what);
    };
    for mount in &plan.mounts {
        match mount {
            Mount::View { path, directory }
            | Mount::Tree {
                path, directory, ..
            } => {
                let what = if *directory {
                    Entry::Directory
                } else {
                    Entry::File
                };
                add(path, what);
            }
            Mount::Link { path, target } => add(path, Entry::Link(target.into())),
            Mount::Proc => add("/proc", Entry::Directory),
            Mount::Scratch { .. } => add("/tmp", Entry::Directory),
            Mount::Devices => {
                for name in ["null", "zero", "full", "random", "urandom"] {
                    add(&format!("/dev/{name}"), Entry::Device);
                }
                let links = [
                    ("fd", "/proc/self/fd"),
                    ("shm", "/tmp"),
                    ("stdin", "/proc/self/fd/0"),
                    ("stdout", "/proc/self/fd/1"),
                    ("stderr", "/proc/self/fd/2"),
                ];
                for (name, target) in links {
                    add(&format!("/dev/{name}"), Entry::Link(target.into()));
                }
            }
        }
    }
    all
}

#[test]
fn there_is_nothing_in_the_root_but_what_the_plan_says() {
    if skipped_without_root("there_is_nothing_in_the_root") {
        return;
    }
    let granted = Granted::new();
    let plan = plan(&[&text(&binary("boxmaker-misbehave"))], &granted);
    let (prepared, _ends) = prepare(plan.clone(), &granted, true);
    let root = PathBuf::from(format!("/proc/{}/root", prepared.pid()));
    assert_eq!(walk(&root, &plan), planned(&plan));
    // What is mounted there is what the plan names, not something else under its name.
    let of = |path: &Path| {
        let stat = rustix::fs::stat(path).unwrap();
        (stat.st_dev, stat.st_ino)
    };
    for mount in &plan.mounts {
        if let Mount::View { path, .. } | Mount::Tree { path, .. } = mount {
            let inside = root.join(path.trim_start_matches('/'));
            assert_eq!(of(&inside), of(Path::new(path)), "{path}");
        }
    }
    // The twin: on the host there is more.
    let host: BTreeSet<String> = fs::read_dir("/")
        .unwrap()
        .map(|entry| format!("/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    let top = planned(&plan)
        .into_keys()
        .filter(|path| path.matches('/').count() == 1);
    assert!(host.is_superset(&top.collect()));
    for absent in ["/root", "/home", "/sys"] {
        assert!(host.contains(absent) && !planned(&plan).contains_key(absent));
    }
}

/// What `stat -c %n` says of these paths, run by `run`: those that it found, and its complaints.
fn asked(
    paths: &[String],
    run: impl FnOnce(&[&str]) -> (String, String),
) -> (Vec<String>, Vec<String>) {
    let words = ["/usr/bin/stat", "-c", "%n"].into_iter();
    let words: Vec<&str> = words.chain(paths.iter().map(String::as_str)).collect();
    let (stdout, stderr) = run(&words);
    let lines = |text: String| text.lines().map(str::to_owned).collect();
    (lines(stdout), lines(stderr))
}

#[test]
fn a_tool_does_not_find_what_the_host_has_beside_its_plan() {
    if skipped_without_root("a_tool_does_not_find") {
        return;
    }
    let granted = Granted::new();
    let own = text(&std::env::current_exe().unwrap());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let hidden = [
        "/etc/passwd",
        "/etc/shadow",
        "/etc/hostname",
        "/root",
        "/home",
        "/var/log",
        "/var/lib",
        "/run",
        "/sys",
        "/sys/fs/cgroup",
        "/boot",
        "/proc/net",
        "/proc/sys",
        "/proc/kcore",
        "/proc/cmdline",
        "/dev/mem",
        "/dev/tty",
        "/dev/pts",
        manifest,
        &own,
        &text(&granted.path("other")),
        &text(&granted.path("other/file")),
    ];
    // What this host has not would prove nothing.
    let hidden: Vec<String> = hidden
        .into_iter()
        .filter(|path| fs::symlink_metadata(path).is_ok())
        .map(str::to_owned)
        .collect();
    assert!(hidden.len() > 15, "{hidden:?}");
    let shown = ["/usr/bin/stat", "/dev/null", "/proc/1/status"].map(str::to_owned);
    let shown: Vec<String> = shown
        .into_iter()
        .chain([
            text(&granted.path("notes/file")),
            text(&granted.path("out/file")),
        ])
        .collect();
    let paths = [shown.clone(), hidden.clone()].concat();

    let (found, missed) = asked(&paths, |words| {
        let (prepared, ends) = prepare(plan(words, &granted), &granted, false);
        let (status, stdout, stderr) = run(prepared, ends, "");
        assert_eq!(status, 1);
        (stdout, stderr)
    });
    assert_eq!(found, shown);
    assert_eq!(missed.len(), hidden.len(), "{missed:?}");
    for (said, path) in missed.iter().zip(&hidden) {
        let not_there = format!("'{path}': No such file or directory");
        assert!(said.ends_with(&not_there), "{said}");
    }

    // The twin: the same program without a sandbox finds all of it.
    let (found, missed) = asked(&paths, |words| {
        let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    });
    assert_eq!((found, missed), (paths, vec![]));
}

#[test]
fn a_tool_cannot_list_the_directories_that_lead_to_its_trees() {
    if skipped_without_root("a_tool_cannot_list_the_directories") {
        return;
    }
    let granted = Granted::new();
    let notes = granted.path("notes");
    let closed = ["/", "/dev", "/var", "/var/tmp", "/etc"].map(str::to_owned);
    let closed = [&closed[..], &[text(notes.parent().unwrap())]].concat();
    let words = |list: &[String]| -> Vec<String> {
        let words = ["/usr/bin/ls", "-1A"].into_iter().map(str::to_owned);
        words.chain(list.iter().cloned()).collect()
    };
    let inside = |list: &[String]| {
        let words = words(list);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (prepared, ends) = prepare(plan(&words, &granted), &granted, false);
        run(prepared, ends, "")
    };
    let (status, stdout, stderr) = inside(&closed);
    assert_eq!((status, stdout.as_str()), (2, ""));
    let mut refused: Vec<&str> = stderr.lines().collect();
    refused.sort_unstable();
    let mut expected: Vec<String> = closed
        .iter()
        .map(|path| format!("/usr/bin/ls: cannot open directory '{path}': Permission denied"))
        .collect();
    expected.sort_unstable();
    assert_eq!(refused, expected);
    // The twins: what is granted or its own is listed inside, and all of it outside.
    let (status, stdout, _) = inside(&[text(&notes)]);
    assert_eq!((status, stdout.as_str()), (0, "file\n"));
    let (status, stdout, _) = inside(&["/proc".to_owned()]);
    assert_eq!((status, stdout.as_str()), (0, "1\n2\nself\nthread-self\n"));
    let words = words(&closed);
    assert!(
        Command::new(&words[0])
            .args(&words[1..])
            .output()
            .unwrap()
            .status
            .success()
    );
}
