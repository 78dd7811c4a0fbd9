//! A plain user without user namespaces, for the tests that need one. No setting of the host is touched: the number of
//! user namespaces is one of each user namespace, and is set to 0 in a new one. Where a plain user runs the tests and can
//! make none, they say so.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Who the plain user is when root runs the tests.
pub const USER: u32 = 71_001;

/// What helps such a user.
pub const CURE: &str = "sysctl user.max_user_namespaces=16384; or start boxmaker as root";

/// Closes the door behind it, lets go of the rights that a new user namespace gives, and becomes the rest of the words.
const CLOSE: &str = r#"
echo 0 > /proc/sys/user/max_user_namespaces || exit 99
exec setpriv --ambient-caps=-all --inh-caps=-all -- "$@"
"#;

/// A command that runs `program` as a plain user who can make no user namespaces; its process id is the program's.
#[must_use]
pub fn without_namespaces(program: &Path) -> Command {
    let user = match rustix::process::geteuid().is_root() {
        true => USER,
        false => rustix::process::geteuid().as_raw(),
    };
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--keep-caps"])
        .arg(format!("--map-user={user}"))
        .arg(format!("--map-group={user}"))
        .args(["sh", "-c", CLOSE, "sh"])
        .arg(program);
    if rustix::process::geteuid().is_root() {
        command.uid(USER).gid(USER);
    }
    command
}
