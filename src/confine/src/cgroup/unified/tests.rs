//! Decisions and moves on a directory that looks like a v2 hierarchy. What the kernel makes of them is shown on a kernel
//! that has its controllers there, by `make test-kernel`.

use super::*;

const ALL: [Layer; 3] = [Layer::Memory, Layer::Pids, Layer::Cpu];
const OFFERED: &str = "cpuset cpu io memory hugetlb pids\n";

/// A hierarchy in a directory. Its root has everything; the supervisor's group is `/unit`.
struct Tree {
    directory: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        tree.fill(
            "",
            "cpuset cpu io memory pids\n",
            "cpu memory pids\n",
            "1\n2\n0\n",
        );
        tree.fill("unit", OFFERED, "", &own());
        tree
    }

    fn at(&self, group: &str) -> PathBuf {
        self.directory.path().join(group)
    }

    fn fill(&self, group: &str, offered: &str, passed_on: &str, members: &str) {
        fs::create_dir_all(self.at(group)).unwrap();
        let populated = i32::from(!members.is_empty());
        for (file, text) in [
            ("cgroup.controllers", offered),
            ("cgroup.subtree_control", passed_on),
            ("cgroup.procs", members),
            ("cgroup.events", &format!("populated {populated}\n")),
        ] {
            fs::write(self.at(group).join(file), text).unwrap();
        }
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// What is found from `group`.
    fn find_from(&self, group: &str) -> (Option<Unified>, Missing) {
        let at = self.directory.path().display();
        let mounts = mounts::mounts(&format!("1 1 0:1 / {at} rw - cgroup2 cgroup2 rw\n"));
        let own = self.at(group);
        find(&ALL, &format!("0::/{group}\n"), &mounts, &|path| {
            path == own
        })
    }

    fn find(&self) -> (Option<Unified>, Missing) {
        self.find_from("unit")
    }

    /// The one reason why nothing can be limited.
    fn refusal(&self) -> String {
        let (found, missing) = self.find();
        assert_eq!(found, None);
        assert_eq!(
            missing.iter().map(|(layer, _)| *layer).collect::<Vec<_>>(),
            ALL
        );
        assert!(missing.iter().all(|(_, reason)| *reason == missing[0].1));
        missing[0].1.clone()
    }
}

fn own() -> String {
    format!("{}\n", std::process::id())
}

#[test]
fn alone_in_a_delegated_group_the_supervisor_moves_into_its_leaf_and_passes_all_on() {
    let tree = Tree::new();
    let (found, missing) = tree.find();
    assert_eq!(missing, []);
    assert!(!tree.at("unit/supervisor").exists(), "nothing is made yet");
    assert_eq!(tree.read("unit/cgroup.subtree_control"), "");
    tree.fill("unit/supervisor", "", "", "");
    let (hierarchy, missing) = found.unwrap().settle();
    assert_eq!(missing, []);
    assert_eq!(
        hierarchy.unwrap(),
        Hierarchy {
            version: Version::V2,
            layers: ALL.to_vec(),
            group: "/unit".to_owned(),
            directory: tree.at("unit"),
        }
    );
    assert_eq!(tree.read("unit/supervisor/cgroup.procs"), "0");
    assert_eq!(tree.read("unit/cgroup.subtree_control"), "+memory+pids+cpu");
}

#[test]
fn in_its_leaf_already_it_moves_no_more() {
    let tree = Tree::new();
    tree.fill("unit", OFFERED, "", "");
    tree.fill("unit/supervisor", "", "", &format!("{}4242\n", own()));
    let (found, missing) = tree.find_from("unit/supervisor");
    assert_eq!(missing, []);
    let (hierarchy, missing) = found.unwrap().settle();
    assert_eq!(missing, []);
    let hierarchy = hierarchy.unwrap();
    assert_eq!(
        (hierarchy.group.as_str(), &hierarchy.directory),
        ("/unit", &tree.at("unit"))
    );
    assert_eq!(tree.read("unit/cgroup.subtree_control"), "+memory+pids+cpu");
    assert!(
        tree.read("unit/supervisor/cgroup.procs")
            .ends_with("4242\n")
    );
    // What is passed on already is left alone.
    tree.fill("unit", OFFERED, "cpu memory pids\n", "");
    let (found, _) = tree.find_from("unit/supervisor");
    assert_eq!(found.unwrap().settle().1, []);
    assert_eq!(
        tree.read("unit/cgroup.subtree_control"),
        "cpu memory pids\n"
    );
}

