//! The program that tells everything it can see, in the sandbox and outside.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use boxmaker_tests::binaries::{binary, skipped_without_root};
use confine::Plan;
use nix::unistd::{Gid, setgroups};
use rustix::io::FdFlags;
use serde_json::{Value, json};

use crate::expected::{Mounted, mounts};
use crate::room::{Granted, Outside, plan, prepare, run, text};

const INPUT: &str = r#"{"acts":["inspect"]}"#;

/// A group that no sandbox may have.
const GROUP: u32 = 4242;

/// What the program saw, and what there was to be seen.
struct Sight {
    inside: Value,
    outside: Value,
    plan: Plan,
    pipes: Vec<String>,
    /// A descriptor that this process passes on to whatever it executes.
    inheritable: i32,
}

/// Runs the program in a sandbox and without one, from the same process.
fn sight() -> Sight {
    setgroups(&[Gid::from_raw(GROUP)]).unwrap();
    let leak = File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&leak, FdFlags::empty()).unwrap();
    let granted = Granted::new();
    let program = binary("boxmaker-misbehave");
    let plan = plan(&[&text(&program)], &granted);
    let (prepared, ends) = prepare(plan.clone(), &granted, true);
    let pipes = Outside::names(&ends);
    let (status, stdout, stderr) = run(prepared, ends, INPUT);
    assert_eq!((status, stderr.as_str()), (0, ""));

    let mut twin = Command::new(program);
    twin.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut twin = twin.spawn().unwrap();
    let mut stdin = twin.stdin.take().unwrap();
    stdin.write_all(INPUT.as_bytes()).unwrap();
    drop(stdin);
    let output = twin.wait_with_output().unwrap();
    Sight {
        inside: told(stdout.as_bytes()),
        outside: told(&output.stdout),
        plan,
        pipes,
        inheritable: leak.as_raw_fd(),
    }
}

/// What the one line says.
fn told(stdout: &[u8]) -> Value {
    let line: Value = serde_json::from_slice(stdout).unwrap();
    assert_eq!(
        (&line["act"], &line["outcome"]),
        (&json!("inspect"), &json!("ok"))
    );
    line["detail"].clone()
}

/// The mounts that a program saw, without what the host decides: times of access, foreign file systems.
fn seen_mounts(told: &Value) -> Vec<Mounted> {
    let mut all: Vec<Mounted> = array(&told["mountinfo"]).iter().map(mounted).collect();
    all.sort();
    all
}

