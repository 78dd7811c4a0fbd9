//! The back end on this host's own hierarchies; where a controller is missing or the caller is not root, what can be
//! shown is that the layer is reported as missing.

use std::io::Write as _;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

const LIMITS: Limits = Limits {
    memory: 32 << 20,
    pids: 8,
    cpu: 50,
    files: 256,
    wall_ms: 1000,
};

fn backend() -> Backend {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("test-{}-{number}", std::process::id());
    Backend::detect(CgroupChoice::Auto, &name).unwrap()
}

/// Whether the layer is limited on this host; says so in the output if not.
fn limits(backend: &Backend, wanted: Layer) -> bool {
    let missing = backend.missing().iter().find(|(layer, _)| *layer == wanted);
    if let Some((layer, reason)) = missing {
        println!("skipped for {layer}: {reason}");
    }
    missing.is_none()
}

fn join(group: &Group, child: &Child) {
    for (_, file) in group.join_files().unwrap() {
        let mut file = fs::File::from(file);
        file.write_all(child.id().to_string().as_bytes()).unwrap();
    }
}

/// A shell that first waits for its line, so that it can be put into a group before it does anything.
fn shell(script: &str) -> Child {
    Command::new("/bin/sh")
        .args(["-c", &format!("read line; {script}")])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

fn go(child: &mut Child) {
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
}

#[test]
fn names_that_are_not_one_directory_are_refused() {
    let backend = backend();
    let long = "x".repeat(65);
    for bad in ["", ".", "..", "a/b", "a b", long.as_str()] {
        assert!(matches!(
            Backend::detect(CgroupChoice::Auto, bad),
            Err(CgroupError::Name(_))
        ));
        assert!(matches!(
            backend.create(bad, &LIMITS),
            Err(CgroupError::Name(_))
        ));
    }
    backend
        .create("a.b_C-1", &LIMITS)
        .unwrap()
        .remove()
        .unwrap();
}

#[test]
fn without_a_back_end_every_limit_is_missing_and_nothing_is_made() {
    let none = Backend::detect(CgroupChoice::None, "none").unwrap();
    none.clean().unwrap();
    let group = none.create("1", &LIMITS).unwrap();
    assert!(group.join_files().unwrap().is_empty());
    let measured = group.measure(std::process::id());
    let reason = "the configuration says cgroup = \"none\"";
    for layer in [Layer::Memory, Layer::Pids, Layer::Cpu] {
        assert!(measured.contains(&(layer, Err(reason.to_owned()))));
    }
    assert_eq!(group.oom_kills(), 0);
    group.kill().unwrap();
    group.remove().unwrap();
}

#[test]
fn a_member_measures_as_limited_and_a_stranger_does_not() {
    let backend = backend();
    let group = backend.create("1", &LIMITS).unwrap();
    let mut child = shell("exec sleep 1000");
    let stranger = group.measure(child.id());
    join(&group, &child);
    for ((layer, before), (_, after)) in stranger.iter().zip(group.measure(child.id())) {
        if limits(&backend, *layer) {
            let before = before.clone().unwrap_err();
            assert!(before.starts_with("the process is in /"), "{before}");
            assert_eq!(after, Ok(()), "{layer}");
        } else {
            assert!(after.is_err());
        }
    }
    // A limit that is taken away after the start does not hold any more.
    if limits(&backend, Layer::Pids) {
        let part = group
            .parts
            .iter()
            .find(|part| part.layers.contains(&Layer::Pids));
        fs::write(part.unwrap().directory.join("pids.max"), "max").unwrap();
        let pids = &group.measure(child.id())[1];
        assert_eq!(pids, &(Layer::Pids, Err("pids.max is max".to_owned())));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    group.remove().unwrap();
}

#[test]
fn a_group_that_exists_is_never_taken() {
    let backend = backend();
    if backend.hierarchies.is_empty() {
        return println!("skipped: {:?}", backend.missing());
    }
    let group = backend.create("1", &LIMITS).unwrap();
    let error = backend.create("1", &LIMITS).unwrap_err();
    let CgroupError::Create { source, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), io::ErrorKind::AlreadyExists);
    assert!(group.parts.iter().all(|part| part.directory.is_dir()));
    group.remove().unwrap();
    // With the last group its directory is gone too, and it can be made anew.
    let base = backend.hierarchies[0].directory.join(&backend.directory);
    assert!(!base.exists());
    backend.create("1", &LIMITS).unwrap().remove().unwrap();
}

#[test]
fn killing_a_group_ends_processes_that_fork_and_ignore_signals() {
    let backend = backend();
    if backend.hierarchies.is_empty() {
        return println!("skipped: {:?}", backend.missing());
    }
    let group = backend.create("1", &LIMITS).unwrap();
    let mut child = shell("trap '' TERM INT; sleep 1000 & sleep 1000 & wait");
    join(&group, &child);
    go(&mut child);
    let directory = &group.parts[0].directory;
    let start = std::time::Instant::now();
    while group::members(directory).unwrap().len() < 3 {
        assert!(start.elapsed().as_secs() < 30, "the shell did not fork");
        std::thread::yield_now();
    }
    assert!(matches!(
        group::remove(directory),
        Err(CgroupError::Busy(_))
    ));
    group.kill().unwrap();
    assert_eq!(group::members(directory).unwrap(), []);
    child.wait().unwrap();
    group.remove().unwrap();
}

#[test]
fn what_a_crash_left_is_killed_and_removed() {
    let backend = backend();
    if backend.hierarchies.is_empty() {
        return println!("skipped: {:?}", backend.missing());
    }
    let group = backend.create("left", &LIMITS).unwrap();
    let mut child = shell("exec sleep 1000");
    join(&group, &child);
    drop(group);
    backend.clean().unwrap();
    assert!(!child.wait().unwrap().success());
    for hierarchy in &backend.hierarchies {
        assert!(!hierarchy.directory.join(&backend.directory).exists());
    }
    backend.clean().unwrap();
}

#[test]
fn more_processes_than_allowed_are_refused_and_memory_past_the_limit_kills() {
    let backend = backend();
    if limits(&backend, Layer::Pids) {
        let group = backend.create("pids", &LIMITS).unwrap();
        let script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done 2>/dev/null; exit 3";
        let mut free = shell("for i in 1 2 3 4 5 6 7 8 9; do true & done; wait; exit 3");
        go(&mut free);
        assert_eq!(free.wait().unwrap().code(), Some(3));
        let mut child = shell(script);
        join(&group, &child);
        go(&mut child);
        // dash gives up with 2 when fork fails.
        assert_ne!(child.wait().unwrap().code(), Some(3));
        group.kill().unwrap();
        group.remove().unwrap();
    }
    if limits(&backend, Layer::Memory) {
        let group = backend.create("memory", &LIMITS).unwrap();
        let script = "x=x; while true; do x=$x$x; done";
        let mut child = shell(script);
        join(&group, &child);
        assert_eq!(group.oom_kills(), 0);
        go(&mut child);
        assert!(!child.wait().unwrap().success());
        assert_eq!(group.oom_kills(), 1);
        group.remove().unwrap();
    }
}

#[test]
fn demanding_v1_succeeds_only_where_all_three_are() {
    let missing = backend().missing().to_vec();
    match Backend::detect(CgroupChoice::V1, "demanded") {
        Ok(_) => assert_eq!(missing, []),
        Err(CgroupError::Demanded { layer, reason }) => assert_eq!(missing[0], (layer, reason)),
        Err(error) => panic!("{error}"),
    }
}
