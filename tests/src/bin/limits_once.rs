//! Launches sandboxes with cgroup v2 from a group that was delegated to it, tries each limit, and prints what it saw as
//! one JSON object a line. `make test-kernel` starts it on a kernel that has the controllers in v2, and judges.
//!
//! `limits-once STAGE`

#![expect(
    clippy::unwrap_used,
    reason = "whatever cannot be set up fails the test that started it"
)]

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use boxmaker_tests::sandbox::{Output, launcher, plan, stdio};
use confine::cgroup::Backend;
use confine::launch::{IdentityChoice, Launcher, Prepared};
use proto::audit::ExitCause;
use proto::config::CgroupChoice;
use serde_json::{Value, json};

/// How long a state is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let stage = PathBuf::from(std::env::args_os().nth(1).unwrap());
    let started_in = own_group();
    demanded();
    let launcher = launcher(&stage, "limits");
    settled(&started_in);
    held(&launcher);
    memory(&launcher);
    processes(&launcher);
    processor(&launcher);
    killed(&launcher);
    left_behind(&stage, &started_in);
}

fn say(case: &str, seen: Value) {
    println!("{}", json!({ "case": case, "seen": seen }));
}

/// The v2 group of a process as `/proc` says it.
fn group_of(process: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
    let unified = text.lines().find_map(|line| line.strip_prefix("0::"));
    unified.unwrap().to_owned()
}

fn own_group() -> String {
    group_of("self")
}

fn directory(group: &str) -> PathBuf {
    Path::new("/sys/fs/cgroup").join(group.trim_start_matches('/'))
}

/// A file of a group; what cannot be read says why.
fn read(group: &Path, file: &str) -> String {
    let text = fs::read_to_string(group.join(file));
    text.map_or_else(|error| error.to_string(), |text| text.trim().to_owned())
}

fn prepare(launcher: &Launcher, script: &str, cpu: u32) -> (Prepared, Output) {
    let mut plan = plan(&["/usr/bin/sh", "-c", script]);
    plan.limits.cpu = cpu;
    let (ends, output) = stdio();
    let prepared = launcher.prepare(plan, Vec::new(), ends, IdentityChoice::Fresh);
    (prepared.unwrap(), output)
}

/// Runs a script to its end.
fn run(launcher: &Launcher, script: &str) -> Value {
    let (prepared, output) = prepare(launcher, script, 100);
    let group = directory(&group_of(&prepared.pid().to_string()));
    let ended = prepared.start().unwrap().wait(PATIENCE);
    launcher.settle();
    let (stdout, stderr) = output.read();
    json!({
        "exit": ended.exit,
        "cause": ended.cause,
        "stdout": stdout,
        "stderr": stderr,
        "group_left": group.exists(),
    })
}

