//! Plans where no namespace can be made: what rules and filter have to hold without a mount.

use super::*;

/// The plan of a program under the profile, on a host with this ABI of Landlock.
fn bare(path: &str, trees: &[Mount], landlock_abi: u8) -> Result<Plan, DeriveError> {
    let mut host = host(path);
    (host.privilege, host.landlock_abi) = (Privilege::Bare, landlock_abi);
    derive(&profile(), program(path), trees, Level::Partial, &host)
}

fn refusal(path: &str, trees: &[Mount]) -> (String, TreeProblem) {
    match bare(path, trees, 6) {
        Err(DeriveError::Tree { path, error }) => (path, error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_mounted_but_what_is_the_sandboxs_own_and_the_hosts_proc_is_closed() {
    let trees = [tree("/srv/data", Access::Read)];
    let with = plan(&trees).unwrap();
    let without = bare(PROGRAM, &trees, 6).unwrap();
    let own = |mount: &&Mount| matches!(mount, Mount::Scratch { .. } | Mount::Tree { .. });
    let kept: Vec<Mount> = with.mounts.iter().filter(own).cloned().collect();
    assert_eq!((kept.len(), without.mounts), (2, kept));
    let proc = LandlockRule {
        path: "/proc".to_owned(),
        rule: Rule::Read,
    };
    assert!(with.landlock.contains(&proc));
    let mut rules = with.landlock;
    rules.retain(|rule| *rule != proc);
    assert_eq!(without.landlock, rules);
}

#[test]
fn namespaces_are_the_profiles_after_that_of_a_plain_user_or_none() {
    let with = |privilege| {
        let mut host = host(PROGRAM);
        host.privilege = privilege;
        let plan = derive(&profile(), program(PROGRAM), &[], Level::Partial, &host);
        plan.unwrap().namespaces
    };
    let own = profile().namespaces;
    assert!(!own.is_empty() && !own.contains(&Namespace::User));
    assert_eq!(with(Privilege::Root), own);
    assert_eq!(
        with(Privilege::UserNamespace),
        [&[Namespace::User], &own[..]].concat()
    );
    assert_eq!(with(Privilege::Bare), []);
}

#[test]
fn the_filter_closes_besides_what_rules_leave_open() {
    let read = tree("/srv/data", Access::Read);
    let write = tree("/srv/out", Access::WriteFiles);
    let both = [read.clone(), write.clone()];
    for (trees, abi, sets) in [
        (&[][..], 6, &["base", "bare", "bare-fixed"][..]),
        (&both[..1], 6, &["base", "bare", "bare-fixed"]),
        (&both, 6, &["base", "bare", "bare-fixed"]),
        // Whoever may write everything that is granted may change its mode too.
        (&both[1..], 6, &["base", "bare"]),
        (&both[1..], 7, &["base", "bare"]),
        (&both[1..], 5, &["base", "bare", "bare-old"]),
        (&both[1..], 0, &["base", "bare", "bare-old"]),
        (&both, 5, &["base", "bare", "bare-fixed", "bare-old"]),
    ] {
        let seccomp = bare(PROGRAM, trees, abi).unwrap().seccomp;
        assert_eq!(seccomp.sets, sets, "{trees:?} {abi}");
    }
    assert_eq!(plan(&both).unwrap().seccomp.sets, ["base"]);
}

#[test]
fn a_tree_to_be_read_in_one_that_may_be_written_is_refused_and_the_others_are_not() {
    let inner = |outer, access| [tree("/srv/data", outer), tree("/srv/data/in", access)];
    for outer in [Access::WriteFiles, Access::ReadWriteTree] {
        let problem = TreeProblem::Inner("/srv/data".to_owned());
        let trees = inner(outer, Access::Read);
        assert_eq!(
            refusal(PROGRAM, &trees),
            ("/srv/data/in".to_owned(), problem)
        );
        // A mount of its own protects it.
        plan(&trees).unwrap();
    }
    for good in [
        inner(Access::Read, Access::Read),
        inner(Access::Read, Access::WriteTree),
        inner(Access::WriteTree, Access::WriteTree),
        [
            tree("/srv/data", Access::WriteTree),
            tree("/srv/database", Access::Read),
        ],
    ] {
        bare(PROGRAM, &good, 6).unwrap();
    }
}

#[test]
fn a_tree_in_which_the_program_could_be_changed_is_refused() {
    let problem = TreeProblem::Program("/srv/app/tool".to_owned());
    for access in [Access::WriteFiles, Access::ReadWriteTree] {
        assert_eq!(
            refusal("/srv/app/tool", &[tree("/srv/app", access)]),
            ("/srv/app".to_owned(), problem.clone())
        );
    }
    for good in [
        tree("/srv/app", Access::Read),
        tree("/srv/apps", Access::WriteTree),
    ] {
        bare("/srv/app/tool", &[good], 6).unwrap();
    }
    // With a mount of its own it lies on top of the tree.
    let path = "/srv/app/tool";
    let trees = [tree("/srv/app", Access::WriteTree)];
    derive(&profile(), program(path), &trees, Level::Full, &host(path)).unwrap();
}

#[test]
fn programs_are_pointed_to_the_scratch_directory_unless_the_caller_names_another() {
    let mut host = host(PROGRAM);
    let mut program = program(PROGRAM);
    let temporary = |program: &Program, host: &Host| {
        let plan = derive(&profile(), program.clone(), &[], Level::Partial, host);
        plan.unwrap().program.env.get("TMPDIR").cloned()
    };
    assert_eq!(temporary(&program, &host), None);
    host.privilege = Privilege::Bare;
    assert_eq!(temporary(&program, &host).as_deref(), Some("/tmp"));
    let own = BTreeMap::from([("TMPDIR".to_owned(), "/srv/data".to_owned())]);
    program.env = own;
    assert_eq!(temporary(&program, &host).as_deref(), Some("/srv/data"));
}
