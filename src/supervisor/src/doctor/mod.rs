//! `boxmaker doctor`: what this host can enforce, layer by layer, and how to get the rest. It does not guess: for every
//! profile it builds a real sandbox up to the measurement, starts nothing in it, and removes it.

mod ground;
mod remedy;
mod report;
mod surroundings;
mod switches;
mod trial;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use confine::derive::derive;
use confine::host::{CapsError, Host, Privilege};
use confine::launch::{
    GrantedTree, IdentityChoice, LaunchError, Launcher, LauncherError, LauncherOptions, Means,
    PoolSizes, StageStdio,
};
use confine::plan::{Access, Mount, Plan, Program};
use confine::profile::{Profile, Profiles};
use confine::resolve::Root;
use ipc::Files;
use policy::Policy;
use proto::config::Config;
use proto::{Confinement, Level};

use crate::bare::bare_without_help;
use crate::books::digest;
use crate::in_full;
use crate::load::Directories;
use crate::stdio::{self, Pipe};

use ground::Ground;
use remedy::Advisor;
pub(crate) use remedy::namespaces_help;
pub(crate) use report::{json, words};
pub(crate) use trial::Trial;

/// Why the host could not be looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DoctorError {
    /// The launcher does not start at all.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// The rights of this process could not be read.
    #[error("cannot read the capabilities of this process: {0}")]
    Capabilities(#[from] CapsError),
    /// The configuration's profiles are not usable.
    #[error("the profiles are not usable:\n{}; correct them, or leave --config away to see the built-in ones", .0.join("\n"))]
    Profiles(Vec<String>),
    /// There is no place to try anything in.
    #[error("cannot make a directory to try sandboxes in: {0}")]
    Ground(std::io::Error),
    /// A sandbox cannot be built.
    #[error("{0}")]
    Failed(String),
}

/// What one profile, or one granted path, comes to on this host.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The profile or the path.
    pub(crate) of: String,
    /// What was measured, or why there is nothing to measure.
    outcome: Result<Confinement, Failure>,
}

/// Why a sandbox could not be built.
#[derive(Debug)]
struct Failure {
    /// In words.
    text: String,
    /// Whether the kernel refused what the stage did, so that those who decide that can be named.
    refused: bool,
}

impl Failure {
    fn new(error: &dyn std::error::Error) -> Self {
        Self {
            text: in_full(error),
            refused: false,
        }
    }

    fn missing() -> Self {
        Self {
            text: "it does not exist".to_owned(),
            refused: false,
        }
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        Self {
            refused: matches!(error, LaunchError::Step { .. }),
            ..Self::new(&error)
        }
    }
}

/// What this host can enforce.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    /// The release of the running kernel.
    pub(crate) kernel: String,
    /// What this process may do, where it is, and what would help it.
    advisor: Advisor,
    /// Why no namespaces can be made, if none can.
    refusal: Option<String>,
    /// Every profile, by name.
    pub(crate) profiles: Vec<Finding>,
    /// Every granted path that exists, as a tree under `tools/base`: whether its file system takes id maps.
    pub(crate) paths: Vec<Finding>,
}

impl Diagnosis {
    /// The lowest level among the profiles; none if one cannot be launched.
    pub(crate) fn level(&self) -> Level {
        let levels = self.profiles.iter().map(|finding| match &finding.outcome {
            Ok(confinement) => confinement.level,
            Err(_) => Level::None,
        });
        levels.min().unwrap_or(Level::None)
    }
}

/// Looks at the host. A configuration that is not there, or whose policy does not load, leaves the built-in profiles.
///
/// # Errors
/// As [`DoctorError`].
pub(crate) fn examine(directories: &Directories) -> Result<Diagnosis, DoctorError> {
    let files = Files::read(&directories.config).unwrap_or_default();
    let profiles = Profiles::load(&files.0).map_err(|errors| {
        DoctorError::Profiles(errors.iter().map(ToString::to_string).collect())
    })?;
    let policy = Policy::load(&files.0, 1).ok();
    let config = policy
        .as_ref()
        .map_or_else(Config::default, |policy| policy.config().clone());
    let examiner = Examiner::new(directories, config)?;
    let found = |profile: &Profile| Finding {
        of: profile.name.clone(),
        outcome: examiner.try_launch(profile, None),
    };
    let base = profiles.get("tools/base");
    Ok(Diagnosis {
        kernel: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        advisor: Advisor::new(examiner.privilege, examiner.launcher.landlock()),
        refusal: examiner.refusal.clone(),
        profiles: profiles.iter().map(found).collect(),
        paths: base
            .map(|base| examiner.paths(base, policy.as_ref()))
            .unwrap_or_default(),
    })
}

