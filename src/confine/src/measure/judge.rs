//! The judgement: what was read inside, outside and of the cgroups, turned into layers and gaps. Pure; it sees no
//! process and no file.

use proto::{Asserted, Confinement, Gap, Hash32, Layer, Level};

use super::canary::UNPROVABLE;
use super::status::{BOUNDING_LINE, CAPABILITY_LINES, Status};
use super::{Inside, SeenMount, Tried};
use crate::plan::{Identity, Mount, Namespace, Plan};
use crate::stage::{DEVICES, NO_DOMAIN, SECURE_BITS};

/// Everything that was read.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// What was asked for.
    pub plan: &'a Plan,
    /// Its hash.
    pub hash: Hash32,
    /// The uid and gid that were allotted.
    pub identity: Identity,
    /// Why the uid is not the sandbox's alone, if it is not.
    pub shared: Option<&'a str>,
    /// Why it has no namespaces, if it has none, and the limit that marks its processes.
    pub bare: Option<(&'a str, u64)>,
    /// Who is to own each granted tree inside.
    pub owners: &'a [u32],
    /// What the stage read of itself.
    pub inside: &'a Inside,
    /// What the launcher read of it, or why it could not.
    pub outside: Result<Status, String>,
    /// Per namespace layer, whether it is another one than the launcher's.
    pub namespaces: &'a [(Layer, Result<(), String>)],
    /// Per limit layer, whether the cgroup holds it.
    pub limits: &'a [(Layer, Result<(), String>)],
    /// The kernel's Landlock ABI.
    pub landlock_abi: u8,
    /// The layers whose gaps the configuration waives.
    pub waive: &'a [Layer],
}

/// What is taken from the kernel's word where a plain user can neither empty the bounding set nor lock the secure bits.
const BOUNDING: (Layer, &str) = (Layer::Caps, "the bounding set, by no_new_privs");

/// The act that a container refuses everywhere but in a file system of the sandbox's own.
const DEVICE: (Layer, &str) = (Layer::LandlockFs, "make_char");

/// Whether the act was refused already before there was a layer, so that nothing can be proven by it.
fn refused_before(tried: &Tried, evidence: &Evidence<'_>) -> bool {
    let before = nix::errno::Errno::from_raw(tried.before);
    evidence.bare.is_some()
        && (tried.layer, tried.what.as_str()) == DEVICE
        && before == nix::errno::Errno::EPERM
}

/// Builds the outcome of a launch from the evidence.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Confinement {
    let mut layers = Vec::new();
    let mut gaps = Vec::new();
    for layer in Layer::ALL {
        match holds(*layer, evidence) {
            Ok(()) => layers.push(*layer),
            Err(reason) => gaps.push(Gap {
                layer: *layer,
                reason,
            }),
        }
    }
    let proven = |layer: &Layer, what: &str| {
        let mut tried = evidence.inside.tried.iter();
        tried.any(|tried| tried.layer == *layer && tried.what == what && tried.proven)
    };
    let mut all = evidence.inside.tried.iter();
    let device = all.any(|tried| refused_before(tried, evidence));
    let bounding = !bounding_is_closed(evidence.inside);
    let asserted = UNPROVABLE
        .iter()
        .chain([&BOUNDING].into_iter().filter(|_| bounding))
        .chain([&DEVICE].into_iter().filter(|_| device))
        .filter(|(layer, what)| layers.contains(layer) && !proven(layer, what))
        .map(|(layer, what)| Asserted {
            layer: *layer,
            what: (*what).to_owned(),
        })
        .collect();
    let waived = gaps
        .iter()
        .map(|gap| gap.layer)
        .filter(|layer| evidence.waive.contains(layer));
    Confinement {
        level: level(&gaps, evidence),
        asserted,
        waived: waived.collect(),
        landlock_abi: evidence.landlock_abi,
        plan: evidence.hash,
        layers,
        gaps,
    }
}

