//! Which hierarchy limits what: v1 has one for each controller, v2 one for all. Decides from two files of `/proc` and
//! touches nothing.

use std::path::{Path, PathBuf};

use proto::Layer;
use rustix::fs::Access;

use super::mounts::{self, Mounted};

/// The limits that are set, each by one controller of the kernel's name.
pub(super) const CONTROLLERS: [(Layer, &str); 3] = [
    (Layer::Memory, "memory"),
    (Layer::Pids, "pids"),
    (Layer::Cpu, "cpu"),
];

/// The kernel's name of the controller of a layer.
pub(super) fn controller(layer: Layer) -> &'static str {
    let found = CONTROLLERS.iter().find(|(of, _)| *of == layer);
    found.map_or("", |(_, name)| name)
}

/// The two interfaces of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// One mounted hierarchy, seen from the group below which those of sandboxes are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: Version,
    /// What it limits; several if controllers are together in it.
    pub(super) layers: Vec<Layer>,
    /// That group as `/proc/<pid>/cgroup` would say it.
    pub(super) group: String,
    /// The directory of that group.
    pub(super) directory: PathBuf,
}

/// Layers that cannot be limited, each with the reason.
pub(super) type Missing = Vec<(Layer, String)>;

/// Finds the v1 hierarchies of `layers`, and why there is none for some.
///
/// `own_groups` is the text of `/proc/self/cgroup` (cgroups(7)); `is_own` says whether a directory is the group that the
/// caller is in.
pub(super) fn v1(
    layers: &[Layer],
    own_groups: &str,
    mounts: &[Mounted],
    is_own: &impl Fn(&Path) -> bool,
) -> (Vec<Hierarchy>, Missing) {
    let mut found: Vec<Hierarchy> = Vec::new();
    let mut missing = Vec::new();
    for layer in layers {
        match one(controller(*layer), own_groups, mounts, is_own) {
            Ok((group, directory)) => {
                match found.iter_mut().find(|known| known.directory == directory) {
                    Some(known) => known.layers.push(*layer),
                    None => found.push(Hierarchy {
                        version: Version::V1,
                        layers: vec![*layer],
                        group,
                        directory,
                    }),
                }
            }
            Err(reason) => missing.push((*layer, reason)),
        }
    }
    (found, missing)
}

fn one(
    controller: &str,
    own_groups: &str,
    mounts: &[Mounted],
    is_own: &impl Fn(&Path) -> bool,
) -> Result<(String, PathBuf), String> {
    let Some(mount) = mounts.iter().find(|mount| mount.is_of(controller)) else {
        return Err(if mounts.iter().any(|mount| mount.unified) {
            format!("the {controller} controller is not in cgroup v1 on this host")
        } else {
            format!("no {controller} controller is mounted")
        });
    };
    let own = mounts::group_of(own_groups, controller)
        .ok_or_else(|| format!("/proc/self/cgroup names no group for {controller}"))?;
    let directory = mount.directory(&own, is_own)?;
    writable(&directory)?;
    Ok((own, directory))
}

/// Whether the caller may write to a file or directory, which it may not in the read-only hierarchies of containers.
pub(super) fn writable(path: &Path) -> Result<(), String> {
    rustix::fs::access(path, Access::WRITE_OK).map_err(|errno| {
        let error = std::io::Error::from(errno);
        format!("{} is not writable: {error}", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Layer; 3] = [Layer::Memory, Layer::Pids, Layer::Cpu];

    fn any(_: &Path) -> bool {
        true
    }

    /// A directory that stands for a hierarchy, and the line of its mount.
    fn mounted(names: &[&str]) -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().unwrap();
        let line = |name: &&str| {
            let at = directory.path().join(name.replace(',', "+"));
            std::fs::create_dir_all(at.join("user.slice")).unwrap();
            format!("1 1 0:1 / {} rw - cgroup none rw,{name}\n", at.display())
        };
        let text = names.iter().map(line).collect();
        (directory, text)
    }

    #[test]
    fn a_host_with_v1_has_all_three_each_seen_from_the_own_group() {
        let (directory, text) = mounted(&["memory", "pids", "cpu,cpuacct"]);
        let own = "8:pids:/\n4:memory:/user.slice\n1:cpu,cpuacct:/\n0::/\n";
        let (found, missing) = v1(&ALL, own, &mounts::mounts(&text), &any);
        assert_eq!(missing, []);
        let seen: Vec<_> = found
            .iter()
            .map(|one| (one.layers.as_slice(), one.directory.as_path()))
            .collect();
        let at = |below: &str| directory.path().join(below);
        let expected = [at("memory/user.slice"), at("pids/"), at("cpu+cpuacct/")];
        assert_eq!(
            seen,
            [
                ([Layer::Memory].as_slice(), expected[0].as_path()),
                (&[Layer::Pids], &expected[1]),
                (&[Layer::Cpu], &expected[2]),
            ]
        );
        assert_eq!(found[0].group, "/user.slice");
    }

    #[test]
    fn controllers_that_are_mounted_together_are_one_hierarchy() {
        let (_directory, text) = mounted(&["memory,pids"]);
        let (found, missing) = v1(&ALL, "1:memory,pids:/\n", &mounts::mounts(&text), &any);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].layers, [Layer::Memory, Layer::Pids]);
        assert_eq!(missing.len(), 1);
    }

    #[test]
    fn a_controller_that_is_not_in_v1_says_so() {
        let unified = mounts::mounts("1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let (found, missing) = v1(&ALL, "0::/user.slice\n", &unified, &any);
        assert_eq!(found, []);
        let reason = "the memory controller is not in cgroup v1 on this host";
        assert_eq!(missing[0], (Layer::Memory, reason.to_owned()));
        let (_, missing) = v1(&ALL, "", &[], &any);
        assert_eq!(missing[1].1, "no pids controller is mounted");
    }

    #[test]
    fn a_group_that_cannot_be_written_is_missing() {
        let text = "1 1 0:1 / /nonexistent rw - cgroup none rw,pids\n";
        let (found, missing) = v1(&[Layer::Pids], "1:pids:/\n", &mounts::mounts(text), &any);
        assert_eq!(found, []);
        assert_eq!(
            missing[0].1,
            "/nonexistent/ is not writable: No such file or directory (os error 2)"
        );
    }
}
