//! The warm pool: what a stage that waited gives is what a cold launch gives, it is used once, and nothing of it stays.
//! That each step is measured there too is shown with the steps.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;

use boxmaker_tests::binaries::{binary, skipped_without_root};
use boxmaker_tests::sandbox::{await_pool, grant, launcher_with_pool, plan, stdio};
use boxmaker_tests::system::processes::{Process, in_cgroups, until};
use confine::Plan;
use confine::launch::{GrantedTree, IdentityChoice, Launcher, Prepared};
use confine::plan::{Access, LandlockRule, Mount, Rule};
use confine::resolve::Root;
use proto::audit::{ExitCause, ExitStatus};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

const WALL: Duration = Duration::from_secs(30);

fn launcher(name: &str, size: u8) -> Launcher {
    launcher_with_pool(&binary("boxmaker-stage"), name, size)
}

fn shell(script: &str) -> Plan {
    plan(&["/usr/bin/sh", "-c", script])
}

fn prepare(launcher: &Launcher, plan: Plan) -> Prepared {
    let (ends, _output) = stdio();
    launcher
        .prepare(plan, Vec::new(), ends, IdentityChoice::Fresh)
        .unwrap()
}

/// Runs a script that writes to standard output, and gives what it wrote and how it ended.
fn run(launcher: &Launcher, plan: Plan, trees: Vec<GrantedTree>) -> (String, Option<ExitStatus>) {
    let (ends, output) = stdio();
    let prepared = launcher
        .prepare(plan, trees, ends, IdentityChoice::Fresh)
        .unwrap();
    let ended = prepared.start().unwrap().wait(WALL);
    assert_eq!(ended.cause, ExitCause::Exited);
    (output.read().0, ended.exit)
}

/// The stages of the launcher called `name`, waiting ones included.
fn stages(name: &str) -> Vec<Process> {
    let (processes, _) = in_cgroups(&format!("boxmaker-test-{name}-{}", std::process::id()));
    // Each is in a group of every hierarchy.
    let once: BTreeSet<u32> = processes.into_iter().collect();
    once.into_iter().filter_map(Process::of).collect()
}

fn uid(of: &Prepared) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", of.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("Uid:"));
    line.unwrap().to_owned()
}

#[test]
fn a_stage_that_waited_gives_what_a_cold_launch_gives_and_is_used_once() {
    if skipped_without_root("a_stage_that_waited_gives_what_a_cold_launch_gives") {
        return;
    }
    let launcher = launcher("once", 1);
    let cold = prepare(&launcher, shell("exit 7"));
    await_pool(&launcher, 1);
    let waited = stages("once");
    let warm = prepare(&launcher, shell("exit 7"));
    assert!(waited.iter().any(|stage| stage.pid == warm.pid()));
    assert_ne!(cold.pid(), warm.pid());
    let [cold_report, warm_report] = [&cold, &warm].map(Prepared::confinement);
    assert_eq!(cold_report.gaps, []);
    assert_eq!(cold_report.layers, warm_report.layers);
    assert_eq!(cold_report.plan, warm_report.plan);
    assert_ne!(uid(&cold), uid(&warm));

    // The next one is another process, whether the pool is filled again by now or not.
    let next = prepare(&launcher, shell("exit 7"));
    assert_ne!(next.pid(), warm.pid());
    for prepared in [cold, warm, next] {
        let ended = prepared.start().unwrap().wait(WALL);
        assert_eq!(ended.exit, Some(ExitStatus::Code(7)));
    }
}

#[test]
fn a_granted_tree_is_mounted_in_a_stage_that_was_there_before_the_tree() {
    if skipped_without_root("a_granted_tree_is_mounted_in_a_stage_that_was_there") {
        return;
    }
    let launcher = launcher("tree", 1);
    drop(prepare(&launcher, shell("true")));
    await_pool(&launcher, 1);

    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::write(directory.path().join("note"), "written later\n").unwrap();
    let note = directory.path().join("note").display().to_string();
    let script = format!("cat {note}; cat /etc/hostname 2>&1");
    let mut granted = shell(&script);
    grant(&mut granted, directory.path(), true, Access::Read);
    let root = Root::open(directory.path()).unwrap().unwrap();
    let tree = GrantedTree {
        descriptor: root.resolve(directory.path()).unwrap().unwrap().descriptor,
        owner: root.itself().owner,
    };
    let (text, _) = run(&launcher, granted, vec![tree]);
    assert_eq!(
        text,
        "written later\ncat: /etc/hostname: No such file or directory\n"
    );
}

