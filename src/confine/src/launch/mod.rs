//! Launching in two phases: [`Launcher::prepare`] builds a sandbox up to its measurement, [`Prepared::start`] lets the
//! program run. Between the two the caller writes its record; a sandbox that is dropped before has run nothing.

mod able;
mod marked;
mod means;
mod ownership;
mod park;
mod pool;
mod private;
mod remover;
mod running;
mod sandbox;
mod trial;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use ipc::wire::MAX_DESCRIPTORS;
use proto::config::CgroupChoice;
use proto::{Confinement, Layer};

use crate::cgroup::{Backend, CgroupError};
use crate::host::{Landlock, Privilege};
use crate::identity::{IdentityError, Mapper};
use crate::measure::judge::{Evidence, judge};
use crate::measure::status::Status;
use crate::message::{Bare, FromStage, Inner, MessageError, Step, ToStage, receive, send};
use crate::plan::{Identity, Namespace, Plan};
use crate::uids::{LOCKS, UidError, Uids};

pub use able::LauncherError;
use able::{INSTALL, startable};
use marked::Marks;
pub use means::Means;
use ownership::Owned;
use park::{Kind, Maps, Namespaces, Parker};
pub use pool::PoolSizes;
use pool::{Pool, Underway};
pub use private::BareOptions;
use private::Private;
use remover::{Inbox, Remover};
pub use running::{Ended, Killer, Running};
use sandbox::Sandbox;

/// What every launch of one supervisor shares.
#[derive(Debug, Clone)]
pub struct LauncherOptions {
    /// The stage's binary.
    pub stage: PathBuf,
    /// First uid and number of uids for sandboxes.
    pub uid_range: (u32, u32),
    /// Which cgroup back end to use.
    pub cgroup: CgroupChoice,
    /// The name of this supervisor's cgroups; one for each home.
    pub name: String,
    /// Layers whose gaps are waived.
    pub waive: Vec<Layer>,
    /// How many stages wait for a plan.
    pub pool: PoolSizes,
    /// How sandboxes come about where no namespace can be made; without it there are none.
    pub bare: Option<BareOptions>,
}

