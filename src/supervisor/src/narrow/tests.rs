//! Bindings on a real directory: what of it each call gets.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct Host {
    directory: tempfile::TempDir,
    guard: Guard,
}

/// `notes/a.md`, `notes/sub/b.md`, a link that stays inside, one that leads out, and `outside.md` beside it all.
fn host() -> Host {
    let directory = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(directory.path()).unwrap();
    fs::create_dir_all(top.join("notes/sub")).unwrap();
    fs::create_dir_all(top.join("own")).unwrap();
    fs::write(top.join("notes/a.md"), "a").unwrap();
    fs::write(top.join("notes/sub/b.md"), "b").unwrap();
    fs::write(top.join("outside.md"), "x").unwrap();
    symlink("sub/b.md", top.join("notes/inside")).unwrap();
    symlink("../outside.md", top.join("notes/leads-out")).unwrap();
    symlink("/nowhere/at/all", top.join("notes/dangling")).unwrap();
    let mut guard = Guard::default();
    guard.protect("the home", &top.join("own")).unwrap();
    Host { directory, guard }
}

impl Host {
    fn path(&self, below: &str) -> String {
        let top = fs::canonicalize(self.directory.path()).unwrap();
        top.join(below).to_str().unwrap().to_owned()
    }

    fn binding(&self, access: BindingAccess, below: &str) -> Binding {
        Binding {
            root: self.path("notes"),
            path: self.path(below),
            access,
            whole: false,
        }
    }

    fn read(&self, below: &str) -> Binding {
        self.binding(BindingAccess::Read, below)
    }

    fn write(&self, below: &str) -> Binding {
        self.binding(BindingAccess::Write, below)
    }

    fn narrow(&self, bindings: &[Binding]) -> Result<Vec<(String, bool, Access)>, NarrowError> {
        let top = format!("{}/", self.path("").trim_end_matches('/'));
        let trees = narrow(bindings, &self.guard)?;
        let show = |tree: Tree| {
            let path = tree.path.to_str().unwrap();
            let below = path.strip_prefix(&top).unwrap().to_owned();
            (below, tree.resolved.directory, tree.access)
        };
        Ok(trees.into_iter().map(show).collect())
    }

    fn one(&self, binding: Binding) -> Option<(String, bool, Access)> {
        let mut trees = self.narrow(&[binding]).unwrap();
        assert!(trees.len() < 2);
        trees.pop()
    }
}

fn tree(below: &str, directory: bool, access: Access) -> Option<(String, bool, Access)> {
    Some((below.to_owned(), directory, access))
}

#[test]
fn a_read_binds_what_it_names_and_nothing_around_it() {
    let host = host();
    assert_eq!(
        host.one(host.read("notes/a.md")),
        tree("notes/a.md", false, Access::Read)
    );
    assert_eq!(
        host.one(host.read("notes/sub")),
        tree("notes/sub", true, Access::Read)
    );
    let linked = host.one(host.read("notes/inside"));
    assert_eq!(linked, tree("notes/inside", false, Access::Read));
}

#[test]
fn a_write_binds_the_directory_of_its_file_whether_the_file_exists_or_not() {
    let host = host();
    let directory = tree("notes/sub", true, Access::WriteFiles);
    assert_eq!(host.one(host.write("notes/sub/b.md")), directory);
    assert_eq!(host.one(host.write("notes/sub/new.md")), directory);
    assert_eq!(host.one(host.write("notes/sub")), directory);
    assert_eq!(
        host.one(host.write("notes/a.md")),
        tree("notes", true, Access::WriteFiles)
    );
}

#[test]
fn a_write_to_the_granted_file_itself_binds_the_file_alone() {
    let host = host();
    let binding = Binding {
        root: host.path("notes/a.md"),
        ..host.write("notes/a.md")
    };
    assert_eq!(
        host.one(binding),
        tree("notes/a.md", false, Access::WriteFiles)
    );
}

#[test]
fn a_whole_binding_is_the_granted_tree() {
    let host = host();
    let whole = |access| Binding {
        whole: true,
        ..host.binding(access, "notes")
    };
    assert_eq!(
        host.one(whole(BindingAccess::Read)),
        tree("notes", true, Access::Read)
    );
    assert_eq!(
        host.one(whole(BindingAccess::Write)),
        tree("notes", true, Access::WriteTree)
    );
    let both = [whole(BindingAccess::Read), whole(BindingAccess::Write)];
    assert_eq!(
        host.narrow(&both).unwrap(),
        [tree("notes", true, Access::ReadWriteTree).unwrap()]
    );
}

#[test]
fn what_does_not_exist_binds_nothing() {
    let host = host();
    for path in ["notes/not-there", "notes/not/there", "notes/a.md/below"] {
        assert_eq!(host.one(host.read(path)), None, "{path}");
    }
    assert_eq!(host.one(host.write("notes/not/there")), None);
    assert_eq!(host.one(host.write("notes/a.md/below")), None);
    let gone = Binding {
        root: host.path("gone"),
        ..host.read("gone/a.md")
    };
    assert_eq!(host.one(gone), None);
}

