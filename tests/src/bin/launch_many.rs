//! Launches many sandboxes at once, as whoever started this, each with the probe in it as a neighbour of the others; waits
//! until all have started, has each of them try all others, and prints what they tell as one JSON object. Where it is told
//! `free` there are no sandboxes, and one tries after the other, so that each finds the others at rest.
//!
//! `launch-many COUNT STAGE PROBE TREES`: in TREES are as many directories, `0` and so on, of which each gets its own to
//! write. `launch-many COUNT free PROBE TREES`.

#![expect(
    clippy::unwrap_used,
    reason = "whatever cannot be set up fails the test that started it"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use boxmaker_tests::sandbox::{grant, launcher, launcher_without_namespaces, plan, strip};
use boxmaker_tests::system::processes::{Process, in_cgroups};
use confine::host::Privilege;
use confine::launch::{GrantedTree, IdentityChoice, Launcher, Means, Running, StageStdio};
use confine::plan::{Access, LandlockRule, Mount, Namespace, Plan, Rule};
use confine::resolve::Root;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

/// How long all of it may take.
const WALL: Duration = Duration::from_secs(300);

/// What identifies the namespaces of a process.
const NAMESPACES: [&str; 6] = ["mnt", "pid", "net", "ipc", "uts", "cgroup"];

/// One neighbour, with the other ends of its standard input and output.
struct Neighbour {
    ends: Ends,
    input: Option<File>,
    output: BufReader<File>,
}

enum Ends {
    Free(Child),
    Sandbox(Box<Running>, Value),
}

