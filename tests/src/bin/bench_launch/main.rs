//! What a launch and an audited call cost, measured in turns with bubblewrap and with nothing at all. `scripts/bench`
//! builds what is measured and runs this; the figures are printed and written as JSON.
//!
//! This machine and its load are in every figure. The contestants take turns, so that they share what disturbs them;
//! what can be compared is the ratio to bubblewrap of the same run.

mod call;
mod host;
mod launch;
mod report;
mod setting;
mod whole;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use host::Facts;
use report::Report;
use setting::Setting;

/// Whatever stops a bench ends it; there is nobody to handle it.
type Outcome<T> = Result<T, Box<dyn Error>>;

/// Rounds that are thrown away: caches fill, id maps are made.
const WARM_UP: usize = 3;

fn main() -> ExitCode {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: bench: needs root, to make namespaces, cgroups and id maps");
        return ExitCode::SUCCESS;
    }
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// At most this many rounds, and none that would begin after this time.
fn bounds() -> (usize, Duration) {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let rounds = number("BENCH_ROUNDS").unwrap_or(500);
    let seconds = number("BENCH_SECONDS").unwrap_or(60);
    (rounds, Duration::from_secs(seconds as u64))
}

fn bench() -> Outcome<()> {
    let own = std::env::current_exe()?;
    let binaries = own.parent().ok_or("no directory of binaries")?.to_owned();
    let directory = binaries.with_file_name("bench");
    let setting = Setting::build(&directory, &binaries)?;
    let program = directory.join("true");
    let (rounds, time) = bounds();

    let mut contest = launch::Contest::new(&setting, program.exists().then_some(program))?;
    let mut parts = call::Parts::new(&setting)?;
    let mut whole = whole::Whole::new(&setting)?;
    println!("{}", Facts::take(&directory)?);
    for line in contest.enforced() {
        println!("{line}");
    }
    let mut measured = 0;
    let mut begun = Instant::now();
    for round in 0..rounds + WARM_UP {
        if round == WARM_UP {
            begun = Instant::now();
        }
        let keep = round >= WARM_UP;
        if keep && begun.elapsed() > time {
            break;
        }
        for turn in 0..3 {
            match (turn + round) % 3 {
                0 => contest.round(keep)?,
                1 => parts.round(keep)?,
                _ => whole.round(keep)?,
            }
        }
        measured += usize::from(keep);
    }
    let whole = whole.end()?;

    let facts = Facts::take(&directory)?.after(measured, begun.elapsed());
    let peer = contest.peer();
    let (launches, enforced) = contest.rows();
    let mut calls = parts.rows();
    calls.push(whole);
    let launch = Report::new(
        "launch of a static true",
        &facts,
        &launches,
        peer.as_deref(),
    );
    show(&directory.join("launch.json"), launch.with(enforced))?;
    let call = Report::new(
        "one audited call of fs_read",
        &facts,
        &calls,
        peer.as_deref(),
    );
    show(&directory.join("call.json"), call)
}

/// Prints one table and writes its file.
fn show(file: &Path, report: Report<'_>) -> Outcome<()> {
    println!("\n{report}");
    report.write(file)?;
    println!("written to {}", file.display());
    Ok(())
}
