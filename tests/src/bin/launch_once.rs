//! Launches one shell script in a sandbox, as whoever started it, and prints what was measured and how it ended as one
//! JSON object. The tests start it as a plain user.
//!
//! `launch-once STAGE SCRIPT [TREE]`: the tree may be read and written. With `LANDLOCK_ABI` in the environment a sandbox
//! without namespaces gets the filter that belongs to a Landlock of that age; with `LAUNCHER_HOME` it has its directories
//! there, and is the next life of whoever had them there before.

#![expect(
    clippy::unwrap_used,
    reason = "whatever cannot be set up fails the test that started it"
)]

use std::path::Path;
use std::time::Duration;

use boxmaker_tests::sandbox::{grant, launcher, launcher_without_namespaces, plan, stdio, strip};
use confine::host::Privilege;
use confine::launch::{GrantedTree, IdentityChoice, Means};
use confine::plan::{Access, Namespace};
use confine::resolve::Root;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (stage, script) = (&words[0], &words[1]);
    let stage = Path::new(stage);
    let home = std::env::var_os("LAUNCHER_HOME");
    // Left behind where this process is killed, so whoever does that names a home.
    let temporary = home.is_none().then(|| tempfile::tempdir().unwrap());
    let own = home.as_ref().map(Path::new);
    let own = own.or(temporary.as_ref().map(|made| made.path())).unwrap();
    let means = Means::of_this_process(stage).unwrap();
    let launcher = match &means.refusal {
        None => launcher(stage, "once"),
        Some(refusal) => launcher_without_namespaces(stage, refusal, own),
    };
    let mut plan = plan(&["/usr/bin/sh", "-c", script]);
    let mut trees = Vec::new();
    if let Some(path) = words.get(2).map(Path::new) {
        grant(&mut plan, path, true, Access::ReadWriteTree);
        let root = Root::open(path).unwrap().unwrap();
        let descriptor = root.resolve(path).unwrap().unwrap().descriptor;
        trees.push(GrantedTree {
            descriptor,
            owner: root.itself().owner,
        });
    }
    match means.privilege {
        Privilege::Root => {}
        Privilege::UserNamespace => plan.namespaces.insert(0, Namespace::User),
        Privilege::Bare => {
            let named = std::env::var("LANDLOCK_ABI").ok();
            let found = launcher.landlock().abi();
            let abi = named.map_or(found, |abi| abi.parse().unwrap());
            strip(&mut plan, abi);
        }
    }
    let (ends, output) = stdio();
    let prepared = match launcher.prepare(plan, trees, ends, IdentityChoice::Fresh) {
        Ok(prepared) => prepared,
        Err(error) => {
            println!("{}", serde_json::json!({ "error": error.to_string() }));
            return;
        }
    };
    let confinement = prepared.confinement().clone();
    let ended = prepared.start().unwrap().wait(Duration::from_secs(30));
    let (stdout, stderr) = output.read();
    let result = serde_json::json!({
        "confinement": confinement,
        "left": std::fs::read_dir(own).unwrap().count(),
        "exit": ended.exit,
        "detail": ended.detail,
        "stdout": stdout,
        "stderr": stderr,
    });
    println!("{result}");
}
