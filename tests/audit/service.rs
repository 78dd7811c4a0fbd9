//! `boxmaker up` as something that others start, stop and read: signals, the end that brokerd's profile sets, and what
//! members of the group may look at.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};

use boxmaker_tests::binaries::{binary, skipped_without_root};
use ledger::Entry;
use proto::audit::{ExitStatus, RoleEvent};
use rustix::process::{Pid, Signal, kill_process};

use crate::log::Home;
use crate::up::up;

/// A group and a user of this test's own, which no user of the machine is in or has.
const GROUP: u32 = 1_879_000_123;
const MEMBER: u32 = 1_879_000_124;

/// A supervisor that has said that calls are served.
pub(crate) struct Up {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Up {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut up = Self { child, out };
        up.wait_up();
        up
    }

    /// Waits until it says so once more.
    pub(crate) fn wait_up(&mut self) {
        let mut told = String::new();
        self.out.read_line(&mut told).unwrap();
        if !told.starts_with("boxmaker is up") {
            let mut stderr = String::new();
            let pipe = self.child.stderr.take().unwrap();
            std::io::Read::read_to_string(&mut { pipe }, &mut stderr).unwrap();
            panic!("{told:?}\n{stderr}");
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn end(self) -> Output {
        self.child.wait_with_output().unwrap()
    }
}

/// How brokerd ended, each time.
fn ends(home: &Home) -> Vec<Option<ExitStatus>> {
    let lines = ledger::read(&home.paths()).map(Result::unwrap);
    let pick = |entry| match entry {
        Entry::Role { event, .. } => match *event {
            RoleEvent::Ended { exit } => Some(exit),
            _ => None,
        },
        _ => None,
    };
    lines.filter_map(|line| pick(line.entry)).collect()
}

#[test]
fn two_signals_in_quick_succession_are_one_wish_for_an_orderly_end() {
    if skipped_without_root("two_signals_in_quick_succession") {
        return;
    }
    let home = Home::empty();
    let system = Up::start(up(&home));
    // Two of a kind could reach the process as one.
    system.signal(Signal::TERM);
    system.signal(Signal::INT);
    let output = system.end();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(ends(&home), [Some(ExitStatus::Code(0))], "{output:?}");
}

#[test]
fn the_wall_of_brokerds_profile_ends_it_and_it_is_started_again() {
    if skipped_without_root("the_wall_of_brokerds_profile") {
        return;
    }
    let home = Home::empty();
    let command = up(&home);
    let built_in = include_str!("../../profiles/roles/brokerd.toml");
    let short = built_in.replace("wall = \"100years\"", "wall = \"1s\"");
    assert_ne!(short, built_in);
    let profile = home.home().with_file_name("config/profiles/roles");
    fs::create_dir_all(&profile).unwrap();
    fs::write(profile.join("brokerd.toml"), short).unwrap();
    let mut system = Up::start(command);
    system.wait_up();
    system.signal(Signal::TERM);
    let output = system.end();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("killed after the `wall` of profile roles/brokerd"),
        "{told}"
    );
    assert!(ends(&home).len() >= 2, "{told}");
}

#[test]
fn a_member_of_the_group_verifies_the_log_and_nobody_else_does() {
    if skipped_without_root("a_member_of_the_group_verifies_the_log") {
        return;
    }
    let home = Home::empty();
    let above = home.home().parent().unwrap().to_owned();
    fs::set_permissions(&above, Permissions::from_mode(0o755)).unwrap();
    // The supervisor sees a group file of this test's own, in a mount namespace that ends with it.
    let groups = above.join("group");
    let host = fs::read_to_string("/etc/group").unwrap();
    let others = host.lines().filter(|line| !line.starts_with("boxmaker:"));
    let text: Vec<&str> = others.collect();
    fs::write(
        &groups,
        format!("{}\nboxmaker:x:{GROUP}:\n", text.join("\n")),
    )
    .unwrap();
    let inner = up(&home);
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c"])
        .arg("mount --bind \"$0\" /etc/group && exec \"$@\"")
        .arg(&groups)
        .arg(inner.get_program())
        .args(inner.get_args())
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let system = Up::start(command);
    let bxctl = above.join("bxctl");
    // By another process, so that no child of another test holds it open for writing.
    let copied = Command::new("cp").arg(binary("bxctl")).arg(&bxctl).status();
    assert!(copied.unwrap().success());
    let verify = |group: u32| {
        let mut command = Command::new(&bxctl);
        command.args(["audit", "verify", "--home"]).arg(home.home());
        command.env_clear().stdin(Stdio::null());
        command.uid(MEMBER).gid(group).output().unwrap()
    };
    let member = verify(GROUP);
    let stranger = verify(MEMBER);
    // What only opening would take: whoever may open a lock may hold it.
    let locks = ["run/lock", "audit/lock"].map(|lock| {
        let found = fs::metadata(home.home().join(lock)).unwrap();
        found.mode() & 0o777
    });
    system.signal(Signal::TERM);
    let output = system.end();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(member.status.code(), Some(0), "{member:?}");
    assert!(member.stdout.starts_with(b"sound: "), "{member:?}");
    assert_eq!(stranger.status.code(), Some(2), "{stranger:?}");
    let told = String::from_utf8_lossy(&stranger.stderr);
    assert!(
        told.contains(&format!("is open to the group {GROUP}")),
        "{told}"
    );
    assert_eq!(locks, [0o600, 0o600]);
}
