//! Where cgroup hierarchies are mounted and which group a process is in: two files of `/proc`, read as text. Touches
//! nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// A cgroup mount: the group that stands at its root, where, and its super block options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) unified: bool,
    pub(super) root: String,
    pub(super) at: PathBuf,
    options: Vec<String>,
}

impl Mounted {
    /// Whether it is the v1 hierarchy of this controller.
    pub(super) fn is_of(&self, controller: &str) -> bool {
        !self.unified && self.options.iter().any(|option| option == controller)
    }

    /// The directory of `group`, if it can be seen here; `is_own` says whether a directory is the group that the caller
    /// is in.
    pub(super) fn directory(
        &self,
        group: &str,
        is_own: &impl Fn(&Path) -> bool,
    ) -> Result<PathBuf, String> {
        let candidates = [
            relative(group, &self.root).map(|below| self.at.join(below)),
            relative(group, "/").map(|below| self.at.join(below)),
            // In a container that sees its own group as the root of the mount, but not in /proc/self/cgroup.
            Some(self.at.clone()),
        ];
        let found = candidates.into_iter().flatten().find(|path| is_own(path));
        found.ok_or_else(|| {
            let at = self.at.display();
            format!("the group {group} is not to be found under {at}")
        })
    }
}

/// All cgroup mounts of a `/proc/<pid>/mountinfo` (proc(5)).
pub(super) fn mounts(mountinfo: &str) -> Vec<Mounted> {
    mountinfo.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mounted> {
    let (place, source) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let mut source = source.split(' ');
    let (root, at, kind) = (place.next()?, place.next()?, source.next()?);
    matches!(kind, "cgroup" | "cgroup2").then(|| Mounted {
        unified: kind == "cgroup2",
        root: unescape(root).to_string_lossy().into_owned(),
        at: PathBuf::from(unescape(at)),
        options: source
            .nth(1)
            .unwrap_or_default()
            .split(',')
            .map(str::to_owned)
            .collect(),
    })
}

/// The group of a v1 `controller` in the text of a `/proc/<pid>/cgroup` (cgroups(7)).
pub(super) fn group_of(groups: &str, controller: &str) -> Option<String> {
    find_group(groups, |id, controllers| {
        id != "0" && controllers.split(',').any(|name| name == controller)
    })
}

/// The v2 group in the text of a `/proc/<pid>/cgroup`.
pub(super) fn unified_group(groups: &str) -> Option<String> {
    find_group(groups, |id, controllers| {
        id == "0" && controllers.is_empty()
    })
}

fn find_group(groups: &str, is_it: impl Fn(&str, &str) -> bool) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        is_it(id, controllers).then(|| group.to_owned())
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

    #[test]
    fn each_kind_of_mount_is_told_apart_and_others_are_left_out() {
        let text = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /cg/cpu,cpuacct rw shared:9 master:3 - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 /a /cg/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
";
        let [v1, v2] = mounts(text).try_into().unwrap();
        assert!(v1.is_of("cpu") && v1.is_of("cpuacct") && !v1.is_of("memory"));
        assert!(v2.unified && !v1.unified);
        assert_eq!((v2.root.as_str(), v2.at), ("/a", "/cg/unified".into()));
        // The options of a v2 mount are no controllers.
        assert!(!mounts("1 1 0:1 / /cg rw - cgroup2 none rw,memory\n")[0].is_of("memory"));
    }

    #[test]
    fn the_group_of_a_controller_and_the_unified_one_are_two_things() {
        let text = "9:name=systemd:/s\n8:pids:/p\n1:cpu,cpuacct:/c:d\n0::/u\n";
        assert_eq!(group_of(text, "pids").as_deref(), Some("/p"));
        assert_eq!(group_of(text, "cpu").as_deref(), Some("/c:d"));
        assert_eq!(group_of(text, ""), None);
        assert_eq!(group_of(text, "memory"), None);
        assert_eq!(unified_group(text).as_deref(), Some("/u"));
        assert_eq!(unified_group("8:pids:/p\n"), None);
    }

    #[test]
    fn the_own_group_is_found_below_the_root_of_the_mount() {
        let bound = "1 1 0:1 /docker/abc /cg rw - cgroup none rw,memory\n";
        let whole = "1 1 0:1 / /cg rw - cgroup none rw,memory\n";
        let directory = |mountinfo, is_own: &dyn Fn(&Path) -> bool| {
            mounts(mountinfo)[0].directory("/docker/abc", &is_own)
        };
        let any = |_: &Path| true;
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
