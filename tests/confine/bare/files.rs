//! What a bare sandbox can reach, and what not: files, sockets, processes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use boxmaker_tests::binaries::skipped_without_user_namespaces;

use crate::place::{Place, running, sleep, until};

#[test]
fn what_is_granted_can_be_read_and_another_file_of_the_same_user_cannot() {
    if skipped_without_user_namespaces("what_is_granted_can_be_read") {
        return;
    }
    let place = Place::new();
    let script = format!(
        "cat {} {}",
        place.show("tree/mine"),
        place.show("other/secret")
    );
    let launched = place.launch(&script);
    assert_eq!(launched.stdout, "mine\n");
    let refused = format!("cat: {}: Permission denied\n", place.show("other/secret"));
    assert_eq!(launched.stderr, refused);
    assert_eq!(place.outside(&script), "mine\nsecret\n");
}

#[test]
fn a_link_that_a_tool_has_made_leads_nowhere_else() {
    if skipped_without_user_namespaces("a_link_that_a_tool_has") {
        return;
    }
    let place = Place::new();
    symlink(place.path("other/secret"), place.path("tree/link")).unwrap();
    let script = format!("cat {}", place.show("tree/link"));
    let launched = place.launch(&script);
    assert_eq!(launched.stdout, "");
    assert!(
        launched.stderr.ends_with(": Permission denied\n"),
        "{}",
        launched.stderr
    );
    assert_eq!(place.outside(&script), "secret\n");
}

#[test]
fn files_are_made_and_removed_where_that_is_granted_and_nowhere_else() {
    if skipped_without_user_namespaces("files_are_made_and_removed_where") {
        return;
    }
    let place = Place::new();
    let script = |directory: &str| {
        let at = place.show(directory);
        format!(
            "echo new > {at}/new; mkdir {at}/made && rmdir {at}/made; ln -s x {at}/link; rm {at}/new {at}/link && echo all"
        )
    };
    let granted = place.launch(&script("tree"));
    assert_eq!(
        (granted.stdout.as_str(), granted.stderr.as_str()),
        ("all\n", "")
    );
    let refused = place.launch(&script("other"));
    assert_eq!(refused.stdout, "");
    assert_eq!(
        refused.stderr.matches("Permission denied").count(),
        3,
        "{}",
        refused.stderr
    );
    assert_eq!(fs::read_dir(place.path("other")).unwrap().count(), 1);
    assert_eq!(place.outside(&script("other")), "all\n");
}

#[test]
fn modes_and_times_of_the_users_files_cannot_be_changed() {
    if skipped_without_user_namespaces("modes_and_times_of_the_users") {
        return;
    }
    let place = Place::new();
    let secret = place.show("other/secret");
    let script = format!("chmod 666 {secret}; touch -h -d @0 {secret}; echo done");
    let launched = place.launch(&script);
    assert_eq!(launched.stdout, "done\n");
    let refused = launched.stderr.matches("Operation not permitted").count();
    assert_eq!(
        (refused, launched.stderr.lines().count()),
        (2, 2),
        "{}",
        launched.stderr
    );
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_ne!(mode(&secret), 0o666);
    assert_eq!(place.outside(&script), "done\n");
    assert_eq!(mode(&secret), 0o666);
}

#[test]
fn the_scratch_directory_is_its_own_and_is_removed_whatever_is_in_it() {
    if skipped_without_user_namespaces("the_scratch_directory_is_its_own") {
        return;
    }
    let place = Place::new();
    let script = "cd $TMPDIR && mkdir -p a/b && echo x > a/b/c && (umask 777; mkdir a/b/closed) && ls -a; pwd";
    let launched = place.launch(script);
    let mut lines = launched.stdout.lines();
    assert_eq!(
        [(); 3].map(|()| lines.next()),
        [Some("."), Some(".."), Some("a")],
        "{}",
        launched.stderr
    );
    let scratch = lines.next().unwrap();
    assert!(scratch.ends_with("/0/scratch"), "{scratch}");
    assert_eq!(launched.left, 0);
    assert!(!Path::new(scratch).exists());
    // The host's own is not a part of it.
    let launched = place.launch("ls /tmp; echo x > /tmp/boxmaker-bare");
    assert_eq!(
        launched.stderr.matches("Permission denied").count(),
        2,
        "{}",
        launched.stderr
    );
}

#[test]
fn there_is_no_socket() {
    if skipped_without_user_namespaces("there_is_no_socket") {
        return;
    }
    let place = Place::new();
    let script = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/1'";
    let launched = place.launch(script);
    let refused = "socket: Operation not permitted";
    assert!(launched.stderr.contains(refused), "{}", launched.stderr);
    // The twin comes as far as asking who listens there.
    let outside = place.outside(script);
    assert!(outside.contains("Connection refused"), "{outside}");
}

#[test]
fn processes_outside_can_be_neither_signalled_nor_read() {
    if skipped_without_user_namespaces("processes_outside_can_be_neither_signalled") {
        return;
    }
    let place = Place::new();
    let words = sleep(1);
    let mut other = place
        .outside_command(&format!("exec {words}"))
        .spawn()
        .unwrap();
    until(&words, || !running(&words).is_empty());
    let pid = running(&words)[0];
    let script =
        format!("kill -0 {pid} && echo signalled; head -c 5 /proc/{pid}/cmdline; ls /proc");
    let launched = place.launch(&script);
    let outside = place.outside(&script);
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(launched.stdout, "");
    let told = &launched.stderr;
    assert!(told.contains("Operation not permitted"), "{told}");
    assert_eq!(told.matches("Permission denied").count(), 2, "{told}");
    assert!(outside.starts_with("signalled\nsleep"), "{outside}");
    assert!(outside.contains(&format!("\n{pid}\n")), "{outside}");
}