/// The level that the gaps leave (architecture.md section 4.1): without held privileges, calls or files nothing is
/// left to rely on.
fn level(gaps: &[Gap], evidence: &Evidence<'_>) -> Level {
    let missing = |layer| gaps.iter().any(|gap| gap.layer == layer);
    let files = missing(Layer::LandlockFs)
        && missing(Layer::Mount)
        && !(evidence.bare.is_some() && files_are_refused(evidence));
    if missing(Layer::Caps) || missing(Layer::Nnp) || missing(Layer::Seccomp) || files {
        Level::None
    } else if gaps.is_empty() {
        Level::Full
    } else {
        Level::Partial
    }
}

/// Whether each act on files was refused in the end: by Landlock, or where that is too old by the filter.
fn files_are_refused(evidence: &Evidence<'_>) -> bool {
    let tried = &evidence.inside.tried;
    let of = |layer| tried.iter().filter(move |tried| tried.layer == layer);
    let by_filter = |what: &str| of(Layer::Seccomp).any(|tried| tried.what == what && tried.proven);
    let refused =
        |tried: &Tried| tried.proven || by_filter(&tried.what) || refused_before(tried, evidence);
    of(Layer::LandlockFs).next().is_some() && of(Layer::LandlockFs).all(refused)
}

fn holds(layer: Layer, evidence: &Evidence<'_>) -> Result<(), String> {
    let reason = match (layer, evidence.bare) {
        (Layer::MountFlags, Some(_)) => Err("nothing is mounted".to_owned()),
        _ => own(layer, evidence),
    };
    let needs_namespaces = matches!(
        layer,
        Layer::Mount
            | Layer::Pid
            | Layer::Net
            | Layer::Ipc
            | Layer::Uts
            | Layer::CgroupNs
            | Layer::MountFlags
    );
    match evidence.bare.filter(|_| needs_namespaces) {
        Some((why, _)) => reason.map_err(|reason| format!("{reason}; {why}")),
        None => reason,
    }
}

fn own(layer: Layer, evidence: &Evidence<'_>) -> Result<(), String> {
    let inside = evidence.inside;
    match layer {
        Layer::Mount | Layer::Pid | Layer::Net | Layer::Ipc | Layer::CgroupNs => {
            find(evidence.namespaces, layer, "its namespace was not shown")
        }
        Layer::Uts => {
            find(evidence.namespaces, layer, "its namespace was not shown")?;
            let (seen, planned) = (&inside.hostname, &evidence.plan.hostname);
            require(seen == planned, || {
                format!("the host name is {seen:?}, not {planned:?}")
            })?;
            require(inside.domain == NO_DOMAIN, || {
                format!("the domain is {:?}, not {NO_DOMAIN:?}", inside.domain)
            })
        }
        Layer::Pids => pids(evidence),
        Layer::Memory | Layer::Cpu => find(evidence.limits, layer, "no cgroup was made"),
        Layer::Uid => uid(evidence),
        Layer::Caps => capabilities(evidence),
        Layer::Nnp => require(inside.status.no_new_privs, || {
            "the bit is not set".to_owned()
        }),
        Layer::Seccomp => seccomp(evidence),
        Layer::LandlockFs | Layer::LandlockNet | Layer::LandlockScope => {
            tried(layer, evidence, evidence.landlock_abi)
        }
        Layer::Descriptors => require(inside.descriptors.is_empty(), || {
            format!(
                "open besides the planned ones: {}",
                inside.descriptors.join(", ")
            )
        }),
        Layer::Terminal => {
            require(inside.session == inside.pid, || {
                "it is in a terminal session of somebody else".to_owned()
            })?;
            require(inside.terminal == 0, || {
                "it has a controlling terminal".to_owned()
            })
        }
        Layer::Rlimits => limits(evidence),
        Layer::Dumpable => require(!inside.dumpable, || {
            "it can be traced by its own uid".to_owned()
        }),
        Layer::ParentDeath => parent_death(evidence),
        Layer::MountFlags => mounts(&evidence.plan.mounts, &inside.mounts),
        Layer::Outside => outside(evidence),
    }
}

fn require(holds: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(reason()) }
}

fn find(read: &[(Layer, Result<(), String>)], layer: Layer, absent: &str) -> Result<(), String> {
    let found = read.iter().find(|(of, _)| *of == layer);
    found.map_or_else(|| Err(absent.to_owned()), |(_, result)| result.clone())
}

