//! Limits with cgroup v2, for real: a kernel that has its controllers there is booted under qemu, the programs in
//! `tests/src/bin` try each limit in it, and these tests judge what they printed. `make test-kernel` builds the programs
//! statically and asks for it; elsewhere all of it is skipped.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod bare;
mod containers;
mod kernels;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use proto::Layer;
use serde_json::{Value, json};

/// What each case saw, or why there was no machine.
type Machine = Result<BTreeMap<String, Value>, String>;

/// Where `make test-kernel` built the programs.
const PROGRAMS: &str = "BOXMAKER_KERNEL_PROGRAMS";
const LIMITED: [Layer; 3] = [Layer::Memory, Layer::Pids, Layer::Cpu];
const WAY_OUT: &str = "; with Delegate=yes in a unit of its own, boxmaker can set limits";

/// One boot serves all tests of this file.
fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let programs = ["boxmaker-stage", "launch-once", "limits-once"].map(Path::new);
        boot(&own_script("in-the-machine"), &programs, &[])
    })
}

/// A script that lies beside this file.
fn own_script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("kernel")
        .join(name)
}

/// Boots a kernel, this system's or the one that `settings` of the environment name, with these programs: ours by their
/// names, others by their paths.
fn boot(script: &Path, programs: &[&Path], settings: &[(&str, &str)]) -> Machine {
    let Some(built) = std::env::var_os(PROGRAMS) else {
        return Err(
            "skipped: cgroup v2 and other kernels, each in a machine of its own: `make test-kernel`"
                .to_owned(),
        );
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(tests.join("../scripts/kernel-vm"))
        .arg(script)
        .args(
            programs
                .iter()
                .map(|name| tests.join("..").join(&built).join(name)),
        )
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    let console = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        return Err(console.trim().to_owned());
    }
    assert!(output.status.success(), "{console}{errors}");
    println!("{console}");
    let cases = console
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| {
            (
                line["case"].as_str().unwrap().to_owned(),
                line["seen"].clone(),
            )
        })
        .collect();
    Ok(cases)
}

/// What a case saw; nothing where there is no machine, which is said.
fn seen(case: &str) -> Option<&'static Value> {
    match machine() {
        Ok(cases) => Some(cases.get(case).unwrap_or_else(|| {
            panic!("the machine said nothing of `{case}`");
        })),
        Err(reason) => {
            println!("{reason}");
            None
        }
    }
}

/// The reason of a gap in one of the limits, if it is one.
fn gap(confinement: &Value, layer: Layer) -> Option<&str> {
    let gaps = confinement["gaps"].as_array().unwrap();
    let gap = gaps.iter().find(|gap| gap["layer"] == json!(layer))?;
    Some(gap["reason"].as_str().unwrap())
}

/// Whether all three limits were measured, and nothing is a gap but what this kernel's Landlock cannot do, and `others`.
fn holds_limits(confinement: &Value, others: &[Layer]) {
    for layer in LIMITED {
        assert!(
            confinement["layers"]
                .as_array()
                .unwrap()
                .contains(&json!(layer)),
            "{layer}: {confinement}"
        );
    }
    let others: Vec<Value> = others.iter().map(|layer| json!(layer)).collect();
    for gap in confinement["gaps"].as_array().unwrap() {
        let layer = &gap["layer"];
        let landlock = layer.as_str().unwrap().starts_with("landlock-");
        assert!(landlock || others.contains(layer), "{confinement}");
    }
}

#[test]
fn all_three_limits_stand_in_one_group_and_are_measured() {
    let Some(seen) = seen("held") else { return };
    println!("Linux {}", seen["kernel"]);
    holds_limits(&seen["confinement"], &[]);
    assert_eq!(
        seen["files"],
        json!({
            "memory.max": "67108864",
            "memory.swap.max": "0",
            "memory.oom.group": "1",
            "pids.max": "32",
            "cpu.max": "50000 100000",
        })
    );
    let group = seen["group"].as_str().unwrap();
    assert!(
        group.starts_with("/boxmaker.service/boxmaker-test-limits-"),
        "{group}"
    );
    assert!(group.ends_with("/0"), "{group}");
}

#[test]
fn the_supervisor_stands_in_a_leaf_and_its_group_passes_controllers_on() {
    let Some(seen) = seen("settled") else { return };
    assert_eq!(
        *seen,
        json!({
            "before": "/boxmaker.service",
            "after": "/boxmaker.service/supervisor",
            "processes": "",
            "passed_on": "cpu memory pids",
        })
    );
}

