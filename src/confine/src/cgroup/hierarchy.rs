//! Where the v1 controllers are and which group the supervisor is in itself: two files of `/proc`, read as text.
//! Touches nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use proto::Layer;

/// The limits this version sets, each by one v1 controller of the kernel's name.
pub(super) const CONTROLLERS: [(Layer, &str); 3] = [
    (Layer::Memory, "memory"),
    (Layer::Pids, "pids"),
    (Layer::Cpu, "cpu"),
];

/// One mounted v1 hierarchy, seen from the supervisor's own group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    /// What it limits; several if controllers are mounted together.
    pub(super) layers: Vec<Layer>,
    /// The supervisor's own group as `/proc/<pid>/cgroup` says it.
    pub(super) own: String,
    /// The directory of that group.
    pub(super) directory: PathBuf,
}

/// A cgroup mount: the group that stands at its root, where, and its super block options.
struct Mounted {
    root: String,
    at: PathBuf,
    options: Vec<String>,
}

/// Finds the hierarchies, and why there is none for the other layers.
///
/// `own_groups` is `/proc/self/cgroup` and `mountinfo` is `/proc/self/mountinfo` (cgroups(7), proc(5)); `is_own` says
/// whether a directory is the group that the caller is in.
pub(super) fn find(
    own_groups: &str,
    mountinfo: &str,
    is_own: impl Fn(&Path) -> bool,
) -> (Vec<Hierarchy>, Vec<(Layer, String)>) {
    let (mounts, unified) = mounts(mountinfo);
    let mut found: Vec<Hierarchy> = Vec::new();
    let mut missing = Vec::new();
    for (layer, controller) in CONTROLLERS {
        match one(own_groups, &mounts, unified, controller, &is_own) {
            Ok((own, directory)) => {
                match found.iter_mut().find(|known| known.directory == directory) {
                    Some(known) => known.layers.push(layer),
                    None => found.push(Hierarchy {
                        layers: vec![layer],
                        own,
                        directory,
                    }),
                }
            }
            Err(reason) => missing.push((layer, reason)),
        }
    }
    (found, missing)
}

fn one(
    own_groups: &str,
    mounts: &[Mounted],
    unified: bool,
    controller: &str,
    is_own: &impl Fn(&Path) -> bool,
) -> Result<(String, PathBuf), String> {
    let has = |options: &[String]| options.iter().any(|option| option == controller);
    let Some(mount) = mounts.iter().find(|mount| has(&mount.options)) else {
        return Err(if unified {
            format!("the {controller} controller is cgroup v2 only: this version limits with v1")
        } else {
            format!("no {controller} controller is mounted")
        });
    };
    let own = own_group(own_groups, controller)
        .ok_or_else(|| format!("/proc/self/cgroup names no group for {controller}"))?;
    let candidates = [
        relative(&own, &mount.root).map(|below| mount.at.join(below)),
        relative(&own, "/").map(|below| mount.at.join(below)),
        // In a container that sees its own group as the root of the mount, but not in /proc/self/cgroup.
        Some(mount.at.clone()),
    ];
    let directory = candidates.into_iter().flatten().find(|path| is_own(path));
    match directory {
        Some(directory) => Ok((own, directory)),
        None => Err(format!(
            "the group {own} is not to be found under {}",
            mount.at.display()
        )),
    }
}

/// The group of `controller` in the text of a `/proc/<pid>/cgroup`.
pub(super) fn own_group(groups: &str, controller: &str) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        controllers
            .split(',')
            .any(|name| name == controller)
            .then(|| group.to_owned())
    })
}

/// `group` as seen from `root`, both absolute, without a leading slash.
fn relative<'a>(group: &'a str, root: &str) -> Option<&'a str> {
    let below = group.strip_prefix(root.trim_end_matches('/'))?;
    if below.is_empty() {
        Some(below)
    } else {
        below.strip_prefix('/')
    }
}