fn uid(evidence: &Evidence<'_>) -> Result<(), String> {
    let Identity { uid, gid } = evidence.identity;
    let status = &evidence.inside.status;
    if let Some(reason) = evidence.shared {
        return Err(format!("shared-uid: {reason}"));
    }
    require(status.uid == [uid; 4], || {
        format!("uids are {:?}, not {uid}", status.uid)
    })?;
    require(status.gid == [gid; 4], || {
        format!("gids are {:?}, not {gid}", status.gid)
    })?;
    require(status.groups.is_empty(), || {
        format!("it is in groups {:?}", status.groups)
    })?;
    let seen = &evidence.inside.owners;
    require(seen == evidence.owners, || {
        let wanted = evidence.owners;
        format!("granted trees belong to uids {seen:?} inside, not to {wanted:?}")
    })
}

/// By a signal, and where that cannot reach the rest of the sandbox, by what lets the stage and the launcher reach it.
fn parent_death(evidence: &Evidence<'_>) -> Result<(), String> {
    let inside = evidence.inside;
    let signal = if evidence.bare.is_some() { 15 } else { 9 };
    require(inside.parent_death == Some(signal), || {
        "no signal ends it when the supervisor ends".to_owned()
    })?;
    let Some((_, mark)) = evidence.bare else {
        return Ok(());
    };
    require(inside.subreaper, || {
        "orphans in it are not its own to end".to_owned()
    })?;
    require(inside.mark == Some(mark), || {
        format!(
            "its processes carry no mark: their limit on real-time scheduling is {:?}, not {mark}",
            inside.mark
        )
    })
}

/// The cgroup limits processes, or in a user namespace of its own the limit of its uid does, if that is not 0: the kernel
/// counts the host's root and lets it pass.
fn pids(evidence: &Evidence<'_>) -> Result<(), String> {
    let by_cgroup = find(evidence.limits, Layer::Pids, "no cgroup was made");
    let limit = Some(u64::from(evidence.plan.limits.pids));
    let own = evidence.plan.namespaces.contains(&Namespace::User);
    let counted = evidence.inside.status.uid.iter().all(|uid| *uid != 0);
    if own && counted && evidence.inside.processes == (limit, limit) {
        Ok(())
    } else {
        by_cgroup
    }
}

/// A plain user without namespaces can neither empty the bounding set nor lock the secure bits. What these keep is gained by
/// executing a file alone, and where no privileges can be gained by that (no_new_privs) they keep nothing.
fn capabilities(evidence: &Evidence<'_>) -> Result<(), String> {
    let inside = evidence.inside;
    let gains_nothing = evidence.bare.is_some() && inside.status.no_new_privs;
    for (set, name) in inside.status.capabilities.iter().zip(CAPABILITY_LINES) {
        require(
            *set == 0 || (gains_nothing && name == BOUNDING_LINE),
            || format!("{name} is {set:016x}"),
        )?;
    }
    require(gains_nothing || bounding_is_closed(inside), || {
        format!("secure bits are {:#x}", inside.secure_bits)
    })
}

/// Whether nothing is left in the bounding set, for good.
fn bounding_is_closed(inside: &Inside) -> bool {
    let mut sets = inside.status.capabilities.iter().zip(CAPABILITY_LINES);
    let locked = inside.secure_bits & SECURE_BITS.bits() == SECURE_BITS.bits();
    locked && sets.all(|(set, name)| *set == 0 || name != BOUNDING_LINE)
}

fn seccomp(evidence: &Evidence<'_>) -> Result<(), String> {
    let inside = evidence.inside;
    let mode = inside.status.seccomp;
    require(mode == 2, || format!("seccomp mode is {mode}, not 2"))?;
    tried(Layer::Seccomp, evidence, 0)?;
    inside.foreign.clone().map_or(Ok(()), Err)
}

