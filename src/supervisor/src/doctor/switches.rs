//! How a container or a unit is told to let boxmaker do what it needs: one thing, in the words of each engine. They are
//! the options of `docker run`, `podman run` and `systemd-nspawn`, the fields of a Kubernetes `securityContext`, and the
//! settings of systemd.exec(5).

use super::surroundings::{Surroundings, Warden};

/// One thing that whoever made the surroundings can allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    /// The calls that make namespaces and mounts.
    Calls,
    /// The calls of Landlock.
    Landlock,
    /// Mounts, as far as AppArmor has a say.
    AppArmor,
    /// A `/proc` that nothing lies over.
    Proc,
    /// The capability that namespaces and mounts need where there is no user namespace.
    Admin,
    /// To be root inside.
    Root,
    /// To make cgroups below the own one.
    Cgroups,
    /// The users of the host, without a map.
    Users,
    /// A directory of a file system that takes id maps.
    Volume,
}

/// What to do so that all `switches` are on, as one sentence; none where there is nothing to switch.
pub(super) fn sentence(switches: &[Switch], around: &Surroundings) -> Option<String> {
    let said: Vec<&str> = switches
        .iter()
        .filter_map(|switch| words(*switch, around))
        .collect();
    let (before, between) = match around.warden {
        Warden::Docker | Warden::Podman | Warden::Nspawn => ("start the container with ", " "),
        Warden::Kubernetes => ("give the container's securityContext ", ", "),
        Warden::Container => ("in the container's configuration, allow ", ", "),
        Warden::Unit => ("write in its unit: ", ", "),
        Warden::Nobody => ("", ", "),
    };
    (!said.is_empty()).then(|| format!("{before}{}", said.join(between)))
}

fn words(switch: Switch, around: &Surroundings) -> Option<&'static str> {
    match around.warden {
        Warden::Docker => docker(switch, around.unified),
        Warden::Podman => podman(switch, around.unified),
        Warden::Kubernetes => kubernetes(switch),
        Warden::Nspawn => nspawn(switch, around.unified),
        Warden::Container => any(switch),
        Warden::Unit => unit(switch),
        Warden::Nobody => None,
    }
}

const fn docker(switch: Switch, unified: bool) -> Option<&'static str> {
    Some(match switch {
        Switch::Calls | Switch::Landlock => "--security-opt seccomp=unconfined",
        Switch::AppArmor => "--security-opt apparmor=unconfined",
        Switch::Proc => "--security-opt systempaths=unconfined",
        Switch::Admin => "--cap-add SYS_ADMIN",
        Switch::Root => "--user 0",
        // Since Docker 28; cgroup v1 has no namespace that would keep the container to its own groups.
        Switch::Cgroups if unified => "--security-opt writable-cgroups=true",
        Switch::Cgroups => "--volume /sys/fs/cgroup:/sys/fs/cgroup:rw",
        Switch::Users => "--userns host",
        Switch::Volume => "--volume for the granted directories",
    })
}

const fn podman(switch: Switch, unified: bool) -> Option<&'static str> {
    match switch {
        Switch::Proc => Some("--security-opt unmask=ALL"),
        Switch::Cgroups if unified => Some("--security-opt unmask=/sys/fs/cgroup"),
        // Without root podman has no other users to give.
        Switch::Users => Some("podman started as root"),
        _ => docker(switch, unified),
    }
}

const fn kubernetes(switch: Switch) -> Option<&'static str> {
    Some(match switch {
        Switch::Calls | Switch::Landlock => "seccompProfile: {type: Unconfined}",
        Switch::AppArmor => "appArmorProfile: {type: Unconfined}",
        Switch::Proc => "procMount: Unmasked",
        Switch::Admin => "capabilities: {add: [SYS_ADMIN]}",
        Switch::Root => "runAsUser: 0",
        Switch::Cgroups => "privileged: true (or a runtime that makes cgroups writable)",
        Switch::Users => "no hostUsers: false in the pod",
        Switch::Volume => "a volume for the granted directories",
    })
}