fn mounted(line: &Value) -> Mounted {
    let fields: Vec<&str> = line.as_str().unwrap().split(' ').collect();
    let dash = fields.iter().position(|field| *field == "-").unwrap();
    let known = ["ro", "rw", "nosuid", "nodev", "noexec", "idmapped"];
    let flags: BTreeSet<&'static str> = fields[5]
        .split(',')
        .filter(|flag| !matches!(*flag, "relatime" | "noatime"))
        .map(|flag| *known.iter().find(|known| **known == flag).unwrap())
        .collect();
    // A mount of the sandbox's own is the whole of a fresh file system.
    let own = ["tmpfs", "proc"].into_iter().find(|system| {
        fields[dash + 1] == *system && fields[3] == "/" && fields[dash + 2] == *system
    });
    (fields[4].to_owned(), own, flags)
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

fn object(value: &Value) -> BTreeMap<String, Value> {
    value.as_object().unwrap().clone().into_iter().collect()
}

#[test]
fn a_tool_sees_three_descriptors_and_not_the_one_that_was_open() {
    if skipped_without_root("a_tool_sees_three_descriptors") {
        return;
    }
    let Sight {
        inside,
        outside,
        pipes,
        inheritable,
        ..
    } = sight();
    assert_eq!(
        inside["descriptors"],
        json!({"0": pipes[0], "1": pipes[1], "2": pipes[2]})
    );
    assert_eq!(
        outside["descriptors"][inheritable.to_string()],
        "/etc/passwd"
    );
}

#[test]
fn a_tool_without_input_has_the_empty_device_in_its_place() {
    if skipped_without_root("a_tool_without_input") {
        return;
    }
    let granted = Granted::new();
    let words = ["/usr/bin/stat", "-L", "-c", "%F %t:%T", "/dev/stdin"];
    let (prepared, ends) = prepare(plan(&words, &granted), &granted, false);
    let (status, stdout, stderr) = run(prepared, ends, "");
    assert_eq!((status, stderr.as_str()), (0, ""));
    // 1:3 is null(4).
    assert_eq!(stdout, "character special file 1:3\n");
}

#[test]
fn a_tool_sees_the_environment_of_its_plan_and_nothing_of_ours() {
    if skipped_without_root("a_tool_sees_the_environment") {
        return;
    }
    let Sight {
        inside,
        outside,
        plan,
        ..
    } = sight();
    assert_eq!(inside["environment"], json!(plan.program.env));
    assert_eq!(
        plan.program.env.keys().collect::<Vec<_>>(),
        ["HOME", "LANG", "PATH"]
    );
    let own: BTreeMap<String, String> = std::env::vars().collect();
    assert_eq!(outside["environment"], json!(own));
    assert!(own.keys().any(|key| key.starts_with("CARGO_")), "{own:?}");
}

#[test]
fn a_tool_sees_the_mounts_of_its_plan_with_their_flags() {
    if skipped_without_root("a_tool_sees_the_mounts") {
        return;
    }
    let Sight {
        inside,
        outside,
        plan,
        ..
    } = sight();
    assert_eq!(seen_mounts(&inside), mounts(&plan));
    let line = |path: &str| {
        let lines = array(&inside["mountinfo"])
            .iter()
            .map(|line| line.as_str().unwrap());
        lines
            .clone()
            .find(|line| line.split(' ').nth(4) == Some(path))
            .unwrap()
    };
    assert!(line("/proc").ends_with("subset=pid"), "{}", line("/proc"));
    // 64 MiB, and an inode for each 16 KiB of it.
    assert!(
        line("/tmp").contains("size=65536k,nr_inodes=4096"),
        "{}",
        line("/tmp")
    );
    // Nothing that is mounted later reaches it: no mount is shared with anybody.
    for line in array(&inside["mountinfo"]) {
        let line = line.as_str().unwrap();
        assert!(
            !line.contains("shared:") && !line.contains("master:"),
            "{line}"
        );
    }
    let host = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert_eq!(
        outside["mountinfo"],
        json!(host.lines().collect::<Vec<_>>())
    );
    assert_ne!(host.lines().count(), mounts(&plan).len());
}

#[test]
fn a_tool_has_a_uid_of_its_own_no_group_and_no_capability() {
    if skipped_without_root("a_tool_has_a_uid_of_its_own") {
        return;
    }
    let Sight {
        inside, outside, ..
    } = sight();
    let uid = inside["uids"][0].as_u64().unwrap();
    assert!(
        (1_879_048_192..1_879_048_192 + 65_536).contains(&uid),
        "{uid}"
    );
    assert_eq!(inside["uids"], json!([uid, uid, uid, uid]));
    assert_eq!(inside["gids"], json!([uid, uid, uid, uid]));
    assert_eq!(inside["groups"], json!([]));
    let none = "0000000000000000";
    assert_eq!(
        inside["capabilities"],
        json!({"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none})
    );
    assert_eq!(
        (&inside["no_new_privs"], &inside["seccomp"]),
        (&json!("1"), &json!("2"))
    );

    assert_eq!(outside["uids"], json!([0, 0, 0, 0]));
    assert_eq!(outside["groups"], json!([GROUP]));
    for set in ["CapPrm", "CapEff", "CapBnd"] {
        assert_ne!(outside["capabilities"][set], none, "{set}");
    }
}

#[test]
fn a_tool_has_the_limits_of_its_plan_and_otherwise_ours() {
    if skipped_without_root("a_tool_has_the_limits") {
        return;
    }
    let Sight {
        inside,
        outside,
        plan,
        ..
    } = sight();
    let mut expected = object(&outside["limits"]);
    let files = plan.limits.files;
    for (name, limit) in [("core", 1), ("nofile", files)] {
        let ours = expected.insert(name.to_owned(), json!([limit, limit]));
        assert_ne!(ours, Some(json!([limit, limit])), "{name} is no proof here");
    }
    assert_eq!(object(&inside["limits"]), expected);
    assert_eq!(expected.len(), 16, "every resource of getrlimit(2)");
}

#[test]
fn a_tool_sees_pid_1_and_itself() {
    if skipped_without_root("a_tool_sees_pid_1") {
        return;
    }
    let Sight {
        inside, outside, ..
    } = sight();
    let seen: Vec<String> = object(&inside["processes"]).into_keys().collect();
    assert_eq!(seen, ["1", "2"]);
    assert_eq!((&inside["pid"], &inside["parent"]), (&json!(2), &json!(1)));
    let own = std::process::id();
    assert_eq!(outside["parent"], own);
    assert!(outside["processes"].get(own.to_string()).is_some());
}

#[test]
fn a_tool_is_in_namespaces_of_its_own_with_the_name_and_place_of_its_plan() {
    if skipped_without_root("a_tool_is_in_namespaces_of_its_own") {
        return;
    }
    let Sight {
        inside,
        outside,
        plan,
        ..
    } = sight();
    let (here, there) = (
        object(&inside["namespaces"]),
        object(&outside["namespaces"]),
    );
    let own: Vec<&String> = here
        .iter()
        .filter(|(name, of)| there[*name] != **of)
        .map(|(name, _)| name)
        .collect();
    let expected = [
        "cgroup",
        "ipc",
        "mnt",
        "net",
        "pid",
        "pid_for_children",
        "uts",
    ];
    assert_eq!(own, expected);
    let at_the_top = |line: &Value| line.as_str().unwrap().ends_with(":/");
    assert!(
        array(&inside["cgroup"]).iter().all(at_the_top),
        "{}",
        inside["cgroup"]
    );

    assert_eq!(inside["hostname"], plan.hostname.as_str());
    assert_ne!(outside["hostname"], plan.hostname.as_str());
    assert_eq!(inside["cwd"], plan.program.cwd.as_str());
    assert_eq!(inside["arguments"], json!(plan.program.argv));
    assert_eq!(inside["executable"], plan.program.argv[0].as_str());
    // Not even the names in the root are told.
    assert_eq!(inside["root"], json!({"error": "EACCES"}));
    assert!(array(&outside["root"]).contains(&json!("etc")));
}