/// What is looked for, before anything has changed.
fn demanded() {
    let detect = |choice| match Backend::detect(choice, "demanded") {
        Ok(backend) => json!({ "missing": backend.missing() }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    say(
        "demanded",
        json!({
            "v1": detect(CgroupChoice::V1),
            "v2": detect(CgroupChoice::V2),
            "group": own_group(),
        }),
    );
}

fn settled(started_in: &str) {
    let base = directory(started_in);
    say(
        "settled",
        json!({
            "before": started_in,
            "after": own_group(),
            "processes": read(&base, "cgroup.procs"),
            "passed_on": read(&base, "cgroup.subtree_control"),
        }),
    );
}

/// Everything that is set on the group of a sandbox, read where the kernel keeps it.
fn held(launcher: &Launcher) {
    let (prepared, _output) = prepare(launcher, "exit 0", 50);
    let group = group_of(&prepared.pid().to_string());
    let at = directory(&group);
    let files = [
        "memory.max",
        "memory.swap.max",
        "memory.oom.group",
        "pids.max",
        "cpu.max",
    ];
    let files = files.map(|file| (file.to_owned(), json!(read(&at, file))));
    say(
        "held",
        json!({
            "kernel": rustix::system::uname().release().to_string_lossy(),
            "group": group,
            "confinement": prepared.confinement(),
            "files": Value::Object(files.into_iter().collect()),
        }),
    );
}

/// 64 MiB are allowed; a shell doubles a text until it is killed, and stops at 2 MiB when it is not to be.
fn memory(launcher: &Launcher) {
    let within = "x=x; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do x=$x$x; done; echo ${#x}";
    say("memory within", run(launcher, within));
    // A second process shows that all of the group goes.
    let beyond = "sleep 1000 & x=x; while true; do x=$x$x; done";
    say("memory beyond", run(launcher, beyond));
}

/// 32 processes are allowed, of which the stage and the shell are two.
fn processes(launcher: &Launcher) {
    let forks = |count: u32| {
        format!("i=0; while [ $i -lt {count} ]; do sleep 1000 & i=$((i+1)); done; echo all; exit 0")
    };
    say("processes within", run(launcher, &forks(20)));
    say("processes beyond", run(launcher, &forks(40)));
}

/// A loop without end on a fifth of a processor, until the kernel says that it held it back.
fn processor(launcher: &Launcher) {
    let (prepared, _output) = prepare(launcher, "while true; do :; done", 20);
    let group = directory(&group_of(&prepared.pid().to_string()));
    let throttled = || {
        let text = read(&group, "cpu.stat");
        let count = text
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled "));
        count
            .and_then(|count| count.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let before = throttled();
    let running = prepared.start().unwrap();
    let reached = wait_for(|| throttled() > before + 2);
    running.killer().kill(ExitCause::Aborted);
    let ended = running.wait(PATIENCE);
    launcher.settle();
    say(
        "processor",
        json!({ "held_back": reached, "cause": ended.cause, "group_left": group.exists() }),
    );
}

/// Processes that fork and ignore what asks them to end.
fn killed(launcher: &Launcher) {
    let script = "trap '' TERM INT HUP; for i in 1 2 3 4 5; do (trap '' TERM; sleep 1000; sleep 1000) & done; wait";
    let (prepared, _output) = prepare(launcher, script, 100);
    let group = directory(&group_of(&prepared.pid().to_string()));
    let running = prepared.start().unwrap();
    // The stage, the shell, five shells and their five programs.
    let members = || read(&group, "cgroup.procs").lines().count();
    let reached = wait_for(|| members() == 12);
    let pids = read(&group, "cgroup.procs");
    running.killer().kill(ExitCause::Aborted);
    let ended = running.wait(PATIENCE);
    launcher.settle();
    let alive: Vec<&str> = pids
        .lines()
        .filter(|pid| Path::new("/proc").join(pid).exists())
        .collect();
    say(
        "killed",
        json!({
            "reached": reached,
            "alive": alive,
            "cause": ended.cause,
            "group_left": group.exists(),
        }),
    );
}

/// What a supervisor of the same name that is no more has left: a group with a process in it.
fn left_behind(stage: &Path, started_in: &str) {
    let name = format!("boxmaker-test-after-{}", std::process::id());
    let base = directory(started_in).join(name);
    let left = base.join("7");
    fs::create_dir_all(&left).unwrap();
    let mut process: Child = Command::new("/usr/bin/sleep").arg("1000").spawn().unwrap();
    fs::write(left.join("cgroup.procs"), process.id().to_string()).unwrap();
    let before = read(&base, "cgroup.events");
    let launcher = launcher(stage, "after");
    let gone = !base.exists();
    let status = process.wait().unwrap().to_string();
    let afterwards = run(&launcher, "echo works");
    drop(launcher);
    let removed = fs::metadata(&base).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    say(
        "left behind",
        json!({ "before": before, "gone": gone, "status": status, "next": afterwards, "removed": removed }),
    );
}

fn wait_for(done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}
