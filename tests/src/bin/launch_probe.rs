//! Launches the probe of the escape suite in a sandbox, as whoever started this: profile, host, plan and stage as the
//! supervisor has them. Reads one `Launch` as JSON from the file that is its only argument, and prints one `Launched`.

#![expect(
    clippy::unwrap_used,
    reason = "whatever cannot be set up fails the test that started it"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
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
    let program = Program {
        argv: vec![text(&launch.probe), "-".to_owned()],
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
    let ended = running.wait(Duration::from_millis(launch.wall_ms));
    let (stdout, stderr) = reading.join().unwrap();
    writing.join().unwrap();
    let launched = Launched {
        confinement,
        cause: ended.cause,
        exit: ended.exit,
        stdout,
        stderr,
    };
    println!("{}", serde_json::to_string(&launched).unwrap());
}

/// A program that has ended reads no more, which is its answer and no fault.
fn write(end: OwnedFd, text: &str) {
    let _ = File::from(end).write_all(text.as_bytes());
}
