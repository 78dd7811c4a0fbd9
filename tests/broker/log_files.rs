//! brokerd cannot reach the files of the log, proved from outside: what its sandbox shows, and who it is.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::Brokerd;
use boxmaker_tests::system::processes::Process;

use crate::calls::Broker;
use crate::homes::home;

/// What `/proc` shows of a process under `name`.
fn of(process: &Process, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{name}", process.pid))
}

/// `path` as the process would find it.
fn seen_by(process: &Process, path: &Path) -> PathBuf {
    of(process, "root").join(path.strip_prefix("/").unwrap())
}

fn check(brokerd: &Process, supervisor: &Process, home: &Path) {
    let files = [home.join("audit"), home.join("anchor"), home.join("run")];
    for path in &files {
        assert!(seen_by(supervisor, path).exists(), "{}", path.display());
        assert!(!seen_by(brokerd, path).exists(), "{}", path.display());
    }
    assert!(!seen_by(brokerd, home).exists());
    let mounts = fs::read_to_string(of(brokerd, "mountinfo")).unwrap();
    let home_text = home.to_string_lossy();
    assert!(!mounts.contains(&*home_text), "{mounts}");
    // Everything that is mounted can only be read, but its scratch and /proc.
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (point, options) = (fields[4], fields[5]);
        assert!(
            options.split(',').any(|option| option == "ro") || ["/tmp", "/proc"].contains(&point),
            "{line}"
        );
    }

    let status = fs::read_to_string(of(brokerd, "status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap()
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let uids = field("Uid:");
    let uid: u32 = uids[0].parse().unwrap();
    assert!(
        uid != 0 && uids.iter().all(|other| *other == uids[0]),
        "{uids:?}"
    );
    let gids = field("Gid:");
    assert!(gids.iter().all(|gid| gid != "0"), "{gids:?}");
    assert_eq!(field("Groups:"), Vec::<String>::new());
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(set), ["0000000000000000"], "{set}");
    }

    // Were it to find them, it could not open them either.
    for path in walk(&home.join("audit"))
        .into_iter()
        .chain([home.join("anchor")])
    {
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.uid(), 0, "{}", path.display());
        assert_eq!(
            metadata.mode() & 0o007,
            0,
            "{}: {:o}",
            path.display(),
            metadata.mode()
        );
        assert!(gids.iter().all(|gid| *gid != metadata.gid().to_string()));
    }
    // And it holds nothing open that is a file: sockets, pipes, and what the kernel makes up.
    for descriptor in fs::read_dir(of(brokerd, "fd")).unwrap() {
        let target = fs::read_link(descriptor.unwrap().path()).unwrap();
        let target = target.to_string_lossy();
        let kinds = ["socket:", "pipe:", "anon_inode:", "/memfd:boxmaker-policy"];
        assert!(
            kinds.iter().any(|kind| target.starts_with(kind)),
            "{target}"
        );
    }
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut found: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(!found.is_empty());
    found.push(directory.to_owned());
    found
}

#[test]
fn a_compromised_brokerd_sees_no_file_of_the_log_and_may_open_none() {
    if skipped_without_root("a_compromised_brokerd_sees_no_file_of_the_log_and_may_open_none") {
        return;
    }
    let mut broker = Broker::up();
    broker.call("echo", "echo", r#"{"text":"x"}"#);
    let brokerd = broker.system.brokerd(&broker.home);
    check(&brokerd, &broker.system.process, &broker.home.home());
}

#[test]
fn the_real_brokerd_sees_no_file_of_the_log_and_may_open_none() {
    if skipped_without_root("the_real_brokerd_sees_no_file_of_the_log_and_may_open_none") {
        return;
    }
    let home = home(Brokerd::Real);
    let mut system = home.start();
    system.wait_up(&home, 0);
    check(&system.brokerd(&home), &system.process, &home.home());
}
