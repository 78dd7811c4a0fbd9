//! One TOML file with the places of its keys, and how it becomes a value: words first, types second, so that every
//! error names a line and one mistake does not hide the next. What a file means is not known here.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::LoadError;
use super::words::{self, Place, Status};

/// A file that is TOML.
pub(super) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    root: DeTable<'a>,
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
        errors.extend(wrong.iter().map(|error| LoadError {
            file: file.to_owned(),
            line: error.span().map(|span| line_at(bytes, span.start)),
            rule: format!("not TOML: {}", error.message()),
            fix: "correct the line".to_owned(),
        }));
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

    /// Reads the file as a `T`, whose keys are the words of `place`. Unknown words, words that are not enforced,
    /// missing words and wrong values are errors; what is right beside them is still read, if it can stand alone.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        place: Place,
        errors: &mut Vec<LoadError>,
    ) -> Option<T> {
        let mut refused = Vec::new();
        self.refuse_words(place, &self.root, &mut Vec::new(), &mut refused, errors);
        let mut missing = false;
        for word in words::keys(place).filter(|word| word.status == Status::Required) {
            if !self.has(&[word.key]) {
                missing = true;
                let rule = format!("`{}` is required", word.key);
                errors.push(self.error(&[], rule, word.fix));
            }
        }
        let mut root = self.root.clone();
        for path in &refused {
            remove(&mut root, path);
        }
        // serde stops at the first wrong value, so it is asked again without the key that holds it. A value that is
        // then missing is no error of its own.
        let mut complete = refused.is_empty() && !missing;
        loop {
            let document = Spanned::new(0..self.text.len(), root.clone());
            match T::deserialize(toml::de::Deserializer::from(document)) {
                Ok(value) => return Some(value),
                Err(error) => {
                    let span = error.span();
                    let key = span.as_ref().and_then(|span| holder(&root, span));
                    if let Some(key) = key {
                        let word = words::key(place, &key);
                        errors.push(LoadError {
                            file: self.file.to_owned(),
                            line: span.map(|span| line_at(self.text.as_bytes(), span.start)),
                            rule: format!("`{key}`: {}", first_line(error.message())),
                            fix: word.map_or("correct the value", |word| word.fix).to_owned(),
                        });
                        complete = false;
                        root.remove(key.as_str());
                        continue;
                    }
                    if complete {
                        let rule = first_line(error.message()).to_owned();
                        errors.push(self.error(&[], rule, "correct the file"));
                    }
                    return None;
                }
            }
        }
    }

    /// Finds the words of `table` that must not stand there, and where they are.
    fn refuse_words<'t>(
        &self,
        place: Place,
        table: &'t DeTable<'a>,
        at: &mut Vec<&'t str>,
        refused: &mut Vec<Vec<&'t str>>,
        errors: &mut Vec<LoadError>,
    ) {
        for (key, value) in table {
            let key = key.get_ref().as_ref();
            at.push(key);
            let shown = at.join(".");
            let stated = value.get_ref().as_str();
            let later = stated.and_then(|text| words::value(place, key, text));
            let wrong = match (words::key(place, key), later) {
                (None, _) => Some((
                    format!("unknown key `{shown}`"),
                    format!("remove it; the keys here are {}", known(place)),
                )),
                (Some(word), _) if word.status == Status::Later => {
                    Some((not_enforced(&format!("`{shown}`")), word.fix.to_owned()))
                }
                (Some(_), Some(word)) => {
                    let what = format!("`{shown} = {:?}`", stated.unwrap_or_default());
                    Some((not_enforced(&what), word.fix.to_owned()))
                }
                (Some(word), None) if needs_table(place, key) && table_of(value).is_none() => {
                    Some((format!("`{shown}` is no table"), word.fix.to_owned()))
                }
                (Some(_), None) => None,
            };
            if let Some((rule, fix)) = wrong {
                errors.push(self.error(at, rule, fix));
                refused.push(at.clone());
            } else if let Some(inner) = table_of(value) {
                match (place, key) {
                    (Place::Grant, "constraints") => {
                        self.refuse_words(Place::Constraints, inner, at, refused, errors);
                    }
                    (Place::Tool, "resources") => {
                        self.refuse_words(Place::Resources, inner, at, refused, errors);
                    }
                    (Place::Config, "restart") => {
                        self.refuse_words(Place::Restart, inner, at, refused, errors);
                    }
                    (Place::Config, "approvals") => {
                        self.refuse_words(Place::Approvals, inner, at, refused, errors);
                    }
                    (Place::Config, "session") => {
                        self.refuse_words(Place::Session, inner, at, refused, errors);
                    }
                    (Place::Tool, "arguments") => {
                        self.refuse_words(Place::Schema, inner, at, refused, errors);
                    }
                    (Place::Schema, "properties") => {
                        for (name, schema) in inner {
                            at.push(name.get_ref().as_ref());
                            match table_of(schema) {
                                Some(schema) => {
                                    self.refuse_words(Place::Schema, schema, at, refused, errors);
                                }
                                None => {
                                    let rule = format!("`{}` is no table", at.join("."));
                                    errors.push(self.error(
                                        at,
                                        rule,
                                        "write a schema, such as { type = \"string\" }",
                                    ));
                                    refused.push(at.clone());
                                }
                            }
                            at.pop();
                        }
                    }
                    _ => {}
                }
            }
            at.pop();
        }
    }
}

/// Whether a key's value is itself a table of words. A list in its place would be read as the table's values in
/// their order, past every word.
fn needs_table(place: Place, key: &str) -> bool {
    matches!(
        (place, key),
        (Place::Grant, "constraints")
            | (Place::Config, "restart" | "approvals" | "session")
            | (Place::Tool, "arguments" | "resources")
            | (Place::Schema, "properties")
    )
}

fn table_of<'t, 'a>(value: &'t Spanned<DeValue<'a>>) -> Option<&'t DeTable<'a>> {
    value.get_ref().as_table()
}

fn not_enforced(what: &str) -> String {
    format!(
        "{what} is known to the format but not enforced by this version, so it cannot be stated yet"
    )
}

/// The keys of a place that this version enforces.
fn known(place: Place) -> String {
    let keys: Vec<&str> = words::keys(place)
        .filter(|word| word.status != Status::Later)
        .map(|word| word.key)
        .collect();
    keys.join(", ")
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

/// Takes the value at `path` out of `table`.
fn remove(table: &mut DeTable<'_>, path: &[&str]) {
    match path {
        [] => {}
        [last] => {
            table.remove(*last);
        }
        [first, rest @ ..] => {
            if let Some(DeValue::Table(inner)) = table.get_mut(*first).map(Spanned::get_mut) {
                remove(inner, rest);
            }
        }
    }
}

/// The key of `table` in or below which `span` lies. The span of a table is that of its header alone, so every key
/// and value below is asked.
fn holder(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let inside = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    table
        .iter()
        .find(|(key, value)| {
            inside(key.span())
                || inside(value.span())
                || match value.get_ref() {
                    DeValue::Table(inner) => holder(inner, span).is_some(),
                    _ => false,
                }
        })
        .map(|(key, _)| key.get_ref().as_ref().to_owned())
}

/// The line, from 1, in which the byte at `offset` stands.
fn line_at(bytes: &[u8], offset: usize) -> usize {
    let before = &bytes[..offset.min(bytes.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
