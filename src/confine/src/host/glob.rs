//! Patterns of paths in which `*` stands for anything within one component, also for nothing.

use std::fs;
use std::io;

use super::HostError;

/// The most matches of one pattern.
const MOST: usize = 4096;

/// All existing paths that an absolute pattern matches, sorted. A path without a star is handed back as it is, whether
/// it exists or not.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>, HostError> {
    let mut found = vec![String::new()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for directory in &found {
            if !part.contains('*') {
                next.push(format!("{directory}/{part}"));
                continue;
            }
            for name in names(directory)? {
                if matches(part, &name) {
                    next.push(format!("{directory}/{name}"));
                }
                if next.len() > MOST {
                    return Err(HostError::TooMany {
                        pattern: pattern.to_owned(),
                        most: MOST,
                    });
                }
            }
        }
        found = next;
    }
    found.sort();
    Ok(found)
}

/// The names in a directory; none if it is not one. Names that are not text match nothing.
fn names(directory: &str) -> Result<Vec<String>, HostError> {
    let place = if directory.is_empty() { "/" } else { directory };
    let failed = |source| HostError::Look {
        path: place.to_owned(),
        source,
    };
    let entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        Err(source) => return Err(failed(source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(failed)?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Whether a name matches a component: the text before the first star begins it, the text after the last one ends it,
/// and what is between stars stands in order in between. Hidden names are not special.
fn matches(part: &str, name: &str) -> bool {
    let mut pieces = part.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_anything_within_one_component() {
        for (part, yes, no) in [
            ("python3*", "python3", "python"),
            ("python3*", "python3.11-config", "xpython3"),
            ("*x*", "x", ""),
            ("a*b*c", "abc", "acb"),
            ("a*b*c", "aXbYbZc", "aXbYbZ"),
            ("*b*", "abc", "ac"),
            ("ab*ba", "abba", "aba"),
            ("plain", "plain", "plainer"),
        ] {
            assert!(matches(part, yes), "{part} {yes}");
            assert!(!matches(part, no), "{part} {no}");
        }
        assert!(matches("*", "") && matches("*", ".hidden"));
    }

    #[test]
    fn patterns_expand_to_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().to_str().unwrap();
        for name in ["a1/x", "a2/x", "a2/y", "b/x"] {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let expand = |pattern: &str| {
            let all = expand(&format!("{base}/{pattern}")).unwrap();
            let cut = |path: String| path[base.len() + 1..].to_owned();
            all.into_iter().map(cut).collect::<Vec<_>>()
        };
        assert_eq!(expand("a*/*"), ["a1/x", "a2/x", "a2/y"]);
        assert_eq!(expand("*/y"), ["a1/y", "a2/y", "b/y"]);
        assert_eq!(expand("a*/x/*"), [""; 0]);
        assert_eq!(expand("none"), ["none"]);
    }
}
