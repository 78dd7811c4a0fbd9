//! What the inner half does before it knows its plan, so that it can be done ahead: the root up to the granted trees, the
//! filter, the canaries. And the rest of the root, once the plan is there.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use ipc::Wire;
use rustix::fs::{Mode, OFlags};

use super::landlock::{self, Rules};
use super::mounts::{self, NewRoot};
use super::{At, StageError, Steps, bare, privileges};
use crate::measure::Readings;
use crate::measure::canary::Canaries;
use crate::message::{FromStage, Ground, Inner, NAMESPACES, Step, send};
use crate::plan::Base;
use crate::seccomp::{self, Filter};

/// The NIS domain of every sandbox: the kernel's own word for none.
pub(crate) const NO_DOMAIN: &str = "(none)";

/// A stage that is ready for its plan.
pub(super) struct Waiting {
    base: Base,
    pub(super) filters: Filters,
    /// None where the host's root stays.
    root: Option<Begun>,
    steps: Steps,
}

/// The root without its trees.
struct Begun {
    /// None if no root is built.
    new: Option<NewRoot>,
    own_name: bool,
    /// What was opened in it, if it is the root by now.
    readings: Option<Readings>,
    canaries: Canaries,
}

/// The root as it stays: what is read later, opened while everything can still be opened; the rules with their paths; the
/// canaries.
pub(super) struct Standing {
    pub(super) readings: Readings,
    pub(super) rules: Rules,
    pub(super) canaries: Canaries,
}

/// The system call filters of one stage.
pub(super) struct Filters {
    /// Of this process.
    pub(super) own: &'static Filter,
    /// What the program has besides: what it alone is refused, this process has still to do.
    pub(super) narrower: Option<&'static Filter>,
    /// What there is to say of foreign architectures.
    pub(super) foreign: Option<String>,
}

impl Waiting {
    /// Does all that no call has a part in, and says so.
    pub(super) fn prepare(ground: Ground, wire: &Wire, steps: Steps) -> Result<Self, StageError> {
        let Ground {
            base,
            mount_namespace,
            uts_namespace,
        } = ground;
        let namespaces = match steps.has(Step::OpenNamespaces) {
            true => open_namespaces()?,
            false => Vec::new(),
        };
        let filters = Filters::find(&base)?;
        let root = match base.is_bare() {
            true => None,
            false => {
                mounts::separate(mount_namespace)?;
                Some(begin(&base, uts_namespace, &filters, steps)?)
            }
        };
        steps.take(Step::Bounding, || privileges::bounding(base.is_bare()))?;
        let descriptors: Vec<_> = namespaces.iter().map(AsFd::as_fd).collect();
        send(wire, &FromStage::Waiting {}, &descriptors).at(Step::ReceiveTrees, "report")?;
        Ok(Self {
            base,
            filters,
            root,
            steps,
        })
    }

    /// Finishes the root for `inner`.
    pub(super) fn stand(
        self,
        inner: &Inner,
        trees: Vec<OwnedFd>,
    ) -> Result<(Standing, Filters), StageError> {
        if Base::of(&inner.plan) != self.base {
            return Err("it is not one that this stage was made for")
                .at(Step::ReceiveTrees, "plan");
        }
        let standing = match self.root {
            Some(root) => root.finish(&self.base, inner, trees, self.steps)?,
            None => keep_root(inner, trees, &self.filters, self.steps)?,
        };
        Ok((standing, self.filters))
    }
}

impl Filters {
    fn find(base: &Base) -> Result<Self, StageError> {
        let step = Step::Seccomp;
        let sets = &base.seccomp.sets;
        let filter = seccomp::filter(sets).at(step, "find")?;
        if filter.hash() != base.seccomp.program {
            return Err("not the program that the plan names").at(step, "find");
        }
        let (own, narrower) = match seccomp::of_stage(sets) {
            None => (filter, None),
            Some(sets) => (seccomp::filter(&sets).at(step, "find")?, Some(filter)),
        };
        Ok(Self {
            own,
            narrower,
            foreign: own.assert_foreign().err(),
        })
    }
}

