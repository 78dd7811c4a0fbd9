//! Profiles: what every sandbox of a kind looks like, read from the built-in files and the owner's, checked, and with
//! `extends` resolved. Knows no host: whether a path exists is not asked here.

mod load;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use policy::LoadError;

use crate::plan::Namespace;

pub(crate) use values::is_below;

/// One profile, checked and with everything it extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name, for example `tools/base`.
    pub name: String,
    /// The namespaces of its own, in the order of [`Namespace`].
    pub namespaces: Vec<Namespace>,
    /// Host paths that are visible, as written: absolute and without `..`.
    pub view: Vec<String>,
    /// Host paths that may be executed besides the program; `*` stands for anything within one component. A program
    /// among them brings the loader it is linked with, a script does not bring its interpreter.
    pub exec: Vec<String>,
    /// The environment, in full.
    pub env: BTreeMap<String, String>,
    /// System call sets, each known.
    pub seccomp: Vec<String>,
    /// Its limits.
    pub limits: Limits,
}

/// The limits of a profile; none is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory of all processes together.
    pub memory: u64,
    /// Processes and threads, the stage included.
    pub pids: u32,
    /// Processor time in percent of one processor.
    pub cpu: u32,
    /// Open descriptors of one process.
    pub files: u32,
    /// The longest life.
    pub wall: Duration,
    /// Size of the private `/tmp` in bytes.
    pub scratch_bytes: u64,
}

impl Limits {
    /// What a profile gets that says nothing (formats.md section 4).
    pub const DEFAULT: Self = Self {
        memory: 512 << 20,
        pids: 64,
        cpu: 100,
        files: 256,
        wall: Duration::from_secs(60),
        scratch_bytes: 64 << 20,
    };

    /// Inodes of the private `/tmp`: one for each 16 KiB, at least 16, so that empty files cannot fill the memory.
    #[must_use]
    pub const fn scratch_inodes(&self) -> u64 {
        let inodes = self.scratch_bytes / 16_384;
        if inodes < 16 { 16 } else { inodes }
    }
}

/// All profiles by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profiles(BTreeMap<String, Profile>);

impl Profiles {
    /// Reads the built-in profiles and the owner's, by path below the configuration directory: `profiles/a/b.toml` is
    /// `a/b`. Other paths are left alone. An owner's profile replaces the built-in of its name.
    ///
    /// A profile adds its lists and its environment to those of the one it extends, and replaces single values. An
    /// absent list is empty, but for the namespaces, which then are all; absent limits are [`Limits::DEFAULT`].
    ///
    /// # Errors
    /// Every mistake in every file, ordered by file and line. Nothing is loaded in part.
    pub fn load(files: &BTreeMap<String, Vec<u8>>) -> Result<Self, Vec<LoadError>> {
        load::load(files).map(Self)
    }

    /// The names of the built-in profiles and of those that `files` hold, also of those that do not load.
    #[must_use]
    pub fn names(files: &BTreeMap<String, Vec<u8>>) -> BTreeSet<String> {
        load::names(files)
    }

    /// The profile of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.0.get(name)
    }

    /// All profiles, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests;
