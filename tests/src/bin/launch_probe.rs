//! Launches the probe of the escape suite in a sandbox, as whoever started this: profile, host, plan and stage as the
//! supervisor has them. Reads one `Launch` as JSON from the file that is its only argument, and prints one `Launched`.

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

use boxmaker_tests::escape::launch::{Launch, Launched};
use boxmaker_tests::sandbox::{launcher, stdio};
use confine::derive::derive;
use confine::host::{Host, Privilege};
use confine::launch::{GrantedTree, IdentityChoice};
use confine::plan::{Mount, Program};
use confine::profile::Profiles;
use confine::resolve::Root;
use proto::{Hash32, Level};

fn main() {
    let path = std::env::args_os().nth(1).unwrap();
    let launch: Launch = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let file = (
        "profiles/escape.toml".to_owned(),
        launch.profile.into_bytes(),
    );
    let profiles = Profiles::load(&BTreeMap::from([file])).unwrap();
    let profile = profiles.get("escape").unwrap();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let argv = [text(&launch.probe), "-".to_owned()];
    let program = Program {
        argv: argv
            .into_iter()
            .chain(launch.filter.as_deref().map(text))
            .collect(),
        env: BTreeMap::new(),
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
    let privilege = Privilege::of_this_process(&launch.stage).unwrap();
    let host = Host::take(profile, &launch.probe, privilege).unwrap();
    let plan = derive(profile, program, &trees, Level::Full, &host).unwrap();
    let launcher = launcher(&launch.stage, "escape");
    let (mut ends, output) = stdio();
    let (stdin, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    ends.stdin = stdin;
    let prepared = match launcher.prepare(plan, granted, ends, IdentityChoice::Fresh) {
        Ok(prepared) => prepared,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(3);
        }
    };
    let confinement = prepared.confinement().clone();
    let running = prepared.start().unwrap();
    let writing = std::thread::spawn(move || write(writer, &launch.input));
    let reading = std::thread::spawn(|| output.read());
    let pid = running.pid();
    let watching = launch
        .watch_processor
        .then(|| std::thread::spawn(move || throttled(pid)));
    let ended = running.wait(Duration::from_millis(launch.wall_ms));
    let (stdout, stderr) = reading.join().unwrap();
    writing.join().unwrap();
    let throttled = watching.and_then(|watching| watching.join().unwrap());
    let launched = Launched {
        confinement,
        cause: ended.cause,
        exit: ended.exit,
        throttled,
        stdout,
        stderr,
    };
    println!("{}", serde_json::to_string(&launched).unwrap());
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
