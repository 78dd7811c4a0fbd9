//! Harm by processes: starting, tracing, killing, outliving.

use std::io::{self, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::ptrace as tracing;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::process::{Pid as ProcessId, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::report::Report;

/// What `--wait` is: a child that ends when the other end of its standard input is closed, and so never outlives
/// the process that started it.
pub(crate) fn wait_for_end() -> ExitCode {
    let mut rest = Vec::new();
    let _ = io::stdin().read_to_end(&mut rest);
    ExitCode::SUCCESS
}

/// What `--linger` is: a process that leaves its session and does not end when asked.
pub(crate) fn linger(ms: u64) -> ExitCode {
    let _ = rustix::process::setsid();
    let _ = asking_signals().thread_block();
    thread::sleep(Duration::from_millis(ms));
    ExitCode::SUCCESS
}

/// Attaches to a child, which any process may do that nothing forbids it.
pub(crate) fn ptrace(report: &mut Report) -> io::Result<()> {
    let mut child = match own(&["--wait"], Stdio::piped()) {
        Ok(child) => child,
        Err(error) => return report.refused("ptrace", "own child (not started)", &error),
    };
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let attached = tracing::attach(pid).and_then(|()| {
        waitpid(pid, None)?;
        tracing::detach(pid, None)
    });
    end(&mut child);
    report.result("ptrace", "own child", attached.map_err(io::Error::from))
}

/// Kills pid 1. Where that would be the machine's own init it only asks, with the signal 0 of kill(2), which meets the
/// same checks.
pub(crate) fn kill(report: &mut Report) -> io::Result<()> {
    let init = ProcessId::INIT;
    // The initial pid namespace has a fixed inode (PROC_PID_INIT_INO of the kernel).
    let own_namespace = std::fs::read_link("/proc/self/ns/pid");
    let nested = own_namespace.is_ok_and(|link| link.as_os_str() != "pid:[4026531836]");
    let (object, sent) = if nested {
        (
            "pid 1, SIGKILL",
            kill_process(init, rustix::process::Signal::KILL),
        )
    } else {
        ("pid 1, signal 0", test_kill_process(init))
    };
    report.result("kill", object, sent.map_err(io::Error::from))
}

/// Starts children until `most` or until one is refused, then ends them.
pub(crate) fn fork(report: &mut Report, most: u64) -> io::Result<()> {
    // One pipe for all, so that descriptors do not run out before processes do.
    let (reader, writer) = match io::pipe() {
        Ok(ends) => ends,
        Err(error) => return report.refused("fork", "pipe", &error),
    };
    let mut children = Vec::new();
    let mut refused = None;
    while (children.len() as u64) < most {
        let started = reader
            .try_clone()
            .and_then(|stdin| own(&["--wait"], Stdio::from(stdin)));
        match started {
            Ok(child) => children.push(child),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let count = Value::from(children.len());
    drop(writer);
    children.iter_mut().for_each(end);
    match refused {
        None => report.done("fork", "children", count),
        Some(error) => report.stopped("fork", "children", &error, &count),
    }
}

/// Leaves a process behind.
pub(crate) fn orphan(report: &mut Report, ms: u64) -> io::Result<()> {
    match own(&["--linger", &ms.to_string()], Stdio::null()) {
        Ok(child) => report.done("orphan", "process", json!(child.id())),
        Err(error) => report.refused("orphan", "process", &error),
    }
}

/// Blocks the signals that ask it to end, says so, and sleeps.
pub(crate) fn ignore_term(report: &mut Report, ms: u64) -> io::Result<()> {
    let blocked = asking_signals().thread_block().map_err(io::Error::from);
    report.result("ignore_term", "SIGTERM, SIGINT, SIGHUP", blocked)?;
    sleep(report, ms)
}

/// Sleeps, and says so before and after.
pub(crate) fn sleep(report: &mut Report, ms: u64) -> io::Result<()> {
    report.done("sleep", "begin", json!(ms))?;
    thread::sleep(Duration::from_millis(ms));
    report.done("sleep", "end", json!(ms))
}

fn asking_signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]
        .into_iter()
        .collect()
}

/// This program again.
fn own(words: &[&str], stdin: Stdio) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(words)
        .stdin(stdin)
        .spawn()
}

fn end(child: &mut Child) {
    drop(child.stdin.take());
    let _ = child.kill();
    let _ = child.wait();
}
