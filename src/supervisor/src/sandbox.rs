//! The seam to the launcher: a tool's sandbox from its design to its end. What confinement is, is not known here.

use std::os::fd::OwnedFd;
use std::time::Duration;

use confine::launch::{
    Ended, GrantedTree, IdentityChoice, Killer, LaunchError, Launcher, Prepared, Running,
    StageStdio,
};
use confine::plan::Plan;
use proto::Confinement;
use proto::audit::ExitCause;

use crate::broker::call::Stop;
use crate::design::Design;
use crate::stdio::{self, Pipe};

/// Why a sandbox was not built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    /// A pipe or `/dev/null` could not be opened.
    #[error("cannot open the tool's standard descriptors: {0}")]
    Stdio(#[from] std::io::Error),
    /// The launcher failed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// The sandbox of a tool, built and measured, with all that its start needs. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct ToolSandbox {
    prepared: Prepared,
    input: Option<(OwnedFd, String)>,
    wall: Duration,
}

/// A sandbox and the ends of its output.
#[derive(Debug)]
pub(crate) struct Built {
    /// The sandbox.
    pub(crate) sandbox: ToolSandbox,
    /// Its standard output, to read from.
    pub(crate) stdout: OwnedFd,
    /// Its standard error, to read from.
    pub(crate) stderr: OwnedFd,
}

/// A tool that was started.
#[derive(Debug)]
pub(crate) struct RunningTool {
    running: Running,
    wall: Duration,
}

impl ToolSandbox {
    /// Builds the sandbox of `design` up to its measurement.
    ///
    /// # Errors
    /// As [`BuildError`]; nothing is left.
    pub(crate) fn build(launcher: &Launcher, design: Design) -> Result<Built, BuildError> {
        let Design { plan, trees, input } = design;
        let wall = Duration::from_millis(plan.limits.wall_ms);
        let (stdin, input) = match input {
            Some(input) => {
                let pipe = Pipe::new()?;
                (pipe.read, Some((pipe.write, input)))
            }
            None => (stdio::nothing()?, None),
        };
        let (out, err) = (Pipe::new()?, Pipe::new()?);
        let ends = StageStdio {
            stdin,
            stdout: out.write,
            stderr: err.write,
        };
        let prepared = launcher.prepare(plan, trees, ends, IdentityChoice::Fresh)?;
        Ok(Built {
            sandbox: Self {
                prepared,
                input,
                wall,
            },
            stdout: out.read,
            stderr: err.read,
        })
    }

    /// What was measured.
    pub(crate) const fn confinement(&self) -> &Confinement {
        self.prepared.confinement()
    }

    /// Starts the tool and feeds it its input.
    ///
    /// # Errors
    /// As [`BuildError`]; the sandbox is gone and no tool code has run.
    pub(crate) fn start(self) -> Result<RunningTool, BuildError> {
        let running = self.prepared.start()?;
        if let Some((to, input)) = self.input
            && stdio::feed(to, input).is_err()
        {
            // No thread could be had. The tool must not act on half of its input.
            running.killer().kill(ExitCause::Aborted);
        }
        Ok(RunningTool {
            running,
            wall: self.wall,
        })
    }
}

impl RunningTool {
    /// A handle that stops it.
    pub(crate) fn killer(&self) -> Killer {
        self.running.killer()
    }

    /// Waits until the sandbox is empty.
    pub(crate) fn wait(self) -> Ended {
        self.running.wait(self.wall)
    }
}

impl Stop for Killer {
    fn stop(&self, cause: ExitCause) {
        self.kill(cause);
    }
}

/// Builds the sandbox of a role.
///
/// # Errors
/// As [`LaunchError`].
pub(crate) fn prepare_role(
    launcher: &Launcher,
    plan: Plan,
    ends: StageStdio,
    slot: u32,
) -> Result<Prepared, LaunchError> {
    let trees: Vec<GrantedTree> = Vec::new();
    launcher.prepare(plan, trees, ends, IdentityChoice::Slot(slot))
}