/// All v1 mounts, and whether there is a v2 one.
fn mounts(mountinfo: &str) -> (Vec<Mounted>, bool) {
    let mut found = Vec::new();
    let mut unified = false;
    for line in mountinfo.lines() {
        let Some((place, source)) = line.split_once(" - ") else {
            continue;
        };
        let mut place = place.split(' ').skip(3);
        let mut source = source.split(' ');
        let (Some(root), Some(at), Some(kind)) = (place.next(), place.next(), source.next()) else {
            continue;
        };
        unified |= kind == "cgroup2";
        if kind == "cgroup" {
            found.push(Mounted {
                root: unescape(root).to_string_lossy().into_owned(),
                at: PathBuf::from(unescape(at)),
                options: source
                    .nth(1)
                    .unwrap_or_default()
                    .split(',')
                    .map(str::to_owned)
                    .collect(),
            });
        }
    }
    (found, unified)
}

/// Undoes the octal escapes of `mountinfo`: space, tab, line feed and backslash (proc(5)).
fn unescape(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let octal = tail
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| {
                let digits = std::str::from_utf8(digits).ok()?;
                u8::from_str_radix(digits, 8).ok()
            });
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:3 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const OWN: &str = "8:pids:/\n4:memory:/user.slice/a\n1:cpu,cpuacct:/\n0::/\n";

    fn any(_: &Path) -> bool {
        true
    }

    #[test]
    fn a_hybrid_host_has_all_three() {
        let (found, missing) = find(OWN, HYBRID, any);
        assert_eq!(missing, []);
        let directories: Vec<_> = found
            .iter()
            .map(|one| (one.layers.as_slice(), one.directory.to_str().unwrap()))
            .collect();
        assert_eq!(
            directories,
            [
                (
                    [Layer::Memory].as_slice(),
                    "/sys/fs/cgroup/memory/user.slice/a"
                ),
                (&[Layer::Pids], "/sys/fs/cgroup/pids/"),
                (&[Layer::Cpu], "/sys/fs/cgroup/cpu,cpuacct/"),
            ]
        );
        assert_eq!(found[0].own, "/user.slice/a");
    }

    #[test]
    fn controllers_that_are_mounted_together_are_one_hierarchy() {
        let (found, _) = find(
            "1:memory,pids:/x\n",
            "1 1 0:1 / /cg rw - cgroup none rw,memory,pids\n",
            any,
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].layers, [Layer::Memory, Layer::Pids]);
    }

    #[test]
    fn a_unified_host_says_that_only_v1_limits() {
        let (found, missing) = find(
            "0::/user.slice\n",
            "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            any,
        );
        assert_eq!(found, []);
        assert_eq!(missing.len(), 3);
        assert_eq!(
            missing[0].1,
            "the memory controller is cgroup v2 only: this version limits with v1"
        );
        let (_, missing) = find("", "", any);
        assert_eq!(missing[1].1, "no pids controller is mounted");
    }

    #[test]
    fn the_own_group_is_found_below_the_root_of_the_mount() {
        let own = "1:memory:/docker/abc\n";
        let bound = "1 1 0:1 /docker/abc /cg rw - cgroup none rw,memory\n";
        let whole = "1 1 0:1 / /cg rw - cgroup none rw,memory\n";
        let directory = |mountinfo, is_own: &dyn Fn(&Path) -> bool| {
            let (found, missing) = find(own, mountinfo, is_own);
            found
                .first()
                .map(|one| one.directory.clone())
                .ok_or_else(|| missing[0].1.clone())
        };
        assert_eq!(directory(bound, &any).unwrap(), Path::new("/cg"));
        assert_eq!(directory(whole, &any).unwrap(), Path::new("/cg/docker/abc"));
        let only_root = |path: &Path| path == Path::new("/cg");
        assert_eq!(directory(whole, &only_root).unwrap(), Path::new("/cg"));
        assert_eq!(
            directory(whole, &|_| false).unwrap_err(),
            "the group /docker/abc is not to be found under /cg"
        );
    }

    #[test]
    fn a_name_that_only_begins_like_the_root_is_not_below_it() {
        assert_eq!(relative("/a/b", "/a"), Some("b"));
        assert_eq!(relative("/a", "/a"), Some(""));
        assert_eq!(relative("/ab", "/a"), None);
        assert_eq!(relative("/ab", "/"), Some("ab"));
    }

    #[test]
    fn escapes_of_mountinfo_are_undone() {
        assert_eq!(unescape(r"/a\040b\134c\9"), r"/a b\c\9");
    }
}
