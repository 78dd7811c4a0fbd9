//! What stands around boxmaker and can keep layers from it: a container or a unit, its filter, its masks, its user
//! namespace. Read once; which switch of whom opens what is told in `switches`.

use std::fs;
use std::path::Path;

/// Who started this process and decides what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warden {
    /// Docker, or an engine that leaves its mark.
    Docker,
    /// Podman.
    Podman,
    /// Kubernetes, by whatever engine.
    Kubernetes,
    /// `systemd-nspawn`.
    Nspawn,
    /// A container of another kind.
    Container,
    /// A unit of a service manager.
    Unit,
    /// Nobody who is known.
    Nobody,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Surroundings {
    /// Who can change the rest.
    pub(super) warden: Warden,
    /// A system call filter is in force on this process already.
    pub(super) filtered: bool,
    /// The AppArmor profile in force on it.
    pub(super) apparmor: Option<String>,
    /// Something lies over a part of `/proc`, so that a user namespace may not mount one of its own
    /// (`mount_too_revealing` in the kernel's fs/namespace.c).
    pub(super) masked: bool,
    /// It is in a user namespace that does not hold every uid.
    pub(super) remapped: bool,
    /// Nobody here can have CAP_SYS_ADMIN, root included: it is not in the bounding set.
    pub(super) bounded: bool,
    /// cgroup v2 is mounted at `/sys/fs/cgroup`.
    pub(super) unified: bool,
    /// Its cgroups are mounted read-only.
    pub(super) held_cgroups: bool,
}

impl Surroundings {
    /// Looks around. What cannot be read is taken as not there: it decides nothing but advice.
    pub(super) fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let mounts = text("/proc/self/mountinfo");
        let managers = [
            text("/run/host/container-manager"),
            text("/run/systemd/container"),
            variable("container"),
        ];
        let marks = Marks {
            docker: Path::new("/.dockerenv").exists(),
            podman: Path::new("/run/.containerenv").exists(),
            kubernetes: !variable("KUBERNETES_SERVICE_HOST").is_empty(),
            manager: managers
                .iter()
                .map(|name| name.trim())
                .find(|name| !name.is_empty())
                .unwrap_or_default(),
            unit: !variable("INVOCATION_ID").is_empty(),
        };
        let status = text("/proc/self/status");
        let (unified, held_cgroups) = cgroups(&mounts);
        Self {
            warden: warden(&marks),
            filtered: is_filtered(&status),
            bounded: is_bounded(&status),
            apparmor: [
                "/proc/self/attr/apparmor/current",
                "/proc/self/attr/current",
            ]
            .iter()
            .find_map(|path| profile(&text(path))),
            masked: is_masked(&mounts),
            remapped: is_remapped(&text("/proc/self/uid_map")),
            unified,
            held_cgroups,
        }
    }
}

/// The marks that engines and service managers leave.
struct Marks<'a> {
    docker: bool,
    podman: bool,
    kubernetes: bool,
    manager: &'a str,
    unit: bool,
}

fn warden(marks: &Marks<'_>) -> Warden {
    // A pod is made by one of the others, whose switches its owner cannot reach.
    if marks.kubernetes {
        return Warden::Kubernetes;
    }
    match marks.manager {
        "systemd-nspawn" => Warden::Nspawn,
        "podman" => Warden::Podman,
        "docker" => Warden::Docker,
        _ if marks.podman => Warden::Podman,
        _ if marks.docker => Warden::Docker,
        "" if marks.unit => Warden::Unit,
        "" => Warden::Nobody,
        _ => Warden::Container,
    }
}

/// Whether the text of a `/proc/<pid>/status` tells of a filter.
fn is_filtered(status: &str) -> bool {
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() == "2")
}

/// The enforcing profile in the text of an `attr/current`; other security modules write other things there.
fn profile(text: &str) -> Option<String> {
    let (name, mode) = text.trim_end_matches(['\n', '\0']).split_once(" (")?;
    (mode == "enforce)").then(|| name.to_owned())
}

/// Whether anything but a file system of formats is mounted below `/proc`.
fn is_masked(mountinfo: &str) -> bool {
    mountinfo
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .any(|at| at.starts_with("/proc/") && at != "/proc/sys/fs/binfmt_misc")
}

/// Whether a `uid_map` is another than that of the host, which has one line that holds everybody.
fn is_remapped(map: &str) -> bool {
    let words: Vec<&str> = map.split_whitespace().collect();
    !words.is_empty() && words != ["0", "0", "4294967295"]
}

