//! systemd as pid 1 in systemd-nspawn, with boxmaker as one of its units.

use std::path::Path;
use std::process::Command;

use boxmaker_tests::claims::{finding, gaps};

use crate::image::{Image, diagnosis, printed};
use crate::table::{DOCTOR, rows};

/// Whether systemd-nspawn is here; that it is not is said.
fn is_here(test: &str) -> bool {
    let found = Command::new("systemd-nspawn").arg("--version").output();
    let here = found.is_ok_and(|output| output.status.success());
    if !here {
        println!("skipped: {test} needs systemd-nspawn: apt-get install systemd-container");
    }
    here
}

#[test]
fn a_unit_in_nspawn_has_the_level_and_the_gaps_that_are_tabled() {
    let Some(image) = Image::get("the table of systemd-nspawn")
        .filter(|_| is_here("the table of systemd-nspawn"))
    else {
        return;
    };
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        println!("skipped: the table of systemd-nspawn is about hosts with cgroup v1");
        return;
    }
    for row in rows("### By options of systemd-nspawn") {
        row.judge(&diagnosis(&image.boot(&row.options(), DOCTOR)));
    }
}

#[test]
fn a_unit_without_landlock_is_told_the_option_that_the_table_has() {
    let Some(image) =
        Image::get("advice in systemd-nspawn").filter(|_| is_here("advice in systemd-nspawn"))
    else {
        return;
    };
    let found = diagnosis(&image.boot(&[], DOCTOR));
    assert_eq!(found["place"], "systemd-nspawn");
    let seen = finding(&found, "tools/base")["gaps"]
        .as_array()
        .expect("gaps");
    let landlock = seen.iter().find(|gap| gap["layer"] == "landlock-fs");
    let helps = landlock
        .and_then(|gap| gap["helps"].as_str())
        .expect("what helps");
    let (named, _) = helps.split_once(';').expect("options first");
    let options = named.strip_prefix("start the container with ");
    let options: Vec<&str> = options.expect("options").split(' ').collect();
    let with = image.boot(&options, DOCTOR);
    let left = gaps(finding(&diagnosis(&with), "tools/base"));
    assert!(
        left.iter().all(|layer| !layer.starts_with("landlock")),
        "{left:?}"
    );
}

#[test]
fn the_demo_ends_well_as_a_unit() {
    let Some(image) =
        Image::get("the demo in systemd-nspawn").filter(|_| is_here("the demo in systemd-nspawn"))
    else {
        return;
    };
    let demo = ["boxmaker", "demo", "--state", "/root/state"];
    let text = printed(&image.boot(&[], &demo));
    assert!(text.contains("The log is sound"), "{text}");
}
