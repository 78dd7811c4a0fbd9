//! A home whose parts belong to somebody else, or that others may write.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use boxmaker_tests::binaries::skipped_without_root;

use crate::homes::{USER, home, plain_home, refused, serves};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_home_that_others_may_write_or_that_is_somebody_elses_starts_nothing() {
    if skipped_without_root("a_home_that_others_may_write") {
        return;
    }
    let home = home();
    serves(&home);
    for part in ["", "run"] {
        let path = home.home().join(part);
        let before = fs::metadata(&path).unwrap().mode() & 0o7777;
        mode(&path, before | 0o002);
        let open = refused(&home, 1);
        assert!(open.contains("may be written by everybody"), "{open}");
        assert!(open.contains("chmod go-w"), "{open}");
        mode(&path, before);
        chown(&path, Some(USER), None).unwrap();
        let foreign = refused(&home, 1);
        let said = format!("belongs to uid {USER}, and boxmaker was started by uid 0");
        assert!(foreign.contains(&said), "{foreign}");
        assert!(foreign.contains("start boxmaker as that user"), "{foreign}");
        chown(&path, Some(0), None).unwrap();
    }
    serves(&home);
}

#[test]
fn each_part_of_the_home_that_a_plain_user_may_not_write_is_named() {
    if skipped_without_root("each_part_of_the_home_that_a_plain_user_may_not_write") {
        return;
    }
    let home = plain_home();
    serves(&home);
    let entries = fs::read_dir(home.home().join("audit")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let day = names.into_iter().find(|name| name.ends_with(".jsonl"));
    let day = format!("audit/{}", day.unwrap());
    // What root leaves behind when it starts boxmaker, or copies a home.
    for part in [
        "run/lock",
        "run/bxctl",
        "audit",
        "audit/lock",
        &day,
        "anchor",
    ] {
        let path = home.home().join(part);
        chown(&path, Some(0), Some(0)).unwrap();
        let told = refused(&home, 1);
        assert!(told.contains(&path.display().to_string()), "{part}: {told}");
        let denied = ["Permission denied", "Operation not permitted"];
        assert!(
            denied.iter().any(|said| told.contains(said)),
            "{part}: {told}"
        );
        assert!(told.contains("the user whose home it is"), "{part}: {told}");
        assert!(told.contains("chown"), "{part}: {told}");
        chown(&path, Some(USER), Some(USER)).unwrap();
    }
    // And what its owner closed to themselves.
    for part in ["", "run", "run/lock", "audit", "audit/lock", &day, "anchor"] {
        let path = home.home().join(part);
        let before = fs::metadata(&path).unwrap().mode() & 0o7777;
        mode(&path, 0);
        let told = refused(&home, 1);
        mode(&path, before);
        assert!(told.contains(&path.display().to_string()), "{part}: {told}");
        assert!(told.contains("Permission denied"), "{part}: {told}");
        assert!(told.contains("chmod"), "{part}: {told}");
    }
    serves(&home);
}
