//! Launches the probe of the escape suite in a sandbox, as whoever started this: profile, host, plan and stage as the
//! supervisor has them. Reads one `Launch` as JSON from the file that is its first argument, and prints one `Launched`. With
//! the word `wait` after it nothing is started: a sandbox and a stage that wait are made, their numbers printed, and both
//! kept until standard input ends.

#![expect(
    clippy::unwrap_used,
    reason = "whatever cannot be set up fails the test that started it"
)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use boxmaker_tests::escape::launch::{Launch, Launched, Waiting};
use boxmaker_tests::sandbox::{await_pool, options, stdio};
use boxmaker_tests::system::processes::Process;
use confine::derive::derive;
use confine::host::Host;
use confine::launch::{
    BareOptions, GrantedTree, IdentityChoice, Launcher, LauncherOptions, Means, PoolSizes,
    Prepared, StageStdio,
};
use confine::plan::{Mount, Program};
use confine::profile::Profiles;
use confine::resolve::Root;
use proto::{Hash32, Level};

fn main() {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let launch: Launch = serde_json::from_slice(&fs::read(&words[0]).unwrap()).unwrap();
    let means = Means::of_this_process(&launch.stage).unwrap();
    if words.get(1).is_some_and(|word| word == "wait") {
        let waits = Waits::new(&launch, &means);
        println!("{}", serde_json::to_string(&waits.numbers).unwrap());
        // Until nobody needs them any more.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        return;
    }
    let waits = launch
        .names_who_waits()
        .then(|| Waits::new(&launch, &means));
    let input = match &waits {
        Some(waits) => waits.numbers.named(&launch.input),
        None => launch.input.clone(),
    };
    let launched = run(&launch, &means, input);
    println!("{}", serde_json::to_string(&launched).unwrap());
}

/// One sandbox up to its start and one stage that was not asked for anything yet; both are gone with the value.
struct Waits {
    numbers: Waiting,
    _staged: Prepared,
    _launcher: Launcher,
}

impl Waits {
    fn new(launch: &Launch, means: &Means) -> Self {
        let launcher = launcher(launch, means, "escape-waiting", 1);
        let before = children();
        let (ends, _output) = stdio();
        let (staged, parked) = with_one_parked(&launcher, &before, || {
            prepare(&launcher, launch, means, ends)
        });
        let staged_pid = staged.pid();
        Self {
            numbers: Waiting {
                staged: staged_pid,
                parked,
            },
            _staged: staged,
            _launcher: launcher,
        }
    }
}

/// The processes that this one has started and not ended.
fn children() -> Vec<Process> {
    Process::of(std::process::id()).unwrap().children()
}

/// Makes a sandbox, of which the pool learns, and waits until another stage is parked, whose number it gives.
fn with_one_parked(
    launcher: &Launcher,
    before: &[Process],
    make: impl FnOnce() -> Prepared,
) -> (Prepared, u32) {
    let made = make();
    await_pool(launcher, 1);
    let mut new = children();
    new.retain(|child| !before.contains(child) && child.pid != made.pid());
    let [parked] = new.as_slice() else {
        panic!("one stage is parked, not {new:?}");
    };
    (made, parked.pid)
}

fn launcher(launch: &Launch, means: &Means, name: &str, pool: u8) -> Launcher {
    let bare = means.refusal.as_ref().map(|why| BareOptions {
        why: why.clone(),
        directory: launch.sandboxes.join(name),
    });
    if let Some(bare) = &bare {
        fs::create_dir_all(&bare.directory).unwrap();
    }
    let pool = PoolSizes {
        tools: pool,
        named: BTreeMap::new(),
    };
    Launcher::new(LauncherOptions {
        bare,
        pool,
        ..options(&launch.stage, name)
    })
    .unwrap()
}

