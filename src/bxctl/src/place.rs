//! Where boxmaker lives on this host, and who may look at it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub use ipc::place::Place;

/// The place that the words and the environment name; else the host's, where root asks or it is the only one there is; else
/// a plain user's own.
#[must_use]
pub fn choose(home: Option<PathBuf>, config: Option<PathBuf>) -> Place {
    let environment = |name: &str| std::env::var_os(name);
    let own = match rustix::process::geteuid().is_root() {
        true => None,
        false => Place::of_user(environment),
    };
    let is_there = |place: &Place| place.home.exists() || place.config.exists();
    let host = Place::of_host();
    own_or_hosts(own, host, is_there).unless_named(home, config, environment)
}

/// A user who has no boxmaker may still be let in to the host's; where there is none either, the user's is the one to make.
fn own_or_hosts(own: Option<Place>, host: Place, is_there: impl Fn(&Place) -> bool) -> Place {
    let is_chosen = |own: &Place| is_there(own) || !is_there(&host);
    own.filter(is_chosen).unwrap_or(host)
}

/// The audit log of a place and its anchor.
#[must_use]
pub fn ledger(place: &Place) -> ledger::Paths {
    ledger::Paths {
        audit: place.home.join("audit"),
        anchor: place.home.join("anchor"),
    }
}

/// Where boxmaker's own binaries are: beside this one.
#[must_use]
pub fn binaries() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().map_or_else(|| "/".into(), PathBuf::from)
}

/// What helps someone who may not open `path`: the group it is open to, or root.
#[must_use]
pub fn who_may(path: &Path) -> String {
    // What cannot even be looked at lies behind the nearest directory that can.
    let Some((barrier, metadata)) = path
        .ancestors()
        .find_map(|path| fs::metadata(path).ok().map(|found| (path, found)))
    else {
        return "run bxctl as root".to_owned();
    };
    let (group, mode) = (metadata.gid(), metadata.mode());
    if group == 0 || mode & 0o050 == 0 {
        return format!(
            "{} is open to its owner only: run bxctl as root",
            barrier.display()
        );
    }
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let name = group_name(&groups, group).unwrap_or_else(|| group.to_string());
    format!(
        "{} is open to the group {name}: run bxctl as root or as a member of {name} (`usermod -aG {name} USER`, then log in again)",
        barrier.display()
    )
}

/// The name of a group in the text of group(5).
fn group_name(groups: &str, gid: u32) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(gid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_plain_user_is_told_of_the_hosts_place_only_where_that_is_the_only_one() {
        let environment = |name: &str| (name == "HOME").then(|| "/home/ann".into());
        let own = || Place::of_user(environment);
        let host = Place::of_host();
        let chosen = |there: &[&Place]| {
            own_or_hosts(own(), host.clone(), |place: &Place| there.contains(&place))
        };
        let ann = own().unwrap();
        assert_eq!(chosen(&[]), ann);
        assert_eq!(chosen(&[&ann]), ann);
        assert_eq!(chosen(&[&ann, &host]), ann);
        assert_eq!(chosen(&[&host]), host);
        assert_eq!(own_or_hosts(None, host.clone(), |_| false), host);
    }

    #[test]
    fn a_group_is_named_as_the_group_file_names_it() {
        let groups = "root:x:0:\nboxmaker:x:988:owner,other\n";
        assert_eq!(group_name(groups, 988).as_deref(), Some("boxmaker"));
        assert_eq!(group_name(groups, 98), None);
    }

    #[test]
    fn who_may_look_depends_on_the_nearest_directory_that_can_be_seen() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        fs::create_dir(&run).unwrap();
        fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
        let help = who_may(&run.join("bxctl/broker.sock"));
        assert!(
            help.starts_with(&format!("{} is open to its owner only", run.display())),
            "{help}"
        );
    }
}