/// What a sandbox of the built-in profile `tools/base` comes to here, with `tree` to read if one is given.
///
/// # Errors
/// As [`DoctorError`]; [`DoctorError::Failed`] if it cannot be built.
pub(crate) fn measure(
    directories: &Directories,
    config: Config,
    tree: Option<&Path>,
) -> Result<Confinement, DoctorError> {
    let profiles = Profiles::load(&BTreeMap::new()).map_err(|errors| {
        DoctorError::Profiles(errors.iter().map(ToString::to_string).collect())
    })?;
    let base = profiles.get("tools/base").ok_or_else(|| {
        DoctorError::Failed("tools/base, which is built in, is not there".to_owned())
    })?;
    let launched = Examiner::new(directories, config)?.try_launch(base, tree);
    launched.map_err(|failure| DoctorError::Failed(failure.text))
}

struct Examiner {
    launcher: Launcher,
    privilege: Privilege,
    refusal: Option<String>,
    program: PathBuf,
    /// Removed after the launcher is gone.
    _ground: Option<Ground>,
}

impl Examiner {
    fn new(directories: &Directories, config: Config) -> Result<Self, DoctorError> {
        let Means { privilege, refusal } = Means::of_this_process(&directories.stage())?;
        let ground = match &refusal {
            Some(_) => Some(Ground::take(&directories.home).map_err(DoctorError::Ground)?),
            None => None,
        };
        let options = ground.as_ref().zip(refusal.as_ref());
        let options = options
            .map(|(ground, refusal)| bare_without_help(refusal, ground.path().join("sandboxes")));
        let launcher = Launcher::new(LauncherOptions {
            stage: directories.stage(),
            uid_range: config.uid_range,
            cgroup: config.cgroup,
            name: format!("doctor-{}", std::process::id()),
            waive: config.waive,
            pool: PoolSizes::default(),
            bare: options,
        })?;
        Ok(Self {
            launcher,
            privilege,
            refusal,
            program: directories.binaries.join("toolkit"),
            _ground: ground,
        })
    }

    fn paths(&self, profile: &Profile, policy: Option<&Policy>) -> Vec<Finding> {
        let granted = policy
            .into_iter()
            .flat_map(Policy::grants)
            .flat_map(|grant| grant.paths());
        let mut paths: Vec<&str> = granted.map(policy::GrantedPath::path).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
            .into_iter()
            .filter(|path| Path::new(path).exists())
            .map(|path| Finding {
                of: path.to_owned(),
                outcome: self.try_launch(profile, Some(Path::new(path))),
            })
            .collect()
    }

    /// Builds a sandbox of `profile` with `tree` in it, and removes it.
    fn try_launch(&self, profile: &Profile, tree: Option<&Path>) -> Result<Confinement, Failure> {
        let text = |error: &dyn std::error::Error| Failure::new(error);
        let mut mounts = Vec::new();
        let mut trees = Vec::new();
        if let Some(path) = tree {
            let root = Root::open(path).map_err(|error| text(&error))?;
            let root = root.ok_or_else(Failure::missing)?;
            let resolved = root.resolve(path).map_err(|error| text(&error))?;
            let resolved = resolved.ok_or_else(Failure::missing)?;
            mounts.push(Mount::Tree {
                path: path.to_string_lossy().into_owned(),
                directory: resolved.directory,
                access: Access::Read,
                exec: false,
            });
            trees.push(GrantedTree {
                descriptor: resolved.descriptor,
                owner: resolved.owner,
            });
        }
        let program = Program {
            argv: vec![
                self.program.to_string_lossy().into_owned(),
                "--help".to_owned(),
            ],
            env: BTreeMap::new(),
            cwd: "/".to_owned(),
            input: digest(b""),
        };
        let host =
            Host::take(profile, &self.program, self.privilege).map_err(|error| text(&error))?;
        let plan = derive(profile, program, &mounts, Level::Partial, &host)
            .map_err(|error| text(&error))?;
        self.build(plan, trees)
    }

    /// Builds the sandbox of `plan` up to its measurement, and removes it.
    fn build(&self, plan: Plan, trees: Vec<GrantedTree>) -> Result<Confinement, Failure> {
        let ends = || -> std::io::Result<StageStdio> {
            let (out, err) = (Pipe::new()?, Pipe::new()?);
            Ok(StageStdio {
                stdin: stdio::nothing()?,
                stdout: out.write,
                stderr: err.write,
            })
        };
        let ends = ends().map_err(|error| Failure::new(&error))?;
        let prepared = self
            .launcher
            .prepare(plan, trees, ends, IdentityChoice::Fresh)?;
        Ok(prepared.confinement().clone())
    }
}