const fn nspawn(switch: Switch, unified: bool) -> Option<&'static str> {
    Some(match switch {
        Switch::Calls => "--system-call-filter=@mount",
        Switch::Landlock => {
            "--system-call-filter=landlock_create_ruleset --system-call-filter=landlock_add_rule \
             --system-call-filter=landlock_restrict_self"
        }
        Switch::Admin => "--capability=CAP_SYS_ADMIN",
        Switch::Users => "--private-users=no",
        Switch::Cgroups if unified => "Delegate=yes in boxmaker's unit",
        Switch::Cgroups => {
            "cgroup v2 on its host (systemd.unified_cgroup_hierarchy=1), and Delegate=yes in boxmaker's unit"
        }
        Switch::Volume => "--bind= for the granted directories",
        Switch::AppArmor | Switch::Proc | Switch::Root => return None,
    })
}

const fn any(switch: Switch) -> Option<&'static str> {
    Some(match switch {
        Switch::Calls => "the calls unshare, mount and pivot_root",
        Switch::Landlock => "the three calls of Landlock",
        Switch::AppArmor => "mounts in the AppArmor profile",
        Switch::Proc => "a /proc without masks",
        Switch::Admin => "CAP_SYS_ADMIN",
        Switch::Root => "root",
        Switch::Cgroups => "writing to the own cgroup",
        Switch::Users => "the users of the host, not mapped ones",
        Switch::Volume => "a mount of the host for the granted directories",
    })
}

const fn unit(switch: Switch) -> Option<&'static str> {
    Some(match switch {
        Switch::Calls => "no SystemCallFilter= and no RestrictNamespaces=",
        Switch::Landlock => "no SystemCallFilter= that leaves out @sandbox",
        Switch::AppArmor => "another AppArmorProfile=",
        Switch::Proc => "no ProtectKernelTunables=, ProtectKernelLogs= and ProtectProc=",
        Switch::Admin => "CAP_SYS_ADMIN in CapabilityBoundingSet=",
        Switch::Root => "no User=",
        Switch::Cgroups => "Delegate=yes and no ProtectControlGroups=",
        Switch::Users => "no PrivateUsers=",
        Switch::Volume => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::remedy::tests::around;

    #[test]
    fn each_engine_is_told_in_its_own_words() {
        let switches = [Switch::Calls, Switch::Proc];
        for (warden, expected) in [
            (
                Warden::Docker,
                "start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined",
            ),
            (
                Warden::Podman,
                "start the container with --security-opt seccomp=unconfined --security-opt unmask=ALL",
            ),
            (
                Warden::Kubernetes,
                "give the container's securityContext seccompProfile: {type: Unconfined}, procMount: Unmasked",
            ),
            (
                Warden::Unit,
                "write in its unit: no SystemCallFilter= and no RestrictNamespaces=, no ProtectKernelTunables=, \
                 ProtectKernelLogs= and ProtectProc=",
            ),
        ] {
            assert_eq!(
                sentence(&switches, &around(warden)).as_deref(),
                Some(expected)
            );
        }
    }

    #[test]
    fn where_nobody_can_switch_nothing_is_said() {
        assert_eq!(sentence(&[Switch::Calls], &around(Warden::Nobody)), None);
        assert_eq!(sentence(&[Switch::Proc], &around(Warden::Nspawn)), None);
        assert_eq!(sentence(&[], &around(Warden::Docker)), None);
    }

    #[test]
    fn with_cgroup_v1_docker_has_no_switch_but_a_mount() {
        let mut docker = around(Warden::Docker);
        let said = |around: &Surroundings| sentence(&[Switch::Cgroups], around).unwrap();
        assert!(said(&docker).ends_with("--security-opt writable-cgroups=true"));
        docker.unified = false;
        assert!(said(&docker).ends_with("--volume /sys/fs/cgroup:/sys/fs/cgroup:rw"));
    }
}
