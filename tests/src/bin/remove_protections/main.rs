//! Switches every protection off in turn, and prints which rows of the escape suite miss it. Ends with 1 if one is missed
//! by none, or if the table does not list what the stage does. Needs root and a C compiler. `scripts/remove-protections`
//! builds and starts it.
//!
//! Steps of the stage and parts of them are left out by the stage of the tests. Refusals of the system call filter are
//! left out by a filter of the suite's own, which the probe puts on where the stage left ours out; one that no row misses
//! is tried again where nobody has given up root's rights, because it may stand behind those.

#![expect(
    clippy::unwrap_used,
    reason = "whatever cannot be set up ends the run, and says where"
)]

mod filters;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use boxmaker_tests::escape::{AREAS, Answer, Column, Room, Row, Stage, probe, rows};
use confine::Step;
use confine::stage::Part;

const PROTECTIONS: &str = include_str!("../../../escape/protections.txt");

/// How many rows are named for each protection.
const NAMED: usize = 2;

/// What became of one comparison.
enum Missed {
    /// By these rows, of so many.
    Rows(Vec<String>),
    /// By everything: nothing was launched.
    Launch(String),
}

fn main() -> ExitCode {
    if !rustix::process::geteuid().is_root() {
        eprintln!("remove-protections: needs root, to make sandboxes of both kinds");
        return ExitCode::from(2);
    }
    if let Err(reason) = probe() {
        eprintln!("remove-protections: {reason}");
        return ExitCode::from(2);
    }
    let all: Vec<Row> = AREAS.iter().flat_map(|(_, text)| rows(text)).collect();
    let mut unmissed = unlisted();
    let mut compared = Compared::new();
    for line in &unmissed {
        println!("{line:44} is not in tests/escape/protections.txt");
    }
    for line in PROTECTIONS.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, left_out, behind, who] = fields[..] else {
            continue;
        };
        let column = match who {
            "root" => Column::Root,
            "bare" => Column::Bare,
            _ => Column::Rootless,
        };
        if behind.starts_with("measured") || behind.contains(':') {
            println!("{name:44} {behind}");
            continue;
        }
        let needed = behind == "needed";
        let behind: Vec<String> = match needed {
            true => Vec::new(),
            false => behind.split_whitespace().map(str::to_owned).collect(),
        };
        match missed(&all, &mut compared, column, &behind, left_out) {
            Missed::Rows(rows) => {
                if rows.is_empty() || needed {
                    unmissed.push(name.to_owned());
                }
                tell(name, &rows);
            }
            Missed::Launch(why) => {
                if !needed {
                    unmissed.push(name.to_owned());
                }
                println!("{name:44} nothing is launched: {}", why.trim());
            }
        }
    }
    filter_by_filter(&all, &mut unmissed);
    if unmissed.is_empty() {
        println!("every protection is missed by a row");
        return ExitCode::SUCCESS;
    }
    println!("missed by no row: {}", unmissed.join(", "));
    ExitCode::FAILURE
}

/// Steps and parts that the list does not hold.
fn unlisted() -> Vec<String> {
    let listed: BTreeSet<&str> = PROTECTIONS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split('|').nth(1).map(str::trim))
        .collect();
    let steps = Step::ALL.iter().map(|step| step.as_str());
    let names = steps.chain(Part::ALL.iter().map(|part| part.as_str()));
    names
        .filter(|name| !listed.contains(name))
        .map(str::to_owned)
        .collect()
}

fn tell(name: &str, rows: &[String]) {
    match rows {
        [] => println!("{name:44} no row"),
        rows => {
            let named = rows.iter().take(NAMED).map(String::as_str);
            let named: Vec<&str> = named.collect();
            let count = rows.len();
            println!("{name:44} {count:3} rows, such as: {}", named.join("; "));
        }
    }
}

/// The answers of sandboxes that others are compared with, by what they have not.
type Compared = BTreeMap<(bool, u8, Vec<String>), Vec<Answer>>;