#[test]
fn looking_moves_nothing_and_a_version_that_is_not_there_is_refused_when_it_is_demanded() {
    let Some(seen) = seen("demanded") else { return };
    assert_eq!(seen["group"], "/boxmaker.service");
    assert_eq!(seen["v2"], json!({ "missing": [] }));
    let error = seen["v1"]["error"].as_str().unwrap();
    let reason = "cgroup = \"v1\", but the memory controller is not in cgroup v1 on this host; ";
    assert!(error.starts_with(reason), "{error}");
}

#[test]
fn past_the_memory_limit_all_of_the_group_is_killed_and_the_cause_is_memory() {
    let Some(within) = seen("memory within") else {
        return;
    };
    assert_eq!(
        (&within["exit"]["code"], &within["stdout"]),
        (&json!(0), &json!("2097152\n"))
    );
    assert_eq!(within["cause"], "exited");
    let beyond = seen("memory beyond").unwrap();
    assert_eq!(
        *beyond,
        json!({ "exit": null, "cause": "memory", "stdout": "", "stderr": "", "group_left": false })
    );
}

#[test]
fn a_process_too_many_is_refused() {
    let Some(within) = seen("processes within") else {
        return;
    };
    assert_eq!(
        (&within["exit"]["code"], &within["stdout"]),
        (&json!(0), &json!("all\n"))
    );
    let beyond = seen("processes beyond").unwrap();
    assert_eq!(
        (&beyond["exit"]["code"], &beyond["stdout"]),
        (&json!(2), &json!(""))
    );
    let stderr = beyond["stderr"].as_str().unwrap();
    assert!(
        stderr.contains("can't fork: Resource temporarily unavailable"),
        "{stderr}"
    );
    assert_eq!(beyond["group_left"], false);
}

#[test]
fn a_loop_without_end_is_held_back() {
    let Some(seen) = seen("processor") else {
        return;
    };
    assert_eq!(
        *seen,
        json!({ "held_back": true, "cause": "aborted", "group_left": false })
    );
}

#[test]
fn processes_that_fork_and_ignore_signals_are_gone_with_their_group() {
    let Some(seen) = seen("killed") else { return };
    assert_eq!(
        *seen,
        json!({ "reached": true, "alive": [], "cause": "aborted", "group_left": false })
    );
}

#[test]
fn what_a_crash_left_is_killed_and_removed_at_the_next_start() {
    let Some(seen) = seen("left behind") else {
        return;
    };
    assert_eq!(seen["before"], "populated 1\nfrozen 0");
    assert_eq!(
        (&seen["gone"], &seen["status"]),
        (&json!(true), &json!("signal: 9 (SIGKILL)"))
    );
    assert_eq!(seen["next"]["stdout"], "works\n");
    assert_eq!(seen["removed"], true);
}

#[test]
fn each_controller_is_used_where_the_kernel_has_it() {
    let Some(seen) = seen("hybrid") else { return };
    holds_limits(&seen["confinement"], &[]);
    assert_eq!(seen["stdout"], "up\n");
    assert_eq!(
        *crate::seen("hybrid groups").unwrap(),
        json!({ "v1": "cpu", "v2": "memory pids", "left": "" })
    );
}

#[test]
fn started_in_its_leaf_by_the_unit_it_has_limits_too() {
    let Some(seen) = seen("leaf") else { return };
    holds_limits(&seen["confinement"], &[]);
    assert_eq!(seen["stdout"], "up\n");
}

#[test]
fn a_plain_user_has_limits_in_a_group_that_was_delegated_to_it() {
    let Some(with) = seen("plain user") else {
        return;
    };
    holds_limits(&with["confinement"], &[Layer::Uid]);
    let without = &seen("plain user without delegation").unwrap()["confinement"];
    for layer in [Layer::Memory, Layer::Cpu] {
        let reason = gap(without, layer).unwrap();
        let denied =
            "/sys/fs/cgroup/undelegated.service is not writable: Permission denied (os error 13)";
        assert_eq!(reason, format!("{denied}{WAY_OUT}"));
    }
}

#[test]
fn a_group_with_somebody_else_in_it_is_left_as_it_is_and_the_gap_says_what_helps() {
    let Some(seen) = seen("shared") else { return };
    for layer in LIMITED {
        let reason = gap(&seen["confinement"], layer).unwrap();
        assert!(reason.starts_with("process "), "{reason}");
        let rest = format!(" is in the group /shared.service too{WAY_OUT}");
        assert!(reason.ends_with(&rest), "{reason}");
    }
    assert_eq!(*crate::seen("shared afterwards").unwrap(), json!(""));
}

#[test]
fn a_group_that_is_given_no_controllers_says_what_helps() {
    let Some(seen) = seen("not delegated") else {
        return;
    };
    for layer in LIMITED {
        assert_eq!(
            gap(&seen["confinement"], layer).unwrap(),
            format!(
                "the group /plain.slice/boxmaker.service is given no {layer} controller{WAY_OUT}"
            )
        );
    }
}
