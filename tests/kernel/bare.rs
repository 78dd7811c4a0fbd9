//! Sandboxes without namespaces on other kernels than this host's, each booted once: level and gaps are those of the table
//! in docs/confinement.md, and where a call may run at all an old Landlock lets through nothing that a newer one holds.

use std::collections::BTreeMap;
use std::path::Path;

use boxmaker_tests::claims::{lacks, layers, quoted, table};
use boxmaker_tests::escape::probe;
use serde_json::Value;

use crate::kernels::fetched;
use crate::{boot, own_script};

/// What the probe tries in the machine, by the number there, and what may answer it: Landlock, or under an old one the filter.
const ANSWERS: [(&str, &[&str]); 18] = [
    ("1", &["ok"]),
    ("2", &["ok"]),
    ("3", &["EACCES"]),
    ("4", &["EACCES", "EPERM"]),
    ("5", &["EACCES", "EPERM"]),
    ("6", &["EACCES", "EPERM"]),
    ("7", &["EACCES", "EPERM"]),
    ("8", &["EACCES"]),
    ("9", &["EACCES"]),
    ("10", &["EXDEV"]),
    ("11", &["EPERM"]),
    ("12", &["EPERM"]),
    ("13", &["EACCES"]),
    ("14", &["EPERM"]),
    ("15", &["EPERM"]),
    ("16", &["EPERM"]),
    // A newer Landlock is asked when the kernel sends the signal; that none comes is shown by the escape suite.
    ("17", &["ok", "EPERM"]),
    ("18", &["EPERM"]),
];

/// The answers of the probe by number.
fn answers<'a>(told: impl Iterator<Item = &'a Value>) -> BTreeMap<String, String> {
    let word = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    told.map(|one| match word(one, "outcome").as_str() {
        "refused" => (word(one, "id"), word(one, "errno")),
        other => (word(one, "id"), other.to_owned()),
    })
    .collect()
}

#[test]
fn kernels_hold_without_namespaces_what_is_tabled() {
    let probe = match probe() {
        Ok(probe) => probe,
        Err(reason) => return println!("skipped: other kernels without namespaces: {reason}"),
    };
    for row in table("### By kernel, without namespaces") {
        let [_, release, level, gaps] = &row[..] else {
            panic!("four cells, not {row:?}");
        };
        let gaps = layers(gaps);
        let cases = fetched(&quoted(release)[0]).and_then(|kernel| {
            let ours = [
                "boxmaker",
                "boxmaker-stage",
                "brokerd",
                "toolkit",
                "launch-probe",
            ];
            let programs: Vec<&Path> = ours.map(Path::new).into_iter().chain([probe]).collect();
            let settings = [("BOXMAKER_KERNEL", kernel.as_str())];
            boot(&own_script("without-namespaces"), &programs, &settings)
        });
        let cases = match cases {
            Ok(cases) => cases,
            Err(reason) => {
                println!("{reason}");
                continue;
            }
        };
        let doctor = &cases["doctor"];
        println!("Linux {}", doctor["kernel"]);
        assert_eq!(doctor["level"], *level, "{doctor}");
        lacks(doctor, "roles/brokerd", &gaps);
        lacks(doctor, "tools/base", &gaps);
        let free = answers(cases["free"].as_array().unwrap().iter());
        assert_eq!(free.len(), ANSWERS.len());
        assert!(free.values().all(|answer| answer == "ok"), "{free:?}");
        let bare = &cases["bare"];
        assert_eq!(bare["confinement"]["level"], *level);
        if level == "none" {
            // It never passes; what it would hold back is not promised.
            continue;
        }
        let told: Vec<Value> = bare["stdout"]
            .as_str()
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let told = answers(told.iter());
        assert_eq!(told.len(), ANSWERS.len(), "{bare}");
        for (id, expected) in ANSWERS {
            assert!(expected.contains(&told[id].as_str()), "{id}: {told:?}");
        }
        if gaps.contains("landlock-scope") {
            assert_eq!(told["17"], "EPERM");
        }
    }
}
