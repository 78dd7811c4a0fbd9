//! How to get a layer that is missing: what to change on the host, in the container or in the unit, by layer and by what
//! was seen.

use confine::host::{Landlock, Privilege};
use proto::{Confinement, Layer};

use super::surroundings::{Surroundings, Warden};
use super::switches::{Switch, sentence};

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

/// The setting that is in the way, and its cure.
fn closed() -> Option<String> {
    let closed = USER_NAMESPACES.iter().find(|(path, value, _)| {
        std::fs::read_to_string(path).is_ok_and(|text| text.trim() == *value)
    });
    closed.map(|(path, value, cure)| format!("{path} is {value}: {cure}"))
}

/// What would let this process, which is not root, make namespaces.
pub(crate) fn namespaces_help() -> String {
    let around = Surroundings::read();
    let is_root = rustix::process::geteuid().is_root();
    of_namespaces(closed().as_deref(), Some(is_root), &around)
        .unwrap_or_else(|| "start boxmaker as root".to_owned())
}

/// What keeps namespaces and mounts from this process, as far as it can be seen; of one without the rights of root it is
/// asked whether it has uid 0 all the same.
fn of_namespaces(
    closed: Option<&str>,
    user: Option<bool>,
    around: &Surroundings,
) -> Option<String> {
    let start = |is_root| match is_root {
        true => "start boxmaker with all capabilities of root",
        false => "start boxmaker as root",
    };
    if let (Some(closed), Some(is_root)) = (closed, user) {
        return Some(format!("{closed}; or {}", start(is_root)));
    }
    sentence(&obstacles(user.is_some(), around), around).or_else(|| {
        let start = start(user?);
        Some(format!(
            "{start}, or allow plain users to make user namespaces"
        ))
    })
}

/// What stands in the way of namespaces, made by a plain `user` or by root.
fn obstacles(user: bool, around: &Surroundings) -> Vec<Switch> {
    let Surroundings {
        filtered,
        apparmor,
        masked,
        remapped,
        ..
    } = around;
    let mut found = Vec::new();
    found.extend(filtered.then_some(Switch::Calls));
    found.extend(apparmor.as_ref().map(|_| Switch::AppArmor));
    // Root of the host may mount /proc however much of it is masked; a user namespace may not.
    found.extend((*masked && (user || *remapped)).then_some(Switch::Proc));
    found
}

/// All that advice rests on.
#[derive(Debug)]
pub(super) struct Advisor {
    /// What this process may do.
    pub(super) privilege: Privilege,
    /// Whether its uid is 0, which alone gives it no rights.
    pub(super) is_root: bool,
    /// What the kernel has of Landlock.
    pub(super) landlock: Landlock,
    /// What stands around it.
    pub(super) around: Surroundings,
    /// The setting that keeps plain users from making user namespaces, and its cure.
    pub(super) closed: Option<String>,
}

impl Advisor {
    /// Looks at what this process and its host are.
    pub(super) fn new(privilege: Privilege, landlock: Landlock) -> Self {
        Self {
            privilege,
            is_root: rustix::process::geteuid().is_root(),
            landlock,
            around: Surroundings::read(),
            closed: closed(),
        }
    }

    /// What can be done about a gap of `measured` in `layer`; none where nothing is known to help.
    pub(super) fn of_gap(&self, layer: Layer, measured: &Confinement) -> Option<String> {
        match layer {
            Layer::Mount
            | Layer::Pid
            | Layer::Net
            | Layer::Ipc
            | Layer::Uts
            | Layer::CgroupNs
            | Layer::MountFlags => self.of_namespaces(),
            Layer::Uid => self.of_uid(measured),
            Layer::Memory | Layer::Pids | Layer::Cpu => Some(self.of_limits()),
            Layer::LandlockFs | Layer::LandlockNet | Layer::LandlockScope => {
                Some(self.of_landlock(layer))
            }
            Layer::Rlimits => Some(
                "do not start boxmaker with a hard limit of 0 on core dumps: LimitCORE=infinity in its unit, or keep \
                 CAP_SYS_RESOURCE"
                    .to_owned(),
            ),
            Layer::Seccomp => Some("use a kernel with CONFIG_SECCOMP_FILTER=y".to_owned()),
            _ => None,
        }
    }

