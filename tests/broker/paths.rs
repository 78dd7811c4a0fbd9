//! A compromised brokerd asks for files that the grant does not hold, by every spelling and link.

use std::fs;
use std::path::Path;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::Home;
use proto::DenyReason;
use proto::audit::ExitStatus;

use crate::calls::{Broker, at, writing};
use crate::homes::{CODE, NOTE, home};
use boxmaker_tests::system::Brokerd;

fn content(home: &Home, below: &str) -> String {
    fs::read_to_string(home.path(below)).unwrap()
}

#[test]
fn no_spelling_reads_what_the_grant_does_not_hold() {
    if skipped_without_root("no_spelling_reads_what_the_grant_does_not_hold") {
        return;
    }
    let mut broker = Broker::up();
    let (notes, code) = (
        broker.home.path("notes"),
        broker.home.path("vault/code.txt"),
    );
    let spellings = [
        code.clone(),
        broker.home.path("notes2/a.md"),
        format!("{notes}/../vault/code.txt"),
        format!("{notes}/closed/../../vault/code.txt"),
        format!("{notes}/.."),
        "../vault/code.txt".to_owned(),
        "./../vault/code.txt".to_owned(),
        "..".to_owned(),
        format!("{notes}/./a.md"),
        "./a.md".to_owned(),
        format!("{notes}//a.md"),
        format!("/{notes}/a.md"),
        format!("{notes}/a.md/"),
        format!("{notes}/"),
        format!("/proc/self/root{notes}/a.md"),
        format!("/proc/self/root{code}"),
        format!("/proc/1/root{code}"),
        "/proc/self/cwd/a.md".to_owned(),
        "/dev/fd/0".to_owned(),
        format!("file://{notes}/a.md"),
        format!("{notes}/a.md\u{0}"),
        format!("{}/a.md", notes.to_uppercase()),
        String::new(),
    ];
    for spelling in &spellings {
        let reason = broker.denied("fs_read", "notes", &at(spelling));
        assert_eq!(reason, DenyReason::NoGrant, "{spelling:?}");
    }
    // What holds a denied path is denied, granted or not.
    for above in ["/", notes.as_str()] {
        let reason = broker.denied("fs_read", "notes", &at(above));
        assert_eq!(reason, DenyReason::DeniedByGrant, "{above}");
    }
    for spelling in [format!("{notes}/a.md"), "a.md".to_owned()] {
        let ran = broker.call("fs_read", "notes", &at(&spelling));
        assert_eq!(ran.stdout, NOTE, "{spelling:?}: {}", ran.stderr);
    }
    // Nobody expands these: they are names below the root, and nothing has them.
    for spelling in [
        format!("~{notes}/a.md"),
        "$HOME/a.md".to_owned(),
        "%2e%2e/a.md".to_owned(),
    ] {
        let ran = broker.call("fs_read", "notes", &at(&spelling));
        assert_eq!(
            (ran.exited.exit, ran.stdout),
            (Some(ExitStatus::Code(1)), String::new())
        );
    }
}

#[test]
fn no_link_leads_out_of_what_is_read() {
    if skipped_without_root("no_link_leads_out_of_what_is_read") {
        return;
    }
    let home = home(Brokerd::Relay);
    home.folder("notes/sub");
    let (note, code) = (home.path("notes/a.md"), home.path("vault/code.txt"));
    let out = [
        home.link("notes/out.md", "../vault/code.txt"),
        home.link("notes/chain.md", "chain2.md"),
        home.link("notes/sub/deep.md", "../../vault/code.txt"),
        home.link("notes/absolute.md", &code),
        // It would come back in, but it leaves the grant on its way.
        home.link("notes/absolute-inside.md", &note),
        home.link("notes/round.md", "../notes/a.md"),
        home.link("notes/magic.md", &format!("/proc/self/root{code}")),
        home.link("notes/magic-inside.md", &format!("/proc/self/root{note}")),
        home.link("notes/nowhere.md", "../vault/nothing.txt"),
        home.link("notes/loop.md", "loop.md"),
    ];
    home.link("notes/chain2.md", "out.md");
    home.link("notes/folder", "../vault");
    home.link("notes/slash", "/");
    let through = [
        home.path("notes/folder/code.txt"),
        home.path("notes/folder/nothing.txt"),
        format!("{}{code}", home.path("notes/slash")),
        format!("{}/proc/self/root{code}", home.path("notes/slash")),
    ];
    let inside = [
        home.link("notes/in.md", "a.md"),
        home.link("notes/in-chain.md", "in.md"),
        home.link("notes/sub/up.md", "../a.md"),
    ];
    let mut broker = Broker::up_in(home);
    for path in out.iter().chain(&through) {
        let reason = broker.denied("fs_read", "notes", &at(path));
        assert_eq!(reason, DenyReason::PathOutside, "{path}");
    }
    for path in &inside {
        let ran = broker.call("fs_read", "notes", &at(path));
        assert_eq!(ran.stdout, NOTE, "{path}: {}", ran.stderr);
    }
}

#[test]
fn a_link_does_not_lead_into_what_is_denied() {
    if skipped_without_root("a_link_does_not_lead_into_what_is_denied") {
        return;
    }
    let home = home(Brokerd::Relay);
    let file = home.link("notes/b.md", "closed/b.md");
    let folder = home.link("notes/folder", "closed");
    let free = home.link("notes/c.md", "a.md");
    let mut broker = Broker::up_in(home);
    for path in [file, format!("{folder}/b.md"), folder] {
        let reason = broker.denied("fs_read", "notes", &at(&path));
        assert_eq!(reason, DenyReason::DeniedByGrant, "{path}");
    }
    assert_eq!(broker.call("fs_read", "notes", &at(&free)).stdout, NOTE);
}

