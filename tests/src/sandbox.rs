//! Launching without the rest of the system: a launcher over a stage, a plan for a program of this host, pipes to it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use confine::launch::{BareOptions, Launcher, LauncherOptions, PoolSizes, StageStdio};
use confine::plan::{Access, LandlockRule, Limits, Mount, Namespace, Plan, Program, Rule, Seccomp};
use proto::config::CgroupChoice;
use proto::{Hash32, Layer, Level};

/// A launcher over the stage at `stage`, with cgroups of its own.
///
/// # Panics
/// The host refuses it.
#[must_use]
pub fn launcher(stage: &Path, name: &str) -> Launcher {
    launcher_with(stage, name, Vec::new())
}

/// The same, with layers whose gaps are waived.
///
/// # Panics
/// The host refuses it.
#[must_use]
pub fn launcher_with(stage: &Path, name: &str, waive: Vec<Layer>) -> Launcher {
    Launcher::new(LauncherOptions {
        waive,
        ..options(stage, name)
    })
    .unwrap()
}

/// The same where no namespace can be made, for the reason `why`, with the directories of its sandboxes in `directory`,
/// from which it has its name.
///
/// # Panics
/// The host refuses it.
#[must_use]
pub fn launcher_without_namespaces(stage: &Path, why: &str, directory: &Path) -> Launcher {
    Launcher::new(LauncherOptions {
        name: directory.display().to_string().replace('/', "-"),
        bare: Some(BareOptions {
            why: why.to_owned(),
            directory: directory.to_owned(),
        }),
        ..options(stage, "bare")
    })
    .unwrap()
}

/// The same, with so many stages of each kind in its warm pool.
///
/// # Panics
/// The host refuses it.
#[must_use]
pub fn launcher_with_pool(stage: &Path, name: &str, tools: u8) -> Launcher {
    let named = BTreeMap::new();
    Launcher::new(LauncherOptions {
        pool: PoolSizes { tools, named },
        ..options(stage, name)
    })
    .unwrap()
}

/// What a launcher is made of, over the stage at `stage` and with cgroups of its own.
#[must_use]
pub fn options(stage: &Path, name: &str) -> LauncherOptions {
    LauncherOptions {
        stage: stage.to_owned(),
        uid_range: (1_879_048_192, 65_536),
        cgroup: CgroupChoice::Auto,
        name: format!("test-{name}-{}", std::process::id()),
        waive: Vec::new(),
        pool: PoolSizes::default(),
        bare: None,
    }
}

/// Makes of a plan what it is where no namespace can be made, under a Landlock of this ABI: the host's paths, no `/proc`,
/// and a narrower filter.
///
/// # Panics
/// The sets do not compile.
pub fn strip(plan: &mut Plan, landlock_abi: u8) {
    plan.namespaces.clear();
    plan.mounts
        .retain(|mount| matches!(mount, Mount::Scratch { .. } | Mount::Tree { .. }));
    plan.landlock.retain(|rule| rule.path != "/proc");
    let scratch = ("TMPDIR".to_owned(), "/tmp".to_owned());
    plan.program.env.extend([scratch]);
    plan.seccomp.sets.push("bare".to_owned());
    if plan.trees().count() == 0 || plan.trees().any(|(_, _, access)| !access.writes()) {
        plan.seccomp.sets.push("bare-fixed".to_owned());
    }
    if landlock_abi < 6 {
        plan.seccomp.sets.push("bare-old".to_owned());
    }
    plan.seccomp.program = confine::seccomp::filter(&plan.seccomp.sets).unwrap().hash();
}

/// Waits until this many stages wait in the warm pool.
///
/// # Panics
/// They do not within 30 seconds.
pub fn await_pool(launcher: &Launcher, waiting: usize) {
    let begun = Instant::now();
    while launcher.waiting() != waiting {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{} wait instead of {waiting}",
            launcher.waiting()
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// A plan that runs `argv` with the host's `/usr` in view.
///
/// # Panics
/// The base set does not compile.
#[must_use]
pub fn plan(argv: &[&str]) -> Plan {
    let mut mounts = Vec::new();
    let mut landlock = Vec::new();
    for path in ["/usr", "/bin", "/lib", "/lib64"] {
        match std::fs::read_link(path) {
            Ok(target) => mounts.push(Mount::Link {
                path: path.to_owned(),
                target: target.to_string_lossy().into_owned(),
            }),
            Err(_) if Path::new(path).is_dir() => {
                mounts.push(Mount::View {
                    path: path.to_owned(),
                    directory: true,
                });
                landlock.push(LandlockRule {
                    path: path.to_owned(),
                    rule: Rule::Execute,
                });
            }
            Err(_) => {}
        }
    }
    mounts.extend([Mount::Proc, Mount::Devices]);
    mounts.push(Mount::Scratch {
        bytes: 1 << 20,
        inodes: 64,
    });
    landlock.push(LandlockRule {
        path: "/proc".to_owned(),
        rule: Rule::Read,
    });
    landlock.push(LandlockRule {
        path: "/tmp".to_owned(),
        rule: Rule::Scratch,
    });
    for device in ["null", "zero", "full"] {
        landlock.push(LandlockRule {
            path: format!("/dev/{device}"),
            rule: Rule::Device,
        });
    }
    let sets = vec!["base".to_owned()];
    let program = confine::seccomp::filter(&sets).unwrap().hash();
    Plan {
        profile: "test".to_owned(),
        namespaces: vec![
            Namespace::Mount,
            Namespace::Pid,
            Namespace::Net,
            Namespace::Ipc,
            Namespace::Uts,
            Namespace::Cgroup,
        ],
        hostname: "box".to_owned(),
        mounts,
        landlock,
        seccomp: Seccomp { sets, program },
        limits: Limits {
            memory: 64 << 20,
            pids: 32,
            cpu: 100,
            files: 64,
            wall_ms: 30_000,
        },
        program: Program {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            cwd: "/".to_owned(),
            input: Hash32::ZERO,
        },
        required: Level::Full,
    }
}

/// Adds a granted tree and its Landlock rule.
pub fn grant(plan: &mut Plan, path: &Path, directory: bool, access: Access) {
    let path = path.to_string_lossy().into_owned();
    plan.landlock.push(LandlockRule {
        path: path.clone(),
        rule: Rule::Tree(access),
    });
    plan.mounts.push(Mount::Tree {
        path,
        directory,
        access,
        exec: false,
    });
}

/// The launcher's ends of the program's standard output and error.
#[derive(Debug)]
pub struct Output {
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Output {
    /// Reads both to their ends.
    ///
    /// # Panics
    /// The program wrote something else than UTF-8.
    #[must_use]
    pub fn read(self) -> (String, String) {
        let read = |end: OwnedFd| {
            let mut text = String::new();
            File::from(end).read_to_string(&mut text).unwrap();
            text
        };
        let stderr = std::thread::spawn(move || read(self.stderr));
        (read(self.stdout), stderr.join().unwrap())
    }
}

/// Standard descriptors for a program that reads nothing.
///
/// # Panics
/// There are no descriptors left.
#[must_use]
pub fn stdio() -> (StageStdio, Output) {
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    let (out_read, stdout) = rustix::pipe::pipe_with(flags).unwrap();
    let (err_read, stderr) = rustix::pipe::pipe_with(flags).unwrap();
    let stdin = OwnedFd::from(File::open("/dev/null").unwrap());
    (
        StageStdio {
            stdin,
            stdout,
            stderr,
        },
        Output {
            stdout: out_read,
            stderr: err_read,
        },
    )
}
