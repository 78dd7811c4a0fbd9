//! Other kernels than this host's, each booted once: level, layers and gaps are those of the table in docs/confinement.md.

use std::path::Path;
use std::process::Command;

use boxmaker_tests::claims::{Layers, finding, gaps, lacks, layers, quoted, table};
use serde_json::json;

use crate::{Machine, boot, own_script};

const PROGRAMS: [&str; 4] = ["boxmaker", "boxmaker-stage", "brokerd", "toolkit"];

/// One row: a kernel, and what is claimed of it.
struct Row {
    /// The release of Debian whose kernel it is, and what is added to its command line.
    release: String,
    arguments: String,
    level: String,
    /// Of every sandbox of root.
    gaps: Layers,
    /// Besides, of one that is shown a granted tree.
    of_files: Layers,
    /// Besides, of one of a plain user.
    of_user: Layers,
}

fn rows() -> Vec<Row> {
    let row = |cells: Vec<String>| {
        let [_, kernel, level, gaps, of_files, of_user] = cells
            .try_into()
            .unwrap_or_else(|cells| panic!("six cells, not {cells:?}"));
        let [release, arguments @ ..] = &quoted(&kernel)[..] else {
            panic!("no release: {kernel}");
        };
        Row {
            release: release.clone(),
            arguments: arguments.join(" "),
            level,
            gaps: layers(&gaps),
            of_files: layers(&of_files),
            of_user: layers(&of_user),
        }
    };
    table("### By kernel").into_iter().map(row).collect()
}

/// The kernel of the last row, which is fetched.
pub(crate) fn newest() -> Result<String, String> {
    fetched(&rows().last().unwrap().release)
}

/// The path of the kernel of a release of Debian; nothing is fetched where nothing could be booted.
pub(crate) fn fetched(release: &str) -> Result<String, String> {
    if std::env::var_os(crate::PROGRAMS).is_none() {
        return Ok(String::new());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/debian-kernel");
    let found = Command::new(script).arg(release).output().unwrap();
    let said = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    if found.status.success() {
        return Ok(said);
    }
    assert!(said.starts_with("skipped"), "{found:?}");
    Err(said)
}

/// Boots the kernel of a row.
fn machine(row: &Row) -> Machine {
    let kernel = fetched(&row.release)?;
    let settings = [
        ("BOXMAKER_KERNEL", kernel.as_str()),
        ("BOXMAKER_KERNEL_ARGUMENTS", row.arguments.as_str()),
    ];
    boot(
        &own_script("on-another-kernel"),
        &PROGRAMS.map(Path::new),
        &settings,
    )
}

#[test]
fn kernels_have_the_level_and_the_gaps_that_are_tabled() {
    for row in rows() {
        let cases = match machine(&row) {
            Ok(cases) => cases,
            Err(reason) => {
                println!("{reason}");
                continue;
            }
        };
        let and = |more: &Layers| row.gaps.union(more).cloned().collect::<Layers>();
        let root = &cases["root"];
        println!("Linux {}, {}", root["kernel"], row.arguments);
        assert_eq!(root["level"], row.level, "{root}");
        lacks(root, "roles/brokerd", &row.gaps);
        lacks(root, "tools/base", &row.gaps);
        lacks(root, "/srv/notes", &and(&row.of_files));
        let user = &cases["plain user"];
        assert_eq!(user["level"], "partial", "{user}");
        lacks(user, "roles/brokerd", &and(&row.of_user));
        lacks(user, "/srv/notes", &and(&row.of_user));
        // Settings that close user namespaces to plain users, and what is said to open them again.
        let cases_of = |head: &str| {
            let of = |(case, _): &(&String, _)| case.starts_with(head);
            cases
                .iter()
                .filter(of)
                .map(|(_, seen)| seen)
                .collect::<Vec<_>>()
        };
        let (closed, opened) = (cases_of("closed by "), cases_of("opened with sysctl "));
        let tried = match row.release.as_str() {
            "bookworm" => 2,
            _ => 0,
        };
        assert_eq!((closed.len(), opened.len()), (tried, tried));
        for closed in closed {
            assert!(
                gaps(finding(closed, "tools/base")).contains("mount"),
                "{closed}"
            );
        }
        for opened in opened {
            lacks(opened, "tools/base", &and(&row.of_user));
        }
        // As root everything asks for full, and starts only where it is to be had, or what is missing is waived.
        let expected = match row.level.as_str() {
            "full" => json!({ "up": true }),
            _ => json!({ "up": false, "weak": 1 }),
        };
        assert_eq!(cases["plain"], expected);
        assert_eq!(cases["waived"], json!({ "up": true }));
    }
}
