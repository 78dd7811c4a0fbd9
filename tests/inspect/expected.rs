//! What a plan makes of the list of mounts, written down from the table in `docs/confinement.md` and not from the code
//! that mounts.

use std::collections::BTreeSet;

use confine::Plan;
use confine::plan::Mount;

/// One mount: where, its file system's name if it is one of the sandbox's own, its flags.
pub(crate) type Mounted = (String, Option<&'static str>, BTreeSet<&'static str>);

/// Every mount of the plan's sandbox, sorted.
pub(crate) fn mounts(plan: &Plan) -> Vec<Mounted> {
    let data = ["nosuid", "nodev", "noexec"];
    let own = |path: &str, system, how: &[&'static str], access| {
        let flags = how.iter().copied().chain([access]).collect();
        (path.to_owned(), system, flags)
    };
    let mut all = vec![own("/", Some("tmpfs"), &data, "ro")];
    for mount in &plan.mounts {
        match mount {
            Mount::View { path, .. } => all.push(own(path, None, &["nosuid", "nodev"], "ro")),
            Mount::Link { .. } => {}
            Mount::Proc => all.push(own("/proc", Some("proc"), &data, "ro")),
            Mount::Devices => {
                all.push(own("/dev", Some("tmpfs"), &data, "ro"));
                for name in ["null", "zero", "full", "random", "urandom"] {
                    let path = format!("/dev/{name}");
                    all.push(own(&path, None, &["nosuid", "noexec"], "ro"));
                }
            }
            Mount::Scratch { .. } => all.push(own("/tmp", Some("tmpfs"), &data, "rw")),
            Mount::Tree {
                path, access, exec, ..
            } => {
                let mut how = vec!["nosuid", "nodev", "idmapped"];
                how.extend((!exec).then_some("noexec"));
                let access = if access.writes() { "rw" } else { "ro" };
                all.push(own(path, None, &how, access));
            }
        }
    }
    all.sort();
    all
}
