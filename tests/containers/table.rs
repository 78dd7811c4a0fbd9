//! The tables of containers in docs/confinement.md, and each of their rows tried.

use boxmaker_tests::claims::{Layers, lacks, layers, quoted, table};
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
    options: Vec<String>,
    level: String,
    /// Of every sandbox.
    gaps: Layers,
    /// Besides, of one that is shown a granted tree of the image.
    of_image: Layers,
    /// Besides, of one that is shown a granted tree of a volume.
    of_volume: Layers,
}

/// The rows of the table below the heading `heading`.
pub(crate) fn rows(heading: &str) -> Vec<Row> {
    let row = |cells: Vec<String>| {
        let [_, options, level, gaps, of_files] = cells
            .try_into()
            .unwrap_or_else(|cells| panic!("five cells, not {cells:?}"));
        let of_image = layers(&of_files);
        Row {
            options: quoted(&options),
            level,
            gaps: layers(&gaps),
            of_volume: match of_files.ends_with("also of a volume") {
                true => of_image.clone(),
                false => Layers::new(),
            },
            of_image,
        }
    };
    table(heading).into_iter().map(row).collect()
}

impl Row {
    pub(crate) fn options(&self) -> Vec<&str> {
        self.options.iter().map(String::as_str).collect()
    }

    /// Checks that the diagnosis is what the row says: its level, its gaps, and every other layer held.
    pub(crate) fn judge(&self, diagnosis: &Value) {
        assert_eq!(diagnosis["level"], self.level, "{self:?}: {diagnosis}");
        let and = |more: &Layers| self.gaps.union(more).cloned().collect();
        println!("{:?}", self.options);
        lacks(diagnosis, "roles/brokerd", &self.gaps);
        lacks(diagnosis, "tools/base", &self.gaps);
        lacks(diagnosis, "/srv/notes", &and(&self.of_image));
        lacks(diagnosis, "/data", &and(&self.of_volume));
    }
}

#[test]
fn containers_have_the_level_and_the_gaps_that_are_tabled() {
    let Some(image) = Image::get("the table of containers") else {
        return;
    };
    for row in rows("### By options of Docker") {
        row.judge(&diagnosis(&image.run(&row.options(), DOCTOR)));
    }
}
