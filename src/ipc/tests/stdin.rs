//! What only a process of its own can show: standard input as control socket, and a descriptor table that is full.
//!
//! Without the harness: this binary starts itself again as the role, and says what came of it on standard output.
#![allow(
    clippy::unwrap_used,
    reason = "what a test takes for granted may end it"
)]

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use ipc::Connection;
use ipc::role::{Started, start};

/// Says in the environment that this process is the role.
const ROLE: &str = "BOXMAKER_TEST_ROLE";

fn main() {
    match std::env::var(ROLE).as_deref() {
        Ok("") => println!("{}", become_role()),
        Ok(limit) => println!(
            "{}",
            become_role_with_few_descriptors(limit.parse().unwrap())
        ),
        Err(_) => run(),
    }
}

fn become_role() -> String {
    match Started::from_stdin("brokerd") {
        Ok(started) => format!("started with {:?}", started.unexpected()),
        Err(error) => error.to_string(),
    }
}

fn become_role_with_few_descriptors(limit: u64) -> String {
    let limits = rustix::process::Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limits).unwrap();
    let before = open();
    let outcome = become_role();
    let left: Vec<i32> = open()
        .into_iter()
        .filter(|number| !before.contains(number))
        .collect();
    format!("{outcome}; left open: {left:?}")
}

/// The numbers in use below 64, which is above every limit set here.
fn open() -> Vec<i32> {
    let used = |number: &i32| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok();
    (0..64).filter(used).collect()
}

/// Starts this binary as the role and returns what it says.
fn role(stdin: Stdio, limit: &str) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(ROLE, limit)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(child.wait().unwrap().success());
    said.trim_end().to_owned()
}

/// The same over a socket on which `sockets` were handed over before.
fn role_with(sockets: &[(&str, BorrowedFd<'_>)], limit: &str) -> String {
    let (supervisor, stdin) = UnixStream::pair().unwrap();
    let supervisor = Connection::new(supervisor);
    start(&supervisor, 1, "brokerd", "", sockets).unwrap();
    role(Stdio::from(OwnedFd::from(stdin)), limit)
}

fn run() {
    let cases: [(&str, fn()); 4] = [
        (
            "a_role_starts_over_its_standard_input",
            a_role_starts_over_its_standard_input,
        ),
        (
            "a_role_does_not_start_when_standard_input_is_no_socket",
            a_role_does_not_start_when_standard_input_is_no_socket,
        ),
        (
            "a_role_does_not_start_when_its_supervisor_is_gone",
            a_role_does_not_start_when_its_supervisor_is_gone,
        ),
        (
            "descriptors_that_do_not_fit_the_table_are_an_error_and_all_are_closed",
            descriptors_that_do_not_fit_the_table_are_an_error_and_all_are_closed,
        ),
    ];
    for (name, case) in cases {
        case();
        println!("test {name} ... ok");
    }
}

fn a_role_starts_over_its_standard_input() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let said = role_with(&[("bxctl", reader.as_fd())], "");
    assert_eq!(said, r#"started with ["bxctl"]"#);
}

fn a_role_does_not_start_when_standard_input_is_no_socket() {
    let rule = "standard input is no socket: a role is started by `boxmaker up`, not by hand";
    assert_eq!(role(Stdio::null(), ""), rule);
    let (reader, _writer) = std::io::pipe().unwrap();
    assert_eq!(role(Stdio::from(reader), ""), rule);
}

fn a_role_does_not_start_when_its_supervisor_is_gone() {
    let (supervisor, stdin) = UnixStream::pair().unwrap();
    drop(supervisor);
    let said = role(Stdio::from(OwnedFd::from(stdin)), "");
    assert_eq!(
        said,
        "the supervisor closed the control socket before role_start"
    );
}

fn descriptors_that_do_not_fit_the_table_are_an_error_and_all_are_closed() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let names: Vec<String> = (0..12).map(|index| index.to_string()).collect();
    let sockets: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), writer.as_fd()))
        .collect();
    let roomy = role_with(&sockets, "40");
    assert!(roomy.starts_with("started with"), "{roomy}");
    let tight = role_with(&sockets, "8");
    assert!(
        tight
            .starts_with("no role_start: more descriptors came with one frame than the 16 allowed"),
        "{tight}"
    );
    assert!(tight.ends_with("left open: []"), "{tight}");
    drop(writer);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
}