    /// What can be done about a sandbox that cannot be built at all.
    pub(super) fn of_failure(&self) -> Option<String> {
        self.of_namespaces()
    }

    fn of_namespaces(&self) -> Option<String> {
        let user = (self.privilege != Privilege::Root).then_some(self.is_root);
        of_namespaces(self.closed.as_deref(), user, &self.around)
    }

    fn obstacles(&self, user: bool) -> Vec<Switch> {
        obstacles(user, &self.around)
    }

    fn of_uid(&self, measured: &Confinement) -> Option<String> {
        let around = &self.around;
        if self.privilege != Privilege::Root {
            let mut switches = Vec::new();
            switches.extend(around.bounded.then_some(Switch::Admin));
            // Where namespaces were made, nothing stands in their way.
            if measured.gap(Layer::Mount).is_some() {
                switches.extend(self.obstacles(false));
            }
            // Where root could have all it needs, to be root is enough.
            if !switches.is_empty() && !self.is_root {
                switches.push(Switch::Root);
            }
            return sentence(&switches, around).or_else(|| {
                let text = match (self.is_root, around.remapped) {
                    (true, true) => {
                        "start boxmaker in a user namespace that has 80 users besides the system's own, or in none"
                    }
                    (true, false) => "start boxmaker with all capabilities of root",
                    (false, _) => {
                        "start boxmaker as root: with sudo, or as a systemd unit without User="
                    }
                };
                Some(text.to_owned())
            });
        }
        if around.remapped {
            let outside = sentence(&[Switch::Users], around);
            return Some(format!(
                "id maps need root of the host: {}",
                outside
                    .unwrap_or_else(|| "start boxmaker outside of its user namespace".to_owned())
            ));
        }
        let files = "keep granted files on a file system that takes id maps (ext4, xfs, btrfs; tmpfs since Linux 6.3; \
                     not overlayfs), with Linux 5.12 or later";
        let volume = sentence(&[Switch::Volume], around);
        Some(volume.map_or_else(|| files.to_owned(), |volume| format!("{files}: {volume}")))
    }

    fn of_limits(&self) -> String {
        let plain = self.privilege != Privilege::Root && !self.is_root;
        let unit = self.around.warden == Warden::Unit;
        let mut switches = Vec::new();
        switches.extend((self.around.held_cgroups || unit).then_some(Switch::Cgroups));
        switches.extend(self.around.remapped.then_some(Switch::Users));
        // A unit's group is delegated to its user, a container's to root.
        if plain && !unit && !switches.is_empty() {
            switches.push(Switch::Root);
        }
        sentence(&switches, &self.around).unwrap_or_else(|| {
            let text = if plain {
                "start boxmaker as root, or give it a cgroup of its own: systemd-run --user --scope -p Delegate=yes"
            } else {
                "let boxmaker make cgroups: mount /sys/fs/cgroup writable, and in a systemd unit set Delegate=yes"
            };
            text.to_owned()
        })
    }

    fn of_landlock(&self, layer: Layer) -> String {
        let abi = match self.landlock {
            Landlock::Off => {
                return "boot with `landlock` in the list of security modules: lsm= on the kernel's command line has \
                        to name it"
                    .to_owned();
            }
            Landlock::Refused => {
                let kernel = "use a kernel with CONFIG_SECURITY_LANDLOCK=y";
                return match sentence(&[Switch::Landlock], &self.around) {
                    Some(sentence) if self.around.filtered => {
                        format!("{sentence}; or, if the kernel has none, {kernel}")
                    }
                    _ => format!("{kernel}, Linux 5.13 or later"),
                };
            }
            Landlock::Abi(abi) => abi,
        };
        let since = match layer {
            Layer::LandlockNet => "6.7",
            Layer::LandlockScope => "6.12",
            _ => "6.10",
        };
        format!("Linux {since} or later; this kernel's Landlock has ABI {abi}")
    }
}

#[cfg(test)]
pub(super) mod tests;
