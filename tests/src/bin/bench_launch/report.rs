//! From samples to a table for people and a document for later runs.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::Outcome;
use crate::host::Facts;

/// One contestant or one part, with a sample for each round.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) samples: Vec<Duration>,
}

impl Row {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            samples: Vec::new(),
        }
    }
}

/// Times are in microseconds.
#[derive(Debug, Serialize)]
struct Figures {
    name: String,
    median_us: f64,
    p10_us: f64,
    p90_us: f64,
    p99_us: f64,
    /// The median of the ratios of each round, which a slow spell of the machine does not move.
    ratio_to_bubblewrap: Option<f64>,
}

/// One table.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    title: &'a str,
    facts: &'a Facts,
    enforced: Vec<String>,
    rows: Vec<Figures>,
}

impl<'a> Report<'a> {
    /// `peer` are bubblewrap's samples of the same rounds.
    pub(crate) fn new(
        title: &'a str,
        facts: &'a Facts,
        rows: &[Row],
        peer: Option<&[Duration]>,
    ) -> Self {
        Self {
            title,
            facts,
            enforced: Vec::new(),
            rows: rows.iter().map(|row| figures(row, peer)).collect(),
        }
    }

    /// With what each contestant enforced, a line each.
    pub(crate) fn with(self, enforced: Vec<String>) -> Self {
        Self { enforced, ..self }
    }

    pub(crate) fn write(&self, file: &Path) -> Outcome<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(fs::write(file, text)?)
    }
}

fn figures(row: &Row, peer: Option<&[Duration]>) -> Figures {
    let times = sorted(row.samples.iter().map(|time| time.as_secs_f64() * 1e6));
    let ratio = peer.map(|peer| {
        let pairs = row.samples.iter().zip(peer);
        at(
            &sorted(pairs.map(|(own, peer)| own.as_secs_f64() / peer.as_secs_f64())),
            50,
        )
    });
    Figures {
        name: row.name.clone(),
        median_us: at(&times, 50),
        p10_us: at(&times, 10),
        p90_us: at(&times, 90),
        p99_us: at(&times, 99),
        ratio_to_bubblewrap: ratio,
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which `percent` of the others lie; 0 of none.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or(0.0)
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} rounds, milliseconds",
            self.title, self.facts.rounds
        )?;
        let heads = ["median", "p10", "p90", "p99", "of bwrap"];
        write!(f, "  {:46}", "")?;
        for head in heads {
            write!(f, "{head:>10}")?;
        }
        for row in &self.rows {
            write!(f, "\n  {:46}", row.name)?;
            for time in [row.median_us, row.p10_us, row.p90_us, row.p99_us] {
                write!(f, "{:>10.3}", time / 1e3)?;
            }
            match row.ratio_to_bubblewrap {
                Some(ratio) => write!(f, "{ratio:>10.3}")?,
                None => write!(f, "{:>10}", "-")?,
            }
        }
        Ok(())
    }
}
