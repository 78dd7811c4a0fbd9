//! Less of anything never gives more: the property that every plan rests on.

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;

/// Whether everything that `narrow` allows is allowed by `wide` too, by the path or by one above it.
fn check(narrow: &Plan, wide: &Plan) -> Result<(), String> {
    for rule in &narrow.landlock {
        let covers = |other: &&LandlockRule| {
            let above = other.path == rule.path || is_below(&rule.path, &other.path);
            above && other.rule == rule.rule
        };
        if !wide.landlock.iter().any(|other| covers(&other)) {
            return Err(format!("{rule:?} is new"));
        }
    }
    for mount in &narrow.mounts {
        if !wide.mounts.iter().any(|other| shows(other, mount)) {
            return Err(format!("{mount:?} is new"));
        }
    }
    let same = narrow.seccomp == wide.seccomp
        && narrow.limits == wide.limits
        && narrow.program == wide.program
        && narrow.hostname == wide.hostname;
    if same {
        Ok(())
    } else {
        Err("something else changed".to_owned())
    }
}

/// Whether a mount shows what another one shows, with no less freedom.
fn shows(wide: &Mount, narrow: &Mount) -> bool {
    let holds = |path: &str| match wide {
        Mount::View {
            path: wide,
            directory,
        }
        | Mount::Tree {
            path: wide,
            directory,
            ..
        } => path == wide || (*directory && is_below(path, wide)),
        _ => false,
    };
    match (wide, narrow) {
        (
            Mount::Tree {
                path,
                directory,
                access,
                exec,
            },
            Mount::Tree {
                path: narrow,
                directory: narrow_directory,
                access: narrow_access,
                exec: narrow_exec,
            },
        ) => {
            (path, directory, access) == (narrow, narrow_directory, narrow_access)
                && (*exec || !narrow_exec)
        }
        (_, Mount::Tree { .. }) => false,
        (_, Mount::View { path, .. }) => holds(path),
        (_, Mount::Link { path, .. }) => wide == narrow || holds(path),
        _ => wide == narrow,
    }
}

fn all_trees() -> Vec<Mount> {
    vec![
        tree("/srv", Access::Read),
        tree("/srv/data", Access::Read),
        tree("/srv/data/out", Access::ReadWriteFiles),
        tree("/srv/scripts", Access::WriteTree),
        tree("/tmp/jobs", Access::WriteFiles),
        tree("/opt", Access::Read),
        tree("/etc", Access::Read),
        tree("/usr/share", Access::Read),
    ]
}

/// A list and the same with one entry less, if it has any.
fn shorter<T: Clone + std::fmt::Debug + 'static>(
    all: Vec<T>,
) -> impl Strategy<Value = (Vec<T>, Vec<T>)> {
    let length = all.len();
    (subsequence(all, 0..=length), any::<prop::sample::Index>()).prop_map(|(list, index)| {
        let mut less = list.clone();
        if !less.is_empty() {
            less.remove(index.index(less.len()));
        }
        (list, less)
    })
}

proptest! {
    #[test]
    fn less_of_anything_never_gives_more(
        trees in shorter(all_trees()),
        view in shorter(profile().view),
        exec in shorter(profile().exec),
        which in 0..3,
        path in prop::sample::select(vec!["/opt/app/tool", "/usr/bin/tool", "/srv/scripts/a", "/tmp/jobs/tool"]),
    ) {
        let mut wide = profile();
        (wide.view, wide.exec) = (view.0, exec.0);
        let mut narrow = wide.clone();
        let mut fewer = trees.0.clone();
        match which {
            0 => narrow.view = view.1,
            1 => narrow.exec = exec.1,
            _ => fewer = trees.1,
        }
        let host = host(path);
        let derive = |profile, trees: &[Mount]| derive(profile, program(path), trees, Level::Full, &host);
        if let (Ok(wide), Ok(narrow)) = (derive(&wide, &trees.0), derive(&narrow, &fewer)) {
            let result = check(&narrow, &wide);
            prop_assert!(result.is_ok(), "{:?}\nwide {wide:#?}\nnarrow {narrow:#?}", result);
        }
    }

    #[test]
    fn a_namespace_less_changes_the_namespaces_and_nothing_else(
        namespaces in shorter(profile().namespaces),
    ) {
        let with = |namespaces: Vec<_>| {
            let mut profile = profile();
            profile.namespaces = namespaces;
            let path = "/opt/app/tool";
            derive(&profile, program(path), &[], Level::Full, &host(path)).unwrap()
        };
        let (mut wide, narrow) = (with(namespaces.0), with(namespaces.1));
        prop_assert!(narrow.namespaces.iter().all(|one| wide.namespaces.contains(one)));
        wide.namespaces.clone_from(&narrow.namespaces);
        prop_assert_eq!(wide, narrow);
    }
}

#[test]
fn the_check_itself_sees_a_plan_that_is_wider() {
    let path = "/opt/app/tool";
    let plan = |trees: &[Mount]| {
        derive(&profile(), program(path), trees, Level::Full, &host(path)).unwrap()
    };
    let (less, more) = (plan(&[]), plan(&[tree("/srv", Access::Read)]));
    assert!(check(&less, &more).is_ok());
    assert!(check(&more, &less).is_err());
    let write = plan(&[tree("/srv", Access::ReadWriteTree)]);
    assert!(check(&write, &more).is_err());
}
