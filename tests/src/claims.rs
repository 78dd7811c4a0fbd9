//! What the tables of docs/confinement.md claim, and whether a diagnosis of `boxmaker doctor --json` is that.

use std::collections::BTreeSet;
use std::path::Path;

use proto::Layer;
use serde_json::Value;

/// The names of layers.
pub type Layers = BTreeSet<String>;

/// The cells of each row of the table below the heading `heading`, whole as it stands there.
///
/// # Panics
/// There is no such heading, or no table below it.
#[must_use]
pub fn table(heading: &str) -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/confinement.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let below = text.split_once(&format!("\n{heading}\n"));
    let (_, below) = below.unwrap_or_else(|| panic!("no heading {heading}"));
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_matches('|');
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<_> = below
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(cells)
        .collect();
    assert!(!rows.is_empty(), "no table below {heading}");
    rows
}

/// What stands in a cell in backticks: layers, or the words of a command.
#[must_use]
pub fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

/// The layers of a cell.
///
/// # Panics
/// A name is that of no layer.
#[must_use]
pub fn layers(cell: &str) -> Layers {
    let names = quoted(cell);
    let known = |name: &String| Layer::ALL.iter().any(|layer| layer.as_str() == name);
    assert!(names.iter().all(known), "{cell}");
    names.into_iter().collect()
}

/// The finding of a profile or a granted path.
///
/// # Panics
/// The diagnosis has none.
#[must_use]
pub fn finding<'a>(diagnosis: &'a Value, of: &str) -> &'a Value {
    let (all, key) = match of.starts_with('/') {
        true => ("paths", "path"),
        false => ("profiles", "profile"),
    };
    let all = diagnosis[all].as_array().expect("findings");
    all.iter()
        .find(|one| one[key] == of)
        .unwrap_or_else(|| panic!("nothing of {of}: {diagnosis}"))
}

/// The gaps of a finding.
///
/// # Panics
/// Nothing was measured.
#[must_use]
pub fn gaps(finding: &Value) -> Layers {
    let gaps = finding["gaps"].as_array();
    let gaps = gaps.unwrap_or_else(|| panic!("{finding}"));
    let layer = |gap: &Value| gap["layer"].as_str().expect("a layer").to_owned();
    gaps.iter().map(layer).collect()
}

/// Checks that exactly the layers `missing` are gaps of the finding of `of`, and that every other one holds.
///
/// # Panics
/// It is otherwise.
pub fn lacks(diagnosis: &Value, of: &str, missing: &Layers) {
    let finding = finding(diagnosis, of);
    assert_eq!(gaps(finding), *missing, "{of}: {finding}");
    let held: Layers = finding["layers"]
        .as_array()
        .expect("layers")
        .iter()
        .map(|layer| layer.as_str().expect("a layer").to_owned())
        .collect();
    let all = Layer::ALL.iter().map(|layer| layer.as_str().to_owned());
    let rest: Layers = all.filter(|layer| !missing.contains(layer)).collect();
    assert_eq!(held, rest, "{of}: {finding}");
}
