use super::*;

const LIMITS: Limits = Limits {
    memory: 5_000_000,
    pids: 7,
    cpu: 150,
    files: 256,
    wall_ms: 1000,
};

fn part(layers: &[Layer], files: &[(&str, &str)]) -> (tempfile::TempDir, Part) {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let part = Part {
        layers: layers.to_vec(),
        directory: directory.path().to_owned(),
        group: "/boxmaker-x/1".to_owned(),
    };
    (directory, part)
}

#[test]
fn limits_are_written_in_the_kernels_units_and_read_back() {
    let files = [
        ("memory.limit_in_bytes", ""),
        ("pids.max", ""),
        ("cpu.cfs_period_us", ""),
        ("cpu.cfs_quota_us", ""),
    ];
    let (directory, part) = part(&[Layer::Memory, Layer::Pids, Layer::Cpu], &files);
    part.limit(&LIMITS).unwrap();
    let read = |name| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("memory.limit_in_bytes"), "5000000");
    assert_eq!(read("pids.max"), "7");
    assert_eq!(read("cpu.cfs_quota_us"), "150000");
    assert!(
        !directory
            .path()
            .join("memory.memsw.limit_in_bytes")
            .exists()
    );
    assert_eq!(part.check(Layer::Pids, &LIMITS), Ok(()));
    assert_eq!(part.check(Layer::Cpu, &LIMITS), Ok(()));
    // The file keeps what was written; the kernel would have cut it to whole pages.
    assert_eq!(
        part.check(Layer::Memory, &LIMITS),
        Err("memory.limit_in_bytes is 5000000".to_owned())
    );
}

#[test]
fn a_limit_that_was_raised_or_removed_does_not_hold() {
    let (directory, part) = part(
        &[Layer::Pids, Layer::Memory],
        &[
            ("pids.max", "max\n"),
            ("memory.limit_in_bytes", "4997120\n"),
        ],
    );
    assert_eq!(
        part.check(Layer::Pids, &LIMITS),
        Err("pids.max is max".to_owned())
    );
    fs::write(directory.path().join("pids.max"), "8\n").unwrap();
    assert_eq!(
        part.check(Layer::Pids, &LIMITS),
        Err("pids.max is 8".to_owned())
    );
    fs::write(directory.path().join("pids.max"), "7\n").unwrap();
    assert_eq!(part.check(Layer::Pids, &LIMITS), Ok(()));
    assert_eq!(part.check(Layer::Memory, &LIMITS), Ok(()));
    fs::write(
        directory.path().join("memory.memsw.limit_in_bytes"),
        "9223372036854771712\n",
    )
    .unwrap();
    assert_eq!(
        part.check(Layer::Memory, &LIMITS),
        Err("memory.memsw.limit_in_bytes is 9223372036854771712".to_owned())
    );
}

#[test]
fn a_limit_file_that_is_not_there_is_an_error_and_is_not_made() {
    let (directory, part) = part(&[Layer::Pids], &[]);
    let error = part.limit(&LIMITS).unwrap_err();
    assert!(matches!(error, CgroupError::Limit { .. }), "{error:?}");
    assert!(!directory.path().join("pids.max").exists());
}

#[test]
fn members_are_read_and_foreign_ones_left_out() {
    let (directory, _) = part(&[Layer::Pids], &[("cgroup.procs", "12\n0\n34\n")]);
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
fn out_of_memory_kills_are_counted() {
    let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
    assert_eq!(oom_kills(text), Some(3));
    assert_eq!(oom_kills("under_oom 0\n"), None);
}