/// Whether the text of a `/proc/<pid>/status` tells of a bounding set without CAP_SYS_ADMIN, which has number 21.
fn is_bounded(status: &str) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> 21 & 1 == 0)
}

/// Whether cgroup v2 stands where it belongs, and whether any hierarchy with limits is mounted read-only.
fn cgroups(mountinfo: &str) -> (bool, bool) {
    let (mut unified, mut held) = (false, false);
    for line in mountinfo.lines() {
        let Some((place, kind)) = line.split_once(" - ") else {
            continue;
        };
        let mut place = place.split(' ').skip(4);
        let (at, options) = (place.next(), place.next().unwrap_or_default());
        let is_v2 = kind.starts_with("cgroup2 ") && at == Some("/sys/fs/cgroup");
        unified |= is_v2;
        if is_v2 || kind.starts_with("cgroup ") {
            held |= options.split(',').any(|option| option == "ro");
        }
    }
    (unified, held)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_MARKS: Marks<'_> = Marks {
        docker: false,
        podman: false,
        kubernetes: false,
        manager: "",
        unit: false,
    };

    #[test]
    fn each_mark_names_who_left_it() {
        for (marks, expected) in [
            (NO_MARKS, Warden::Nobody),
            (
                Marks {
                    docker: true,
                    ..NO_MARKS
                },
                Warden::Docker,
            ),
            (
                Marks {
                    podman: true,
                    ..NO_MARKS
                },
                Warden::Podman,
            ),
            (
                Marks {
                    manager: "podman",
                    ..NO_MARKS
                },
                Warden::Podman,
            ),
            (
                Marks {
                    manager: "lxc",
                    ..NO_MARKS
                },
                Warden::Container,
            ),
            (
                Marks {
                    unit: true,
                    ..NO_MARKS
                },
                Warden::Unit,
            ),
        ] {
            assert_eq!(warden(&marks), expected);
        }
    }

    #[test]
    fn a_pod_is_one_whatever_engine_made_it_and_a_unit_in_a_container_is_in_the_container() {
        let pod = Marks {
            docker: true,
            kubernetes: true,
            ..NO_MARKS
        };
        assert_eq!(warden(&pod), Warden::Kubernetes);
        let unit = Marks {
            manager: "systemd-nspawn",
            unit: true,
            ..NO_MARKS
        };
        assert_eq!(warden(&unit), Warden::Nspawn);
    }

    #[test]
    fn a_filter_shows_in_the_status() {
        assert!(is_filtered(
            "NoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n"
        ));
        assert!(!is_filtered(
            "NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n"
        ));
        assert!(!is_filtered(""));
    }

    #[test]
    fn only_an_enforcing_profile_counts() {
        let named = |text| profile(text);
        assert_eq!(
            named("docker-default (enforce)\n").as_deref(),
            Some("docker-default")
        );
        assert_eq!(named("unconfined\n"), None);
        assert_eq!(named("something (complain)\n"), None);
        assert_eq!(named("system_u:system_r:container_t:s0:c1,c2\0"), None);
        assert_eq!(named(""), None);
    }

    #[test]
    fn a_mount_over_a_part_of_proc_masks_it() {
        let whole = "21 20 0:5 / /proc rw - proc proc rw\n";
        let formats = "22 21 0:6 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n";
        let kcore = "23 21 0:7 /null /proc/kcore rw - tmpfs tmpfs rw\n";
        assert!(!is_masked(&[whole, formats].concat()));
        assert!(is_masked(&[whole, formats, kcore].concat()));
    }

    #[test]
    fn a_user_namespace_is_one_whose_map_is_not_the_hosts() {
        assert!(!is_remapped("         0          0 4294967295\n"));
        assert!(is_remapped("         0      71001          1\n"));
        assert!(is_remapped("         0          0          1\n"));
        assert!(!is_remapped(""));
    }

    #[test]
    fn the_version_of_cgroups_is_that_of_their_place() {
        let v2 = "30 20 0:9 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
        let hybrid = "30 20 0:9 / /sys/fs/cgroup ro - tmpfs tmpfs rw\n\
                      31 30 0:9 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                      32 30 0:9 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids\n";
        assert_eq!(cgroups(v2), (true, true));
        assert_eq!(cgroups(hybrid), (false, false));
        let held = hybrid.replace("pids rw", "pids ro");
        assert_eq!(cgroups(&held), (false, true));
    }

    #[test]
    fn a_bounding_set_without_the_capability_keeps_it_from_root_too() {
        assert!(is_bounded("CapBnd:\t00000000a80425fb\n"));
        assert!(!is_bounded("CapBnd:\t000001fffeffffff\n"));
        assert!(!is_bounded(""));
    }
}