#[test]
fn a_stage_serves_no_plan_with_other_limits_or_namespaces() {
    if skipped_without_root("a_stage_serves_no_plan_with_other_limits") {
        return;
    }
    let launcher = launcher("kind", 1);
    drop(prepare(&launcher, shell("true")));
    await_pool(&launcher, 1);
    let mut other = shell("true");
    other.limits.memory /= 2;
    // Its layers are measured against its own limits: with a stage of the first kind, memory would be a gap.
    let prepared = prepare(&launcher, other);
    assert_eq!(prepared.confinement().gaps, []);
    // One of each kind is kept now.
    await_pool(&launcher, 2);
    let mut later = shell("true");
    later.limits.wall_ms += 1;
    drop(prepare(&launcher, later));
    await_pool(&launcher, 2);
}

#[test]
fn a_stage_that_died_while_it_waited_is_not_handed_out() {
    if skipped_without_root("a_stage_that_died_while_it_waited") {
        return;
    }
    let launcher = launcher("dead", 2);
    drop(prepare(&launcher, shell("true")));
    await_pool(&launcher, 2);
    for stage in stages("dead") {
        stage.kill();
    }
    until("they are dead", || stages("dead").is_empty());
    let (_, exit) = run(&launcher, shell("exit 3"), Vec::new());
    assert_eq!(exit, Some(ExitStatus::Code(3)));
}

#[test]
fn a_mount_on_the_host_empties_the_pool() {
    if skipped_without_root("a_mount_on_the_host_empties_the_pool") {
        return;
    }
    // The table of mounts is the whole process's, so this test goes on in a process with one of its own.
    if std::env::var_os("BOXMAKER_OWN_MOUNTS").is_none() {
        let test = Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "a_mount_on_the_host_empties_the_pool"])
            .env("BOXMAKER_OWN_MOUNTS", "yes")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&test.stdout).into_owned();
        assert!(test.status.success(), "{text}");
        assert!(text.contains("1 passed"), "{text}");
        return;
    }
    let launcher = launcher("mounts", 2);
    drop(prepare(&launcher, shell("true")));
    await_pool(&launcher, 2);
    let before = stages("mounts");
    // With nothing mounted the last that was parked stays.
    drop(prepare(&launcher, shell("true")));
    await_pool(&launcher, 2);
    assert!(stages("mounts").iter().any(|stage| before.contains(stage)));

    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    mount(
        c"tmpfs",
        directory.path(),
        c"tmpfs",
        MountFlags::empty(),
        None,
    )
    .unwrap();
    let before = stages("mounts");
    let prepared = prepare(&launcher, shell("true"));
    assert!(before.iter().all(|stage| stage.pid != prepared.pid()));
    until("those that waited are gone", || {
        before.iter().all(|stage| !stage.lives())
    });
    await_pool(&launcher, 2);
    unmount(directory.path(), UnmountFlags::empty()).unwrap();
}

#[test]
fn nothing_is_left_of_a_pool() {
    if skipped_without_root("nothing_is_left_of_a_pool") {
        return;
    }
    let launcher = launcher("left", 2);
    drop(prepare(&launcher, shell("true")));
    await_pool(&launcher, 2);
    let waiting = stages("left");
    assert_eq!(waiting.len(), 2);
    drop(launcher);
    assert!(waiting.iter().all(|stage| !stage.lives()));
    let name = format!("boxmaker-test-left-{}", std::process::id());
    assert_eq!(in_cgroups(&name), (Vec::new(), 0));
}

/// A stage holds nothing of this process while it waits but its socket: what it has open besides is in the sandbox.
#[test]
fn a_stage_that_waits_holds_nothing_of_the_supervisor_but_its_socket() {
    if skipped_without_root("a_stage_that_waits_holds_nothing_of_the_supervisor") {
        return;
    }
    let kept: OwnedFd = fs::File::open("/etc/passwd").unwrap().into();
    rustix::io::fcntl_setfd(kept.as_fd(), rustix::io::FdFlags::empty()).unwrap();
    let launcher = launcher("descriptors", 1);
    drop(prepare(&launcher, shell("true")));
    await_pool(&launcher, 1);
    let waiting = stages("descriptors");
    assert_eq!(waiting.len(), 1);
    let pid = waiting[0].pid;
    let inside = |target: &str| {
        // Files of its own `/proc`, its new root, and the canaries' file system, which has no name.
        // The null device is named from the root of the file system that held it, which is mounted nowhere any more.
        let null = ["/dev/null", "/null"];
        let of_itself = target.starts_with("/proc/1/") || target == "/";
        target.starts_with("socket:") || null.contains(&target) || of_itself
    };
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let target = fs::read_link(entry.unwrap().path()).unwrap();
        let target = target.display().to_string();
        assert!(inside(&target), "{target}");
    }
    // The twin: this process has it open, and would have passed it on.
    assert!(!inside("/etc/passwd"));
}

