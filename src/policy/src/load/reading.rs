//! How a document becomes a value: words first, types second, so that every error names a line and one mistake does not
//! hide the next.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::LoadError;
use super::document::{Document, line_at};
use super::meant;
use super::words::{self, Place, Status};

/// The keys that must not stand where they stand.
#[derive(Default)]
struct Refused<'t> {
    paths: Vec<Vec<&'t str>>,
    /// Those of them that stand too deep: at the top of the file they would be right, so they are not missing there.
    sunk: Vec<&'t str>,
}

impl<'a> Document<'a> {
    /// Reads the file as a `T`, whose keys are the words of `place`. Unknown words, words that are not enforced,
    /// missing words and wrong values are errors; what is right beside them is still read, if it can stand alone.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        place: Place,
        errors: &mut Vec<LoadError>,
    ) -> Option<T> {
        let mut refused = Refused::default();
        self.refuse_words(place, &self.root, &mut Vec::new(), &mut refused, errors);
        let mut missing = false;
        for word in words::keys(place).filter(|word| word.status == Status::Required) {
            if !self.has(&[word.key]) {
                missing = true;
                if !refused.sunk.contains(&word.key) {
                    let rule = format!("`{}` is required", word.key);
                    errors.push(self.error(&[], rule, word.fix));
                }
            }
        }
        let mut root = self.root.clone();
        for path in &refused.paths {
            remove(&mut root, path);
        }
        // serde stops at the first wrong value, so it is asked again without the key that holds it. A value that is
        // then missing is no error of its own.
        let mut complete = refused.paths.is_empty() && !missing;
        loop {
            let document = Spanned::new(0..self.text.len(), root.clone());
            match T::deserialize(toml::de::Deserializer::from(document)) {
                Ok(value) => return Some(value),
                Err(error) => {
                    let span = error.span();
                    let mut path = Vec::new();
                    if let Some(span) = span
                        && holder(&root, &span, &mut path)
                    {
                        errors.push(LoadError {
                            file: self.file.to_owned(),
                            line: Some(line_at(self.text.as_bytes(), span.start)),
                            rule: format!("`{}`: {}", path.join("."), plain(error.message())),
                            fix: way_out(place, &path).to_owned(),
                        });
                        complete = false;
                        let path: Vec<&str> = path.iter().map(String::as_str).collect();
                        remove(&mut root, &path);
                        continue;
                    }
                    if complete {
                        let rule = plain(error.message());
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
        refused: &mut Refused<'t>,
        errors: &mut Vec<LoadError>,
    ) {
        for (key, value) in table {
            let key = key.get_ref().as_ref();
            at.push(key);
            let inner = words::inner(place, key);
            let table = value.get_ref().as_table();
            if let Some((rule, fix)) = self.wrong_word(place, at, value.get_ref()) {
                errors.push(self.error(at, rule, fix));
                refused.paths.push(at.clone());
                if at.len() > 1 && words::key(place.top(), key).is_some() {
                    refused.sunk.push(key);
                }
            } else if let (Some(inner), Some(table)) = (inner, table) {
                self.refuse_words(inner, table, at, refused, errors);
            }
            at.pop();
        }
    }

    /// Why the key at the end of `at`, a key of `place`, must not stand there, and the way out.
    fn wrong_word(
        &self,
        place: Place,
        at: &[&str],
        value: &DeValue<'_>,
    ) -> Option<(String, String)> {
        let key = at.last()?;
        let shown = at.join(".");
        let Some(word) = words::key(place, key) else {
            return Some(meant::by(self, place, at));
        };
        let stated = value.as_str().unwrap_or_default();
        if word.status == Status::Later {
            return Some((not_enforced(&format!("`{shown}`")), word.fix.to_owned()));
        }
        if let Some(word) = words::value(place, key, stated) {
            let what = format!("`{shown} = {stated:?}`");
            return Some((not_enforced(&what), word.fix.to_owned()));
        }
        // Where the keys are the file's own, any key may be one that slipped below a header; its value tells, or that
        // no variable is called like that.
        let slipped = match place {
            Place::Resources if !words::RESOURCES.contains(&stated) => meant::sunk(self, place, at),
            Place::Pool if value.as_integer().is_none() => meant::sunk(self, place, at),
            Place::Properties if value.as_table().is_none() => meant::sunk(self, place, at),
            Place::Env if words::is_of_profile(key) => Some(meant::by(self, place, at)),
            _ => None,
        };
        if slipped.is_some() {
            return slipped;
        }
        if words::inner(place, key).is_some() && value.as_table().is_none() {
            return Some((format!("`{shown}` is no table"), word.fix.to_owned()));
        }
        None
    }
}

pub(super) fn not_enforced(what: &str) -> String {
    format!(
        "{what} is known to the format but not enforced by this version, so it cannot be stated yet"
    )
}

/// What to do about a wrong value at `path` in a file whose keys are the words of `place`.
fn way_out(mut place: Place, path: &[String]) -> &'static str {
    let mut fix = "correct the value";
    for key in path {
        if let Some(word) = words::key(place, key) {
            fix = word.fix;
        }
        match words::inner(place, key) {
            Some(inner) => place = inner,
            None => break,
        }
    }
    fix
}

/// The first line of what serde says, in words of the file instead of those of the program.
fn plain(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let words = [
        ("unknown variant", "unknown value"),
        ("invalid type: map", "invalid type: table"),
        ("invalid type: sequence", "invalid type: list"),
        ("wanted string or table", "it is no text in quotes"),
    ];
    let first = words.iter().fold(first.to_owned(), |text, (from, to)| {
        text.replacen(from, to, 1)
    });
    let Some((stands, wanted)) = first.split_once(", expected ") else {
        return first;
    };
    let wanted = match wanted {
        "a sequence" => "a list",
        "a nonzero u32" | "a nonzero u64" => "a whole number above 0",
        "u8" | "u32" | "u64" | "usize" => "a whole number that is not negative and not huge",
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        other => other,
    };
    format!("{stands}, expected {wanted}")
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

/// Finds the innermost key of `table` at or below which `span` lies, and puts the keys down to it into `path`. The span
/// of a table is that of its header alone, so every key and value below is asked.
fn holder(table: &DeTable<'_>, span: &Range<usize>, path: &mut Vec<String>) -> bool {
    let inside = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    for (key, value) in table {
        path.push(key.get_ref().as_ref().to_owned());
        let below = matches!(value.get_ref(), DeValue::Table(inner) if holder(inner, span, path));
        if below || inside(key.span()) || inside(value.span()) {
            return true;
        }
        path.pop();
    }
    false
}
