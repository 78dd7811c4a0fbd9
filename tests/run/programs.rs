//! Real programs doing real work under the profiles that are there for them.

use std::fs;
use std::path::Path;
use std::process::Command;

use boxmaker_tests::plain::USER;

use crate::place::{Ended, Place, places};

/// What a program may do in these tests: all in `out`, which is where it starts.
fn all_in(place: &Place) -> String {
    let out = place.show("out");
    format!("fs:read:{out},fs:write:{out}")
}

fn run(place: &Place, profile: &str, words: &[&str]) -> Ended {
    let mut command = place.command(&["--profile", profile, "--allow", &all_in(place)]);
    command.current_dir(place.path("out")).args(words);
    Ended::of(command.output().unwrap())
}

/// Whether a program is there; says so if it is not.
fn missing(test: &str, program: &str) -> bool {
    let missing = !Path::new(program).exists();
    if missing {
        println!("skipped: {test}: there is no {program}");
    }
    missing
}

#[test]
fn a_shell_starts_what_the_system_has_and_writes_what_is_granted() {
    for place in places("a_shell_starts_what_the_system_has") {
        let script = "for i in 3 1 2; do echo $i; done | sort > sorted && wc -l < sorted && head -n 1 /etc/passwd";
        let ended = run(&place, "tools/shell", &["sh", "-c", script]);
        assert_eq!(ended.out.trim(), "3", "{ended:?}");
        assert!(ended.err.contains("/etc/passwd"), "{ended:?}");
        assert_eq!(
            fs::read_to_string(place.path("out/sorted")).unwrap(),
            "1\n2\n3\n"
        );
        // The twin: with the profile that starts nothing else it ends at the first of them.
        let ended = run(&place, "tools/base", &["sh", "-c", script]);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(126), ""),
            "{ended:?}"
        );
        assert!(ended.err.contains("Permission denied"), "{ended:?}");
    }
}

#[test]
fn make_builds_in_a_granted_directory() {
    if missing("make_builds_in_a_granted_directory", "/usr/bin/make") {
        return;
    }
    for place in places("make_builds_in_a_granted_directory") {
        fs::write(
            place.path("out/Makefile"),
            "all: b\nb: a\n\tcp a b\na:\n\techo made > a\n",
        )
        .unwrap();
        let ended = run(&place, "tools/shell", &["make", "--silent"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(fs::read_to_string(place.path("out/b")).unwrap(), "made\n");
    }
}

#[test]
fn python_starts_itself_waits_and_works_in_several_processes() {
    if missing("python_starts_itself_waits_and_works", "/usr/bin/python3") {
        return;
    }
    let script = "\
import asyncio, multiprocessing, subprocess, sys
print(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout)
async def child():
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(2)', stdout=pipe)
    return await process.stdout.read()
print(asyncio.run(child()))
for way in 'fork', 'spawn':
    with multiprocessing.get_context(way).Pool(2) as pool:
        print(pool.map(abs, [-3, -4]))
try:
    subprocess.run(['/usr/bin/id'])
except PermissionError as error:
    print(error)
";
    for place in places("python_starts_itself_waits_and_works") {
        let ended = run(&place, "tools/python", &["/usr/bin/python3", "-c", script]);
        let expected =
            "b'1\\n'\nb'2\\n'\n[3, 4]\n[3, 4]\n[Errno 13] Permission denied: '/usr/bin/id'\n";
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(0), expected),
            "{ended:?}"
        );
    }
}

#[test]
fn git_clones_and_commits_in_a_granted_directory() {
    if missing(
        "git_clones_and_commits_in_a_granted_directory",
        "/usr/bin/git",
    ) {
        return;
    }
    for place in places("git_clones_and_commits_in_a_granted_directory") {
        let who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"];
        let git = |words: &[&str]| run(&place, "tools/git", &[&["git"], words].concat());
        let well = |words: &[&str]| {
            let ended = git(words);
            assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
            ended.out
        };
        well(&["init", "-q", "one"]);
        well(
            &[
                &["-C", "one"],
                &who[..],
                &["commit", "-q", "--allow-empty", "-m", "first"],
            ]
            .concat(),
        );
        well(&["clone", "-q", "./one", "two"]);
        well(
            &[
                &["-C", "two"],
                &who[..],
                &["commit", "-q", "--allow-empty", "-m", "second"],
            ]
            .concat(),
        );
        let log = well(&["-C", "two", "log", "--format=%s"]);
        assert_eq!(log, "second\nfirst\n");
        // There is no network, so nothing can be fetched from elsewhere.
        let elsewhere = git(&["clone", "-q", "https://127.0.0.1/x", "three"]);
        assert_ne!(elsewhere.code, Some(0), "{elsewhere:?}");
        // What was written belongs to the owner of the directory, who goes on with it outside.
        let mut outside = Command::new("git");
        outside.args(["-C", &place.show("out/two"), "status", "--porcelain"]);
        if rustix::process::geteuid().is_root() {
            use std::os::unix::process::CommandExt;
            outside.uid(USER).gid(USER).env("HOME", place.path("out"));
        }
        let status = Ended::of(outside.output().unwrap());
        assert_eq!(
            (status.code, status.out.as_str()),
            (Some(0), ""),
            "{status:?}"
        );
    }
}

#[test]
fn node_works_with_threads() {
    if missing("node_works_with_threads", "/usr/bin/node") {
        return;
    }
    let script = "const { Worker } = require('worker_threads'); \
                  const text = \"require('worker_threads').parentPort.postMessage(6 * 7)\"; \
                  new Worker(text, { eval: true }).on('message', (sum) => console.log(sum));";
    for place in places("node_works_with_threads") {
        let ended = run(&place, "tools/node", &["node", "-e", script]);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(0), "42\n"),
            "{ended:?}"
        );
    }
}

#[test]
fn other_programs_of_the_system_work_under_the_profile_of_shells() {
    for place in places("other_programs_of_the_system_work") {
        fs::write(place.path("out/a.json"), "{\"a\": [1, 2]}\n").unwrap();
        place.give("out/a.json");
        for (program, words, says) in [
            (
                "/usr/bin/rg",
                &["rg", "-c", "a", "a.json"] as &[&str],
                "1\n",
            ),
            ("/usr/bin/jq", &["jq", ".a[1]", "a.json"], "2\n"),
            (
                "/usr/bin/sqlite3",
                &[
                    "sqlite3",
                    "t.db",
                    "create table t(a); insert into t values(3); select * from t",
                ],
                "3\n",
            ),
            (
                "/usr/bin/java",
                &["java", "-XX:+UseSerialGC", "-version"],
                "",
            ),
        ] {
            if missing("other_programs_of_the_system_work", program) {
                continue;
            }
            let ended = run(&place, "tools/shell", words);
            assert_eq!(
                (ended.code, ended.out.as_str()),
                (Some(0), says),
                "{words:?}: {ended:?}"
            );
        }
    }
}
