//! One module for each area of the table, one test in it for each column. A failure names every row that answered
//! something else than the table says.

use std::fs;
use std::path::Path;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::escape::{AREAS, Column, Room, Row, Stage, column, probe, rows};

macro_rules! areas {
    ($($area:ident,)+) => {
        #[test]
        fn every_area_has_its_tests() {
            let tested: &[&str] = &[$(stringify!($area)),+];
            assert!(AREAS.iter().map(|(area, _)| area).eq(tested));
        }
        $(
            mod $area {
                use boxmaker_tests::escape::Column;

                const AREA: &str = stringify!($area);

                #[test]
                fn succeed_without_a_sandbox() {
                    super::answer_as_the_table_says(AREA, Column::Free, false);
                }

                #[test]
                fn are_held_back_in_ours_as_root() {
                    super::answer_as_the_table_says(AREA, Column::Root, false);
                }

                #[test]
                fn are_held_back_in_ours_as_root_in_a_stage_that_waited() {
                    super::answer_as_the_table_says(AREA, Column::Root, true);
                }

                #[test]
                fn are_held_back_in_ours_without_root() {
                    super::answer_as_the_table_says(AREA, Column::Rootless, false);
                }

                #[test]
                fn are_held_back_in_ours_without_root_in_a_stage_that_waited() {
                    super::answer_as_the_table_says(AREA, Column::Rootless, true);
                }

                #[test]
                fn answer_as_they_should_in_ours_without_namespaces() {
                    super::answer_as_the_table_says(AREA, Column::Bare, false);
                }

                #[test]
                fn answer_as_they_should_in_bubblewrap() {
                    super::answer_as_the_table_says(AREA, Column::Bubblewrap, false);
                }
            }
        )+
    };
}

areas! {
    files,
    modes,
    mounts,
    processes,
    privilege,
    calls,
    network,
    resources,
    information,
}

fn area(name: &str) -> Vec<Row> {
    let (_, text) = AREAS.iter().find(|(area, _)| *area == name).unwrap();
    rows(text)
}

fn answer_as_the_table_says(name: &str, column: Column, pooled: bool) {
    let test = format!("escape, {name} in {column:?}, pooled {pooled}");
    if skipped_without_root(&test) {
        return;
    }
    let probe = match probe() {
        Ok(probe) => probe,
        Err(reason) => return println!("skipped: {test}: {reason}"),
    };
    let room = Room::new(probe);
    if column == Column::Bubblewrap
        && let Err(reason) = column::bubblewrap_works(&room)
    {
        return println!("skipped: {test}: {reason}");
    }
    let rows = area(name);
    let ran = column.run(
        &room,
        &rows,
        &Stage {
            pooled,
            ..Stage::default()
        },
    );
    assert_eq!(ran.failed, None, "a sandbox was not launched");
    let mut wrong = Vec::new();
    for (row, answer) in rows.iter().zip(&ran.answers) {
        let gap = |layer: &String| {
            let measured = ran.confinement.iter().flat_map(|measured| &measured.gaps);
            let mut gaps = measured.map(|gap| gap.layer.to_string());
            gaps.any(|gap| gap == *layer)
        };
        let said = column == Column::Bare && row.bare;
        if !said && row.layer.as_ref().is_some_and(gap) {
            println!(
                "skipped: {test}: {}: its layer is a gap on this host",
                row.name
            );
            continue;
        }
        let expected = row.expected(column);
        if !expected.is(answer) {
            wrong.push(format!(
                "{} [{}]: {expected} expected, {} answered ({})",
                row.name,
                row.act,
                answer.word(),
                answer.detail
            ));
        }
    }
    assert!(wrong.is_empty(), "{column:?}:\n{}", wrong.join("\n"));
}

#[test]
fn the_table_has_at_least_120_rows_each_with_a_name_of_its_own() {
    let mut names: Vec<String> = AREAS
        .iter()
        .flat_map(|(_, text)| rows(text))
        .map(|row| row.name)
        .collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(all >= 120, "{all}");
}

#[test]
fn what_shows_each_known_way_out_is_there() {
    let names: Vec<String> = AREAS
        .iter()
        .flat_map(|(_, text)| rows(text))
        .map(|row| row.name)
        .collect();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let there = |shown: &str| match shown.split_once("::") {
        Some((file, function)) => fs::read_to_string(tests.join(file))
            .is_ok_and(|text| text.contains(&format!("fn {function}("))),
        None => names.iter().any(|name| name == shown),
    };
    let lines = include_str!("items.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut items = 0;
    for line in lines {
        let (item, shown) = line.split_once(" | ").unwrap();
        for shown in shown.split(';').map(str::trim) {
            assert!(there(shown), "{item}: there is no {shown:?}");
        }
        items += 1;
    }
    assert!(items > 50, "{items}");
}
