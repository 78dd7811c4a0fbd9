//! What `boxmaker doctor` says helps in a container is done to the letter, and helps.

use std::collections::{BTreeMap, BTreeSet};

use boxmaker_tests::claims::{finding, gaps};
use serde_json::Value;

use crate::image::{Image, diagnosis};
use crate::table::DOCTOR;

/// The options in a sentence of advice: every word from the first that begins with two dashes.
fn options(advice: &str) -> Vec<&str> {
    let start = advice.find("--").unwrap_or(advice.len());
    advice[start..].split_whitespace().collect()
}

/// What is said to help a sandbox of `tools/base`: the options, and the layers that they are said to bring. No layers
/// where there is no sandbox at all.
fn advice(diagnosis: &Value) -> BTreeMap<Vec<String>, BTreeSet<String>> {
    let base = finding(diagnosis, "tools/base");
    let mut advice: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    let mut add = |told: &Value, layer: Option<&Value>| {
        let text = told["helps"].as_str();
        let text = text.unwrap_or_else(|| panic!("nothing helps: {told}"));
        let words = options(text).into_iter().map(str::to_owned).collect();
        let layers = advice.entry(words).or_default();
        layers.extend(layer.and_then(Value::as_str).map(str::to_owned));
    };
    match base["gaps"].as_array() {
        Some(gaps) => gaps.iter().for_each(|gap| add(gap, Some(&gap["layer"]))),
        None => add(base, None),
    }
    advice
}

/// Starts from `options` and does what is said to help, one advice after the other, until nothing is left to say. Each
/// advice must bring the layers that it was given for.
fn follow(image: &Image, start: &[&str]) -> Value {
    let mut options: Vec<String> = start.iter().copied().map(str::to_owned).collect();
    let run = |options: &[String]| {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        diagnosis(&image.run(&options, DOCTOR))
    };
    let mut found = run(&options);
    for _ in 0..6 {
        let Some((more, layers)) = advice(&found).into_iter().next() else {
            return found;
        };
        assert!(!more.is_empty(), "no option is named: {found}");
        options.extend(more.iter().cloned());
        let next = run(&options);
        let left = gaps(finding(&next, "tools/base"));
        let still: BTreeSet<_> = layers.intersection(&left).collect();
        assert!(still.is_empty(), "{options:?} leaves {still:?}: {next}");
        found = next;
    }
    panic!("there is no end of advice: {options:?}: {found}");
}

#[test]
fn what_doctor_names_brings_root_in_a_default_container_to_full() {
    let Some(image) = Image::get("advice to root") else {
        return;
    };
    let found = follow(image, &[]);
    assert_eq!(
        (&found["level"], &found["place"]),
        (&"full".into(), &"docker".into())
    );
}

#[test]
fn what_doctor_names_brings_a_plain_user_in_a_default_container_to_full() {
    let Some(image) = Image::get("advice to a plain user") else {
        return;
    };
    let found = follow(image, &["--user", "1000"]);
    assert_eq!(found["level"], "full");
}

#[test]
fn the_capability_without_the_calls_is_told_that_the_filter_is_in_the_way() {
    let Some(image) = Image::get("advice about the filter") else {
        return;
    };
    let found = diagnosis(&image.run(&["--cap-add", "SYS_ADMIN"], DOCTOR));
    let base = finding(&found, "tools/base");
    let error = base["error"].as_str().expect("an error");
    assert!(error.contains("pivot_root"), "{error}");
    assert_eq!(
        base["helps"],
        "start the container with --security-opt seccomp=unconfined"
    );
}

#[test]
fn files_of_the_image_are_told_of_volumes() {
    let Some(image) = Image::get("advice about files") else {
        return;
    };
    let found = diagnosis(&image.run(&["--privileged"], DOCTOR));
    let gap = &finding(&found, "/srv/notes")["gaps"][0];
    assert_eq!(gap["layer"], "uid");
    let helps = gap["helps"].as_str().expect("what helps");
    assert!(
        helps.contains("not overlayfs") && helps.contains("--volume"),
        "{helps}"
    );
}

#[test]
fn a_limit_that_does_not_count_root_is_not_said_to_hold_it() {
    let Some(image) = Image::get("processes of root") else {
        return;
    };
    let options = [
        "--security-opt",
        "seccomp=unconfined",
        "--security-opt",
        "systempaths=unconfined",
    ];
    let found = diagnosis(&image.run(&options, DOCTOR));
    let has_gap = |of| gaps(finding(&found, of)).contains("pids");
    assert!(has_gap("/srv/roots"), "{found}");
    assert!(!has_gap("/srv/notes"), "{found}");
}

#[test]
fn uids_that_the_container_does_not_have_are_answered_with_those_that_it_has() {
    let Some(image) = Image::get("uids of a remapped container") else {
        return;
    };
    let doctor = [
        "boxmaker",
        "doctor",
        "--json",
        "--config",
        "/etc/boxmaker/usual",
    ];
    let options = ["--remap", "--privileged"];
    let found = diagnosis(&image.run(&options, &doctor));
    let error = finding(&found, "tools/base")["error"].as_str();
    let error = error.expect("an error");
    assert!(
        error.ends_with("write uid_range = [32768, 16384] in config.toml"),
        "{error}"
    );
    // The configuration that says so.
    let found = diagnosis(&image.run(&options, DOCTOR));
    assert_eq!(found["level"], "partial");
}
