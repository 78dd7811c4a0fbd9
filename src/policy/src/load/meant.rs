//! What an unknown key was meant to be: one that stands in the wrong table, one of another kind of file, or one that is
//! misspelt. Each answer is the rule that is broken and the way out.

use super::document::Document;
use super::reading::not_enforced;
use super::words::{self, Place, Status};
use crate::nearest::nearest;

/// On the key at the end of `at`, which is no key of `place`.
pub(super) fn by(document: &Document<'_>, place: Place, at: &[&str]) -> (String, String) {
    let key = at.last().copied().unwrap_or_default();
    if let Some(found) = sunk(document, place, at) {
        return found;
    }
    let shown = at.join(".");
    if let Some(other) = place.beside().find(|other| enforced(*other, key)) {
        let (name, inside) = (other.name(), other.header());
        let rule = format!("`{shown}` belongs in {name}");
        let fix = match at {
            [_] => format!("write it below a line {name}, or as `{inside}.{key}`"),
            _ => format!("move it below a line {name}"),
        };
        return (rule, fix);
    }
    if let Some((file, word)) = of_another_file(place, key) {
        let rule = format!("`{shown}` is a key of {file}, not of {}", place.file());
        return match word.status {
            Status::Later => (not_enforced(&format!("`{shown}`")), word.fix.to_owned()),
            _ => (rule, format!("remove it, or write it in {file}")),
        };
    }
    let rule = format!("unknown key `{shown}`");
    let known: Vec<&str> = own_keys(place).collect();
    let listed = format!("the keys here are {}", known.join(", "));
    if let Some(near) = nearest(key, known.iter().copied()) {
        return (rule, format!("did you mean `{near}`? {listed}"));
    }
    let others = place.beside().chain([place.top()]);
    let near = others
        .filter(|other| *other != place)
        .find_map(|other| Some((other, nearest(key, own_keys(other))?)));
    match near {
        Some((other, near)) if other == place.top() => {
            let header = at.first().copied().unwrap_or_default();
            (
                rule,
                format!("did you mean `{near}`? that belongs above [{header}]"),
            )
        }
        Some((other, near)) => (
            rule,
            format!("did you mean `{near}`? that belongs in {}", other.name()),
        ),
        None => (rule, format!("remove it; {listed}")),
    }
}

/// On the key at the end of `at`, a key of `place`, if it stands in a table and would be right at the top of the file:
/// whoever adds a line at the end of a file adds it to the table that was opened last.
pub(super) fn sunk(document: &Document<'_>, place: Place, at: &[&str]) -> Option<(String, String)> {
    let key = at.last()?;
    let [outer, _, ..] = at else {
        return None;
    };
    let word = words::key(place.top(), key).filter(|_| place != place.top())?;
    let shown = at.join(".");
    if word.status == Status::Later {
        return Some((not_enforced(&format!("`{shown}`")), word.fix.to_owned()));
    }
    let above = (1..at.len()).any(|depth| document.has_header(&at[..depth]));
    Some(if above {
        (
            format!("`{key}` stands below [{outer}] and belongs above it"),
            format!(
                "move the line up, above the first line that begins with `[`: there it is a key of {}",
                place.file()
            ),
        )
    } else {
        (
            format!("`{shown}` is a key of {}, not of {outer}", place.file()),
            format!("write it as `{key}`, outside of {outer}"),
        )
    })
}

fn enforced(place: Place, key: &str) -> bool {
    own_keys(place).any(|known| known == key)
}

/// The keys that may be stated in `place`, without those that are the file's own.
fn own_keys(place: Place) -> impl Iterator<Item = &'static str> {
    words::keys(place)
        .filter(|word| word.status != Status::Later && word.key != "*")
        .map(|word| word.key)
}

/// The kind of file, other than that of `place`, that knows `key`.
fn of_another_file(place: Place, key: &str) -> Option<(&'static str, &'static words::Word)> {
    let own = place.top();
    let tops = [Place::Grant, Place::Tool, Place::Profile, Place::Config];
    let others = tops.into_iter().filter(|top| *top != own);
    let places = others.flat_map(|top| [top].into_iter().chain(top.beside()));
    let mut found = places.filter_map(|other| {
        let word = words::keys(other).find(|word| word.key == key)?;
        Some((other.file(), word))
    });
    found.next()
}
