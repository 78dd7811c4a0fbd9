//! The root of one sandbox while it is put together: which paths are seen, by which links, what may be executed in it,
//! and what would lie on top of what.

use std::collections::{BTreeMap, BTreeSet};

use super::{DeriveError, TreeProblem, is_below};
use crate::host::{Host, Link, Located};
use crate::plan::{Access, Mount, SCRATCH};
use crate::profile::{Limits, Profile};

/// What every sandbox makes anew.
const OWN: &[&str] = &["/proc", "/dev", "/sys"];

/// A granted tree.
struct Tree<'a> {
    path: &'a str,
    directory: bool,
    access: Access,
    exec: bool,
}

/// The parts of the root.
pub(super) struct Root<'a> {
    /// Paths of the profile, whether they are directories.
    views: BTreeMap<&'a str, bool>,
    /// Programs, loaders and interpreters that no view holds.
    programs: BTreeSet<&'a str>,
    /// Links by where they stand.
    links: BTreeMap<&'a str, &'a str>,
    /// Everything that may be executed and can be seen.
    executed: BTreeSet<&'a str>,
    trees: Vec<Tree<'a>>,
}

pub(super) type TreeError = (String, TreeProblem);

impl<'a> Root<'a> {
    pub(super) fn build(
        profile: &'a Profile,
        trees: &'a [Mount],
        host: &'a Host,
    ) -> Result<Self, DeriveError> {
        let refused = |(path, error): TreeError| DeriveError::Tree { path, error };
        let mut root = Self {
            views: BTreeMap::new(),
            programs: BTreeSet::new(),
            links: BTreeMap::new(),
            executed: BTreeSet::new(),
            trees: check_trees(trees).map_err(refused)?,
        };
        root.add_views(profile, host);
        root.add_programs(profile, host)?;
        root.check_overlaps().map_err(refused)?;
        Ok(root)
    }

    /// The views that have no link in their path, then the links by which the others lead into one of these.
    fn add_views(&mut self, profile: &Profile, host: &'a Host) {
        let named = || {
            let found = |path: &String| host.views.get_key_value(path);
            profile.view.iter().filter_map(found)
        };
        for (_, at) in named().filter(|(_, at)| at.links.is_empty()) {
            self.views.insert(&at.real, at.directory);
        }
        for (_, at) in named() {
            if self.is_viewed(&at.real) {
                self.add_links(&at.links);
            }
        }
    }

    /// The program with its chain, and what the profile allows besides and can be seen.
    fn add_programs(&mut self, profile: &Profile, host: &'a Host) -> Result<(), DeriveError> {
        for at in &host.chain {
            self.add_program(at)?;
        }
        let matches = |pattern: &String| host.exec.get(pattern).into_iter().flatten();
        for one in profile.exec.iter().flat_map(matches) {
            let real = one.at.real.as_str();
            let own = OWN.iter().any(|own| is_below(real, own));
            if own || !(self.is_viewed(real) || self.trees.iter().any(|tree| tree.holds(real))) {
                continue;
            }
            self.executed.insert(real);
            for tree in self.trees.iter_mut().filter(|tree| tree.holds(real)) {
                tree.exec = true;
            }
            if let Some(loader) = &one.loader {
                self.add_program(loader)?;
            }
        }
        Ok(())
    }

    fn add_program(&mut self, at: &'a Located) -> Result<(), DeriveError> {
        let paths = at.links.iter().map(|link| &link.path).chain([&at.real]);
        for path in paths {
            if let Some(place) = OWN.iter().find(|own| is_below(path, own)) {
                return Err(DeriveError::OwnPlace {
                    path: path.clone(),
                    place,
                });
            }
        }
        self.add_links(&at.links);
        self.executed.insert(&at.real);
        if !self.is_viewed(&at.real) {
            self.programs.insert(&at.real);
        }
        Ok(())
    }

    /// Links that a view holds are there already.
    fn add_links(&mut self, links: &'a [Link]) {
        for link in links {
            if !self.is_viewed(&link.path) {
                self.links.insert(&link.path, &link.target);
            }
        }
    }

    /// Whether a path of the profile's views is this one or holds it.
    fn is_viewed(&self, path: &str) -> bool {
        self.view_of(path).is_some()
    }

    fn view_of(&self, path: &str) -> Option<&str> {
        let holds = |(view, directory): &(&&'a str, &bool)| {
            path == **view || (**directory && is_below(path, view))
        };
        self.views.iter().find(holds).map(|(view, _)| *view)
    }

    fn check_overlaps(&mut self) -> Result<(), TreeError> {
        for tree in &self.trees {
            let refused = |problem| Err((tree.path.to_owned(), problem));
            // A link of the sandbox that stands in the tree is in the tree already; one that the tree's own path leads
            // through would send the mount elsewhere.
            if let Some(link) = self.links.keys().find(|link| is_below(tree.path, link)) {
                return refused(TreeProblem::ThroughLink((*link).to_owned()));
            }
            let covered = |path: &&&str| tree.holds(path) && self.is_viewed(path);
            if !tree.exec
                && let Some(path) = self.executed.iter().find(covered)
            {
                return refused(TreeProblem::Covers((*path).to_owned()));
            }
            if let Some(file) = self.views.iter().find(|(view, directory)| {
                !**directory && tree.path != **view && is_below(tree.path, view)
            }) {
                return refused(TreeProblem::InFile((*file.0).to_owned()));
            }
        }
        let trees = &self.trees;
        self.links
            .retain(|link, _| !trees.iter().any(|tree| tree.holds(link)));
        Ok(())
    }