/// Builds a sandbox up to its measurement.
fn prepare(launcher: &Launcher, launch: &Launch, means: &Means, ends: StageStdio) -> Prepared {
    let file = (
        "profiles/escape.toml".to_owned(),
        launch.profile.clone().into_bytes(),
    );
    let profiles = Profiles::load(&BTreeMap::from([file])).unwrap();
    let profile = profiles.get("escape").unwrap();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let argv = [text(&launch.probe), "-".to_owned()];
    // Where sandboxes share /tmp this becomes the path of what each has instead.
    let scratch = ("ESCAPE_SCRATCH".to_owned(), "/tmp".to_owned());
    let program = Program {
        argv: argv
            .into_iter()
            .chain(launch.filter.as_deref().map(text))
            .collect(),
        env: means.refusal.iter().map(|_| scratch.clone()).collect(),
        cwd: "/".to_owned(),
        input: Hash32::ZERO,
    };
    let (mut trees, mut granted) = (Vec::new(), Vec::new());
    for (path, access) in &launch.trees {
        trees.push(Mount::Tree {
            path: text(path),
            directory: true,
            access: *access,
            exec: false,
        });
        let root = Root::open(path).unwrap().unwrap();
        granted.push(GrantedTree {
            descriptor: root.resolve(path).unwrap().unwrap().descriptor,
            owner: root.itself().owner,
        });
    }
    let host = Host::take(profile, &launch.probe, means.privilege).unwrap();
    let plan = derive(profile, program, &trees, Level::Full, &host).unwrap();
    match launcher.prepare(plan, granted, ends, IdentityChoice::Fresh) {
        Ok(prepared) => prepared,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(3);
        }
    }
}

fn run(launch: &Launch, means: &Means, input: String) -> Launched {
    let launcher = launcher(launch, means, "escape", launch.pooled.into());
    let mut parked = None;
    if launch.pooled {
        let (ends, _output) = stdio();
        let before = children();
        let make = || prepare(&launcher, launch, means, ends);
        parked = Some(with_one_parked(&launcher, &before, make).1);
    }
    let (mut ends, output) = stdio();
    let (stdin, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    ends.stdin = stdin;
    let prepared = prepare(&launcher, launch, means, ends);
    assert!(
        parked.is_none_or(|parked| parked == prepared.pid()),
        "another stage was taken"
    );
    let confinement = prepared.confinement().clone();
    let input = input.replace("@stage", &prepared.pid().to_string());
    let running = prepared.start().unwrap();
    let writing = std::thread::spawn(move || write(writer, &input));
    let reading = std::thread::spawn(|| output.read());
    let pid = running.pid();
    let watching = launch
        .watch_processor
        .then(|| std::thread::spawn(move || throttled(pid)));
    let ended = running.wait(Duration::from_millis(launch.wall_ms));
    let (stdout, stderr) = reading.join().unwrap();
    writing.join().unwrap();
    let throttled = watching.and_then(|watching| watching.join().unwrap());
    Launched {
        confinement,
        cause: ended.cause,
        exit: ended.exit,
        throttled,
        stdout,
        stderr,
    }
}

/// Watches the group that counts a process's time until that is gone, and says whether the kernel ever held it back.
fn throttled(pid: u32) -> Option<bool> {
    let file = processor_group(pid)?.join("cpu.stat");
    let mut held_back = None;
    while let Ok(text) = fs::read_to_string(&file)
        && fs::metadata(format!("/proc/{pid}")).is_ok()
    {
        let times = text
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled "));
        if let Some(times) = times.and_then(|times| times.parse::<u64>().ok()) {
            held_back = Some(times > 0 || held_back == Some(true));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    held_back
}

/// The directory of that group: in the v1 hierarchy of the controller, or else in v2.
fn processor_group(pid: u32) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let named = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?.to_owned();
        Some((controllers, parts.next()?.to_owned()))
    };
    let of_v1 = |controllers: &str| controllers.split(',').any(|one| one == "cpu");
    let groups: Vec<(String, String)> = groups.lines().filter_map(named).collect();
    let own = groups.iter().find(|(controllers, _)| of_v1(controllers));
    let (controllers, path) = own.or_else(|| groups.iter().find(|(none, _)| none.is_empty()))?;
    let v1 = of_v1(controllers);
    let place = mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let found = match fields[2] {
            "cgroup" => v1 && of_v1(fields[3]),
            kind => !v1 && kind == "cgroup2",
        };
        found.then(|| PathBuf::from(fields[1]))
    })?;
    Some(place.join(path.trim_start_matches('/')))
}

/// A program that has ended reads no more, which is its answer and no fault.
fn write(end: OwnedFd, text: &str) {
    let _ = File::from(end).write_all(text.as_bytes());
}
