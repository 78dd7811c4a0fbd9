//! The sandbox of one call, built up to its measurement for `boxmaker explain`, and what the level lacks in the words of
//! `boxmaker doctor`.

use confine::launch::GrantedTree;
use confine::plan::Plan;
use proto::config::Config;
use proto::{Confinement, Level};

use crate::load::Directories;

use super::remedy::Advisor;
use super::report::{folded, one};
use super::{Examiner, Failure};

/// What a sandbox came to here, for whoever runs this.
#[derive(Debug)]
pub(crate) struct Trial {
    outcome: Result<Confinement, Failure>,
    /// None where nothing can be launched at all.
    advisor: Option<Advisor>,
    required: Level,
}

impl Trial {
    /// Builds the sandbox of `plan` with its `trees`, measures it and removes it. Nothing is started in it.
    pub(crate) fn of(
        directories: &Directories,
        config: Config,
        plan: Plan,
        trees: Vec<GrantedTree>,
    ) -> Self {
        let required = plan.required;
        match Examiner::new(directories, config) {
            Ok(examiner) => Self {
                outcome: examiner.build(plan, trees),
                advisor: Some(Advisor::new(
                    examiner.privilege,
                    examiner.launcher.landlock(),
                )),
                required,
            },
            Err(error) => Self {
                outcome: Err(Failure::new(&error)),
                advisor: None,
                required,
            },
        }
    }

    /// What was measured, or why there is nothing to measure.
    pub(crate) fn outcome(&self) -> Result<&Confinement, &str> {
        self.outcome.as_ref().map_err(|error| error.text.as_str())
    }

    /// Level, layers and gaps, each gap with what helps, and whether the grant is satisfied with that; lines of at most
    /// 80 columns where the host's own words allow.
    pub(crate) fn words(&self) -> String {
        let mut text = match (&self.advisor, &self.outcome) {
            (Some(advisor), outcome) => one(outcome, advisor),
            (None, Err(error)) => folded("  cannot be launched: ", &error.text),
            (None, Ok(_)) => String::new(),
        };
        if let Ok(confinement) = &self.outcome
            && !confinement.satisfies(self.required)
        {
            let so = format!(
                "level {} is required, so the call would be refused here: confinement_too_weak",
                self.required
            );
            text.push_str(&folded("  not enough: ", &so));
        }
        text
    }
}