#[test]
fn a_leaf_below_a_group_with_processes_is_a_group_like_any_other() {
    let tree = Tree::new();
    tree.fill("supervisor", OFFERED, "", &own());
    tree.fill("supervisor/supervisor", "", "", "");
    let (found, missing) = tree.find_from("supervisor");
    assert_eq!(missing, []);
    let (hierarchy, _) = found.unwrap().settle();
    assert_eq!(hierarchy.unwrap().group, "/supervisor");
    assert_eq!(tree.read("supervisor/supervisor/cgroup.procs"), "0");
}

#[test]
fn another_process_in_the_group_is_named_and_left_where_it_is() {
    for other in ["4242", "0"] {
        let tree = Tree::new();
        tree.fill("unit", OFFERED, "", &format!("{}{other}\n", own()));
        assert_eq!(
            tree.refusal(),
            format!("process {other} is in the group /unit too; {WAY_OUT}")
        );
        assert!(!tree.at("unit/supervisor").exists());
    }
}

#[test]
fn a_group_of_somebody_else_below_is_named_unless_it_is_empty() {
    let tree = Tree::new();
    tree.fill("unit/other", "", "", "4242\n");
    let reason = tree.refusal();
    assert!(
        reason.starts_with("the group /unit holds other, which has processes; "),
        "{reason}"
    );
    tree.fill("unit/other", "", "", "");
    assert_eq!(tree.find().1, []);
    // Where nothing is to be passed on any more, nothing changes for it.
    tree.fill("unit/other", "", "", "4242\n");
    tree.fill("unit", OFFERED, "cpu memory pids\n", &own());
    assert_eq!(tree.find().1, []);
}

#[test]
fn a_controller_that_is_not_offered_is_missing_alone_and_says_where_it_is() {
    let tree = Tree::new();
    tree.fill("unit", "memory pids\n", "", &own());
    let (found, missing) = tree.find();
    assert_eq!(
        found.unwrap().hierarchy.layers,
        [Layer::Memory, Layer::Pids]
    );
    let [(Layer::Cpu, reason)] = missing.as_slice() else {
        panic!("{missing:?}");
    };
    assert!(
        reason
            .starts_with("the group /unit is given no cpu controller; with Delegate=yes in a unit"),
        "{reason}"
    );
    tree.fill("", "memory pids\n", "memory pids\n", "1\n");
    assert_eq!(tree.find().1[0].1, "cgroup v2 has no cpu controller here");
    let at = tree.directory.path().display();
    let hybrid = format!(
        "1 1 0:1 / {at} rw - cgroup2 cgroup2 rw\n2 1 0:2 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    );
    let own = tree.at("unit");
    let (_, missing) = find(&ALL, "0::/unit\n", &mounts::mounts(&hybrid), &|path| {
        path == own
    });
    assert_eq!(
        missing[0].1,
        "the cpu controller is in cgroup v1 on this host"
    );
}

#[test]
fn without_v2_or_without_a_group_to_be_found_all_is_missing() {
    let all = |reason: &str| ALL.map(|layer| (layer, reason.to_owned())).to_vec();
    let (found, missing) = find(&ALL, "0::/\n", &[], &|_| true);
    assert_eq!((found, missing), (None, all("cgroup v2 is not mounted")));
    let mounts = mounts::mounts("1 1 0:1 / /cg rw - cgroup2 none rw\n");
    let (_, missing) = find(&ALL, "1:pids:/\n", &mounts, &|_| true);
    assert_eq!(
        missing,
        all("/proc/self/cgroup names no group of cgroup v2")
    );
    let (_, missing) = find(&ALL, "0::/x\n", &mounts, &|_| false);
    assert_eq!(missing, all("the group /x is not to be found under /cg"));
    let (found, missing) = find(&[], "0::/\n", &[], &|_| true);
    assert_eq!((found, missing), (None, Vec::new()));
}

#[test]
fn what_cannot_be_arranged_is_missing_with_the_kernels_answer() {
    let tree = Tree::new();
    let (found, _) = tree.find();
    // A leaf in which nothing can be written stands for a kernel that refuses the move.
    fs::create_dir(tree.at("unit/supervisor")).unwrap();
    let (hierarchy, missing) = found.unwrap().settle();
    assert_eq!(hierarchy, None);
    assert_eq!(missing.len(), 3);
    assert_eq!(
        missing[0].1,
        "no place is to be had in the group /unit: No such file or directory (os error 2)"
    );
    assert_eq!(tree.read("unit/cgroup.subtree_control"), "");
}
