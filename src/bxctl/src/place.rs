//! Where boxmaker lives on this host, and who may look at it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The home and the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// State: `audit/`, `anchor`, `run/`.
    pub home: PathBuf,
    /// The owner's files: `config.toml`, `grants/`, `tools/`, `profiles/`.
    pub config: PathBuf,
}

impl Place {
    /// The option, else the environment variable, else the default. An empty variable counts as none.
    #[must_use]
    pub fn choose(
        home: Option<PathBuf>,
        config: Option<PathBuf>,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let choose = |option: Option<PathBuf>, variable, default: &str| {
            let set = || {
                environment(variable)
                    .filter(|value| !value.is_empty())
                    .map(PathBuf::from)
            };
            option.or_else(set).unwrap_or_else(|| default.into())
        };
        Self {
            home: choose(home, "BOXMAKER_HOME", "/var/lib/boxmaker"),
            config: choose(config, "BOXMAKER_CONFIG", "/etc/boxmaker"),
        }
    }

    /// The socket that brokerd answers the owner on.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.home.join("run/bxctl/broker.sock")
    }

    /// The audit log and its anchor.
    #[must_use]
    pub fn ledger(&self) -> ledger::Paths {
        ledger::Paths {
            audit: self.home.join("audit"),
            anchor: self.home.join("anchor"),
        }
    }
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
    fn an_option_goes_before_the_environment_and_that_before_the_default() {
        let environment = |name: &str| match name {
            "BOXMAKER_HOME" => Some(OsString::from("/env/home")),
            _ => Some(OsString::new()),
        };
        let from_option = Place::choose(Some("/option".into()), None, environment);
        assert_eq!(from_option.home, Path::new("/option"));
        let from_environment = Place::choose(None, None, environment);
        assert_eq!(from_environment.home, Path::new("/env/home"));
        assert_eq!(from_environment.config, Path::new("/etc/boxmaker"));
        assert_eq!(
            Place::choose(None, None, |_| None).home,
            Path::new("/var/lib/boxmaker")
        );
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