/// Every canary of the layer was refused by it.
fn tried(layer: Layer, evidence: &Evidence<'_>, abi: u8) -> Result<(), String> {
    // A list of what would have been refused would say less.
    require(abi > 0 || layer == Layer::Seccomp, || {
        "there is no Landlock for this process".to_owned()
    })?;
    let mut of_layer = evidence
        .inside
        .tried
        .iter()
        .filter(|tried| tried.layer == layer)
        .peekable();
    require(of_layer.peek().is_some(), || "nothing was tried".to_owned())?;
    let failed: Vec<String> = of_layer
        .filter(|tried| !tried.proven && !refused_before(tried, evidence))
        .map(|tried| {
            format!(
                "{} ({} before, {} after)",
                tried.what,
                name(tried.before),
                name(tried.after)
            )
        })
        .collect();
    let kernel = match abi {
        0 => String::new(),
        abi => format!("Landlock ABI {abi}; "),
    };
    require(failed.is_empty(), || {
        format!("{kernel}not refused: {}", failed.join(", "))
    })
}

fn name(errno: i32) -> String {
    match errno {
        0 => "allowed".to_owned(),
        errno => format!("{:?}", nix::errno::Errno::from_raw(errno)),
    }
}

fn limits(evidence: &Evidence<'_>) -> Result<(), String> {
    let files = Some(u64::from(evidence.plan.limits.files));
    let Inside {
        core, files: seen, ..
    } = evidence.inside;
    require(*core == (Some(1), Some(1)), || {
        format!("core limit is {core:?}, not 1")
    })?;
    require(*seen == (files, files), || {
        format!("descriptor limit is {seen:?}, not {files:?}")
    })
}

fn outside(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut seen = evidence.outside.clone()?;
    let told = &evidence.inside.status;
    // Ids of a user namespace of its own are mapped to themselves, but groups that it has no number for read as another.
    if evidence.plan.namespaces.contains(&Namespace::User) {
        seen.groups.clone_from(&told.groups);
    }
    require(seen == *told, || {
        format!("outside {seen:?}, inside {told:?}")
    })
}

/// The mount flags that matter, and the options that show them.
fn expected(mounts: &[Mount]) -> Vec<(&str, Vec<&'static str>)> {
    const DATA: [&str; 3] = ["nosuid", "nodev", "noexec"];
    let with = |more: &[&'static str]| [&DATA[..], more].concat();
    let mut expected = vec![("/", with(&["ro"]))];
    for mount in mounts {
        match mount {
            Mount::View { path, .. } => expected.push((path, vec!["nosuid", "nodev", "ro"])),
            Mount::Link { .. } => {}
            Mount::Proc => expected.push(("/proc", with(&["ro"]))),
            Mount::Devices => {
                expected.push(("/dev", with(&["ro"])));
                for name in DEVICES {
                    expected.push((name, vec!["nosuid", "noexec", "ro"]));
                }
            }
            Mount::Scratch { .. } => expected.push(("/tmp", DATA.to_vec())),
            Mount::Tree {
                path, access, exec, ..
            } => {
                let mut flags = vec!["nosuid", "nodev"];
                flags.extend((!exec).then_some("noexec"));
                flags.extend((!access.writes()).then_some("ro"));
                expected.push((path, flags));
            }
        }
    }
    expected
}

/// The mounts are exactly the planned ones, each with its flags.
fn mounts(planned: &[Mount], seen: &[SeenMount]) -> Result<(), String> {
    let expected = expected(planned);
    let is = |path: &str, planned: &str| match DEVICES.contains(&planned) {
        true => path.strip_prefix("/dev/") == Some(planned),
        false => path == planned,
    };
    for SeenMount { path, options } in seen {
        let Some((_, flags)) = expected.iter().find(|(planned, _)| is(path, planned)) else {
            return Err(format!("{path} is mounted and not planned"));
        };
        let lacking = flags
            .iter()
            .find(|flag| !options.iter().any(|option| option == *flag));
        if let Some(flag) = lacking {
            return Err(format!("{path} is not {flag}"));
        }
    }
    let absent = expected
        .iter()
        .find(|(planned, _)| !seen.iter().any(|one| is(&one.path, planned)));
    absent.map_or(Ok(()), |(path, _)| {
        Err(format!("{path} is planned and not mounted"))
    })
}
