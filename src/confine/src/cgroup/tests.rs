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
    let backend = Backend::detect(CgroupChoice::Auto, &name).unwrap();
    backend.settle().unwrap()
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
fn demanding_a_version_succeeds_only_where_it_limits_all_three() {
    let in_v1 = |backend: &Backend| {
        let layers = backend.hierarchies.iter().map(|one| one.layers.len());
        backend.unified.is_none() && layers.sum::<usize>() == 3
    };
    let auto = Backend::detect(CgroupChoice::Auto, "demanded").unwrap();
    for (choice, name) in [(CgroupChoice::V1, "v1"), (CgroupChoice::V2, "v2")] {
        match Backend::detect(choice, "demanded") {
            Ok(backend) => {
                assert_eq!(backend.missing(), []);
                assert_eq!(auto.missing(), []);
                assert_eq!(in_v1(&backend), choice == CgroupChoice::V1);
            }
            Err(error) => {
                assert!(choice == CgroupChoice::V2 || !in_v1(&auto));
                let text = error.to_string();
                assert!(
                    text.starts_with(&format!("cgroup = \"{name}\", but ")),
                    "{text}"
                );
                let CgroupError::Demanded { reason, .. } = error else {
                    panic!("{text}");
                };
                assert!(text.contains(&reason));
            }
        }
    }
}

/// A group without limits where this host has v2; `None`, said aloud, where none can be made.
fn unified_group(test: &str) -> Option<Group> {
    let read = |path: &str| fs::read_to_string(path).unwrap();
    let mounts = mounts::mounts(&read("/proc/self/mountinfo"));
    let own = mounts::unified_group(&read("/proc/self/cgroup")).unwrap_or_default();
    let Some(mount) = mounts.iter().find(|mount| mount.unified) else {
        println!("skipped: {test}: cgroup v2 is not mounted");
        return None;
    };
    let made = mount.directory(&own, &group::holds_caller).and_then(|own| {
        let directory = own.join(format!("boxmaker-{test}-{}", std::process::id()));
        let made = fs::create_dir(&directory).map_err(|error| error.to_string());
        made.map(|()| directory)
    });
    match made {
        Ok(directory) => Some(Group {
            parts: vec![Part {
                version: Version::V2,
                layers: Vec::new(),
                directory,
                group: String::new(),
            }],
            missing: Vec::new(),
            limits: LIMITS,
        }),
        Err(reason) => {
            println!("skipped: {test}: no group can be made in cgroup v2: {reason}");
            None
        }
    }
}

#[test]
fn killing_a_v2_group_ends_what_forks_what_ignores_signals_and_what_is_frozen() {
    let Some(group) = unified_group("killing") else {
        return;
    };
    let directory = &group.parts[0].directory;
    let mut child = shell("trap '' TERM INT; sleep 1000 & sleep 1000 & wait");
    let joined = fs::write(directory.join("cgroup.procs"), child.id().to_string());
    if let Err(error) = joined {
        println!("skipped: killing: no process can be put into a group of cgroup v2: {error}");
        child.kill().unwrap();
        child.wait().unwrap();
        return group.remove().unwrap();
    }
    go(&mut child);
    let start = std::time::Instant::now();
    let wait_for = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(start.elapsed().as_secs() < 30, "the state is not reached");
            std::thread::yield_now();
        }
    };
    wait_for(&|| group::members(directory).unwrap().len() == 3);
    assert_eq!(group::is_populated(directory).unwrap(), Some(true));
    let busy = group::remove(directory);
    assert!(matches!(busy, Err(CgroupError::Busy(_))), "{busy:?}");
    fs::write(directory.join("cgroup.freeze"), "1").unwrap();
    let events = || fs::read_to_string(directory.join("cgroup.events")).unwrap();
    wait_for(&|| events().contains("frozen 1"));
    group.kill().unwrap();
    assert_eq!(group::is_populated(directory).unwrap(), Some(false));
    assert!(!child.wait().unwrap().success());
    group.remove().unwrap();
    assert!(!directory.exists());
}

#[test]
fn what_is_left_in_a_v2_group_and_below_it_is_killed_and_removed() {
    let Some(group) = unified_group("leftovers") else {
        return;
    };
    let base = &group.parts[0].directory;
    let below = base.join("1");
    fs::create_dir(&below).unwrap();
    let mut child = shell("exec sleep 1000");
    if let Err(error) = fs::write(below.join("cgroup.procs"), child.id().to_string()) {
        println!("skipped: leftovers: no process can be put into a group of cgroup v2: {error}");
        child.kill().unwrap();
    } else {
        assert_eq!(group::is_populated(base).unwrap(), Some(true));
    }
    clean(base).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(!base.exists());
}
