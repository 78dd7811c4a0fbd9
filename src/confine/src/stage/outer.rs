//! The outer half: leaves the supervisor's namespaces and starts the inner half, which enters them.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use caps::CapSet;
use ipc::Wire;
use nix::sched::CloneFlags;
use proto::Layer;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit};

use super::{At, StageError, Steps};
use crate::message::{FromStage, Step, ToStage, receive, send};
use crate::plan::Namespace;

pub(super) fn run(wire: &Wire, steps: Steps) -> Result<ExitCode, StageError> {
    steps.take(Step::CloseDescriptors, || close_descriptors(wire))?;
    let message = receive(wire).at(Step::ReceivePlan, "standard input")?;
    let (
        ToStage::Outer {
            namespaces,
            mapped,
            files,
            pids,
            joins,
        },
        groups,
    ) = message
    else {
        return Err("another message came first").at(Step::ReceivePlan, "standard input");
    };
    for (layer, group) in joins.into_iter().zip(groups) {
        let step = match layer {
            Layer::Memory => Step::JoinMemory,
            Layer::Pids => Step::JoinPids,
            _ => Step::JoinCpu,
        };
        steps.take(step, || {
            fs::File::from(group)
                .write_all(b"0")
                .at(step, "cgroup.procs")
        })?;
    }
    steps.take(Step::Limits, || limits(files))?;
    if namespaces.contains(&Namespace::User) {
        enter_user_namespace(wire, mapped)?;
        limit_processes(pids)?;
    }
    for (namespace, flag, step) in NAMESPACES {
        if namespaces.contains(namespace) {
            steps.take(*step, || nix::sched::unshare(*flag).at(*step, "unshare"))?;
        }
    }
    if !steps.has(Step::SpawnInner) {
        return Ok(ExitCode::SUCCESS);
    }
    spawn(wire)
}

const NAMESPACES: &[(Namespace, CloneFlags, Step)] = &[
    (
        Namespace::Cgroup,
        CloneFlags::CLONE_NEWCGROUP,
        Step::UnshareCgroup,
    ),
    (Namespace::Ipc, CloneFlags::CLONE_NEWIPC, Step::UnshareIpc),
    (Namespace::Uts, CloneFlags::CLONE_NEWUTS, Step::UnshareUts),
    (Namespace::Net, CloneFlags::CLONE_NEWNET, Step::UnshareNet),
    (
        Namespace::Mount,
        CloneFlags::CLONE_NEWNS,
        Step::UnshareMount,
    ),
    (Namespace::Pid, CloneFlags::CLONE_NEWPID, Step::UnsharePid),
];

