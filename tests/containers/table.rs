//! The tables of docs/confinement.md, and each of their rows tried.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::image::{Image, diagnosis};

/// What looks at a container.
pub(crate) const DOCTOR: &[&str] = &[
    "boxmaker",
    "doctor",
    "--json",
    "--config",
    "/etc/boxmaker/plain",
];

/// One row: how the container is started, and what is claimed of it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) options: Vec<String>,
    pub(crate) level: String,
    /// Of every sandbox.
    pub(crate) gaps: BTreeSet<String>,
    /// Besides, of one that is shown a granted tree of the image.
    of_image: BTreeSet<String>,
    /// Besides, of one that is shown a granted tree of a volume.
    of_volume: BTreeSet<String>,
}

/// The rows of the table below the heading `heading`.
pub(crate) fn rows(heading: &str) -> Vec<Row> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/confinement.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let after = text
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading}"))
        .1;
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_matches('|');
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<Row> = after
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let [_, options, level, gaps, of_files] = cells(line)
                .try_into()
                .unwrap_or_else(|cells| panic!("five cells, not {cells:?}"));
            let of_volume = match of_files.ends_with("also of a volume") {
                true => layers(&of_files),
                false => BTreeSet::new(),
            };
            Row {
                options: options
                    .replace('`', "")
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect(),
                level,
                gaps: layers(&gaps),
                of_image: layers(&of_files),
                of_volume,
            }
        })
        .collect();
    assert!(!rows.is_empty(), "no rows below {heading}");
    rows
}

/// The layers of a cell, each in backticks.
fn layers(cell: &str) -> BTreeSet<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The gaps of a finding, which must have been measured.
pub(crate) fn gaps(finding: &Value) -> BTreeSet<String> {
    let gaps = finding["gaps"].as_array();
    let gaps = gaps.unwrap_or_else(|| panic!("{finding}"));
    let layer = |gap: &Value| gap["layer"].as_str().expect("a layer").to_owned();
    gaps.iter().map(layer).collect()
}

/// The finding of a profile or a granted path.
pub(crate) fn finding<'a>(diagnosis: &'a Value, of: &str) -> &'a Value {
    let (all, key) = match of.starts_with('/') {
        true => ("paths", "path"),
        false => ("profiles", "profile"),
    };
    let all = diagnosis[all].as_array().expect("findings");
    all.iter()
        .find(|one| one[key] == of)
        .unwrap_or_else(|| panic!("nothing of {of}: {diagnosis}"))
}

/// Whether the diagnosis is what the row says: its level, its gaps, and every other layer held.
pub(crate) fn judge(row: &Row, diagnosis: &Value) {
    assert_eq!(diagnosis["level"], row.level, "{row:?}: {diagnosis}");
    let and = |more: &BTreeSet<String>| row.gaps.union(more).cloned().collect();
    let expected: [(&str, BTreeSet<String>); 4] = [
        ("roles/brokerd", row.gaps.clone()),
        ("tools/base", row.gaps.clone()),
        ("/srv/notes", and(&row.of_image)),
        ("/data", and(&row.of_volume)),
    ];
    for (of, expected) in expected {
        let finding = finding(diagnosis, of);
        assert_eq!(gaps(finding), expected, "{of} in {row:?}: {finding}");
        let held: BTreeSet<String> = finding["layers"]
            .as_array()
            .expect("layers")
            .iter()
            .map(|layer| layer.as_str().expect("a layer").to_owned())
            .collect();
        let all: BTreeSet<String> = proto::Layer::ALL
            .iter()
            .map(|layer| layer.as_str().to_owned())
            .collect();
        let rest: BTreeSet<String> = all.difference(&expected).cloned().collect();
        assert_eq!(held, rest, "{of} in {row:?}");
    }
}

#[test]
fn containers_have_the_level_and_the_gaps_that_are_tabled() {
    let Some(image) = Image::get("the table of containers") else {
        return;
    };
    for row in rows("### By options of Docker") {
        let options: Vec<&str> = row.options.iter().map(String::as_str).collect();
        judge(&row, &diagnosis(&image.run(&options, DOCTOR)));
    }
}