#[test]
fn no_spelling_or_link_writes_outside_the_grant() {
    if skipped_without_root("no_spelling_or_link_writes_outside_the_grant") {
        return;
    }
    let home = home(Brokerd::Relay);
    let (out, vault) = (home.path("out"), home.path("vault"));
    let lexical = [
        format!("{vault}/code.txt"),
        format!("{vault}/new.md"),
        home.path("outside.md"),
        format!("{out}/../vault/code.txt"),
        "../vault/code.txt".to_owned(),
        format!("{out}//new.md"),
        format!("{out}/./new.md"),
        format!("/proc/self/root{out}/new.md"),
        home.path("notes/a.md"),
    ];
    home.link("out/folder", "../vault");
    let links = [
        home.link("out/code.md", "../vault/code.txt"),
        home.link("out/absolute.md", &format!("{vault}/code.txt")),
        home.link("out/nowhere.md", "../vault/new.md"),
        home.link("out/magic.md", &format!("/proc/self/root{vault}/code.txt")),
        home.path("out/folder/code.txt"),
        home.path("out/folder/new.md"),
    ];
    let mut broker = Broker::up_in(home);
    let reasons = [
        (&lexical[..], DenyReason::NoGrant),
        (&links[..], DenyReason::PathOutside),
    ];
    for (paths, reason) in reasons {
        for path in paths {
            let refused = broker.denied("fs_write", "out", &writing(path, "x"));
            assert_eq!(refused, reason, "{path}");
        }
    }
    for path in [format!("{out}/new.md"), "relative.md".to_owned()] {
        let ran = broker.call("fs_write", "out", &writing(&path, "x"));
        assert_eq!(
            ran.exited.exit,
            Some(ExitStatus::Code(0)),
            "{path}: {}",
            ran.stderr
        );
    }
    let home = &broker.home;
    assert_eq!(content(home, "out/new.md"), "x");
    assert_eq!(content(home, "out/relative.md"), "x");
    assert_eq!(content(home, "vault/code.txt"), CODE);
    assert_eq!(fs::read_dir(&vault).unwrap().count(), 1);
    assert!(!Path::new(&home.path("outside.md")).exists());
}

#[test]
fn a_granted_path_that_is_made_later_is_found_and_judged_as_if_it_had_been_there() {
    if skipped_without_root("a_granted_path_that_is_made_later_is_found_and_judged") {
        return;
    }
    let home = home(Brokerd::Relay);
    let private = "mode = \"auto\"\nmax_taint = \"private\"\n";
    for (id, tool, more, path) in [
        ("later", "fs_read", "", "read:@FILES@/later"),
        ("turned", "fs_read", "", "read:@FILES@/turned"),
        (
            "put",
            "fs_write",
            "after_untrusted = \"allow\"\n",
            "write:@FILES@/put",
        ),
    ] {
        home.grant(
            id,
            &format!("tool = \"{tool}\"\n{private}{more}constraints.paths = [\"{path}\"]\n"),
        );
    }
    home.grant(
        "never",
        "tool = \"fs_read\"\nmode = \"deny\"\nconstraints.paths = [\"read:@FILES@/later/closed\"]\n",
    );
    let mut broker = Broker::up_in(home);
    let said = broker.home.stderr();
    for path in ["later", "later/closed", "put", "turned"] {
        let warned = format!("{} is not there: ", broker.home.path(path));
        assert!(said.contains(&warned), "{path}: {said}");
    }
    let note = broker.home.path("later/a.md");
    let out = broker.home.path("put/a.md");
    for (tool, grant, arguments) in [
        ("fs_read", "later", at(&note)),
        ("fs_write", "put", writing(&out, "x")),
    ] {
        let ran = broker.call(tool, grant, &arguments);
        assert_eq!(ran.exited.exit, Some(ExitStatus::Code(1)), "{grant}");
        assert!(ran.stderr.contains("exist"), "{}", ran.stderr);
    }

    broker.home.file("later/a.md", NOTE);
    let closed = broker.home.file("later/closed/b.md", CODE);
    broker.home.folder("put");
    assert_eq!(broker.call("fs_read", "later", &at(&note)).stdout, NOTE);
    let denied = broker.denied("fs_read", "later", &at(&closed));
    assert_eq!(denied, DenyReason::DeniedByGrant);
    let ran = broker.call("fs_write", "put", &writing(&out, "x"));
    assert_eq!(ran.exited.exit, Some(ExitStatus::Code(0)), "{}", ran.stderr);
    // What would not have loaded is refused: a link, and a place where a write would be root's.
    broker.home.link("turned", "vault");
    let turned = broker.home.path("turned/code.txt");
    let reason = broker.denied("fs_read", "turned", &at(&turned));
    assert_eq!(reason, DenyReason::PathOutside);
    fs::remove_dir_all(broker.home.path("put")).unwrap();
    fs::create_dir(broker.home.path("put")).unwrap();
    let reason = broker.denied("fs_write", "put", &writing(&out, "x"));
    assert_eq!(reason, DenyReason::LaunchFailed);
}
