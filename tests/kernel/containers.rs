//! Containers on a host with cgroup v2, which this host need not have: runc runs in the machine, with what
//! `scripts/container` would give it there.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use boxmaker_tests::claims::{finding, lacks, layers, quoted, table};
use serde_json::{Value, json};

use crate::kernels::newest;
use crate::{LIMITED, PROGRAMS, boot};

/// What the script does before the containers: the groups of a host, and a root for them.
const BEFORE: &str = "#!/bin/sh
set -u
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
echo '+cpu +memory +pids' > /sys/fs/cgroup/cgroup.subtree_control
mkdir /ct
cp -a /bin /usr /lib* /etc /ct/
mkdir -m 1777 /ct/tmp
cd /ct && mkdir proc sys dev run root
touch .dockerenv
";

/// Options that are not about cgroup v2.
fn is_elsewhere(options: &[String]) -> bool {
    options
        .iter()
        .any(|word| word == "--remap" || word.starts_with("/sys/fs/cgroup"))
}

/// What runc is told of a container.
fn description(options: &[String]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/container");
    let told = Command::new(script)
        .arg("describe")
        .args(options)
        .arg("/ct")
        .args(["boxmaker", "doctor", "--json", "--config", "/nonexistent"])
        .output()
        .unwrap();
    assert!(told.status.success(), "{told:?}");
    String::from_utf8(told.stdout).unwrap()
}

/// The script that runs a container for each of `all` and prints its diagnosis.
fn script(all: &[Vec<String>]) -> String {
    let mut text = BEFORE.to_owned();
    for (number, options) in all.iter().enumerate() {
        let description = description(options);
        text.push_str(&format!(
            "mkdir /tmp/{number}\n\
             cat > /tmp/{number}/config.json <<'END'\n{description}END\n\
             seen=$(runc --root /run/runc run --bundle /tmp/{number} c{number})\n\
             printf '{{\"case\":\"{number}\",\"seen\":%s}}\\n' \"$seen\"\n"
        ));
    }
    text
}

/// The diagnosis in a container of each of `all`; nothing where there is no machine, which is said.
fn seen(all: &[Vec<String>]) -> Option<Vec<Value>> {
    let on_path = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|directory| directory.join(program))
            .find(|path| path.is_file())
    };
    if std::env::var_os(PROGRAMS).is_some() && on_path("runc").is_none() {
        println!("skipped: containers on cgroup v2 need runc: apt-get install runc");
        return None;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let runc = on_path("runc").unwrap_or_default();
    if std::env::var_os(PROGRAMS).is_some() {
        file.write_all(script(all).as_bytes()).unwrap();
    }
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(file.path(), mode).unwrap();
    let programs = ["boxmaker", "boxmaker-stage", "toolkit"].map(Path::new);
    let programs = [&programs[..], &[&runc]].concat();
    let cases = newest().and_then(|kernel| {
        let settings = [("BOXMAKER_KERNEL", kernel.as_str())];
        boot(file.path(), &programs, &settings)
    });
    match cases {
        Ok(cases) => {
            let all = (0..all.len()).map(|number| cases[&number.to_string()].clone());
            Some(all.collect())
        }
        Err(reason) => {
            println!("{reason}");
            None
        }
    }
}

#[test]
fn containers_on_cgroup_v2_have_the_level_and_the_gaps_that_are_tabled() {
    let rows: Vec<_> = table("### By options of Docker")
        .into_iter()
        .map(|row| (quoted(&row[1]), row[2].clone(), layers(&row[3])))
        .filter(|(options, _, _)| !is_elsewhere(options))
        .collect();
    let options: Vec<_> = rows.iter().map(|(options, _, _)| options.clone()).collect();
    let Some(seen) = seen(&options) else { return };
    for ((options, level, gaps), diagnosis) in rows.iter().zip(&seen) {
        println!("{options:?}");
        assert_eq!(diagnosis["level"], *level, "{diagnosis}");
        lacks(diagnosis, "roles/brokerd", gaps);
        lacks(diagnosis, "tools/base", gaps);
        // The option that the table has for limits.
        for gap in finding(diagnosis, "tools/base")["gaps"].as_array().unwrap() {
            let helps = gap["helps"].as_str().unwrap();
            if LIMITED.iter().any(|layer| gap["layer"] == json!(layer)) {
                let option = "start the container with --security-opt writable-cgroups=true";
                assert!(helps.starts_with(option), "{helps}");
            }
        }
    }
}
