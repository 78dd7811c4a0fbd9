use std::collections::BTreeMap;

use proptest::prelude::*;
use proto::{Hash32, Level};

use super::*;
use crate::plan::{Limits, Program, Seccomp};

fn plan() -> Plan {
    let rule = |path: &str, rule| LandlockRule {
        path: path.to_owned(),
        rule,
    };
    let tree = |path: &str, access, exec| Mount::Tree {
        path: path.to_owned(),
        directory: true,
        access,
        exec,
    };
    Plan {
        profile: "tools/base".to_owned(),
        namespaces: vec![Namespace::Mount, Namespace::Net],
        hostname: "boxmaker".to_owned(),
        mounts: vec![
            Mount::Link {
                path: "/lib".to_owned(),
                target: "usr/lib".to_owned(),
            },
            Mount::View {
                path: "/usr".to_owned(),
                directory: true,
            },
            Mount::Proc,
            Mount::Devices,
            Mount::Scratch {
                bytes: 64 << 20,
                inodes: 4096,
            },
            tree("/srv/notes", Access::Read, true),
            tree("/srv/a b\u{202e}c", Access::ReadWriteFiles, false),
        ],
        landlock: vec![
            rule("/usr", Rule::Read),
            rule("/usr/bin/git", Rule::Execute),
            rule("/tmp", Rule::Scratch),
            rule("/srv/a b\u{202e}c", Rule::Tree(Access::ReadWriteFiles)),
        ],
        seccomp: Seccomp {
            sets: vec!["base".to_owned()],
            program: Hash32::ZERO,
        },
        limits: Limits {
            memory: 512 << 20,
            pids: 64,
            cpu: 100,
            files: 256,
            wall_ms: 90_000,
        },
        program: Program {
            argv: vec![
                "/usr/bin/git".to_owned(),
                "log".to_owned(),
                "-n 1".to_owned(),
            ],
            env: BTreeMap::from([("LANG".to_owned(), "C".to_owned())]),
            cwd: "/srv/notes".to_owned(),
            input: Hash32::ZERO,
        },
        required: Level::Full,
    }
}

#[test]
fn a_plan_reads_as_sections_of_facts() {
    let zeros = "0".repeat(64);
    let expected = format!(
        r#"Program
  /usr/bin/git log "-n 1"
  in /srv/notes
  LANG=C
  input sha256 {zeros}

Sees
  /lib -> usr/lib
  /usr (the host's directory, read-only)
  /proc (its own processes only)
  /dev (null, zero, full, random, urandom)
  /tmp (private, 64 MiB, 4096 inodes)
  /srv/notes (granted directory, to read, programs may run)
  "/srv/a b\u{{202e}}c" (granted directory, to read, and to write files)

May write
  /tmp: anything but device nodes
  "/srv/a b\u{{202e}}c": regular files in it

May execute
  /usr/bin/git

Network
  none: a network namespace of its own, with nothing in it

System calls
  sets: base
  program sha256
      {zeros}

Limits
  memory 512 MiB
  64 processes and threads
  100 % of one processor
  256 open files in one process
  ends after 1m 30s

Identity and level
  no capabilities, and no way to any
  host name boxmaker
  namespaces of its own: mount, net
  profile tools/base
  needs level full
"#
    );
    assert_eq!(describe(&plan()), expected);
}

#[test]
fn what_is_missing_is_said() {
    let mut plan = plan();
    plan.landlock.clear();
    plan.namespaces.clear();
    let text = describe(&plan);
    assert!(text.contains("May write\n  nothing\n"), "{text}");
    assert!(text.contains("May execute\n  nothing\n"), "{text}");
    assert!(text.contains("no namespace of its own"), "{text}");
    assert!(text.contains("the host's, but no TCP port"), "{text}");
}

#[test]
fn sizes_are_said_exactly() {
    for (bytes, text) in [
        (1 << 30, "1 GiB"),
        (1536 << 20, "1536 MiB"),
        (1000, "1000 bytes"),
    ] {
        assert_eq!(size(bytes), text);
    }
}

proptest! {
    #[test]
    fn no_text_breaks_a_line_or_the_width(word in "\\PC{0,200}|[\\x00-\\x20]{0,20}", path in "(/[a-z ]{1,30}){1,9}") {
        let mut plan = plan();
        // Whoever made the plan: every text of it may be any.
        plan.program.argv.push(word.clone());
        plan.program.env.insert(word.clone(), word.clone());
        plan.seccomp.sets.push(word.clone());
        plan.hostname.clone_from(&word);
        plan.profile = word;
        plan.program.cwd = path.clone();
        plan.mounts.push(Mount::View { path, directory: false });
        let text = describe(&plan);
        for line in text.lines() {
            prop_assert!(line.chars().count() <= 80, "{line:?}");
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        }
        let sections = text.lines().filter(|line| line.starts_with(|c: char| c != ' ')).count();
        prop_assert_eq!(sections, 8);
    }
}
