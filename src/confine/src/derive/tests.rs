mod bare;
mod narrowing;
mod trees;

use std::collections::BTreeMap;

use proto::Hash32;

use super::*;
use crate::host::{Executable, Located, Privilege};
use crate::plan::Access;
use crate::profile::Profiles;

/// A profile that sees three directories and one file, one of them by a link.
pub(super) fn profile() -> Profile {
    let text = "
        view = ['/usr', '/lib64', '/lost', '/etc/ssl', '/etc/hosts', '/outside', '/none']
        exec = ['/usr/bin/snake*', '/srv/scripts/*', '/hidden/*']
        env = { LANG = 'C', PATH = '/usr/bin' }
        seccomp = ['base']
    ";
    let files = BTreeMap::from([("profiles/x.toml".to_owned(), text.as_bytes().to_vec())]);
    Profiles::load(&files).unwrap().get("x").unwrap().clone()
}

fn file(real: &str) -> Located {
    Located::at(real, false, &[])
}

fn loader() -> Located {
    let links = [
        ("/lib64", "usr/lib64"),
        ("/usr/lib64/ld.so", "../lib/ld.so"),
    ];
    Located::at("/usr/lib/ld.so", false, &links)
}

pub(super) fn host(program: &str) -> Host {
    let view = |path: &str, at: Located| (path.to_owned(), at);
    let views = [
        view("/usr", Located::at("/usr", true, &[])),
        view(
            "/lib64",
            Located::at("/usr/lib64", true, &[("/lib64", "usr/lib64")]),
        ),
        view(
            "/lost",
            Located::at("/srv/lost", true, &[("/lost", "srv/lost")]),
        ),
        view("/etc/ssl", Located::at("/etc/ssl", true, &[])),
        view("/etc/hosts", file("/etc/hosts")),
        view(
            "/outside",
            Located::at("/etc/shadow", false, &[("/outside", "/etc/shadow")]),
        ),
    ];
    let one = |real: &str, loader| Executable {
        at: file(real),
        loader,
    };
    let exec = [
        (
            "/usr/bin/snake*".to_owned(),
            vec![one("/usr/bin/snake3.11", Some(loader()))],
        ),
        (
            "/srv/scripts/*".to_owned(),
            vec![
                one("/srv/scripts/a", Some(loader())),
                one("/srv/scripts/b", None),
            ],
        ),
        (
            "/hidden/*".to_owned(),
            vec![one("/hidden/x", Some(file("/hidden/ld.so")))],
        ),
    ];
    Host {
        privilege: Privilege::Root,
        landlock_abi: 0,
        views: BTreeMap::from(views),
        program: program.to_owned(),
        chain: vec![file(program), loader()],
        exec: BTreeMap::from(exec),
    }
}

pub(super) fn program(path: &str) -> Program {
    Program {
        argv: vec![path.to_owned(), "-x".to_owned()],
        env: BTreeMap::new(),
        cwd: "/".to_owned(),
        input: Hash32::ZERO,
    }
}

pub(super) fn tree(path: &str, access: Access) -> Mount {
    Mount::Tree {
        path: path.to_owned(),
        directory: true,
        access,
        exec: false,
    }
}

const PROGRAM: &str = "/opt/app/tool";

fn plan(trees: &[Mount]) -> Result<Plan, DeriveError> {
    derive(
        &profile(),
        program(PROGRAM),
        trees,
        Level::Full,
        &host(PROGRAM),
    )
}

fn problem(trees: &[Mount]) -> (String, TreeProblem) {
    match plan(trees) {
        Err(DeriveError::Tree { path, error }) => (path, error),
        other => panic!("{other:?}"),
    }
}

fn view(path: &str, directory: bool) -> Mount {
    Mount::View {
        path: path.to_owned(),
        directory,
    }
}

#[test]
fn the_root_holds_links_views_and_what_is_mounted_on_them_in_order() {
    let trees = [
        tree("/srv/data", Access::Read),
        tree("/srv/data/out", Access::ReadWriteFiles),
    ];
    let mounts = plan(&trees).unwrap().mounts;
    let link = Mount::Link {
        path: "/lib64".to_owned(),
        target: "usr/lib64".to_owned(),
    };
    let scratch = Mount::Scratch {
        bytes: 64 << 20,
        inodes: 4096,
    };
    let [data, out] = trees;
    assert_eq!(
        mounts,
        [
            link,
            view("/etc/hosts", false),
            view("/etc/ssl", true),
            view("/usr", true),
            view(PROGRAM, false),
            Mount::Proc,
            Mount::Devices,
            scratch,
            data,
            out,
        ]
    );
}

#[test]
fn a_link_that_leads_out_of_the_view_is_left_out() {
    let shown = format!("{:?}", plan(&[]).unwrap());
    for absent in [
        "/lost",
        "/srv/lost",
        "/outside",
        "/etc/shadow",
        "/none",
        "/hidden",
    ] {
        assert!(!shown.contains(&format!("\"{absent}")), "{absent}");
    }
}

