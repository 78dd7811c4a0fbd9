//! The arguments of a call, from the words of the command line to the JSON text that is sent. Knows a tool's schema
//! only to give `key=value` its type; whether the arguments are allowed is not decided here.

use std::io::{self, Read};

use proto::tool::{Schema, SchemaType};
use serde_json::{Map, Number, Value};

/// The most bytes that are read from standard input: what could still be sent.
const MOST: u64 = proto::frame::MAX_FRAME as u64;

/// Why the words are no arguments.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentError {
    /// The text is no JSON object.
    #[error(
        "the arguments are no JSON object: {why}\n  write '{{\"key\": \"value\"}}' in single quotes, or key=value words"
    )]
    NotObject {
        /// What is wrong.
        why: String,
    },
    /// A JSON object stands beside other words.
    #[error(
        "a JSON object or - stands alone\n  put every argument into it, or write all of them as key=value"
    )]
    Mixed,
    /// A word is neither.
    #[error(
        "{word:?} is no argument\n  write key=value, key:=JSON, one JSON object, or - to read one from standard input"
    )]
    NoKey {
        /// The word.
        word: String,
    },
    /// One key stands twice.
    #[error("the argument {key:?} is given twice\n  a list is written {key}:='[\"a\", \"b\"]'")]
    Twice {
        /// The key.
        key: String,
    },
    /// What stands after `:=` is no JSON.
    #[error("the value of {key} is no JSON: {source}\n  text is written {key}=TEXT")]
    NotJson {
        /// The key.
        key: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The value does not have the type that the tool's file says.
    #[error(
        "{key}={value}: this tool takes {wanted} for {key}\n  {key}:=JSON sends any other value"
    )]
    WrongType {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What the schema says.
        wanted: &'static str,
    },
    /// Standard input could not be read.
    #[error("cannot read the arguments from standard input: {0}")]
    Input(#[from] io::Error),
    /// Standard input has too much.
    #[error(
        "standard input has more than {MOST} bytes\n  arguments of a call may have at most 256 KiB"
    )]
    TooLong,
}

/// Whether `key=value` words are there, whose types only the tool's schema tells.
#[must_use]
pub fn wants_schema(words: &[String]) -> bool {
    words
        .iter()
        .any(|word| split(word).is_some_and(|(_, _, raw)| !raw))
}

/// Builds the text to send. A JSON object goes out as it was typed; words become an object in their order of keys.
///
/// # Errors
/// As [`ArgumentError`].
pub fn build(
    words: &[String],
    schema: Option<&Schema>,
    input: &mut impl Read,
) -> Result<String, ArgumentError> {
    match words {
        [] => return Ok("{}".to_owned()),
        [word] if word == "-" => {
            let mut text = String::new();
            if input.take(MOST + 1).read_to_string(&mut text)? as u64 > MOST {
                return Err(ArgumentError::TooLong);
            }
            return object(text);
        }
        [word] if word.trim_start().starts_with('{') => return object(word.clone()),
        _ => {}
    }
    let mut map = Map::new();
    for word in words {
        if word == "-" || word.trim_start().starts_with('{') {
            return Err(ArgumentError::Mixed);
        }
        let (key, value, raw) =
            split(word).ok_or_else(|| ArgumentError::NoKey { word: word.clone() })?;
        let value = if raw {
            serde_json::from_str(value).map_err(|source| ArgumentError::NotJson {
                key: key.to_owned(),
                source,
            })?
        } else {
            typed(key, value, schema)?
        };
        if map.insert(key.to_owned(), value).is_some() {
            return Err(ArgumentError::Twice {
                key: key.to_owned(),
            });
        }
    }
    Ok(Value::Object(map).to_string())
}

/// Checks that the text is one JSON object, and leaves its bytes alone: what the broker judges is what was typed.
fn object(text: String) -> Result<String, ArgumentError> {
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(_)) => Ok(text),
        Ok(_) => Err(ArgumentError::NotObject {
            why: "it is another JSON value".to_owned(),
        }),
        Err(error) => Err(ArgumentError::NotObject {
            why: error.to_string(),
        }),
    }
}

/// Key, value, and whether the value is raw JSON.
fn split(word: &str) -> Option<(&str, &str, bool)> {
    let (key, value) = word.split_once('=')?;
    let (key, raw) = key
        .strip_suffix(':')
        .map_or((key, false), |key| (key, true));
    (!key.is_empty() && !key.trim_start().starts_with('{')).then_some((key, value, raw))
}

fn typed(key: &str, value: &str, schema: Option<&Schema>) -> Result<Value, ArgumentError> {
    let kind = schema
        .and_then(|schema| schema.properties.get(key))
        .and_then(|schema| schema.kind);
    let wrong = |wanted| ArgumentError::WrongType {
        key: key.to_owned(),
        value: value.to_owned(),
        wanted,
    };
    let parsed = || serde_json::from_str::<Value>(value).ok();
    match kind {
        None | Some(SchemaType::String) => Ok(Value::String(value.to_owned())),
        Some(SchemaType::Integer) => match parsed() {
            Some(Value::Number(number)) if !is_fraction(&number) => Ok(Value::Number(number)),
            _ => Err(wrong("an integer")),
        },
        Some(SchemaType::Number) => parsed()
            .filter(Value::is_number)
            .ok_or_else(|| wrong("a number")),
        Some(SchemaType::Boolean) => parsed()
            .filter(Value::is_boolean)
            .ok_or_else(|| wrong("true or false")),
        Some(SchemaType::Null) => parsed().filter(Value::is_null).ok_or_else(|| wrong("null")),
        Some(SchemaType::Array) => parsed()
            .filter(Value::is_array)
            .ok_or_else(|| wrong("a JSON list")),
        Some(SchemaType::Object) => parsed()
            .filter(Value::is_object)
            .ok_or_else(|| wrong("a JSON object")),
    }
}

fn is_fraction(number: &Number) -> bool {
    !number.is_i64() && !number.is_u64()
}

#[cfg(test)]
mod tests;