#[test]
fn a_link_that_leads_out_is_refused_and_one_that_stays_inside_is_not() {
    let host = host();
    for path in ["notes/leads-out", "notes/dangling"] {
        for binding in [host.read(path), host.write(path)] {
            assert!(matches!(
                host.narrow(&[binding]),
                Err(NarrowError::Resolve(ResolveError::Outside { .. }))
            ));
        }
    }
    assert!(host.narrow(&[host.read("notes/inside")]).is_ok());
    assert!(host.narrow(&[host.write("notes/inside")]).is_ok());
}

#[test]
fn several_bindings_of_one_path_are_one_tree_and_parents_come_first() {
    let host = host();
    let bindings = [
        host.read("notes/sub/b.md"),
        host.write("notes/sub/new.md"),
        host.read("notes/sub"),
        host.read("notes/sub/b.md"),
    ];
    let expected = [
        tree("notes/sub", true, Access::ReadWriteFiles).unwrap(),
        tree("notes/sub/b.md", false, Access::Read).unwrap(),
    ];
    assert_eq!(host.narrow(&bindings).unwrap(), expected);
}

#[test]
fn a_file_that_is_read_and_written_by_one_call_stays_in_its_directory_and_alone_is_read_there() {
    let host = host();
    let bindings = [host.read("notes/sub/b.md"), host.write("notes/sub/b.md")];
    for bindings in [bindings.clone(), [bindings[1].clone(), bindings[0].clone()]] {
        let trees = narrow(&bindings, &host.guard).unwrap();
        let [tree] = trees.as_slice() else {
            panic!("{trees:?}");
        };
        assert_eq!(tree.path, Path::new(&host.path("notes/sub")));
        assert_eq!(tree.access, Access::WriteFiles);
        assert_eq!(tree.read, [PathBuf::from(host.path("notes/sub/b.md"))]);
    }
    // What only one side has, or what is not there, is read by nobody.
    for bindings in [
        [host.read("notes/a.md"), host.write("notes/sub/b.md")],
        [host.read("notes/sub/new"), host.write("notes/sub/new")],
    ] {
        let trees = narrow(&bindings, &host.guard).unwrap();
        assert!(trees.iter().all(|tree| tree.read.is_empty()), "{trees:?}");
    }
    for path in ["notes/leads-out", "notes/dangling"] {
        assert!(host.narrow(&[host.read(path), host.write(path)]).is_err());
    }
}

#[test]
fn a_file_that_is_read_and_written_where_it_alone_is_granted_is_a_mount_of_its_own() {
    let host = host();
    let alone = |binding: Binding| Binding {
        root: host.path("notes/sub/b.md"),
        ..binding
    };
    let (read, write) = (host.read("notes/sub/b.md"), host.write("notes/sub/b.md"));
    let file = tree("notes/sub/b.md", false, Access::ReadWriteFiles).unwrap();
    let directory = tree("notes/sub", true, Access::WriteFiles).unwrap();
    let bindings = [alone(read.clone()), write.clone()];
    assert_eq!(host.narrow(&bindings).unwrap(), [directory, file.clone()]);
    let bindings = [read.clone(), alone(write.clone())];
    assert_eq!(host.narrow(&bindings).unwrap(), std::slice::from_ref(&file));
    let bindings = [alone(read), alone(write)];
    assert_eq!(host.narrow(&bindings).unwrap(), [file]);
}

#[test]
fn a_granted_path_that_became_a_link_to_elsewhere_is_refused() {
    let host = host();
    assert!(host.narrow(&[host.read("notes/a.md")]).is_ok());
    fs::rename(host.path("notes"), host.path("moved")).unwrap();
    symlink("moved", host.path("notes")).unwrap();
    assert!(matches!(
        host.narrow(&[host.read("notes/a.md")]),
        Err(NarrowError::Resolve(ResolveError::Outside { .. }))
    ));
}

#[test]
fn a_file_of_boxmakers_own_is_refused_also_where_a_grant_would_hold_it() {
    let mut host = host();
    let read = host.read("notes/a.md");
    assert!(host.narrow(std::slice::from_ref(&read)).is_ok());
    let own = PathBuf::from(host.path("notes/a.md"));
    host.guard.protect("a program", &own).unwrap();
    assert!(matches!(
        host.narrow(&[read]),
        Err(NarrowError::Guard(GuardError::Own { .. }))
    ));
}

#[test]
fn joining_never_loses_an_access_and_never_adds_one() {
    let all = [
        Access::Read,
        Access::WriteFiles,
        Access::WriteTree,
        Access::ReadWriteFiles,
        Access::ReadWriteTree,
    ];
    for one in all {
        for other in all {
            let both = join(one, other);
            assert_eq!(reads(both), reads(one) || reads(other));
            assert_eq!(both.writes(), one.writes() || other.writes());
            assert_eq!(changes_tree(both), changes_tree(one) || changes_tree(other));
        }
    }
}