#[test]
fn landlock_follows_what_is_mounted() {
    let plan = plan(&[tree("/srv/data", Access::WriteTree)]).unwrap();
    let rules: Vec<_> = plan
        .landlock
        .iter()
        .map(|rule| (rule.path.as_str(), rule.rule))
        .collect();
    assert_eq!(
        rules,
        [
            ("/etc/hosts", Rule::Read),
            ("/etc/ssl", Rule::Read),
            ("/usr", Rule::Read),
            (PROGRAM, Rule::Execute),
            ("/usr/bin/snake3.11", Rule::Execute),
            ("/usr/lib/ld.so", Rule::Execute),
            ("/proc", Rule::Read),
            ("/dev/full", Rule::Device),
            ("/dev/null", Rule::Device),
            ("/dev/zero", Rule::Device),
            ("/dev/random", Rule::Read),
            ("/dev/urandom", Rule::Read),
            ("/tmp", Rule::Scratch),
            ("/srv/data", Rule::Tree(Access::WriteTree)),
        ]
    );
}

#[test]
fn a_link_to_the_program_stands_inside_as_it_does_outside() {
    let mut host = host("/opt/tool");
    host.chain[0] = Located::at(PROGRAM, false, &[("/opt/tool", "app/tool")]);
    let plan = derive(&profile(), program("/opt/tool"), &[], Level::Full, &host);
    let mounts = plan.unwrap().mounts;
    let link = Mount::Link {
        path: "/opt/tool".to_owned(),
        target: "app/tool".to_owned(),
    };
    assert!(mounts.contains(&link) && mounts.contains(&view(PROGRAM, false)));
}

#[test]
fn programs_that_a_sandbox_cannot_have_are_refused() {
    let derive = |program: Program, host: &Host| {
        derive(&profile(), program, &[], Level::Full, host)
            .unwrap_err()
            .to_string()
    };
    let wrong = |change: &dyn Fn(&mut Program)| {
        let mut program = program(PROGRAM);
        change(&mut program);
        derive(program, &host(PROGRAM))
    };
    assert_eq!(wrong(&|it| it.argv.clear()), "program: it has no words");
    assert_eq!(
        wrong(&|it| it.cwd = "srv".to_owned()),
        "program: working directory \"srv\" is not absolute"
    );
    assert!(wrong(&|it| it.argv.push("a\0".to_owned())).contains("NUL"));
    let variable = |it: &mut Program| it.env = BTreeMap::from([("A=B".to_owned(), String::new())]);
    assert!(wrong(&variable).contains("cannot name a variable"));
    assert_eq!(
        derive(program(PROGRAM), &host("/usr/bin/other")),
        "the host was looked at for /usr/bin/other, not for /opt/app/tool"
    );
    for path in ["/proc/self/exe", "/dev/shm/tool", "/sys/tool"] {
        let error = derive(program(path), &host(path));
        assert!(error.starts_with(path), "{error}");
    }
    let mut linked = host(PROGRAM);
    linked.chain[0] = Located::at("/usr/bin/x", false, &[("/proc/self/exe", "/usr/bin/x")]);
    assert!(derive(program(PROGRAM), &linked).starts_with("/proc/self/exe"));
}

#[test]
fn the_environment_is_the_profiles_and_the_callers_words_win() {
    let mut program = program(PROGRAM);
    program.env = BTreeMap::from([("LANG".to_owned(), "de".to_owned())]);
    let plan = derive(&profile(), program, &[], Level::Full, &host(PROGRAM)).unwrap();
    let env: Vec<_> = plan.program.env.iter().collect();
    assert_eq!(
        format!("{env:?}"),
        r#"[("LANG", "de"), ("PATH", "/usr/bin")]"#
    );
}

#[test]
fn empty_lists_give_the_program_and_nothing_else() {
    let mut profile = profile();
    profile.view.clear();
    profile.exec.clear();
    let plan = derive(&profile, program(PROGRAM), &[], Level::None, &host(PROGRAM)).unwrap();
    let views: Vec<_> = plan
        .mounts
        .iter()
        .filter(|mount| matches!(mount, Mount::View { .. }))
        .collect();
    assert_eq!(
        views,
        [&view(PROGRAM, false), &view("/usr/lib/ld.so", false)]
    );
    profile.seccomp.clear();
    let none = derive(&profile, program(PROGRAM), &[], Level::None, &host(PROGRAM));
    assert!(matches!(none, Err(DeriveError::Seccomp { .. })));
}

#[test]
fn the_hash_of_a_plan_does_not_change_by_itself() {
    let mut plan = plan(&[tree("/srv/data", Access::Read)]).unwrap();
    let hash = plan.hash().unwrap();
    plan.program.argv.push("y".to_owned());
    assert_ne!(plan.hash().unwrap(), hash);
    plan.program.argv.pop();
    assert_eq!(plan.hash().unwrap(), hash);
    // The sets may grow; the form of the plan and its hash may not change.
    plan.seccomp.program = Hash32::ZERO;
    assert_eq!(
        plan.hash().unwrap().to_string(),
        "a196dfd1a22b3611682ae8014d06a6d3deb7ad07e2a54a1832ae0ea54ae0c3ff"
    );
}