/// The rows whose answer changes when a step is left out.
fn missed(
    all: &[Row],
    compared: &mut Compared,
    column: Column,
    behind: &[String],
    left_out: &str,
) -> Missed {
    // Launches of their own take long, and show limits and ends only.
    let heavy = [
        "join-memory",
        "join-pids",
        "join-cpu",
        "parent-death",
        "subreaper",
        "mark",
        "processes",
    ];
    let heavy = heavy.contains(&left_out);
    let rows: Vec<Row> = all
        .iter()
        .filter(|row| row.alone == heavy)
        .cloned()
        .collect();
    let run = |without: Vec<String>| {
        let room = Room::new(probe().unwrap());
        let stage = Stage {
            without,
            ..Stage::default()
        };
        column.run(&room, &rows, &stage)
    };
    let key = (heavy, column as u8, behind.to_vec());
    let with = compared.entry(key).or_insert_with(|| {
        let with = run(behind.to_vec());
        assert_eq!(with.failed, None, "without {behind:?}");
        with.answers
    });
    let without = run([behind, &[left_out.to_owned()]].concat());
    match without.failed {
        Some(why) => Missed::Launch(why),
        None => Missed::Rows(changed(&rows, with, &without.answers)),
    }
}

fn changed(rows: &[Row], with: &[Answer], without: &[Answer]) -> Vec<String> {
    let answers = with.iter().zip(without);
    let changed = rows
        .iter()
        .zip(answers)
        .filter(|(_, (with, without))| with.word() != without.word());
    changed
        .map(|(row, (with, without))| {
            format!("{} ({} → {})", row.name, with.word(), without.word())
        })
        .collect()
}

/// What stands before the filter where it refuses what nobody without rights may do anyway.
const RIGHTS: &[&str] = &["uid", "gid", "groups", "bounding", "capabilities"];

/// Sandboxes that have the suite's own filter instead of ours.
struct Filtered<'a> {
    rows: Vec<&'a Row>,
    /// Whether they keep the rights of root.
    rights: bool,
    whole: Vec<Answer>,
}

impl<'a> Filtered<'a> {
    fn new(rows: Vec<&'a Row>, rights: bool) -> Self {
        let mut filtered = Self {
            rows,
            rights,
            whole: Vec::new(),
        };
        let every: Vec<usize> = (0..filtered.rows.len()).collect();
        filtered.whole = filtered.run(&every, filters::WHOLE);
        filtered
    }

    fn run(&self, chosen: &[usize], filter: &str) -> Vec<Answer> {
        let rows: Vec<Row> = chosen.iter().map(|&at| self.rows[at].clone()).collect();
        let room = Room::new(probe().unwrap());
        let kept = RIGHTS.iter().filter(|_| self.rights);
        let without = kept.chain(&["seccomp"]).map(|&step| step.to_owned());
        let stage = Stage {
            without: without.collect(),
            filter: Some(filters::read(filter)),
            pooled: false,
        };
        let ran = Column::Root.run(&room, &rows, &stage);
        assert_eq!(ran.failed, None);
        ran.answers
    }

    /// The rows of these that miss what the filter has not.
    fn missed(&self, chosen: &[usize], filter: &str) -> Vec<String> {
        if chosen.is_empty() {
            return Vec::new();
        }
        let rows: Vec<Row> = chosen.iter().map(|&at| self.rows[at].clone()).collect();
        let with: Vec<Answer> = chosen.iter().map(|&at| self.whole[at].clone()).collect();
        changed(&rows, &with, &self.run(chosen, filter))
    }
}

/// The same for the system call filter, refusal by refusal.
fn filter_by_filter(all: &[Row], unmissed: &mut Vec<String>) {
    let rows = || all.iter().filter(|row| !row.alone).collect();
    let filtered = Filtered::new(rows(), false);
    // The suite's own filter has to do what ours does, or nothing would follow from leaving some of it out.
    for (row, answer) in filtered.rows.iter().zip(&filtered.whole) {
        let (expected, word) = (row.expected(Column::Root), answer.word());
        assert!(
            expected.is(answer),
            "{}: {word} instead of {expected}",
            row.name
        );
    }
    let privileged = Filtered::new(rows(), true);
    let mut judge = |name: &str, chosen: &[usize], filter: &str| {
        let mut missed = filtered.missed(chosen, filter);
        if missed.is_empty() {
            missed = privileged.missed(chosen, filter);
        }
        if missed.is_empty() {
            unmissed.push(name.to_owned());
        }
        tell(name, &missed);
    };
    let every: Vec<usize> = (0..filtered.rows.len()).collect();
    judge(
        "calls that no set allows",
        &every,
        filters::OPEN_TO_UNLISTED,
    );
    judge("calls of x32", &every, filters::OPEN_TO_X32);
    let marked = filtered.run(&every, filters::MARKED);
    for refusal in filters::refusals() {
        let by_it = |at: &usize| marked[*at].word() == refusal.mark;
        let chosen: Vec<usize> = every.iter().copied().filter(by_it).collect();
        judge(&refusal.name, &chosen, &refusal.file);
    }
}