#[test]
fn a_stage_that_waits_has_dropped_the_hosts_tree() {
    if skipped_without_root("a_stage_that_waits_has_dropped_the_hosts_tree") {
        return;
    }
    let launcher = launcher("dropped", 1);
    drop(prepare(&launcher, shell("true")));
    await_pool(&launcher, 1);
    let pid = stages("dropped")[0].pid;
    let root = |path: &str| fs::metadata(format!("/proc/{pid}/root{path}"));
    assert!(root("/usr/bin/sh").is_ok());
    for path in ["/etc/passwd", "/var/tmp", "/home", "/sys", "/boot"] {
        let error = root(path).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{path}");
    }
    // The twin: on the host it is there.
    assert!(fs::metadata("/etc/passwd").is_ok());
    let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    let points: Vec<_> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .collect();
    let own = ["/", "/usr", "/proc", "/dev", "/tmp"];
    let planned = |point: &&str| own.contains(point) || point.starts_with("/dev/");
    assert!(points.iter().all(planned), "{points:?}");
}

#[test]
fn a_stage_is_given_up_when_a_path_of_its_view_is_another_file() {
    if skipped_without_root("a_stage_is_given_up_when_a_path_of_its_view_is_another_file") {
        return;
    }
    let launcher = launcher("replaced", 1);
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "first\n").unwrap();
    let path = file.display().to_string();
    let plan = || {
        let mut plan = shell(&format!("cat {path}"));
        let view = Mount::View {
            path: path.clone(),
            directory: false,
        };
        plan.mounts.insert(0, view);
        let rule = LandlockRule {
            path: path.clone(),
            rule: Rule::Read,
        };
        plan.landlock.push(rule);
        plan
    };
    drop(prepare(&launcher, plan()));
    await_pool(&launcher, 1);
    // The twin: nothing was replaced, the stage that waits is taken, and sees what was written to the file since.
    let waited = stages("replaced")[0].pid;
    fs::write(&file, "again\n").unwrap();
    let (ends, output) = stdio();
    let prepared = launcher
        .prepare(plan(), Vec::new(), ends, IdentityChoice::Fresh)
        .unwrap();
    assert_eq!(prepared.pid(), waited);
    assert_eq!(
        prepared.start().unwrap().wait(WALL).cause,
        ExitCause::Exited
    );
    assert_eq!(output.read().0, "again\n");

    await_pool(&launcher, 1);
    launcher.settle();
    let waited = stages("replaced")[0].pid;
    fs::write(directory.path().join("new"), "second\n").unwrap();
    fs::rename(directory.path().join("new"), &file).unwrap();
    let (ends, output) = stdio();
    let prepared = launcher
        .prepare(plan(), Vec::new(), ends, IdentityChoice::Fresh)
        .unwrap();
    assert_ne!(prepared.pid(), waited);
    assert_eq!(
        prepared.start().unwrap().wait(WALL).cause,
        ExitCause::Exited
    );
    assert_eq!(output.read().0, "second\n");
}

#[test]
fn what_was_told_to_have_ended_is_gone_once_the_launcher_has_settled() {
    if skipped_without_root("what_was_told_to_have_ended_is_gone") {
        return;
    }
    let launcher = launcher("settled", 0);
    let script = "(setsid sleep 1000 &) ; sleep 1000 & exit 5";
    let mut pids = Vec::new();
    for _ in 0..24 {
        let prepared = prepare(&launcher, shell(script));
        let running = prepared.start().unwrap();
        pids.push(Process::of(running.pid()).unwrap());
        assert_eq!(running.wait(WALL).exit, Some(ExitStatus::Code(5)));
    }
    launcher.settle();
    assert!(pids.iter().all(|stage| !stage.lives()));
    let name = format!("boxmaker-test-settled-{}", std::process::id());
    assert_eq!(in_cgroups(&name).0, Vec::<u32>::new());
}

/// Everybody that the program left behind has ended when its end is told, before anything is taken apart.
#[test]
fn nobody_runs_any_more_when_the_end_is_told() {
    if skipped_without_root("nobody_runs_any_more_when_the_end_is_told") {
        return;
    }
    let launcher = launcher("alone", 0);
    let script =
        "for i in 1 2 3 4 5 6 7 8; do (setsid sleep 1000 &); done; echo started; read line";
    for _ in 0..10 {
        let (mut ends, output) = stdio();
        let (inside, input) = std::io::pipe().unwrap();
        ends.stdin = inside.into();
        let prepared = launcher
            .prepare(shell(script), Vec::new(), ends, IdentityChoice::Fresh)
            .unwrap();
        let stage = prepared.pid();
        let running = prepared.start().unwrap();
        let own = fs::metadata(format!("/proc/{stage}/ns/pid")).unwrap().ino();
        let inside = || {
            let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
                let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
                let namespace = fs::metadata(format!("/proc/{pid}/ns/pid")).ok()?;
                (pid != stage && namespace.ino() == own).then_some(pid)
            });
            processes.count()
        };
        until("all of them run", || inside() >= 9);
        drop(input);
        let ended = running.wait(WALL);
        assert_eq!(inside(), 0);
        assert!(matches!(ended.exit, Some(ExitStatus::Code(_))), "{ended:?}");
        assert_eq!(output.read().0, "started\n");
    }
}
