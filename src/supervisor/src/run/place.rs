//! Where runs keep their logs: homes that are numbered, the first that no other run holds.

use std::env;
use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::RunError;
use crate::books::digest;
use crate::home::{self, HomeError};

/// How many runs may go on at once.
const MOST: u32 = 64;

/// The home of one run, held until it ends.
#[derive(Debug)]
pub(super) struct Place {
    home: PathBuf,
    _lock: File,
}

impl Place {
    /// The home that is named, or the first free one of this user.
    ///
    /// # Errors
    /// It cannot be had, or none is free.
    pub(super) fn take(named: Option<&Path>) -> Result<Self, RunError> {
        if let Some(home) = named {
            let lock = home::hold(home)?;
            return Self::at(home, lock);
        }
        let all = all()?;
        for number in 1..=MOST {
            let home = all.join(number.to_string());
            match home::hold(&home) {
                Ok(lock) => return Self::at(&home, lock),
                Err(HomeError::Held { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(RunError::Place(format!(
            "{MOST} runs go on already, each with a home of its own in {}; wait for one, or name another home with --home",
            all.display()
        )))
    }

    fn at(home: &Path, lock: File) -> Result<Self, RunError> {
        let home = fs::canonicalize(home)
            .map_err(|error| RunError::Place(format!("{}: {error}", home.display())))?;
        Ok(Self { home, _lock: lock })
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// The name of this home's cgroups: the next run in it removes what this one leaves if it is killed.
    pub(super) fn name(&self) -> String {
        let hash = digest(self.home.as_os_str().as_encoded_bytes()).to_string();
        format!("run-{}", hash.get(..8).unwrap_or_default())
    }
}

/// The directory of all homes. Not in the home of `boxmaker up`, which has a lock and a log of its own.
fn all() -> Result<PathBuf, RunError> {
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/boxmaker-run".into());
    }
    let absolute = |variable| {
        env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("boxmaker-run"))
        .ok_or_else(|| {
            RunError::Place(
                "HOME is not set, so there is no place for the log; set it, or name a home with --home".to_owned(),
            )
        })
}
