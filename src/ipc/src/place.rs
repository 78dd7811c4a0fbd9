//! Where boxmaker keeps its state and finds its configuration: for the host, and for a plain user who runs it for
//! themselves (architecture.md section 7).

use std::ffi::OsString;
use std::path::PathBuf;

/// A home and a configuration directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// State: `audit/`, `anchor`, `run/`.
    pub home: PathBuf,
    /// The owner's files: `config.toml`, `grants/`, `tools/`, `profiles/`.
    pub config: PathBuf,
}

impl Place {
    /// The host's, where root runs boxmaker.
    #[must_use]
    pub fn of_host() -> Self {
        Self {
            home: "/var/lib/boxmaker".into(),
            config: "/etc/boxmaker".into(),
        }
    }

    /// A plain user's: below `XDG_STATE_HOME` and `XDG_CONFIG_HOME`, which default to `~/.local/state` and `~/.config`.
    /// None without a home directory to put them in.
    #[must_use]
    pub fn of_user(environment: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let below = |variable, default: &str| {
            absolute(environment(variable))
                .or_else(|| absolute(environment("HOME")).map(|home| home.join(default)))
                .map(|directory| directory.join("boxmaker"))
        };
        Some(Self {
            home: below("XDG_STATE_HOME", ".local/state")?,
            config: below("XDG_CONFIG_HOME", ".config")?,
        })
    }

    /// The socket that brokerd answers the owner on.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.home.join("run/bxctl/broker.sock")
    }

    /// This place, but for what is named: an option goes before `BOXMAKER_HOME` or `BOXMAKER_CONFIG`, and that before
    /// the default. An empty variable counts as none.
    #[must_use]
    pub fn unless_named(
        self,
        home: Option<PathBuf>,
        config: Option<PathBuf>,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let named = |option: Option<PathBuf>, variable| {
            let set = || environment(variable).filter(|value| !value.is_empty());
            option.or_else(|| set().map(PathBuf::from))
        };
        Self {
            home: named(home, "BOXMAKER_HOME").unwrap_or(self.home),
            config: named(config, "BOXMAKER_CONFIG").unwrap_or(self.config),
        }
    }
}

/// A relative path in these variables is to be ignored (XDG base directory specification).
fn absolute(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn environment(set: &[(&'static str, &'static str)]) -> impl Fn(&str) -> Option<OsString> {
        move |name| {
            set.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        }
    }

    #[test]
    fn a_user_keeps_it_below_the_home_directory_or_where_xdg_says() {
        let place = Place::of_user(environment(&[("HOME", "/home/ann")])).unwrap();
        assert_eq!(place.home, Path::new("/home/ann/.local/state/boxmaker"));
        assert_eq!(place.config, Path::new("/home/ann/.config/boxmaker"));
        let set = [
            ("HOME", "/home/ann"),
            ("XDG_STATE_HOME", "/s"),
            ("XDG_CONFIG_HOME", "relative"),
        ];
        let place = Place::of_user(environment(&set)).unwrap();
        assert_eq!(place.home, Path::new("/s/boxmaker"));
        assert_eq!(place.config, Path::new("/home/ann/.config/boxmaker"));
        assert_eq!(Place::of_user(environment(&[])), None);
    }

    #[test]
    fn an_option_goes_before_the_environment_and_that_before_the_default() {
        let set = [("BOXMAKER_HOME", "/env"), ("BOXMAKER_CONFIG", "")];
        let place = Place::of_host().unless_named(None, None, environment(&set));
        assert_eq!(place.home, Path::new("/env"));
        assert_eq!(place.config, Path::new("/etc/boxmaker"));
        let place = Place::of_host().unless_named(Some("/option".into()), None, environment(&set));
        assert_eq!(place.home, Path::new("/option"));
    }
}
