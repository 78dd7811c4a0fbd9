//! Launches one shell script in a sandbox, as whoever started it, and prints what was measured and how it ended as one
//! JSON object. The tests start it as a plain user.
//!
//! `launch-once STAGE SCRIPT [TREE]`: the tree may be read and written.

#![expect(
    clippy::unwrap_used,
    reason = "whatever cannot be set up fails the test that started it"
)]

use std::path::Path;
use std::time::Duration;

use boxmaker_tests::sandbox::{grant, launcher, make_bare, plan, stdio};
use confine::host::Privilege;
use confine::launch::{GrantedTree, IdentityChoice};
use confine::plan::{Access, Namespace};
use confine::resolve::Root;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (stage, script) = (&words[0], &words[1]);
    let launcher = launcher(Path::new(stage), "once");
    let mut plan = plan(&["/usr/bin/sh", "-c", script]);
    match Privilege::of_this_process(Path::new(stage)).unwrap() {
        Privilege::Root => {}
        Privilege::UserNamespace => plan.namespaces.insert(0, Namespace::User),
        Privilege::Bare => make_bare(&mut plan),
    }
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
        "exit": ended.exit,
        "detail": ended.detail,
        "stdout": stdout,
        "stderr": stderr,
    });
    println!("{result}");
}