/// Closes everything above standard error but the stage's own handle on its socket.
fn close_descriptors(wire: &Wire) -> Result<(), StageError> {
    let step = Step::CloseDescriptors;
    let own = wire.as_fd().as_raw_fd();
    let mut open = Vec::new();
    for entry in fs::read_dir("/proc/self/fd").at(step, "/proc/self/fd")? {
        let name = entry.at(step, "/proc/self/fd")?.file_name();
        open.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for descriptor in open {
        if descriptor > 2 && descriptor != own {
            // The directory's own descriptor is in the list and gone already: EBADF is no fault.
            match nix::unistd::close(descriptor) {
                Ok(()) | Err(nix::errno::Errno::EBADF) => {}
                Err(errno) => return Err(errno).at(step, format_args!("descriptor {descriptor}")),
            }
        }
    }
    Ok(())
}

/// A user namespace: with every id of the launcher's, if the launcher may write such maps, or with one uid and one gid,
/// the caller's own.
fn enter_user_namespace(wire: &Wire, mapped: bool) -> Result<(), StageError> {
    let step = Step::UnshareUser;
    let (uid, gid) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    nix::sched::unshare(CloneFlags::CLONE_NEWUSER).at(step, "unshare")?;
    if mapped {
        send(wire, &FromStage::Started {}, &[]).at(step, "report")?;
        match receive(wire).at(step, "standard input")? {
            (ToStage::Start {}, _) => {}
            _ => return Err("another message came instead of start").at(step, "standard input"),
        }
    } else {
        write_own_maps(uid, gid)?;
    }
    // The inner half is another program, and exec takes the capabilities of whoever is not root: ambient ones stay, until
    // the inner half empties that set with the others.
    let all = caps::read(None, CapSet::Permitted).at(step, "permitted set")?;
    caps::set(None, CapSet::Inheritable, &all).at(step, "inheritable set")?;
    caps::set(None, CapSet::Ambient, &all).at(step, "ambient set")?;
    Ok(())
}

/// The maps are written while the process is dumpable, and setgroups is denied first, or an unprivileged process may not
/// write them (user_namespaces(7)).
fn write_own_maps(uid: u32, gid: u32) -> Result<(), StageError> {
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{uid} {uid} 1")),
        ("gid_map", format!("{gid} {gid} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), text).at(Step::UnshareUser, file)?;
    }
    Ok(())
}

/// Processes are counted for each uid of each user namespace (since Linux 5.14), so in a namespace of its own this limit
/// is one of the whole sandbox. On an older kernel it would count everything the user runs, and is left alone.
fn limit_processes(pids: u32) -> Result<(), StageError> {
    if !counts_per_namespace(&rustix::system::uname().release().to_string_lossy()) {
        return Ok(());
    }
    let limit = Rlimit {
        current: Some(u64::from(pids)),
        maximum: Some(u64::from(pids)),
    };
    rustix::process::setrlimit(Resource::Nproc, limit).at(Step::UnshareUser, "process limit")
}

/// Whether the release of a kernel is 5.14 or later.
fn counts_per_namespace(release: &str) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (5, 14),
        _ => false,
    }
}

fn limits(files: u32) -> Result<(), StageError> {
    let step = Step::Limits;
    // A core limit of 0 still runs a piped core_pattern; 1 does not. Without CAP_SYS_RESOURCE a hard limit cannot be
    // raised: EPERM keeps what is there, and the measurement says what that is.
    for (resource, value) in [(Resource::Core, 1), (Resource::Nofile, u64::from(files))] {
        let limit = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        match rustix::process::setrlimit(resource, limit) {
            Ok(()) | Err(rustix::io::Errno::PERM) => {}
            Err(errno) => return Err(errno).at(step, format_args!("{resource:?}")),
        }
    }
    fs::write("/proc/self/oom_score_adj", "1000").at(step, "oom_score_adj")
}

fn spawn(wire: &Wire) -> Result<ExitCode, StageError> {
    let step = Step::SpawnInner;
    let stdin = wire
        .as_fd()
        .try_clone_to_owned()
        .at(step, "standard input")?;
    let name = std::env::args_os().next().unwrap_or_default();
    let child = Command::new("/proc/self/exe")
        .arg0(name)
        .arg("inner")
        .env_clear()
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .at(step, "/proc/self/exe")?;
    let pid = Pid::from_child(&child);
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).at(step, "pidfd")?;
    send(
        wire,
        &FromStage::Spawned { pid: child.id() },
        &[handle.as_fd()],
    )
    .at(step, "report")?;
    // The launcher is a subreaper, so the inner stage is its child from now on.
    Ok(ExitCode::SUCCESS)
}

/// Enters a user namespace and holds it until the launcher, which writes its maps, has taken a descriptor.
pub(super) fn hold_user_namespace(wire: &Wire) -> Result<ExitCode, StageError> {
    let step = Step::UnshareMount;
    nix::sched::unshare(CloneFlags::CLONE_NEWUSER).at(step, "unshare user")?;
    send(wire, &FromStage::Started {}, &[]).at(step, "report")?;
    let ended: io::Result<_> = wire.receive().map_err(io::Error::other);
    ended.at(step, "standard input")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::counts_per_namespace;

    #[test]
    fn the_kernels_release_says_whether_processes_are_counted_per_namespace() {
        for release in [
            "5.14.0",
            "5.15.12-generic",
            "6.1.0-57-cloud-amd64",
            "6.18.44",
        ] {
            assert!(counts_per_namespace(release), "{release}");
        }
        for release in ["5.10.0-46", "4.19", "5", "", "next"] {
            assert!(!counts_per_namespace(release), "{release}");
        }
    }
}