/// Why one sandbox was not built. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step of the stage failed.
    #[error("stage step {step}: {detail}")]
    Step {
        /// Which.
        step: Step,
        /// The object and the kernel's answer.
        detail: String,
    },
    /// The stage ended or said something else than it should.
    #[error("the stage {0}")]
    Stage(String),
    /// The stage's binary could not be started.
    #[error("cannot start {}: {source}; {INSTALL}", path.display())]
    Program {
        /// Where it was looked for.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What a stage needs beside its binary could not be had.
    #[error("cannot start the stage: {0}")]
    Spawn(io::Error),
    /// Talking to the stage failed.
    #[error("the stage did not answer: {0}")]
    Message(#[from] MessageError),
    /// The id maps of a sandbox's user namespace could not be written.
    #[error("cannot write {path}: {source}")]
    Map {
        /// The file.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The cgroup could not be made.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// No uid could be had.
    #[error(transparent)]
    Uid(#[from] UidError),
    /// No identity could be had.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The caller gave another number of trees than the plan names.
    #[error("the plan names {planned} trees, {given} were given")]
    Trees {
        /// In the plan.
        planned: usize,
        /// Given.
        given: usize,
    },
    /// The plan has no namespaces, and this launcher makes none without.
    #[error("the plan has no namespaces, which is for hosts where none can be made")]
    Bare,
    /// The directory of a sandbox could not be made.
    #[error("cannot make a directory for the sandbox in {directory}: {source}")]
    Private {
        /// Where.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The plan cannot be hashed.
    #[error("the plan has no canonical form: {0}")]
    Plan(#[from] serde_json::Error),
}

/// A granted tree, held open.
#[derive(Debug)]
pub struct GrantedTree {
    /// An `O_PATH` descriptor of its root.
    pub descriptor: OwnedFd,
    /// The user and group on whose behalf the sandbox works in it.
    pub owner: (u32, u32),
}

/// The program's ends of its standard descriptors.
#[derive(Debug)]
pub struct StageStdio {
    /// Standard input.
    pub stdin: OwnedFd,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

/// Whose uid a sandbox gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityChoice {
    /// One that nobody uses now.
    Fresh,
    /// The one of a role, by its slot at the start of the range.
    Slot(u32),
}

/// What the stage is told besides the plan.
struct Given {
    identity: Identity,
    sources: Option<Vec<String>>,
    one_user: bool,
    bare: Option<Bare>,
}

/// Builds sandboxes. One per process: it makes the process a subreaper, so that the inner stage becomes its child.
#[derive(Debug)]
pub struct Launcher {
    options: LauncherOptions,
    pool: Pool,
    uids: Uids,
    mapper: Mapper,
    remover: Remover,
    landlock: Landlock,
    /// Whether sandboxes can have uids of their own without any namespace.
    changes_ids: bool,
    /// Whether they can have them in a user namespace.
    gives_users: bool,
    marks: Marks,
    /// The number of the next sandbox without namespaces.
    next: AtomicU64,
}

impl Launcher {
    /// Looks at the host and removes what an earlier supervisor of the same name left behind.
    ///
    /// # Errors
    /// As [`LauncherError`].
    pub fn new(options: LauncherOptions) -> Result<Self, LauncherError> {
        let kernel = |what| move |source| LauncherError::Kernel { what, source };
        startable(&options.stage).map_err(|source| LauncherError::Stage {
            path: options.stage.clone(),
            source,
        })?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(io::Error::from)
            .map_err(kernel("become a subreaper"))?;
        let own = Namespaces::of_this_process().map_err(kernel("read /proc/self/ns"))?;
        let marks = Marks::of(&options.name);
        if let Some(bare) = &options.bare {
            marks
                .end_all()
                .and_then(|()| private::clean(&bare.directory))
                .map_err(kernel("end what an earlier boxmaker left"))?;
        }
        let backend = Backend::detect(options.cgroup, &options.name)?.settle()?;
        backend.clean()?;
        let gives_users = Privilege::UserNamespace.gives_users();
        let maps = gives_users.then(Maps::of_this_process).transpose();
        let maps = maps.map_err(kernel("read /proc/self/uid_map"))?;
        let parker = Parker::new(options.stage.clone(), backend, maps, own);
        let pool =
            Pool::new(parker, options.pool.clone()).map_err(kernel("start the warm pool"))?;
        let uids = Uids::new(options.uid_range, LOCKS.into());
        uids.sweep();
        Ok(Self {
            pool,
            uids,
            mapper: Mapper::new(options.stage.clone()),
            landlock: crate::stage::landlock_available(),
            changes_ids: Privilege::Bare.gives_users(),
            remover: Remover::new().map_err(kernel("start a thread"))?,
            gives_users,
            marks,
            next: AtomicU64::new(0),
            options,
        })
    }

    /// What there is of the kernel's Landlock.
    #[must_use]
    pub const fn landlock(&self) -> Landlock {
        self.landlock
    }

    /// How many stages wait in the warm pool now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// Builds a sandbox up to its measurement. The program has not run when this returns.
    ///
    /// # Errors
    /// As [`LaunchError`]; nothing of the sandbox is left.
    pub fn prepare(
        &self,
        plan: Plan,
        trees: Vec<GrantedTree>,
        stdio: StageStdio,
        choice: IdentityChoice,
    ) -> Result<Prepared, LaunchError> {
        let underway = self.pool.launching();
        let planned = plan.trees().count();
        if planned != trees.len() {
            return Err(LaunchError::Trees {
                planned,
                given: trees.len(),
            });
        }
        let hash = plan.hash()?;
        let own_users = plan.namespaces.contains(&Namespace::User);
        let bare = match (&self.options.bare, plan.is_bare()) {
            (_, false) => None,
            (Some(bare), true) => Some(bare),
            (None, true) => return Err(LaunchError::Bare),
        };
        // A plain user's sandboxes all have that user's uid.
        let one_user = (bare.is_some() && !self.changes_ids) || (own_users && !self.gives_users);
        let (uid, owned) = if one_user {
            (None, Owned::held(trees)?)
        } else {
            let uid = match choice {
                IdentityChoice::Fresh => self.uids.fresh()?,
                IdentityChoice::Slot(slot) => self.uids.slot(slot)?,
            };
            let owned = match bare.is_some() || own_users {
                true => Owned::of_owner(uid.identity(), trees, own_users)?,
                false => Owned::mapped(&self.mapper, uid.identity(), &trees)?,
            };
            (Some(uid), owned)
        };
        let Owned {
            identity,
            mut trees,
            sources,
            owners,
            shared,
        } = owned;
        let mut sandbox = self.pool.take(&Kind::of(&plan))?;
        sandbox.belongs_to(uid);
        let private = bare.map(|bare| self.private(bare, identity, &mut trees));
        let private = private.transpose()?;
        let given = Given {
            identity,
            sources,
            one_user,
            bare: private.as_ref().map(|(_, bare)| bare.clone()),
        };
        let told = self.tell(&sandbox, &plan, given, stdio, &trees);
        drop(trees);
        // While the stage is at work.
        let limits = sandbox.measure_limits();
        let namespaces = self.pool.parker().shown(&mut sandbox)?;
        // Only now: a stage that failed before it could be told has said why.
        told?;
        let inside = match receive(sandbox.wire())? {
            (FromStage::Report(inside), _) => inside,
            (other, _) => return Err(unexpected(other)),
        };
        let why = bare.zip(private.as_ref());
        let why = why.map(|(options, (_, bare))| (options.why.as_str(), bare.mark));
        if let Some((directory, Bare { mark, .. })) = private {
            // What cannot be removed now is removed with the rest; no rule of the plan opens it.
            let _ = directory.remove_canaries();
            sandbox.leaves(mark, directory);
        }
        let confinement = judge(&Evidence {
            plan: &plan,
            hash,
            identity,
            shared: shared.as_deref(),
            bare: why,
            owners: &owners,
            inside: &inside,
            outside: outside(sandbox.pid()),
            namespaces: &namespaces,
            limits: &limits,
            landlock_abi: self.landlock.abi(),
            waive: &self.options.waive,
        });
        Ok(Prepared {
            inbox: self.remover.inbox(),
            underway,
            sandbox,
            confinement,
            plan,
        })
    }

    /// The directory of the next sandbox without namespaces, of which the stage is handed descriptors after the trees, and
    /// what it is told besides.
    fn private(
        &self,
        options: &BareOptions,
        identity: Identity,
        trees: &mut Vec<OwnedFd>,
    ) -> Result<(Private, Bare), LaunchError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let made = Private::make(&options.directory, &number.to_string(), identity);
        let (directory, handed) = made.map_err(|source| LaunchError::Private {
            directory: options.directory.clone(),
            source,
        })?;
        trees.extend([handed.scratch, handed.canaries]);
        let bare = Bare {
            scratch: handed.scratch_path,
            mark: self.marks.of_sandbox(number),
        };
        Ok((directory, bare))
    }

    /// Gives the stage its plan with all descriptors.
    fn tell(
        &self,
        sandbox: &Sandbox,
        plan: &Plan,
        given: Given,
        stdio: StageStdio,
        trees: &[OwnedFd],
    ) -> Result<(), LaunchError> {
        let message = ToStage::Inner(Box::new(Inner {
            plan: plan.clone(),
            identity: given.identity,
            trees: trees.len(),
            sources: given.sources,
            one_user: given.one_user,
            landlock_abi: self.landlock.abi(),
            bare: given.bare,
        }));
        let StageStdio {
            stdin,
            stdout,
            stderr,
        } = &stdio;
        let descriptors = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        send(sandbox.wire(), &message, &descriptors)?;
        for some in trees.chunks(MAX_DESCRIPTORS) {
            let descriptors: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
            send(sandbox.wire(), &ToStage::Trees {}, &descriptors)?;
        }
        Ok(())
    }

    /// Waits until nothing is left of the sandboxes whose end was seen: their groups, namespaces and uids.
    pub fn settle(&self) {
        self.remover.settle();
    }
}

fn unexpected(message: FromStage) -> LaunchError {
    match message {
        FromStage::Failed { step, detail } => LaunchError::Step { step, detail },
        other => LaunchError::Stage(format!("said something out of turn: {other:?}")),
    }
}

fn outside(pid: u32) -> Result<Status, String> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    Status::parse(&text).map_err(|error| error.to_string())
}

/// A sandbox that stands and was measured, and in which nothing has run. Dropping it removes it.
#[derive(Debug)]
pub struct Prepared {
    sandbox: Sandbox,
    inbox: Inbox,
    underway: Underway,
    confinement: Confinement,
    plan: Plan,
}

impl Prepared {
    /// What was measured.
    #[must_use]
    pub const fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// What was asked for.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The process id of the sandbox's pid 1 as this process sees it.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.sandbox.pid()
    }

    /// Lets the program start.
    ///
    /// # Errors
    /// The stage is gone; so is the sandbox.
    pub fn start(self) -> Result<Running, LaunchError> {
        send(self.sandbox.wire(), &ToStage::Start {}, &[])?;
        Running::new(self.sandbox, self.inbox, self.underway).map_err(LaunchError::Spawn)
    }
}
