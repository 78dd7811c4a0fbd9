//! Whether a plain user's sandbox can be built on this host. Sysctls, security modules and the filter of a container all
//! have a say in that, and none can be asked: so one is built, up to its measurement.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use proto::config::CgroupChoice;
use proto::{Hash32, Level};
use rustix::fs::{Mode, OFlags};

use super::{IdentityChoice, LaunchError, Launcher, LauncherOptions, PoolSizes, StageStdio};
use crate::plan::{Limits, Mount, Namespace, Plan, Program, Seccomp};
use crate::seccomp::SeccompError;

/// The set of calls that every profile has.
const SETS: [&str; 1] = ["base"];

/// Where its uid comes from, if it has one of its own.
const UIDS: (u32, u32) = (32_768, 16_384);

/// Builds an empty sandbox with `stage` in a user namespace, with every kind of mount and every namespace.
///
/// # Errors
/// What was refused: the step and the kernel's answer.
pub(super) fn build_in_user_namespace(stage: &Path) -> Result<(), String> {
    let said = |error: &dyn std::error::Error| error.to_string();
    let launcher = Launcher::new(LauncherOptions {
        stage: stage.to_owned(),
        // Any will do; without the right to change ids there is one uid.
        uid_range: crate::uids::fitting(UIDS).unwrap_or(UIDS),
        cgroup: CgroupChoice::None,
        name: "trial".to_owned(),
        waive: Vec::new(),
        pool: PoolSizes::default(),
        bare: None,
    })
    .map_err(|error| said(&error))?;
    let nothing = || -> Result<OwnedFd, String> {
        rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| said(&error))
    };
    let stdio = StageStdio {
        stdin: nothing()?,
        stdout: nothing()?,
        stderr: nothing()?,
    };
    let plan = plan().map_err(|error| said(&error))?;
    match launcher.prepare(plan, Vec::new(), stdio, IdentityChoice::Fresh) {
        Ok(_) => Ok(()),
        Err(LaunchError::Step { step, detail }) => Err(format!("{step}: {detail}")),
        Err(error) => Err(said(&error)),
    }
}

fn plan() -> Result<Plan, SeccompError> {
    let sets = SETS.map(str::to_owned).to_vec();
    let filter = crate::seccomp::filter(&sets)?;
    Ok(Plan {
        profile: "trial".to_owned(),
        namespaces: vec![
            Namespace::User,
            Namespace::Mount,
            Namespace::Pid,
            Namespace::Net,
            Namespace::Ipc,
            Namespace::Uts,
            Namespace::Cgroup,
        ],
        hostname: "trial".to_owned(),
        mounts: vec![
            Mount::View {
                path: "/usr".to_owned(),
                directory: true,
            },
            Mount::Proc,
            Mount::Devices,
            Mount::Scratch {
                bytes: 1 << 16,
                inodes: 16,
            },
        ],
        landlock: Vec::new(),
        seccomp: Seccomp {
            sets,
            program: filter.hash(),
        },
        limits: Limits {
            memory: 1 << 26,
            pids: 8,
            cpu: 100,
            files: 64,
            wall_ms: 1000,
        },
        program: Program {
            argv: vec!["/usr/bin/true".to_owned()],
            env: BTreeMap::new(),
            cwd: "/".to_owned(),
            input: Hash32::ZERO,
        },
        required: Level::Partial,
    })
}
