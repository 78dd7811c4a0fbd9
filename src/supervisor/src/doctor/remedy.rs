//! How to get a layer that is missing: what to change on the host, by layer and by what was seen.

use confine::host::Privilege;
use proto::{Gap, Layer};

/// A kernel setting that keeps plain users from making user namespaces, the value that does, and the cure.
const USER_NAMESPACES: &[(&str, &str, &str)] = &[
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "sysctl user.max_user_namespaces=16384",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sysctl kernel.unprivileged_userns_clone=1 (a Debian kernel)",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with userns for boxmaker-stage",
    ),
];

/// What can be done about `gap`; none where nothing is known to help.
pub(super) fn of_gap(gap: &Gap, privilege: Privilege, landlock_abi: u8) -> Option<String> {
    let text = match gap.layer {
        Layer::Uid if privilege == Privilege::UserNamespace => {
            "start boxmaker as root: with sudo, or as a systemd unit without User="
        }
        Layer::Uid => {
            "keep granted files on a file system that takes id maps (ext4, xfs, btrfs; tmpfs since Linux 6.3; not \
             overlayfs), with Linux 5.12 or later"
        }
        Layer::Memory | Layer::Pids | Layer::Cpu if privilege == Privilege::UserNamespace => {
            "start boxmaker as root, or give it a cgroup of its own: systemd-run --user --scope -p Delegate=yes"
        }
        Layer::Memory | Layer::Pids | Layer::Cpu => {
            "let boxmaker make cgroups: mount /sys/fs/cgroup writable, and in a systemd unit set Delegate=yes"
        }
        Layer::LandlockFs | Layer::LandlockNet | Layer::LandlockScope => {
            return Some(landlock(gap.layer, landlock_abi));
        }
        Layer::Rlimits => {
            "do not start boxmaker with a hard limit of 0 on core dumps: LimitCORE=infinity in its unit, or keep \
             CAP_SYS_RESOURCE"
        }
        Layer::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER=y",
        _ => return None,
    };
    Some(text.to_owned())
}

/// What can be done about a sandbox that cannot be built at all.
pub(super) fn of_failure(privilege: Privilege) -> Option<String> {
    if privilege == Privilege::Root {
        return Some(
            "in a container, allow the mount and unshare calls and CAP_SYS_ADMIN, or run it outside".to_owned(),
        );
    }
    let closed = USER_NAMESPACES.iter().find(|(path, value, _)| {
        std::fs::read_to_string(path).is_ok_and(|text| text.trim() == *value)
    });
    Some(closed.map_or_else(
        || "start boxmaker as root, or allow plain users to make user namespaces".to_owned(),
        |(path, value, cure)| format!("{path} is {value}: {cure}; or start boxmaker as root"),
    ))
}

fn landlock(layer: Layer, abi: u8) -> String {
    if abi == 0 {
        return "use a kernel with CONFIG_SECURITY_LANDLOCK=y and `landlock` in its list of security modules (lsm= on \
                the kernel's command line)"
            .to_owned();
    }
    let since = match layer {
        Layer::LandlockNet => "6.7",
        Layer::LandlockScope => "6.12",
        _ => "6.10",
    };
    format!("Linux {since} or later; this kernel's Landlock has ABI {abi}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(layer: Layer) -> Gap {
        Gap {
            layer,
            reason: "seen".to_owned(),
        }
    }

    #[test]
    fn a_plain_user_is_sent_to_root_and_root_to_the_file_system() {
        let user = of_gap(&gap(Layer::Uid), Privilege::UserNamespace, 7).unwrap();
        assert!(user.contains("as root"), "{user}");
        let root = of_gap(&gap(Layer::Uid), Privilege::Root, 7).unwrap();
        assert!(root.contains("overlayfs"), "{root}");
    }

    #[test]
    fn an_old_kernel_is_told_which_one_has_the_layer() {
        assert!(
            of_gap(&gap(Layer::LandlockNet), Privilege::Root, 2)
                .unwrap()
                .contains("6.7")
        );
        assert!(
            of_gap(&gap(Layer::LandlockScope), Privilege::Root, 5)
                .unwrap()
                .contains("6.12")
        );
        assert!(
            of_gap(&gap(Layer::LandlockFs), Privilege::Root, 0)
                .unwrap()
                .contains("lsm=")
        );
    }
}
