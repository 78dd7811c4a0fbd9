//! The rules of `config.toml` that its types do not carry (formats.md section 4).

use proto::config::Config;

use super::LoadError;
use super::document::Document;
use super::words::Place;

/// Uids that somebody else may have, first and last: no sandbox may share one.
const TAKEN_UIDS: [(u32, u32, &str); 3] = [
    (0, 999, "root and the system's own users"),
    (61_184, 65_519, "systemd's dynamic and container users"),
    (65_534, 65_535, "nobody, and -1 in 16 bits"),
];

/// Reads the configuration.
pub(super) fn read(document: &Document<'_>, errors: &mut Vec<LoadError>) -> Option<Config> {
    let config: Config = document.read(Place::Config, errors)?;
    let (first, count) = config.uid_range;
    let mut wrong = |rule: String| {
        let fix =
            "write [first uid, number of uids], or remove it: [1879048192, 65536] is the default";
        errors.push(document.error(&["uid_range"], rule, fix));
    };
    if count == 0 {
        wrong("`uid_range` holds no uid".to_owned());
        return Some(config);
    }
    // 4294967295 is -1, which no process can have.
    let Some(last) = first.checked_add(count - 1).filter(|last| *last < u32::MAX) else {
        wrong("`uid_range` ends above 4294967294".to_owned());
        return Some(config);
    };
    for (from, to, whose) in TAKEN_UIDS {
        if first <= to && from <= last {
            wrong(format!(
                "`uid_range` {first} to {last} holds uids of {from} to {to}: {whose}"
            ));
        }
    }
    Some(config)
}