impl Neighbour {
    fn told(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn tell(&mut self, text: &str) {
        self.input
            .as_mut()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    /// How it ended.
    fn end(mut self) -> Value {
        drop(self.input.take());
        match self.ends {
            Ends::Free(mut child) => json!({ "code": child.wait().unwrap().code() }),
            Ends::Sandbox(running, confinement) => {
                let ended = running.wait(WALL);
                json!({ "cause": ended.cause, "exit": ended.exit, "confinement": confinement })
            }
        }
    }
}

/// What a process may leave behind of others: its descriptors by what they are, its mounts, its children.
fn own_state() -> (Vec<String>, String, usize) {
    let mut descriptors: Vec<String> = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .map(|target| target.display().to_string())
        // What reads the directory.
        .filter(|target| !target.ends_with("/fd"))
        .collect();
    descriptors.sort();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let own = Process::of(std::process::id()).unwrap();
    (descriptors, mounts, own.descendants().len())
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let count: usize = words[0].parse().unwrap();
    let (probe, trees) = (PathBuf::from(&words[2]), PathBuf::from(&words[3]));
    // Each sandbox takes several descriptors here.
    let hard = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: hard,
        maximum: hard,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let nonce = format!("{:08x}", std::process::id());
    let before = own_state();
    let told = match words[1].as_str() {
        "free" => {
            let all = (0..count).map(|index| free(&probe, &trees, &nonce, index));
            try_each_other(all.collect(), &trees, false)
        }
        stage => sandboxes(count, Path::new(stage), &probe, &trees, &nonce),
    };
    let after = own_state();
    let (processes, groups) = in_cgroups(&format!("boxmaker-test-many-{}", std::process::id()));
    let left = json!({
        "descriptors": (before.0 != after.0).then_some(after.0),
        "mounts": (before.1 != after.1).then_some(after.1),
        "processes": after.2 + processes.len(),
        "groups": groups,
    });
    println!("{}", json!({ "told": told, "left": left }));
}

fn words(nonce: &str, index: usize, tree: &Path) -> Vec<String> {
    // Keys of segments that nobody else takes, as far as that can be.
    let key = 0x4d00_0000 + (std::process::id() % 0x1_0000) * 0x100;
    let tree = tree.to_str().unwrap().to_owned();
    vec![
        "neighbour".to_owned(),
        nonce.to_owned(),
        key.to_string(),
        index.to_string(),
        tree,
    ]
}

fn free(probe: &Path, trees: &Path, nonce: &str, index: usize) -> Neighbour {
    let mut child = Command::new(probe)
        .args(words(nonce, index, &trees.join(index.to_string())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = OwnedFd::from(child.stdin.take().unwrap());
    let output = OwnedFd::from(child.stdout.take().unwrap());
    Neighbour {
        ends: Ends::Free(child),
        input: Some(input.into()),
        output: BufReader::new(output.into()),
    }
}

fn sandboxes(count: usize, stage: &Path, probe: &Path, trees: &Path, nonce: &str) -> Value {
    let means = Means::of_this_process(stage).unwrap();
    let own = trees.with_file_name("sandboxes");
    let launcher = match &means.refusal {
        None => launcher(stage, "many"),
        Some(refusal) => launcher_without_namespaces(stage, refusal, &own),
    };
    let all = (0..count).map(|index| {
        let tree = trees.join(index.to_string());
        let words = words(nonce, index, &tree);
        let mut argv = vec![probe.to_str().unwrap()];
        argv.extend(words.iter().map(String::as_str));
        let mut plan = plan(&argv);
        show(&mut plan, probe);
        grant(&mut plan, &tree, true, Access::ReadWriteTree);
        match means.privilege {
            Privilege::Root => {}
            Privilege::UserNamespace => plan.namespaces.insert(0, Namespace::User),
            Privilege::Bare => strip(&mut plan, launcher.landlock().abi()),
        }
        start(&launcher, plan, &tree)
    });
    let told = try_each_other(all.collect(), trees, true);
    drop(launcher);
    told
}

/// The probe, to be executed.
fn show(plan: &mut Plan, probe: &Path) {
    let path = probe.to_str().unwrap().to_owned();
    plan.mounts.push(Mount::View {
        path: path.clone(),
        directory: false,
    });
    plan.landlock.push(LandlockRule {
        path,
        rule: Rule::Execute,
    });
}

fn start(launcher: &Launcher, plan: Plan, tree: &Path) -> Neighbour {
    let (stdin, input) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let (output, stdout) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let stderr = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 3).unwrap();
    let root = Root::open(tree).unwrap().unwrap();
    let granted = GrantedTree {
        descriptor: root.resolve(tree).unwrap().unwrap().descriptor,
        owner: root.itself().owner,
    };
    let ends = StageStdio {
        stdin,
        stdout,
        stderr,
    };
    let prepared = launcher
        .prepare(plan, vec![granted], ends, IdentityChoice::Fresh)
        .unwrap_or_else(|error| panic!("{error}"));
    let confinement = serde_json::to_value(prepared.confinement()).unwrap();
    let running = Box::new(prepared.start().unwrap());
    Neighbour {
        ends: Ends::Sandbox(running, confinement),
        input: Some(input.into()),
        output: BufReader::new(output.into()),
    }
}

/// Has all of them try all others, at once or one after the other, and ends them.
fn try_each_other(mut all: Vec<Neighbour>, trees: &Path, at_once: bool) -> Value {
    let keeps: Vec<Value> = all.iter_mut().map(Neighbour::told).collect();
    // Every one has started by now, and each waits.
    let processes = Process::of(std::process::id()).unwrap().descendants();
    let mut text: String = processes
        .iter()
        .map(|process| format!("pid {}\n", process.pid))
        .collect();
    for (index, kept) in keeps.iter().enumerate() {
        let tree = trees.join(index.to_string());
        text.push_str(&format!(
            "name {index} {} {} {}/kept\n",
            kept["port"],
            kept["scratch"].as_str().unwrap(),
            tree.display()
        ));
    }
    let apart = apart(&all);
    // Without waiting for who is slow: a pipe holds less than all of this, and each reads only its own.
    let tell = |all: &mut [Neighbour], text: &str| {
        std::thread::scope(|scope| {
            for one in all {
                scope.spawn(|| one.tell(text));
            }
        });
    };
    let mut tried = Vec::new();
    text.push_str("try\n");
    if at_once {
        tell(&mut all, &text);
        tried.extend(all.iter_mut().map(Neighbour::told));
    } else {
        for one in &mut all {
            one.tell(&text);
            tried.push(one.told());
        }
    }
    tell(&mut all, "end\n");
    let met: Vec<Value> = all.iter_mut().map(Neighbour::told).collect();
    let ends: Vec<Value> = all.into_iter().map(Neighbour::end).collect();
    json!({
        "keeps": keeps, "tried": tried, "met": met, "ends": ends, "apart": apart, "processes": processes.len(),
    })
}

/// How many different namespaces and uids the sandboxes have, where these can be looked at; this process's own count too.
fn apart(all: &[Neighbour]) -> BTreeMap<String, usize> {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let pids = all.iter().filter_map(|one| match &one.ends {
        Ends::Sandbox(running, _) => Some(running.pid()),
        Ends::Free(_) => None,
    });
    for pid in pids.chain([std::process::id()]) {
        for name in NAMESPACES {
            if let Ok(link) = fs::read_link(format!("/proc/{pid}/ns/{name}")) {
                let link = link.display().to_string();
                seen.entry(name.to_owned()).or_default().insert(link);
            }
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let uid = status.lines().find(|line| line.starts_with("Uid:"));
        seen.entry("uid".to_owned())
            .or_default()
            .insert(uid.unwrap().to_owned());
    }
    seen.into_iter()
        .map(|(name, all)| (name, all.len()))
        .collect()
}
