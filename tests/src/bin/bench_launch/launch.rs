//! The cold launch of a program that does nothing: by itself, by bubblewrap, by the launcher, from nothing to reaped.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use confine::Plan;
use confine::derive::derive;
use confine::host::{Host, Privilege};
use confine::launch::{IdentityChoice, Launcher, StageStdio};
use confine::plan::Program;
use proto::audit::ExitStatus;
use proto::{Confinement, Hash32, Level};
use rustix::fs::MemfdFlags;
use rustix::io::FdFlags;
use serde_json::Value;

use crate::Outcome;
use crate::report::Row;
use crate::setting::Setting;

const WALL: Duration = Duration::from_secs(30);

/// Who is in the race.
pub(crate) struct Contest<'a> {
    program: Option<PathBuf>,
    launcher: &'a Launcher,
    warm: &'a Launcher,
    plan: Option<Plan>,
    confinement: Option<Confinement>,
    bubblewrap: Option<Bubblewrap>,
    enforced: Vec<String>,
    first: usize,
    alone: Row,
    theirs: Row,
    theirs_as_root: Row,
    ours: Row,
    pooled: Row,
}

impl<'a> Contest<'a> {
    /// `program` is what is launched; without it there is no race.
    pub(crate) fn new(setting: &'a Setting, program: Option<PathBuf>) -> Outcome<Self> {
        if program.is_none() {
            println!("skipped: cold launch: no static program, see above");
        }
        let bubblewrap = Bubblewrap::find(setting)?;
        if bubblewrap.is_none() {
            println!("skipped: comparison: bwrap is not installed");
        }
        let plan = program
            .as_deref()
            .map(|program| plan(setting, program))
            .transpose()?;
        let mut contest = Self {
            program,
            launcher: &setting.launcher,
            warm: &setting.warm,
            plan,
            confinement: None,
            bubblewrap,
            enforced: Vec::new(),
            first: 0,
            alone: Row::new("posix_spawn, nothing enforced"),
            theirs: Row::new("bwrap, all namespaces, filter"),
            theirs_as_root: Row::new("bwrap, the same without a user namespace"),
            ours: Row::new("boxmaker: prepare, start, wait; measured"),
            pooled: Row::new("boxmaker: the same with a stage that waited"),
        };
        contest.round(false)?;
        contest.describe(setting)?;
        Ok(contest)
    }

    fn describe(&mut self, setting: &Setting) -> Outcome<()> {
        if let Some(held) = &self.confinement {
            let layers: Vec<_> = held.layers.iter().map(|layer| layer.as_str()).collect();
            self.enforced.push(format!(
                "boxmaker enforces, measured at each launch ({}): {}",
                held.level,
                layers.join(" ")
            ));
            for gap in &held.gaps {
                self.enforced
                    .push(format!("  gap {}: {}", gap.layer, gap.reason));
            }
        }
        if let Some(bubblewrap) = &mut self.bubblewrap {
            let seen = bubblewrap.seen_from_inside(&setting.binaries.join("boxmaker-misbehave"))?;
            self.enforced.push(seen);
        }
        Ok(())
    }

    pub(crate) fn enforced(&self) -> Vec<String> {
        self.enforced.clone()
    }

    /// Everybody once. Who begins changes with each round: what one leaves behind (the kernel takes namespaces down
    /// later) is another's handicap.
    pub(crate) fn round(&mut self, keep: bool) -> Outcome<()> {
        self.first += 1;
        for turn in 0..5 {
            let turn = (turn + self.first) % 5;
            let Some(time) = self.turn(turn)? else {
                continue;
            };
            if keep {
                let row = match turn {
                    0 => &mut self.alone,
                    1 => &mut self.theirs,
                    2 => &mut self.theirs_as_root,
                    3 => &mut self.ours,
                    _ => &mut self.pooled,
                };
                row.samples.push(time);
            }
        }
        Ok(())
    }

    /// One launch; none if that contestant is not there.
    fn turn(&mut self, turn: usize) -> Outcome<Option<Duration>> {
        let (Some(program), Some(plan)) = (&self.program, &self.plan) else {
            return Ok(None);
        };
        if turn == 0 {
            return timed(|| succeed(&mut Command::new(program))).map(Some);
        }
        if turn < 3 {
            let Some(bubblewrap) = &mut self.bubblewrap else {
                return Ok(None);
            };
            return timed(|| bubblewrap.run(program, turn == 1)).map(Some);
        }
        let own = plan.clone();
        let launcher = if turn == 3 { self.launcher } else { self.warm };
        let begun = Instant::now();
        let confinement = launch(launcher, own)?;
        let time = begun.elapsed();
        // Another one is made now, or it would be made during somebody else's turn.
        if turn == 4 {
            await_full(self.warm);
        }
        if confinement.level == Level::None {
            return Err(format!("a launch held nothing: {confinement:?}").into());
        }
        self.confinement = Some(confinement);
        Ok(Some(time))
    }

    /// bubblewrap's samples, against which everything is compared.
    pub(crate) fn peer(&self) -> Option<Vec<Duration>> {
        Some(self.theirs.samples.clone()).filter(|samples| !samples.is_empty())
    }

    pub(crate) fn rows(self) -> (Vec<Row>, Vec<String>) {
        let rows = [
            self.alone,
            self.theirs,
            self.theirs_as_root,
            self.ours,
            self.pooled,
        ];
        let rows = rows.into_iter().filter(|row| !row.samples.is_empty());
        (rows.collect(), self.enforced)
    }
}