/// Builds the new root without its trees and, where nothing is to be copied from the host's any more, makes it the root.
fn begin(
    base: &Base,
    foreign_uts: u64,
    filters: &Filters,
    steps: Steps,
) -> Result<Begun, StageError> {
    // Only in a namespace of its own, or the host's name would change; where it is not, the measurement shows it.
    let uts = fs::metadata("/proc/self/ns/uts").at(Step::Hostname, "/proc/self/ns/uts")?;
    let new = match steps.has(Step::Mounts) {
        true => Some(NewRoot::begin(&base.mounts, base.early, steps)?),
        false => None,
    };
    let canaries = Canaries::plant(mounts::detached()?, false, filters.narrower)
        .at(Step::CanariesBefore, "directory for canaries")?;
    let mut begun = Begun {
        new,
        own_name: uts.ino() != foreign_uts,
        readings: None,
        canaries,
    };
    if !base.copies_trees() {
        begun.enter(base, steps)?;
    }
    Ok(begun)
}

impl Begun {
    /// Makes the new root the root.
    fn enter(&mut self, base: &Base, steps: Steps) -> Result<(), StageError> {
        let device = self.new.as_ref().map_or(Ok(0), NewRoot::device)?;
        mounts::pivot(device, steps)?;
        steps.take(Step::Hostname, || {
            if !self.own_name {
                return Ok(());
            }
            nix::unistd::sethostname(&base.hostname).at(Step::Hostname, &base.hostname)?;
            // A new namespace begins with both names of the host.
            rustix::system::setdomainname(NO_DOMAIN.as_bytes()).at(Step::Hostname, NO_DOMAIN)
        })?;
        self.readings = Some(Readings::open().at(Step::Report, "/proc/self")?);
        Ok(())
    }

    /// Puts the trees in their places and closes the root.
    fn finish(
        mut self,
        base: &Base,
        inner: &Inner,
        trees: Vec<OwnedFd>,
        steps: Steps,
    ) -> Result<Standing, StageError> {
        let plan = &inner.plan;
        let trees = match &inner.sources {
            Some(paths) => mounts::copy_held(paths, trees)?,
            None => trees,
        };
        if let Some(new) = &mut self.new {
            new.add(plan.mounts.get(base.early..).unwrap_or_default(), trees)?;
            // With one user it is this process's already, and it could not be given away.
            new.finish(
                &plan.program.cwd,
                (!inner.one_user).then_some(inner.identity),
            )?;
            steps.take(Step::RootFlags, || new.seal())?;
        }
        if self.readings.is_none() {
            self.enter(base, steps)?;
        }
        let readings = self
            .readings
            .ok_or("nothing was opened")
            .at(Step::Report, "/proc/self")?;
        let rules = match steps.has(Step::OpenRules) {
            true => plan.landlock.as_slice(),
            false => &[],
        };
        let rules = landlock::make(rules, inner.landlock_abi, steps, |path, _| {
            rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        })?;
        Ok(Standing {
            readings,
            rules,
            canaries: self.canaries,
        })
    }
}

/// The same where the host's root stays.
fn keep_root(
    inner: &Inner,
    received: Vec<OwnedFd>,
    filters: &Filters,
    steps: Steps,
) -> Result<Standing, StageError> {
    let (places, directory) = bare::Places::take(received)?;
    let readings = Readings::open().at(Step::Report, "/proc/self")?;
    let rules = places.rules(&inner.plan, inner.landlock_abi, steps)?;
    let planted = Canaries::plant(directory, true, filters.narrower)
        .and_then(|canaries| canaries.open_to_all().map(|()| canaries));
    Ok(Standing {
        readings,
        rules,
        canaries: planted.at(Step::CanariesBefore, "directory for canaries")?,
    })
}

fn open_namespaces() -> Result<Vec<OwnedFd>, StageError> {
    NAMESPACES
        .iter()
        .map(|(name, _)| {
            let path = format!("/proc/self/ns/{name}");
            rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .at(Step::OpenNamespaces, path)
        })
        .collect()
}
