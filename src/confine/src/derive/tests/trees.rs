//! Granted trees: where they may stand, and what they may cover.

use super::*;

#[test]
fn only_an_exec_entry_in_a_tree_makes_it_executable() {
    let exec = |trees: &[Mount]| -> Vec<bool> {
        let mounts = plan(trees).unwrap().mounts;
        let flag = |mount: &Mount| match mount {
            Mount::Tree { exec, .. } => Some(*exec),
            _ => None,
        };
        mounts.iter().filter_map(flag).collect()
    };
    let mut asked = tree("/srv/data", Access::Read);
    if let Mount::Tree { exec, .. } = &mut asked {
        *exec = true;
    }
    let scripts = tree("/srv/scripts", Access::Read);
    assert_eq!(exec(&[asked, scripts.clone()]), [false, true]);
    let plan = plan(&[scripts]).unwrap();
    let execute = |path: &str| {
        let rule = LandlockRule {
            path: path.to_owned(),
            rule: Rule::Execute,
        };
        plan.landlock.contains(&rule)
    };
    assert!(execute("/srv/scripts/a") && execute("/srv/scripts/b"));
    assert!(!execute("/hidden/x") && !execute("/hidden/ld.so"));
}

#[test]
fn trees_that_would_hide_what_a_sandbox_has_are_refused_and_their_neighbours_are_not() {
    for (bad, own, good) in [
        ("/", "/", "/srv"),
        ("/proc", "/proc", "/procs"),
        ("/proc/1", "/proc", "/srv/proc/1"),
        ("/sys/kernel", "/sys", "/system"),
        ("/dev/shm", "/dev", "/devel"),
        ("/tmp", "/tmp", "/tmp/jobs"),
    ] {
        let found = problem(&[tree(bad, Access::Read)]);
        assert_eq!(found, (bad.to_owned(), TreeProblem::Own(own)));
        plan(&[tree(good, Access::Read)]).unwrap();
    }
    for bad in [
        "",
        "srv",
        "/srv/",
        "/srv//x",
        "/srv/./x",
        "/srv/../etc",
        "/srv\n",
    ] {
        let found = problem(&[tree(bad, Access::Read)]);
        assert_eq!(found.1, TreeProblem::Path, "{bad:?}");
    }
}

#[test]
fn trees_stand_in_an_order_in_which_none_covers_another() {
    let [whole, part] = [
        tree("/srv", Access::Read),
        tree("/srv/out", Access::WriteFiles),
    ];
    plan(&[whole.clone(), part.clone()]).unwrap();
    let (path, error) = problem(&[part.clone(), whole]);
    assert_eq!(
        (path.as_str(), error),
        ("/srv/out", TreeProblem::Order("/srv".to_owned()))
    );
    let again = problem(&[part.clone(), part]);
    assert_eq!(again.1, TreeProblem::Twice);
    let file = Mount::Tree {
        path: "/srv".to_owned(),
        directory: false,
        access: Access::Read,
        exec: false,
    };
    let in_file = problem(&[file, tree("/srv/x", Access::Read)]);
    assert_eq!(in_file.1, TreeProblem::InFile("/srv".to_owned()));
    let in_view = problem(&[tree("/etc/hosts/x", Access::Read)]);
    assert_eq!(in_view.1, TreeProblem::InFile("/etc/hosts".to_owned()));
    let through = problem(&[tree("/lib64/x", Access::Read)]);
    assert_eq!(through.1, TreeProblem::ThroughLink("/lib64".to_owned()));
    let no_tree = problem(&[Mount::Proc]);
    assert_eq!(no_tree.1, TreeProblem::NotATree("/proc"));
}

#[test]
fn one_file_of_a_directory_that_is_written_can_be_read_without_a_mount_of_its_own() {
    let trees = [
        tree("/srv/out", Access::WriteFiles),
        Mount::Tree {
            path: "/srv/one".to_owned(),
            directory: false,
            access: Access::WriteFiles,
            exec: false,
        },
    ];
    let before = plan(&trees).unwrap();
    let mut after = before.clone();
    let_read(&mut after, "/srv/out/a.md").unwrap();
    let_read(&mut after, "/srv/out/a.md").unwrap();
    assert_eq!(after.mounts, before.mounts);
    let (last, rest) = after.landlock.split_last().unwrap();
    assert_eq!(rest, before.landlock);
    let rule = Rule::Tree(Access::Read);
    assert_eq!((last.path.as_str(), last.rule), ("/srv/out/a.md", rule));
    for (path, problem) in [
        ("/srv/out", TreeProblem::InNone),
        ("/srv/output", TreeProblem::InNone),
        ("/srv/one/a.md", TreeProblem::InNone),
        ("/etc/shadow", TreeProblem::InNone),
        ("/srv/out/../one", TreeProblem::Path),
        ("srv/out/a.md", TreeProblem::Path),
        ("/srv/out/a\nb", TreeProblem::Path),
    ] {
        let mut plan = before.clone();
        match let_read(&mut plan, path) {
            Err(DeriveError::Tree { error, .. }) => assert_eq!(error, problem, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
        assert_eq!(plan, before);
    }
}

#[test]
fn a_tree_that_would_cover_the_loader_is_refused() {
    let found = problem(&[tree("/usr/lib", Access::Read)]);
    assert_eq!(found.1, TreeProblem::Covers("/usr/lib/ld.so".to_owned()));
    plan(&[tree("/usr/share", Access::Read)]).unwrap();
}

#[test]
fn a_program_in_a_tree_or_in_tmp_is_mounted_after_what_would_hide_it() {
    for (path, tree_path) in [
        ("/srv/app/tool", "/srv/app"),
        ("/tmp/build/tool", "/srv/app"),
    ] {
        let trees = [tree(tree_path, Access::ReadWriteTree)];
        let plan = derive(&profile(), program(path), &trees, Level::Full, &host(path));
        let mounts = plan.unwrap().mounts;
        assert_eq!(mounts.last(), Some(&view(path, false)));
        assert_eq!(mounts[mounts.len() - 2], trees[0]);
    }
}