    /// The paths that may be read because they are seen.
    pub(super) fn views(&self) -> impl Iterator<Item = &str> {
        self.views.keys().copied()
    }

    /// The paths that may be executed.
    pub(super) fn executed(&self) -> impl Iterator<Item = &str> {
        self.executed.iter().copied()
    }

    /// The programs that no view holds, and so lie wherever they lie.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().copied()
    }

    /// The trees with their accesses.
    pub(super) fn trees(&self) -> impl Iterator<Item = (&str, Access)> {
        self.trees.iter().map(|tree| (tree.path, tree.access))
    }

    /// Everything in the order in which it is made.
    pub(super) fn into_mounts(self, limits: &Limits) -> Vec<Mount> {
        let in_scratch = |path: &str| is_below(path, SCRATCH);
        let late = |path: &str| in_scratch(path) || self.trees.iter().any(|tree| tree.holds(path));
        let link = |(path, target): (&&str, &&str)| Mount::Link {
            path: (*path).to_owned(),
            target: (*target).to_owned(),
        };
        let view = |path: &str, directory| Mount::View {
            path: path.to_owned(),
            directory,
        };
        let (late_links, links): (Vec<_>, Vec<_>) =
            self.links.iter().partition(|(path, _)| in_scratch(path));
        let (late_programs, programs): (Vec<&str>, Vec<&str>) =
            self.programs.iter().copied().partition(|path| late(path));

        let mut mounts: Vec<Mount> = links.into_iter().map(link).collect();
        mounts.extend(
            self.views
                .iter()
                .map(|(path, directory)| view(path, *directory)),
        );
        mounts.extend(programs.into_iter().map(|path| view(path, false)));
        mounts.push(Mount::Proc);
        mounts.push(Mount::Devices);
        mounts.push(Mount::Scratch {
            bytes: limits.scratch_bytes,
            inodes: limits.scratch_inodes(),
        });
        mounts.extend(late_links.into_iter().map(link));
        mounts.extend(self.trees.iter().map(|tree| Mount::Tree {
            path: tree.path.to_owned(),
            directory: tree.directory,
            access: tree.access,
            exec: tree.exec,
        }));
        mounts.extend(late_programs.into_iter().map(|path| view(path, false)));
        mounts
    }
}

impl Tree<'_> {
    /// Whether a path is the tree or lies in it.
    fn holds(&self, path: &str) -> bool {
        path == self.path || (self.directory && is_below(path, self.path))
    }
}

/// The granted trees, each by itself and against one another.
fn check_trees(mounts: &[Mount]) -> Result<Vec<Tree<'_>>, TreeError> {
    let mut trees: Vec<Tree<'_>> = Vec::new();
    for mount in mounts {
        let Mount::Tree {
            path,
            directory,
            access,
            ..
        } = mount
        else {
            let (path, kind) = name(mount);
            return Err((path.to_owned(), TreeProblem::NotATree(kind)));
        };
        let refused = |problem| Err((path.clone(), problem));
        if !is_plain(path) {
            return refused(TreeProblem::Path);
        }
        if path == "/" {
            return refused(TreeProblem::Own("/"));
        }
        let touches = |own: &&&str| is_below(path, own) || is_below(own, path);
        if let Some(own) = OWN.iter().find(touches) {
            return refused(TreeProblem::Own(own));
        }
        if path == SCRATCH {
            return refused(TreeProblem::Own(SCRATCH));
        }
        for earlier in &trees {
            if earlier.path == path {
                return refused(TreeProblem::Twice);
            }
            if is_below(path, earlier.path) && !earlier.directory {
                return refused(TreeProblem::InFile(earlier.path.to_owned()));
            }
            if is_below(earlier.path, path) {
                let problem = TreeProblem::Order(path.clone());
                return Err((earlier.path.to_owned(), problem));
            }
        }
        trees.push(Tree {
            path,
            directory: *directory,
            access: *access,
            exec: false,
        });
    }
    Ok(trees)
}

/// Whether a path is absolute and written in the one way in which granted paths are.
pub(super) fn is_plain(path: &str) -> bool {
    let odd = |part: &str| matches!(part, "" | "." | "..");
    let rest = path.strip_prefix('/').unwrap_or("..");
    (path == "/" || !rest.split('/').any(odd)) && !path.chars().any(char::is_control)
}

/// Where another mount stands, and what it is called.
fn name(mount: &Mount) -> (&str, &'static str) {
    match mount {
        Mount::View { path, .. } => (path, "a view"),
        Mount::Link { path, .. } => (path, "a link"),
        Mount::Proc => ("/proc", "/proc"),
        Mount::Devices => ("/dev", "/dev"),
        Mount::Scratch { .. } => (SCRATCH, "/tmp"),
        Mount::Tree { path, .. } => (path, "a tree"),
    }
}
