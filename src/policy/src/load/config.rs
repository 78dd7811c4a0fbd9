//! The rules of `config.toml` that its types do not carry (formats.md section 4).

use std::collections::BTreeMap;

use proto::Layer;
use proto::config::{Audit, Config, Restart};

use super::LoadError;
use super::document::Document;
use super::words::Place;

/// Uids that somebody else may have, first and last: no sandbox may share one.
const TAKEN_UIDS: [(u32, u32, &str); 3] = [
    (0, 999, "root and the system's own users"),
    (61_184, 65_519, "systemd's dynamic and container users"),
    (65_534, 65_535, "nobody, and -1 in 16 bits"),
];

/// The fewest uids that do: 16 that are kept for roles, and one for each of the 64 calls that may be in progress.
const FEWEST_UIDS: u32 = 16 + 64;

/// Layers without which a sandbox has level `none`, which no grant accepts: waiving one of them would let nothing run
/// (architecture.md section 4.1).
const NEVER_WAIVED: [Layer; 3] = [Layer::Caps, Layer::Nnp, Layer::Seccomp];

/// Reads the configuration.
pub(super) fn read(document: &Document<'_>, errors: &mut Vec<LoadError>) -> Option<Config> {
    let config: Config = document.read(Place::Config, errors)?;
    check_waived(document, &config.waive, errors);
    check_uids(document, config.uid_range, errors);
    check_restart(document, &config.restart, errors);
    check_audit(document, &config.audit, errors);
    check_pool(document, &config.pool, errors);
    Some(config)
}

fn check_waived(document: &Document<'_>, waived: &[Layer], errors: &mut Vec<LoadError>) {
    for (place, layer) in waived.iter().enumerate() {
        let (rule, fix) = if NEVER_WAIVED.contains(layer) {
            let rule = format!(
                "`waive` names `{layer}`: a sandbox without it has level none, with which nothing runs"
            );
            (rule, "remove it, and use a host that has it")
        } else if waived[..place].contains(layer) {
            (
                format!("`waive` names `{layer}` twice"),
                "remove one of them",
            )
        } else {
            continue;
        };
        errors.push(document.error(&["waive", &place.to_string()], rule, fix));
    }
}

fn check_uids(document: &Document<'_>, (first, count): (u32, u32), errors: &mut Vec<LoadError>) {
    let mut wrong = |rule: String| {
        let fix =
            "write [first uid, number of uids], or remove it: [1879048192, 65536] is the default";
        errors.push(document.error(&["uid_range"], rule, fix));
    };
    if count < FEWEST_UIDS {
        wrong(format!(
            "`uid_range` holds fewer uids than the {FEWEST_UIDS} of 16 roles and 64 calls: {count}"
        ));
        return;
    }
    // 4294967295 is -1, which no process can have.
    let Some(last) = first.checked_add(count - 1).filter(|last| *last < u32::MAX) else {
        wrong("`uid_range` ends above 4294967294".to_owned());
        return;
    };
    for (from, to, whose) in TAKEN_UIDS {
        if first <= to && from <= last {
            wrong(format!(
                "`uid_range` {first} to {last} holds uids of {from} to {to}: {whose}"
            ));
        }
    }
}

/// The smallest log that is of any use: its first records are those of the start.
const SMALLEST_LOG: u64 = 1 << 20;

fn check_audit(document: &Document<'_>, audit: &Audit, errors: &mut Vec<LoadError>) {
    let bytes = audit.max_bytes.get();
    if bytes < SMALLEST_LOG {
        let rule = format!("`audit.max_bytes` is {bytes}, less than {SMALLEST_LOG}");
        let fix = "write a number of bytes, of at least 1048576";
        errors.push(document.error(&["audit", "max_bytes"], rule, fix));
    }
}

/// Each stage that waits is a process and a group.
const LARGEST_POOL: u8 = 16;

fn check_pool(document: &Document<'_>, pool: &BTreeMap<String, u8>, errors: &mut Vec<LoadError>) {
    for (profile, size) in pool {
        let (rule, fix) = if profile.starts_with("roles/") {
            let rule = format!(
                "`pool` names `{profile}`: a role is started once, and no stage waits for it"
            );
            (rule, "remove it")
        } else if *size > LARGEST_POOL {
            let rule =
                format!("`pool` keeps {size} stages for `{profile}`, more than {LARGEST_POOL}");
            (rule, "write a number from 0 to 16")
        } else {
            continue;
        };
        errors.push(document.error(&["pool", profile], rule, fix));
    }
}

fn check_restart(document: &Document<'_>, restart: &Restart, errors: &mut Vec<LoadError>) {
    if restart.jitter > 100 {
        let rule = format!(
            "`restart.jitter` is {} percent: no wait is shorter than none",
            restart.jitter
        );
        let fix = "write a number of percent, from 0 to 100";
        errors.push(document.error(&["restart", "jitter"], rule, fix));
    }
    if restart.backoff_first > restart.backoff_max {
        // The key that stands there; the other one may be the default.
        let key = if document.has(&["restart", "backoff_max"]) {
            "backoff_max"
        } else {
            "backoff_first"
        };
        let rule = format!(
            "`restart.backoff_first` is {:?}, longer than `restart.backoff_max`, {:?}",
            restart.backoff_first, restart.backoff_max
        );
        let fix = "write a `backoff_max` that is at least as long";
        errors.push(document.error(&["restart", key], rule, fix));
    }
}
