use super::*;

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

#[test]
fn members_are_read_and_foreign_ones_left_out() {
    let directory = directory(&[("cgroup.procs", "12\n0\n34\n")]);
    let pids = members(directory.path()).unwrap();
    let raw: Vec<_> = pids.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    assert_eq!(raw, [12, 34]);
    assert_eq!(members(Path::new("/nonexistent")).unwrap(), []);
    assert!(!holds_caller(directory.path()));
    let own = format!("12\n{}\n", std::process::id());
    fs::write(directory.path().join("cgroup.procs"), own).unwrap();
    assert!(holds_caller(directory.path()));
}

#[test]
fn out_of_memory_kills_are_counted_in_the_file_of_either_version() {
    for (version, file, text) in [
        (
            Version::V1,
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        ),
        (
            Version::V2,
            "memory.events",
            "low 0\noom 1\noom_kill 3\noom_group_kill 1\n",
        ),
    ] {
        let directory = directory(&[(file, text)]);
        let part = Part {
            version,
            layers: vec![Layer::Memory],
            directory: directory.path().to_owned(),
            group: "/boxmaker-x/1".to_owned(),
        };
        assert_eq!(part.oom_kills(), Some(3));
        fs::write(directory.path().join(file), "oom_group_kill 1\n").unwrap();
        assert_eq!(part.oom_kills(), None);
    }
}

#[test]
fn a_group_is_empty_by_what_the_kernel_counts_or_else_by_its_members() {
    let is_empty_with = |files: &[(&str, &str)]| is_empty(directory(files).path()).unwrap();
    let populated = ("cgroup.events", "populated 1\nfrozen 0\n");
    let unpopulated = ("cgroup.events", "populated 0\nfrozen 1\n");
    // Processes of a group below, or of a foreign pid namespace, are not among the members.
    assert!(!is_empty_with(&[populated, ("cgroup.procs", "")]));
    assert!(is_empty_with(&[unpopulated, ("cgroup.procs", "")]));
    assert!(!is_empty_with(&[("cgroup.procs", "12\n")]));
    assert!(is_empty_with(&[("cgroup.procs", "")]));
    assert!(is_empty(Path::new("/nonexistent")).unwrap());
}

#[test]
fn a_group_with_cgroup_kill_is_killed_by_it_and_one_that_stays_is_busy() {
    let populated = ("cgroup.events", "populated 1\n");
    let with = directory(&[populated, ("cgroup.kill", ""), ("cgroup.procs", "")]);
    let killed = kill_all(with.path());
    assert!(matches!(killed, Err(CgroupError::Busy(_))), "{killed:?}");
    let read = |name: &str| fs::read_to_string(with.path().join(name)).unwrap();
    assert_eq!(read("cgroup.kill"), "1");
    // An older kernel does not have it, and it is not made.
    let mut child = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let member = child.id().to_string();
    let without = directory(&[populated, ("cgroup.procs", member.as_str())]);
    let killed = kill_all(without.path());
    assert!(matches!(killed, Err(CgroupError::Busy(_))), "{killed:?}");
    assert!(!child.wait().unwrap().success());
    assert!(!without.path().join("cgroup.kill").exists());
}
