//! Compiles, from the system call sets, filters that the shipped stage has not: each of ours with one refusal less, and one
//! that answers every refusal with an errno of its own, by which a row of the escape suite tells what refused it. Here and
//! not where they are used, because the compiler is made for build scripts.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

#[expect(
    dead_code,
    reason = "what builds our own filters is not all needed here"
)]
#[path = "../src/confine/src/seccomp/compiler/mod.rs"]
mod compiler;
#[path = "../src/confine/src/seccomp/instruction.rs"]
mod instruction;

use compiler::{Answers, Joined};

const CLOSED: &str = include_str!("../src/confine/src/seccomp/closed.json");
const BASE: &str = include_str!("../src/confine/src/seccomp/base.json");

/// The first errno that says which call was refused; the kernel has none of its own so high.
const MARK: u32 = 1000;

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../src/confine/src/seccomp");
    let out =
        PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?).join("filters");
    fs::create_dir_all(&out)?;
    let ours = Answers::default();
    let allow = instruction::RETURN_ALLOW;
    write(&out, "whole", CLOSED, BASE, &ours)?;
    write(
        &out,
        "open-to-unlisted",
        CLOSED,
        BASE,
        &Answers {
            unlisted: allow,
            ..ours
        },
    )?;
    write(
        &out,
        "open-to-x32",
        CLOSED,
        BASE,
        &Answers {
            x32: ours.unlisted,
            ..ours
        },
    )?;
    write(
        &out,
        "marked",
        CLOSED,
        BASE,
        &Answers {
            closed: mark,
            ..ours
        },
    )?;
    let mut index = Vec::new();
    for (of, text) in [("closed", CLOSED), ("base", BASE)] {
        let set: Value = serde_json::from_str(text)?;
        for (at, group) in list(&set["refuse"]).iter().enumerate() {
            for call in list(&group["calls"]).iter().filter_map(Value::as_str) {
                for alternative in 0..list(&group["when"]).len().max(1) {
                    let less = without(&set, at, call, alternative).to_string();
                    let (closed, base) = match of {
                        "closed" => (less.as_str(), BASE),
                        _ => (CLOSED, less.as_str()),
                    };
                    let file = format!("less-{}", index.len());
                    write(&out, &file, closed, base, &ours)?;
                    let conditions = list(&group["when"][alternative]);
                    let comments = conditions.iter().filter_map(|one| one["comment"].as_str());
                    let comments: Vec<&str> = comments.collect();
                    let name = format!("{call} {}", comments.join(", "));
                    index.push(json!({
                        "name": name.trim_end(),
                        "mark": format!("E{}", mark(call) & 0xffff),
                        "file": file,
                    }));
                }
            }
        }
    }
    fs::write(out.join("index.json"), Value::Array(index).to_string())?;
    Ok(())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// What the marked filter answers to a closed call: its place in the order of the sets.
fn mark(call: &str) -> u32 {
    let refused = |text: &str| -> Vec<String> {
        let set: Value = serde_json::from_str(text).unwrap_or_default();
        let calls = list(&set["refuse"])
            .iter()
            .flat_map(|group| list(&group["calls"]));
        calls.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let all = [refused(CLOSED), refused(BASE)].concat();
    // It is asked of every call, also of those that are never closed.
    let place = all.iter().position(|one| one == call).unwrap_or_default();
    instruction::RETURN_ERRNO | (MARK + place as u32)
}

/// The set with one alternative less for one call of one group; without any, the call is not refused there at all.
fn without(set: &Value, at: usize, call: &str, alternative: usize) -> Value {
    let mut group = set["refuse"][at].clone();
    let mut own = group.clone();
    let others = list(&group["calls"]).iter().filter(|other| *other != call);
    group["calls"] = others.cloned().collect();
    own["calls"] = json!([call]);
    let when = list(&own["when"]).iter().enumerate();
    let left = when.filter(|(place, _)| *place != alternative);
    own["when"] = left.map(|(_, alternative)| alternative.clone()).collect();
    let mut groups = list(&set["refuse"]).to_vec();
    groups[at] = group;
    groups.push(own);
    // No call is no group, and no alternative would be every call.
    let nothing = |group: &Value| {
        list(&group["calls"]).is_empty() || group["when"].as_array().is_some_and(Vec::is_empty)
    };
    groups.retain(|group| !nothing(group));
    let mut set = set.clone();
    set["refuse"] = groups.into();
    set
}

/// Writes a filter as the kernel takes it, `struct sock_filter` after `struct sock_filter`.
fn write(out: &Path, name: &str, closed: &str, base: &str, answers: &Answers) -> Fallible<()> {
    let joined = Joined::of(&[("closed", closed), ("base", base)])?;
    let mut bytes = Vec::new();
    for step in compiler::compile(&joined, answers)? {
        bytes.extend(step.code.to_ne_bytes());
        bytes.extend([step.jt, step.jf]);
        bytes.extend(step.k.to_ne_bytes());
    }
    Ok(fs::write(out.join(name), bytes)?)
}
