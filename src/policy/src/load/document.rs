//! One TOML file with the places of its keys. What its keys are called, and what a file means, is not known here.

use toml::de::{DeTable, DeValue};

use super::LoadError;

/// A file that is TOML.
pub(super) struct Document<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    pub(super) root: DeTable<'a>,
}

impl<'a> Document<'a> {
    /// Reads the bytes of `file`. None, with the errors, if they are no UTF-8 or no TOML; a key that stands twice is
    /// no TOML.
    pub(super) fn parse(
        file: &'a str,
        bytes: &'a [u8],
        errors: &mut Vec<LoadError>,
    ) -> Option<Self> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                errors.push(LoadError {
                    file: file.to_owned(),
                    line: Some(line_at(bytes, error.valid_up_to())),
                    rule: "the file is not UTF-8".to_owned(),
                    fix: "save it as UTF-8".to_owned(),
                });
                return None;
            }
        };
        let (root, wrong) = DeTable::parse_recoverable(text);
        if wrong.is_empty() {
            let root = root.into_inner();
            return Some(Self { file, text, root });
        }
        errors.extend(wrong.iter().map(|error| not_toml(file, text, error)));
        None
    }

    /// An error at the deepest part of `path` that the file holds; a list's items are named by their number.
    pub(super) fn error(&self, path: &[&str], rule: String, fix: impl Into<String>) -> LoadError {
        LoadError {
            file: self.file.to_owned(),
            line: self.line(path),
            rule,
            fix: fix.into(),
        }
    }

    /// Whether the file holds `path`.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        self.find(path).1 == path.len()
    }

    /// Whether the table at `path` has a line of its own, `[path]`, below which its keys stand.
    pub(super) fn has_header(&self, path: &[&str]) -> bool {
        match self.find(path) {
            (Some((start, DeValue::Table(_))), depth) if depth == path.len() => {
                let line = self.text[..start].rsplit('\n').next();
                line.is_some_and(|line| line.trim_start().starts_with('['))
            }
            _ => false,
        }
    }

    /// The value at `path`.
    pub(super) fn value(&self, path: &[&str]) -> Option<&DeValue<'a>> {
        let (found, depth) = self.find(path);
        found
            .filter(|_| depth == path.len())
            .map(|(_, value)| value)
    }

    /// The line of the deepest part of `path` that the file holds.
    pub(super) fn line(&self, path: &[&str]) -> Option<usize> {
        let ((start, _), _) = match self.find(path) {
            (Some(found), depth) => (found, depth),
            (None, _) => return None,
        };
        Some(line_at(self.text.as_bytes(), start))
    }

    /// Follows `path` as far as it goes: where the last key found begins, its value, and how many keys were found.
    fn find(&self, path: &[&str]) -> (Option<(usize, &DeValue<'a>)>, usize) {
        let mut found: Option<(usize, &DeValue<'a>)> = None;
        for (depth, step) in path.iter().enumerate() {
            let table = match found {
                None => Some(&self.root),
                Some((_, DeValue::Table(table))) => Some(table),
                Some(_) => None,
            };
            let next = match (table, found) {
                (Some(table), _) => table
                    .get_key_value(*step)
                    .map(|(key, value)| (key.span().start, value.get_ref())),
                (None, Some((_, DeValue::Array(items)))) => step
                    .parse::<usize>()
                    .ok()
                    .and_then(|place| items.get(place))
                    .map(|item| (item.span().start, item.get_ref())),
                _ => None,
            };
            match next {
                Some(next) => found = Some(next),
                None => return (found, depth),
            }
        }
        (found, path.len())
    }
}

/// A mistake of TOML's own grammar, as a mistake of the file: what the parser says, and what to do about the mistakes
/// that are made most.
fn not_toml(file: &str, text: &str, error: &toml::de::Error) -> LoadError {
    let span = error.span().unwrap_or_default();
    let (said, stands) = (error.message(), text.get(span).unwrap_or_default());
    let switch = ["yes", "no", "on", "off", "true", "false"].contains(&&*stands.to_lowercase());
    let (rule, fix) = match said {
        _ if said.starts_with("duplicate key") => (
            format!("`{stands}` stands twice in one table"),
            "keep one of the two".to_owned(),
        ),
        _ if switch => (
            format!("{stands} is no value"),
            "write true or false, in small letters".to_owned(),
        ),
        _ if said.starts_with("string values must be quoted") && stands.is_empty() => (
            "there is no value".to_owned(),
            "write one after the `=`, or remove the line".to_owned(),
        ),
        _ if said.starts_with("string values must be quoted") => {
            let quotes = ['"', '\'', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}'];
            (
                format!("the text {stands} does not stand in straight quotes"),
                format!("write {:?}", stands.trim_matches(quotes)),
            )
        }
        _ if said.starts_with("key with no value") => (
            "the line has no `=`".to_owned(),
            "write KEY = VALUE".to_owned(),
        ),
        _ => (said.to_owned(), "correct the line".to_owned()),
    };
    LoadError {
        file: file.to_owned(),
        line: error
            .span()
            .map(|span| line_at(text.as_bytes(), span.start)),
        rule: format!("not TOML: {rule}"),
        fix,
    }
}

/// The line, from 1, in which the byte at `offset` stands.
pub(super) fn line_at(bytes: &[u8], offset: usize) -> usize {
    let before = &bytes[..offset.min(bytes.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
