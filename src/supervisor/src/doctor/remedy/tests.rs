use proto::{Gap, Hash32, Level};

use super::*;

/// A place that holds nothing back, made by `warden`, with cgroup v2.
pub(in crate::doctor) fn around(warden: Warden) -> Surroundings {
    Surroundings {
        warden,
        filtered: false,
        apparmor: None,
        masked: false,
        remapped: false,
        bounded: false,
        unified: true,
        held_cgroups: false,
    }
}

/// What Docker makes of a container by itself.
fn docker() -> Surroundings {
    Surroundings {
        filtered: true,
        masked: true,
        bounded: true,
        held_cgroups: true,
        ..around(Warden::Docker)
    }
}

fn advisor(privilege: Privilege, is_root: bool, around: Surroundings) -> Advisor {
    Advisor {
        privilege,
        is_root,
        landlock: Landlock::Abi(7),
        around,
        closed: None,
    }
}

/// What helps where `layer` is a gap, and the namespaces with it.
fn helps(advisor: &Advisor, layer: Layer) -> String {
    advisor
        .of_gap(layer, &lacking(&[Layer::Mount, layer]))
        .unwrap()
}

fn lacking(layers: &[Layer]) -> Confinement {
    let gaps: Vec<Gap> = layers
        .iter()
        .map(|layer| Gap {
            layer: *layer,
            reason: "seen".to_owned(),
        })
        .collect();
    Confinement {
        level: Level::Partial,
        layers: Vec::new(),
        asserted: Vec::new(),
        gaps,
        waived: Vec::new(),
        landlock_abi: 0,
        plan: Hash32::ZERO,
    }
}

const USER: Privilege = Privilege::UserNamespace;

#[test]
fn a_plain_user_is_sent_to_root_and_root_to_the_file_system() {
    let user = advisor(USER, false, around(Warden::Nobody));
    assert!(helps(&user, Layer::Uid).contains("as root"));
    let root = advisor(Privilege::Root, true, around(Warden::Nobody));
    assert!(helps(&root, Layer::Uid).contains("not overlayfs"));
}

#[test]
fn in_a_container_namespaces_need_every_switch_that_is_off_and_no_other() {
    let root = advisor(USER, true, docker());
    assert_eq!(
        helps(&root, Layer::Mount),
        "start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
    );
    let mut open = docker();
    open.filtered = false;
    assert_eq!(
        helps(&advisor(USER, true, open), Layer::Pid),
        "start the container with --security-opt systempaths=unconfined"
    );
    // With the capability masks are no obstacle, and pivot_root still is.
    let able = advisor(Privilege::Root, true, docker());
    assert_eq!(
        able.of_failure().unwrap(),
        "start the container with --security-opt seccomp=unconfined"
    );
}

#[test]
fn apparmor_is_named_where_its_profile_is_in_force() {
    let mut confined = docker();
    confined.apparmor = Some("docker-default".to_owned());
    let helps = helps(&advisor(USER, true, confined), Layer::Net);
    assert!(
        helps.contains("--security-opt apparmor=unconfined"),
        "{helps}"
    );
}

#[test]
fn a_uid_of_its_own_takes_root_with_its_capability() {
    assert_eq!(
        helps(&advisor(USER, true, docker()), Layer::Uid),
        "start the container with --cap-add SYS_ADMIN --security-opt seccomp=unconfined"
    );
    let user = helps(&advisor(USER, false, docker()), Layer::Uid);
    assert!(
        user.starts_with("start the container with --cap-add") && user.ends_with("--user 0"),
        "{user}"
    );
    // A privileged container, or an image that is started as a machine.
    let open = helps(&advisor(USER, false, around(Warden::Docker)), Layer::Uid);
    assert!(open.starts_with("start boxmaker as root"), "{open}");
    // Namespaces were made: what else there is of filters and masks is in nobody's way.
    let filtered = Surroundings {
        filtered: true,
        masked: true,
        ..around(Warden::Nspawn)
    };
    let made = advisor(USER, false, filtered).of_gap(Layer::Uid, &lacking(&[Layer::Uid]));
    assert!(made.unwrap().starts_with("start boxmaker as root"));
    let unit = helps(&advisor(USER, false, around(Warden::Unit)), Layer::Uid);
    assert!(unit.contains("without User="), "{unit}");
}

#[test]
fn mapped_users_are_told_that_id_maps_need_the_hosts_root() {
    let mapped = Surroundings {
        remapped: true,
        masked: true,
        ..around(Warden::Podman)
    };
    let root = advisor(Privilege::Root, true, mapped);
    assert_eq!(
        helps(&root, Layer::Uid),
        "id maps need root of the host: start the container with podman started as root"
    );
    // Root of a user namespace that has nobody else in it.
    let alone =
        advisor(USER, true, root.around.clone()).of_gap(Layer::Uid, &lacking(&[Layer::Uid]));
    assert!(alone.unwrap().contains("80 users"));
    // Its namespaces are made in a user namespace, where masks count.
    assert!(root.of_failure().unwrap().contains("unmask=ALL"));
}

#[test]
fn limits_are_for_who_made_the_surroundings_to_give() {
    let of = |privilege, is_root, around| helps(&advisor(privilege, is_root, around), Layer::Cpu);
    for (helps, expected) in [
        (
            of(Privilege::Root, true, docker()),
            "--security-opt writable-cgroups=true",
        ),
        (
            of(USER, false, docker()),
            "--security-opt writable-cgroups=true --user 0",
        ),
        (
            of(Privilege::Root, true, around(Warden::Docker)),
            "in a systemd unit set Delegate=yes",
        ),
        (
            of(USER, false, around(Warden::Unit)),
            "Delegate=yes and no ProtectControlGroups=",
        ),
        (
            of(USER, false, around(Warden::Nobody)),
            "systemd-run --user --scope -p Delegate=yes",
        ),
    ] {
        assert!(helps.ends_with(expected), "{helps}");
    }
}

#[test]
fn a_setting_that_closes_user_namespaces_comes_before_everything_else() {
    let mut user = advisor(USER, false, around(Warden::Nobody));
    assert!(helps(&user, Layer::Pid).contains("user namespaces"));
    user.closed = Some("/proc/sys/x is 0: sysctl x=1".to_owned());
    assert_eq!(
        helps(&user, Layer::Pid),
        "/proc/sys/x is 0: sysctl x=1; or start boxmaker as root"
    );
}

#[test]
fn an_old_kernel_is_told_which_one_has_the_layer() {
    let with = |landlock| Advisor {
        landlock,
        ..advisor(Privilege::Root, true, around(Warden::Nobody))
    };
    assert!(helps(&with(Landlock::Abi(2)), Layer::LandlockNet).contains("6.7"));
    assert!(helps(&with(Landlock::Abi(5)), Layer::LandlockScope).contains("6.12"));
    assert!(helps(&with(Landlock::Off), Layer::LandlockFs).contains("lsm="));
    assert!(helps(&with(Landlock::Refused), Layer::LandlockFs).contains("5.13"));
}

#[test]
fn a_filter_that_may_refuse_landlock_is_named_before_the_kernel() {
    let nspawn = Surroundings {
        filtered: true,
        ..around(Warden::Nspawn)
    };
    let helps = helps(
        &Advisor {
            landlock: Landlock::Refused,
            ..advisor(Privilege::Root, true, nspawn)
        },
        Layer::LandlockFs,
    );
    assert!(
        helps.starts_with("start the container with --system-call-filter=landlock_create_ruleset"),
        "{helps}"
    );
}
