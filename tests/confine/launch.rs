//! Real launches: what is measured, what the program can and cannot do, how it ends, and that nothing is left. They
//! need root and say so without it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use boxmaker_tests::binaries::{binary, skipped_without_root};
use boxmaker_tests::sandbox::{Output, grant, launcher, launcher_with, plan, stdio};
use confine::Plan;
use confine::launch::{Ended, GrantedTree, IdentityChoice, Launcher, Prepared};
use confine::plan::{Access, LandlockRule, Mount, Rule};
use proto::audit::{ExitCause, ExitStatus};
use proto::{Layer, Level};
use tempfile::TempDir;

const WALL: Duration = Duration::from_secs(30);
const OWNER: u32 = 1000;

fn launcher_for(name: &str) -> Launcher {
    launcher(&binary("boxmaker-stage"), name)
}

/// A directory that only `OWNER` may enter, with a file that only `OWNER` may read.
fn owned() -> (TempDir, PathBuf) {
    // Not below /tmp: that is the sandbox's own scratch directory, which has a Landlock rule of its own.
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let root = directory.path().join("notes");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.md"), "the owner's words\n").unwrap();
    fs::set_permissions(root.join("a.md"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
    for path in [&root, &root.join("a.md")] {
        chown(path, Some(OWNER), Some(OWNER)).unwrap();
    }
    (directory, root)
}

fn tree(path: &Path) -> GrantedTree {
    let root = confine::resolve::Root::open(path).unwrap().unwrap();
    let owner = root.itself().owner;
    GrantedTree {
        descriptor: root.resolve(path).unwrap().unwrap().descriptor,
        owner,
    }
}

fn prepare(launcher: &Launcher, plan: Plan, trees: Vec<GrantedTree>) -> (Prepared, Output) {
    let (ends, output) = stdio();
    (
        launcher
            .prepare(plan, trees, ends, IdentityChoice::Fresh)
            .unwrap(),
        output,
    )
}

/// Runs a shell script with the given trees and returns how it ended and what it wrote.
fn run(launcher: &Launcher, script: &str, trees: &[(&Path, Access)]) -> (Ended, String) {
    let mut plan = plan(&["/usr/bin/sh", "-c", script]);
    for (path, access) in trees {
        grant(&mut plan, path, path.is_dir(), *access);
    }
    let descriptors = trees.iter().map(|(path, _)| tree(path)).collect();
    let (prepared, output) = prepare(launcher, plan, descriptors);
    assert_eq!(prepared.confinement().gaps, []);
    let ended = prepared.start().unwrap().wait(WALL);
    let (stdout, stderr) = output.read();
    (ended, stdout + &stderr)
}

/// Waits until `holds`, at most 30 s.
fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{what}: not within 30 s"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_sandbox_holds_every_layer_and_passes_the_programs_status_on() {
    if skipped_without_root("a_sandbox_holds_every_layer") {
        return;
    }
    let launcher = launcher_for("full");
    let (prepared, output) = prepare(
        &launcher,
        plan(&["/usr/bin/sh", "-c", "echo hello; exit 3"]),
        Vec::new(),
    );
    let confinement = prepared.confinement().clone();
    assert_eq!(confinement.gaps, []);
    assert_eq!(confinement.layers, Layer::ALL);
    assert_eq!(confinement.level, Level::Full);
    assert_eq!(confinement.plan, prepared.plan().hash().unwrap());
    let ended = prepared.start().unwrap().wait(WALL);
    assert_eq!(output.read(), ("hello\n".to_owned(), String::new()));
    assert_eq!(ended.exit, Some(ExitStatus::Code(3)));
    assert_eq!(ended.cause, ExitCause::Exited);
}

#[test]
fn the_owners_files_are_read_and_written_as_the_owners() {
    if skipped_without_root("the_owners_files") {
        return;
    }
    let (_directory, root) = owned();
    let launcher = launcher_for("owner");
    let script = format!(
        "cd {0} && cat a.md && echo new > b.md && stat -c %u a.md && chmod 755 b.md && id -u",
        root.display()
    );
    let (ended, text) = run(&launcher, &script, &[(&root, Access::ReadWriteTree)]);
    assert_eq!(ended.exit, Some(ExitStatus::Code(0)), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "the owner's words");
    // Inside, the files belong to the sandbox's own uid; outside, to their owner.
    assert_eq!(lines[1], lines[2]);
    let written = fs::metadata(root.join("b.md")).unwrap();
    assert_eq!((written.uid(), written.gid()), (OWNER, OWNER));
    assert_eq!(written.mode() & 0o7777, 0o755);
}

#[test]
fn a_working_directory_is_made_where_nothing_of_the_hosts_is_mounted() {
    if skipped_without_root("a_working_directory_is_made") {
        return;
    }
    let (_directory, root) = owned();
    let inside = root.join("none").to_string_lossy().into_owned();
    let launcher = launcher_for("cwd");
    let places = [("/srv/no/no", true), ("/tmp/no/no", true), (&inside, false)];
    for (cwd, made) in places {
        let mut plan = plan(&["/usr/bin/pwd"]);
        plan.program.cwd = cwd.to_owned();
        grant(&mut plan, &root, true, Access::ReadWriteTree);
        let (prepared, output) = prepare(&launcher, plan, vec![tree(&root)]);
        let ended = prepared.start().map(|running| running.wait(WALL).exit);
        let told = output.read().0 == format!("{cwd}\n");
        assert_eq!(told, made, "{cwd}: {ended:?}");
    }
    assert!(!root.join("none").exists());
}

#[test]
fn what_belongs_to_somebody_else_stays_closed() {
    if skipped_without_root("what_belongs_to_somebody_else") {
        return;
    }
    let (_directory, root) = owned();
    let other = root.join("other.md");
    fs::write(&other, "not the owner's\n").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    let launcher = launcher_for("other");
    let script = format!("cat {}", other.display());
    let (ended, text) = run(&launcher, &script, &[(&root, Access::ReadWriteTree)]);
    assert_eq!(ended.exit, Some(ExitStatus::Code(1)));
    assert!(text.contains("Permission denied"), "{text}");
    // The twin: the same file once it is the owner's.
    chown(&other, Some(OWNER), Some(OWNER)).unwrap();
    let (_, text) = run(&launcher, &script, &[(&root, Access::ReadWriteTree)]);
    assert_eq!(text, "not the owner's\n");
}

#[test]
fn a_set_id_file_cannot_be_made_through_a_mapped_tree() {
    if skipped_without_root("a_set_id_file") {
        return;
    }
    let (_directory, root) = owned();
    let launcher = launcher_for("setid");
    let script = |mode: &str| format!("cd {} && echo x > p && chmod {mode} p", root.display());
    let (ended, text) = run(
        &launcher,
        &script("6755"),
        &[(&root, Access::ReadWriteTree)],
    );
    assert_eq!(ended.exit, Some(ExitStatus::Code(1)));
    assert!(text.contains("Operation not permitted"), "{text}");
    let (ended, text) = run(
        &launcher,
        &script("0755"),
        &[(&root, Access::ReadWriteTree)],
    );
    assert_eq!(ended.exit, Some(ExitStatus::Code(0)), "{text}");
}

#[test]
fn a_read_grant_writes_nothing() {
    if skipped_without_root("a_read_grant") {
        return;
    }
    let (_directory, root) = owned();
    let launcher = launcher_for("read");
    let script = format!("echo x > {}/b.md", root.display());
    let (ended, text) = run(&launcher, &script, &[(&root, Access::Read)]);
    assert_ne!(ended.exit, Some(ExitStatus::Code(0)));
    assert!(text.contains("Read-only file system"), "{text}");
    assert!(!root.join("b.md").exists());
    let (ended, text) = run(&launcher, &script, &[(&root, Access::ReadWriteTree)]);
    assert_eq!(ended.exit, Some(ExitStatus::Code(0)), "{text}");
    assert!(root.join("b.md").exists());
}

#[test]
fn a_link_that_leads_out_finds_nothing_and_where_something_is_bound_landlock_refuses() {
    if skipped_without_root("a_link_that_leads_out") {
        return;
    }
    let (directory, root) = owned();
    let secret = directory.path().join("secret");
    fs::write(&secret, "out of reach\n").unwrap();
    symlink(&secret, root.join("link")).unwrap();
    let launcher = launcher_for("link");
    let script = format!("cat {}/link", root.display());
    let words = ["/usr/bin/sh", "-c", script.as_str()];
    let with = |mounts: &[Mount], rules: &[LandlockRule]| {
        let mut plan = plan(&words);
        plan.mounts.extend_from_slice(mounts);
        plan.landlock.extend_from_slice(rules);
        grant(&mut plan, &root, true, Access::Read);
        let (prepared, output) = prepare(&launcher, plan, vec![tree(&root)]);
        let _ended = prepared.start().unwrap().wait(WALL);
        let (stdout, stderr) = output.read();
        stdout + &stderr
    };
    assert!(with(&[], &[]).contains("No such file or directory"));
    let path = secret.to_string_lossy().into_owned();
    let bound = [Mount::View {
        path: path.clone(),
        directory: false,
    }];
    assert!(with(&bound, &[]).contains("Permission denied"));
    // The twin: bound and allowed.
    let allowed = [LandlockRule {
        path,
        rule: Rule::Read,
    }];
    assert_eq!(with(&bound, &allowed), "out of reach\n");
}

#[test]
fn a_link_in_a_granted_tree_cannot_make_the_stage_touch_the_host() {
    if skipped_without_root("a_link_in_a_granted_tree") {
        return;
    }
    let (directory, root) = owned();
    let inner = root.join("sub");
    fs::create_dir(&inner).unwrap();
    let launcher = launcher_for("places");
    let build = || {
        let mut plan = plan(&["/usr/bin/true"]);
        grant(&mut plan, &root, true, Access::ReadWriteTree);
        grant(&mut plan, &inner.join("deep"), true, Access::Read);
        let (ends, _output) = stdio();
        let trees = vec![tree(&root), tree(&root)];
        launcher
            .prepare(plan, trees, ends, IdentityChoice::Fresh)
            .map(drop)
    };
    // What was resolved as a directory is a link to the host by the time it is mounted.
    let outside = directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir(&inner).unwrap();
    symlink(&outside, &inner).unwrap();
    let error = build().unwrap_err().to_string();
    assert!(error.starts_with("stage step mounts:"), "{error}");
    assert!(
        error.contains("Too many levels of symbolic links"),
        "{error}"
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    // Nothing is made in a granted tree either.
    fs::remove_file(&inner).unwrap();
    fs::create_dir(&inner).unwrap();
    let error = build().unwrap_err().to_string();
    assert!(
        error.contains("it is missing in something that is mounted"),
        "{error}"
    );
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 0);
    // The twin: the mount point is there.
    fs::create_dir(inner.join("deep")).unwrap();
    build().unwrap();
}

#[test]
fn a_sandbox_that_is_given_up_has_run_nothing_and_leaves_nothing() {
    if skipped_without_root("a_sandbox_that_is_given_up") {
        return;
    }
    let (_directory, root) = owned();
    let launcher = launcher_for("given-up");
    let script = format!("echo ran > {}/ran", root.display());
    let build = || {
        let mut plan = plan(&["/usr/bin/sh", "-c", script.as_str()]);
        grant(&mut plan, &root, true, Access::ReadWriteTree);
        prepare(&launcher, plan, vec![tree(&root)])
    };
    let (prepared, output) = build();
    let process = format!("/proc/{}", prepared.pid());
    assert!(Path::new(&process).exists());
    drop(prepared);
    assert!(!Path::new(&process).exists());
    assert_eq!(output.read(), (String::new(), String::new()));
    assert!(!root.join("ran").exists());
    // The twin: the same sandbox, let go.
    let (prepared, _output) = build();
    let ended = prepared.start().unwrap().wait(WALL);
    assert_eq!(ended.cause, ExitCause::Exited);
    assert!(root.join("ran").exists());
}

#[test]
fn a_program_that_ignores_signals_and_leaves_children_is_gone_when_its_time_is_up() {
    if skipped_without_root("a_program_that_ignores_signals") {
        return;
    }
    let launcher = launcher_for("wall");
    let script = "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; while :; do sleep 100; done' &) ; \
                  echo up; while :; do sleep 100; done";
    let (prepared, output) = prepare(&launcher, plan(&["/usr/bin/sh", "-c", script]), Vec::new());
    let running = prepared.start().unwrap();
    let process = format!("/proc/{}", running.pid());
    let ended = running.wait(Duration::from_secs(1));
    assert_eq!(ended.cause, ExitCause::Timeout);
    launcher.settle();
    assert!(!Path::new(&process).exists());
    // End of file on the pipes: nobody inside holds them any more.
    assert_eq!(output.read().0, "up\n");
}

#[test]
fn forking_without_end_meets_the_limit_and_ends_with_the_sandbox() {
    if skipped_without_root("forking_without_end") {
        return;
    }
    let launcher = launcher_for("fork");
    let script = "i=0; while [ $i -lt 100 ]; do sleep 300 & i=$((i+1)); done; echo all";
    let (prepared, output) = prepare(&launcher, plan(&["/usr/bin/sh", "-c", script]), Vec::new());
    let ended = prepared.start().unwrap().wait(WALL);
    let (stdout, stderr) = output.read();
    assert_eq!(stdout, "", "{stderr}");
    assert!(stderr.contains("Cannot fork"), "{stderr}");
    assert_eq!(ended.cause, ExitCause::Exited);
    // The twin: fewer than the limit.
    let script = script.replace("100", "9");
    let (prepared, output) = prepare(&launcher, plan(&["/usr/bin/sh", "-c", &script]), Vec::new());
    let _ended = prepared.start().unwrap().wait(WALL);
    assert_eq!(output.read().0, "all\n");
}

#[test]
fn a_program_that_takes_too_much_memory_is_stopped_for_that() {
    if skipped_without_root("a_program_that_takes_too_much_memory") {
        return;
    }
    let launcher = launcher_for("memory");
    // `tail` keeps what it cannot yet discard: one line without an end.
    let script = |bytes: u64| format!("head -c {bytes} /dev/zero | tail -n 1 | wc -c");
    let (prepared, output) = prepare(
        &launcher,
        plan(&["/usr/bin/sh", "-c", "exec tail -n 1 /dev/zero"]),
        Vec::new(),
    );
    let ended = prepared.start().unwrap().wait(WALL);
    assert_eq!(ended.cause, ExitCause::Memory, "{:?}", output.read());
    let (_, text) = run(&launcher, &script(1000), &[]);
    assert_eq!(text.trim(), "1000");
}

#[test]
fn a_program_sees_pid_1_itself_and_nobody_else() {
    if skipped_without_root("a_program_sees_pid_1") {
        return;
    }
    let launcher = launcher_for("see");
    let script = "echo /proc/[0-9]*; hostname; ls /; ls -d /etc /root /var /home /sys /proc/net";
    let (_, text) = run(&launcher, script, &[]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["/proc/1 /proc/2", "box"]);
    let refused = "ls: cannot open directory '/': Permission denied";
    assert!(lines[2..].contains(&refused), "{text}");
    for path in ["/etc", "/root", "/var", "/home", "/sys", "/proc/net"] {
        let absent = format!("ls: cannot access '{path}': No such file or directory");
        assert!(lines[2..].contains(&absent.as_str()), "{path}: {text}");
    }
    assert_eq!(lines.len(), 9, "{text}");
}

#[test]
fn stopping_by_hand_is_an_abort() {
    if skipped_without_root("stopping_by_hand") {
        return;
    }
    let launcher = launcher_for("abort");
    let (prepared, _output) = prepare(&launcher, plan(&["/usr/bin/sleep", "300"]), Vec::new());
    let running = prepared.start().unwrap();
    let killer = running.killer();
    let waiting = std::thread::spawn(move || running.wait(WALL));
    killer.kill(ExitCause::Aborted);
    assert_eq!(waiting.join().unwrap().cause, ExitCause::Aborted);
}

#[test]
fn a_missing_program_is_said_to_be_missing() {
    if skipped_without_root("a_missing_program") {
        return;
    }
    let launcher = launcher_for("missing");
    let (prepared, _output) = prepare(&launcher, plan(&["/usr/bin/no-such"]), Vec::new());
    let ended = prepared.start().unwrap().wait(WALL);
    assert_eq!((ended.cause, ended.exit), (ExitCause::NotStarted, None));
    let detail = ended.detail.unwrap();
    assert!(
        detail.contains("/usr/bin/no-such: No such file or directory"),
        "{detail}"
    );
}

#[test]
fn a_file_system_without_id_maps_is_a_gap_that_only_a_waiver_passes() {
    if skipped_without_root("a_file_system_without_id_maps") {
        return;
    }
    // /proc refuses id maps on every kernel; a directory of the launcher's own does as a tree.
    let path = PathBuf::from(format!("/proc/{}/task", std::process::id()));
    for (waive, passes) in [(vec![], false), (vec![Layer::Uid], true)] {
        let launcher = launcher_with(&binary("boxmaker-stage"), "nomap", waive.clone());
        let mut plan = plan(&["/usr/bin/true"]);
        grant(&mut plan, Path::new("/granted"), true, Access::Read);
        let descriptor = OwnedFd::from(fs::File::open(&path).unwrap());
        let trees = vec![GrantedTree {
            descriptor,
            owner: (OWNER, OWNER),
        }];
        let (prepared, _output) = prepare(&launcher, plan, trees);
        let confinement = prepared.confinement();
        let gap = confinement.gap(Layer::Uid).unwrap();
        assert!(
            gap.reason
                .starts_with("shared-uid: the file system refuses id maps"),
            "{gap:?}"
        );
        assert_eq!(confinement.gaps.len(), 1, "{:?}", confinement.gaps);
        assert_eq!(confinement.level, Level::Partial);
        assert_eq!(confinement.waived, waive);
        assert_eq!(confinement.satisfies(Level::Full), passes);
        assert!(confinement.satisfies(Level::Partial));
    }
}

#[test]
fn many_sandboxes_live_side_by_side_with_uids_of_their_own() {
    if skipped_without_root("many_sandboxes") {
        return;
    }
    let launcher = launcher_for("many");
    let all: Vec<_> = (0..20)
        .map(|_| prepare(&launcher, plan(&["/usr/bin/id", "-u"]), Vec::new()))
        .collect();
    let mut uids: Vec<String> = all
        .into_iter()
        .map(|(prepared, output)| {
            let _ended = prepared.start().unwrap().wait(WALL);
            output.read().0
        })
        .collect();
    uids.sort();
    uids.dedup();
    assert_eq!(uids.len(), 20);
    until("cgroups are removed", || {
        let name = format!("boxmaker-test-many-{}", std::process::id());
        let text = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = text
            .lines()
            .find_map(|line| line.split_once(":memory:"))
            .map(|(_, path)| path);
        let Some(own) = own else { return true };
        let path = Path::new("/sys/fs/cgroup/memory")
            .join(own.trim_start_matches('/'))
            .join(&name);
        fs::read_dir(path).map_or(true, |entries| {
            !entries.flatten().any(|entry| entry.path().is_dir())
        })
    });
}
