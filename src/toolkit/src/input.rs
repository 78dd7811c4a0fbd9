//! What a tool is given: standard input to its end, one JSON object, paths that can be paths. Touches no file.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, de};

/// The most that is read from standard input, in bytes: 4 MiB. A call through the broker has at most 256 KiB
/// (policy.md section 2, check 3); more comes only by hand.
pub const MAX_INPUT: u64 = 4 * 1024 * 1024;

/// Why there are no arguments.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Standard input could not be read.
    #[error("cannot read standard input: {0}")]
    Read(#[source] io::Error),
    /// There is more than [`MAX_INPUT`].
    #[error(
        "the arguments are over {MAX_INPUT} bytes: write a long text in parts, with mode = \"append\""
    )]
    TooLong,
    /// Nothing was on standard input.
    #[error("standard input is empty: give one JSON object with the arguments")]
    Empty,
    /// It is not one JSON object that the tool takes.
    #[error("the arguments are no object that this tool takes: {0}")]
    Arguments(#[from] serde_json::Error),
}

/// Reads `from` until its end.
///
/// # Errors
/// Reading failed, or there is more than [`MAX_INPUT`].
pub fn read_input(from: impl Read) -> Result<Vec<u8>, InputError> {
    let mut input = Vec::new();
    from.take(MAX_INPUT + 1)
        .read_to_end(&mut input)
        .map_err(InputError::Read)?;
    if input.len() as u64 > MAX_INPUT {
        return Err(InputError::TooLong);
    }
    Ok(input)
}

/// Reads one object of arguments; unknown and repeated keys are errors of the type `T`.
pub(crate) fn parse<'a, T: Deserialize<'a>>(input: &'a [u8]) -> Result<T, InputError> {
    if input.iter().all(u8::is_ascii_whitespace) {
        return Err(InputError::Empty);
    }
    // An array would fill a struct by position, which the contract does not know.
    if input.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(InputError::Arguments(de::Error::custom(
            "it does not begin with {",
        )));
    }
    Ok(serde_json::from_slice(input)?)
}

/// A path as a call spells it: not empty, no NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathArgument(PathBuf);

impl PathArgument {
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }
}

impl<'de> Deserialize<'de> for PathArgument {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        if text.is_empty() {
            return Err(de::Error::custom(
                "path is empty: name a file or a directory",
            ));
        }
        if text.contains('\0') {
            return Err(de::Error::custom(
                "path holds a NUL character, which no name can",
            ));
        }
        Ok(Self(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct One {
        path: PathArgument,
    }

    fn refusal(input: &str) -> String {
        parse::<One>(input.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn an_object_with_the_named_keys_is_taken() {
        let one: One = parse(b" {\"path\":\"/a b\"}\n").unwrap();
        assert_eq!(one.path.as_path(), Path::new("/a b"));
    }

    #[test]
    fn everything_else_is_refused_with_its_reason() {
        assert!(refusal("").contains("standard input is empty"));
        assert!(refusal(" \n").contains("standard input is empty"));
        assert!(refusal("[\"/a\"]").contains("does not begin with {"));
        assert!(refusal("{}").contains("missing field `path`"));
        assert!(refusal("{\"path\":\"/a\",\"pth\":1}").contains("unknown field `pth`"));
        assert!(refusal("{\"path\":\"/a\",\"path\":\"/b\"}").contains("duplicate field"));
        assert!(refusal("{\"path\":\"/a\"} x").contains("trailing characters"));
        assert!(refusal("{\"path\":\"\"}").contains("path is empty"));
        assert!(refusal("{\"path\":\"/a\\u0000b\"}").contains("NUL"));
        assert!(refusal("{\"path\":3}").contains("expected a string"));
    }

    #[test]
    fn input_is_read_up_to_its_limit_and_not_past_it() {
        let limit = usize::try_from(MAX_INPUT).unwrap();
        assert_eq!(
            read_input(io::repeat(b' ').take(MAX_INPUT)).unwrap().len(),
            limit
        );
        assert!(matches!(
            read_input(io::repeat(b' ')),
            Err(InputError::TooLong)
        ));
    }
}