fn plan(setting: &Setting, program: &Path) -> Outcome<Plan> {
    let profile = setting
        .profiles
        .get("tools/base")
        .ok_or("no profile tools/base")?;
    let host = Host::take(profile, program, Privilege::Root)?;
    let program = Program {
        argv: vec![program.to_string_lossy().into_owned()],
        env: Default::default(),
        cwd: "/".to_owned(),
        input: Hash32::ZERO,
    };
    Ok(derive(profile, program, &[], Level::Full, &host)?)
}

fn launch(launcher: &Launcher, plan: Plan) -> Outcome<Confinement> {
    let nothing = || {
        File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .map(OwnedFd::from)
    };
    let stdio = StageStdio {
        stdin: nothing()?,
        stdout: nothing()?,
        stderr: nothing()?,
    };
    let prepared = launcher.prepare(plan, Vec::new(), stdio, IdentityChoice::Fresh)?;
    let confinement = prepared.confinement().clone();
    let ended = prepared.start()?.wait(WALL);
    match ended.exit {
        Some(ExitStatus::Code(0)) => Ok(confinement),
        _ => Err(format!("the program did not end well: {ended:?}").into()),
    }
}

/// Waits until a stage waits again; before the first launch there is none to wait for.
fn await_full(launcher: &Launcher) {
    let begun = Instant::now();
    while launcher.waiting() == 0 && begun.elapsed() < Duration::from_secs(1) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn timed(act: impl FnOnce() -> Outcome<()>) -> Outcome<Duration> {
    let begun = Instant::now();
    act()?;
    Ok(begun.elapsed())
}

fn succeed(command: &mut Command) -> Outcome<()> {
    let command = command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let status = command.stderr(Stdio::null()).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?}: {status}").into())
    }
}

/// bubblewrap with our own system call filter.
struct Bubblewrap {
    path: PathBuf,
    filter: File,
}

impl Bubblewrap {
    fn find(setting: &Setting) -> Outcome<Option<Self>> {
        let places = [
            "/usr/bin/bwrap",
            "/usr/local/bin/bwrap",
            "/run/current-system/sw/bin/bwrap",
        ];
        let Some(path) = places.iter().map(PathBuf::from).find(|path| path.exists()) else {
            return Ok(None);
        };
        let profile = setting
            .profiles
            .get("tools/base")
            .ok_or("no profile tools/base")?;
        let mut filter = File::from(rustix::fs::memfd_create("filter", MemfdFlags::CLOEXEC)?);
        filter.write_all(&confine::seccomp::filter(&profile.seccomp)?.to_bytes())?;
        Ok(Some(Self { path, filter }))
    }

    /// The command line up to the program. The filter must be rewound and inherited when it starts.
    fn command(&mut self, user_namespace: bool) -> Outcome<Command> {
        let mut command = Command::new(&self.path);
        if user_namespace {
            command.arg("--unshare-all");
        } else {
            command.args([
                "--unshare-ipc",
                "--unshare-pid",
                "--unshare-net",
                "--unshare-uts",
            ]);
            command.arg("--unshare-cgroup");
        }
        command.args([
            "--cap-drop",
            "ALL",
            "--ro-bind",
            "/",
            "/",
            "--proc",
            "/proc",
        ]);
        command.args([
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "--new-session",
            "--die-with-parent",
        ]);
        self.filter.rewind()?;
        command
            .arg("--add-seccomp-fd")
            .arg(self.filter.as_raw_fd().to_string());
        Ok(command)
    }

    /// Lets the next program inherit the filter, or not.
    fn inherit(&self, flags: FdFlags) -> Outcome<()> {
        Ok(rustix::io::fcntl_setfd(&self.filter, flags)?)
    }

    fn run(&mut self, program: &Path, user_namespace: bool) -> Outcome<()> {
        let mut command = self.command(user_namespace)?;
        self.inherit(FdFlags::empty())?;
        let ended = succeed(command.arg("--").arg(program));
        self.inherit(FdFlags::CLOEXEC)?;
        ended
    }

    /// What a program in it sees of its confinement.
    fn seen_from_inside(&mut self, program: &Path) -> Outcome<String> {
        let (inside, input) = std::io::pipe()?;
        (&input).write_all(br#"{"acts":["inspect"]}"#)?;
        drop(input);
        let mut command = self.command(true)?;
        self.inherit(FdFlags::empty())?;
        let output = command.arg("--").arg(program).stdin(inside).output();
        self.inherit(FdFlags::CLOEXEC)?;
        let output = output?;
        if !output.status.success() {
            return Err(format!("inspecting bwrap: {output:?}").into());
        }
        let told: Value = serde_json::from_slice(&output.stdout)?;
        let seen = &told["detail"];
        let mut namespaces = Vec::new();
        for (name, there) in seen["namespaces"].as_object().into_iter().flatten() {
            let here = std::fs::read_link(format!("/proc/self/ns/{name}"))?;
            if *there != *here.to_string_lossy() && !name.ends_with("_children") {
                namespaces.push(name.clone());
            }
        }
        let sets = seen["capabilities"].as_object().into_iter().flatten();
        let empty = sets.filter(|(_, set)| **set == "0000000000000000").count();
        Ok(format!(
            "bwrap enforces, seen from inside and measured by nobody: namespaces {}; {empty} of 5 capability sets empty; \
             no_new_privs {}; seccomp mode {} (our program); uid {}; the host's tree read-only; no Landlock, no \
             cgroup",
            namespaces.join(" "),
            seen["no_new_privs"].as_str().unwrap_or("?"),
            seen["seccomp"].as_str().unwrap_or("?"),
            seen["uids"][0],
        ))
    }
}
