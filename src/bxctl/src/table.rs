//! Tables for people: columns that fit a width, long cells wrapped and never cut. Knows text and tones, not what
//! they mean; everything that enters a cell is made visible first.

use crate::screen::Tone;
use crate::visible::{self, width};

/// Between two columns.
const GAP: usize = 2;
/// A column that wraps is not made narrower than this.
const NARROW: usize = 7;

/// How a column is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// As wide as its widest cell.
    Whole,
    /// The same, flush right: numbers.
    Number,
    /// Wrapped when the table would be too wide.
    Wrap,
}

/// One cell: some lines and one tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    lines: Vec<String>,
    tone: Tone,
}

impl Cell {
    /// One line, with hidden characters made visible.
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::list([text])
    }

    /// Several lines, each made visible.
    #[must_use]
    pub fn list(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let lines = lines.into_iter().map(|text| visible::line(text.as_ref()));
        Self {
            lines: lines.collect(),
            tone: Tone::Plain,
        }
    }

    /// The same cell in a tone.
    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// Columns and rows. A row with fewer cells than there are columns ends in a cell that spans the rest.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(&'static str, Fit)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: &[(&'static str, Fit)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; cells past the last column are left out.
    pub fn row(&mut self, mut cells: Vec<Cell>) {
        cells.truncate(self.columns.len());
        self.rows.push(cells);
    }

    /// The table as lines of at most `limit` columns, as far as the columns that do not wrap leave room.
    #[must_use]
    pub fn render(&self, limit: usize, colour: bool) -> String {
        let widths = self.widths(limit);
        let titles = self
            .columns
            .iter()
            .map(|(title, _)| Cell::new(title).tone(Tone::Title));
        let mut text = String::new();
        self.draw(
            &titles.collect::<Vec<_>>(),
            &widths,
            limit,
            colour,
            &mut text,
        );
        for row in &self.rows {
            self.draw(row, &widths, limit, colour, &mut text);
        }
        text
    }

    fn widths(&self, limit: usize) -> Vec<usize> {
        // A title wraps at its spaces, so its longest word is what it needs.
        let word = |title: &str| title.split(' ').map(width).max().unwrap_or(0);
        let least: Vec<usize> = self.columns.iter().map(|(title, _)| word(title)).collect();
        let natural: Vec<usize> = (0..least.len())
            .map(|index| least[index].max(self.needs(index, usize::MAX)))
            .collect();
        let room = limit.saturating_sub(GAP * self.columns.len().saturating_sub(1));
        let mut widths = natural.clone();
        while widths.iter().sum::<usize>() > room {
            let shrinks = |index: &usize| {
                self.columns[*index].1 == Fit::Wrap && widths[*index] > least[*index].max(NARROW)
            };
            let Some(widest) = (0..widths.len())
                .filter(shrinks)
                .max_by_key(|index| widths[*index])
            else {
                break;
            };
            widths[widest] -= 1;
        }
        // Words seldom fill a column to its edge; what they leave goes to the columns that lost most.
        for (index, given) in widths.iter_mut().enumerate() {
            *given = least[index].max(self.needs(index, *given));
        }
        while widths.iter().sum::<usize>() < room {
            let lost = |index: &usize| natural[*index] - widths[*index].min(natural[*index]);
            let Some(poorest) = (0..widths.len())
                .max_by_key(lost)
                .filter(|index| lost(index) > 0)
            else {
                break;
            };
            widths[poorest] += 1;
        }
        widths
    }

    /// The widest line of a column when its cells are wrapped at `limit`; a cell that spans the rest needs nothing of it.
    fn needs(&self, index: usize, limit: usize) -> usize {
        let own = |row: &&Vec<Cell>| row.len() == self.columns.len() || index + 1 < row.len();
        let rows = self.rows.iter().filter(own);
        let lines = rows
            .filter_map(|row| row.get(index))
            .flat_map(|cell| &cell.lines);
        lines
            .flat_map(|line| wrap(line, limit))
            .map(|line| width(&line))
            .max()
            .unwrap_or(0)
    }

    fn draw(&self, row: &[Cell], widths: &[usize], limit: usize, colour: bool, text: &mut String) {
        let spans = row.len() < self.columns.len();
        let mut blocks = Vec::new();
        let mut start = 0;
        for (index, cell) in row.iter().enumerate() {
            let (fills, fit) = if spans && index + 1 == row.len() {
                (limit.saturating_sub(start).max(NARROW), Fit::Wrap)
            } else {
                (widths[index], self.columns[index].1)
            };
            let lines: Vec<String> = cell
                .lines
                .iter()
                .flat_map(|line| wrap(line, fills))
                .collect();
            blocks.push((lines, fills, fit, cell.tone));
            start += fills + GAP;
        }
        let height = blocks
            .iter()
            .map(|(lines, ..)| lines.len())
            .max()
            .unwrap_or(0);
        for line in 0..height {
            let mut drawn = String::new();
            let mut blank = 0;
            for (lines, fills, fit, tone) in &blocks {
                let part = lines.get(line).map_or("", String::as_str);
                let rest = fills.saturating_sub(width(part));
                let (before, after) = if *fit == Fit::Number {
                    (rest, 0)
                } else {
                    (0, rest)
                };
                blank += before;
                if !part.is_empty() {
                    drawn.push_str(&" ".repeat(blank));
                    drawn.push_str(&tone.paint(part, colour));
                    blank = 0;
                }
                blank += after + GAP;
            }
            text.push_str(&drawn);
            text.push('\n');
        }
    }
}

/// Cuts a text into lines of at most `limit` columns: at a space, else after a mark that names are made of, else
/// anywhere.
#[must_use]
pub fn wrap(text: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(2);
    let mut lines = Vec::new();
    let mut rest = text;
    while width(rest) > limit {
        let mut taken = 0;
        let mut used = 0;
        let mut good = None;
        for (at, c) in rest.char_indices() {
            if c == ' ' && at > 0 {
                good = Some(at);
            }
            used += visible::columns(c);
            if used > limit {
                break;
            }
            taken = at + c.len_utf8();
            if "-_,/:;".contains(c) {
                good = Some(taken);
            }
        }
        let (line, after) = rest.split_at(good.unwrap_or(taken));
        lines.push(line.to_owned());
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    lines.push(rest.to_owned());
    lines
}

#[cfg(test)]
mod tests;
