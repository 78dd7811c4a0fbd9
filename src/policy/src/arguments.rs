//! Check 3 of policy.md section 2: what a caller sent as arguments is one strict JSON object, or nothing.
//!
//! Strict means that every reader of the same bytes reads the same values: no key twice, no number that overflows,
//! no half of a surrogate pair. This file knows no tool and no schema.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most bytes that the arguments of one call may have.
pub const MAX_BYTES: usize = 262_144;
/// The most objects and lists that may stand inside each other, the arguments themselves included.
pub const MAX_DEPTH: usize = 32;

/// Why a text is no acceptable set of arguments.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// It is too long.
    #[error("the arguments have {bytes} bytes, at most {MAX_BYTES} are accepted")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// It is no JSON, no object, too deep, names a key twice or holds a number that is not finite.
    #[error("the arguments are no acceptable JSON object: {}", cut(.0))]
    Json(serde_json::Error),
}

/// Reads the arguments of a call: one JSON object, at most [`MAX_BYTES`] long and [`MAX_DEPTH`] deep, in which no
/// key stands twice at any depth and every number is finite. Integers beyond 64 bits become floating-point numbers,
/// which no `integer` of a schema accepts.
///
/// # Errors
/// As [`ArgumentsError`]; no text makes it panic.
pub fn parse(text: &str) -> Result<Map<String, Value>, ArgumentsError> {
    if text.len() > MAX_BYTES {
        return Err(ArgumentsError::TooLong { bytes: text.len() });
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0 }
        .deserialize(&mut reader)
        .map_err(ArgumentsError::Json)?;
    reader.end().map_err(ArgumentsError::Json)?;
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(ArgumentsError::Json(serde_json::Error::custom(
            "it is not an object",
        ))),
    }
}

/// A message without the caller's text in full: serde quotes whatever it did not expect.
fn cut(error: &serde_json::Error) -> String {
    let message = error.to_string();
    if message.chars().count() <= 160 {
        return message;
    }
    let head: String = message.chars().take(160).collect();
    format!("{head}…")
}

/// Reads one value below `depth` containers.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            return Err(E::custom(format_args!(
                "it is more than {MAX_DEPTH} levels deep"
            )));
        }
        Ok(Self { depth })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inside = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if map.contains_key(&key) {
                let key: String = key.chars().take(64).collect();
                return Err(A::Error::custom(format_args!(
                    "the key {key:?} stands twice"
                )));
            }
            let value = members.next_value_seed(inside)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        // The object is the first level.
        format!(
            "{{\"a\":{}{}}}",
            "[".repeat(levels - 1),
            "]".repeat(levels - 1)
        )
    }

    #[test]
    fn what_is_said_of_unreadable_arguments_is_short() {
        // Both quote what stands there, which is the caller's to choose.
        let long = parse(&format!("\"{}\"", "x".repeat(2000)));
        assert_eq!(
            long.unwrap_err().to_string(),
            "the arguments are no acceptable JSON object: it is not an object"
        );
        let twice = format!("{{\"{0}\":1,\"{0}\":2}}", "\u{7f}".repeat(2000));
        let told = parse(&twice).unwrap_err().to_string();
        assert!(told.ends_with('…') && told.chars().count() < 250, "{told}");
        let whole = parse("{\"k\":1,\"k\":2}").unwrap_err().to_string();
        assert!(
            !whole.contains('…') && whole.contains("line 1 column"),
            "{whole}"
        );
    }

    #[test]
    fn accepted_arguments_are_read_as_they_stand() {
        for (text, want) in [
            ("{}", serde_json::json!({})),
            (
                " {\"a\" : [1, -2, 2.5, null, true]}\n",
                serde_json::json!({"a": [1, -2, 2.5, null, true]}),
            ),
            (
                r#"{"a":{"b":1},"b":{"b":2}}"#,
                serde_json::json!({"a": {"b": 1}, "b": {"b": 2}}),
            ),
            (
                r#"{"a":"😀 \ud83d\ude00 \u0000"}"#,
                serde_json::json!({"a": "😀 😀 \0"}),
            ),
            (
                r#"{"a":18446744073709551615}"#,
                serde_json::json!({"a": u64::MAX}),
            ),
            (
                r#"{"a":-9223372036854775808}"#,
                serde_json::json!({"a": i64::MIN}),
            ),
        ] {
            assert_eq!(Value::Object(parse(text).unwrap()), want, "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_rule() {
        for (text, rule) in [
            ("", "EOF"),
            ("null", "not an object"),
            ("[]", "not an object"),
            ("\"{}\"", "not an object"),
            ("{} {}", "trailing"),
            ("{}x", "trailing"),
            ("{", "EOF"),
            ("{\"a\":1,}", "trailing comma"),
            ("{'a':1}", "key must be a string"),
            ("\u{feff}{}", "expected value"),
            ("{\"a\":\"\0\"}", "control character"),
            (r#"{"a":1,"a":1}"#, "\"a\" stands twice"),
            (r#"{"a":1,"\u0061":2}"#, "\"a\" stands twice"),
            (r#"{"x":[{"deep":{"k":1,"k":2}}]}"#, "\"k\" stands twice"),
            (r#"{"a":1e999}"#, "out of range"),
            (r#"{"a":-1e999}"#, "out of range"),
            (r#"{"a":NaN}"#, "expected"),
            (r#"{"a":Infinity}"#, "expected"),
            (r#"{"a":01}"#, "invalid number"),
            (r#"{"a":"\ud83d"}"#, "hex escape"),
            (r#"{"a":"\ude00"}"#, "surrogate"),
            (r#"{"\ud83d":1}"#, "hex escape"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(rule), "{text:?}: {error}");
        }
    }

    #[test]
    fn depth_and_length_are_limited_to_the_byte() {
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        let error = parse(&nested(MAX_DEPTH + 1)).unwrap_err().to_string();
        assert!(error.contains("32 levels"), "{error}");

        let frame = r#"{"a":""}"#.len();
        let fill = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length - frame));
        assert!(parse(&fill(MAX_BYTES)).is_ok());
        assert!(matches!(
            parse(&fill(MAX_BYTES + 1)),
            Err(ArgumentsError::TooLong { bytes }) if bytes == MAX_BYTES + 1
        ));
    }

    #[test]
    fn hostile_texts_never_panic_and_never_come_back_in_full() {
        for text in [
            "[".repeat(10_000),
            "{\"a\":".repeat(10_000),
            format!("{{\"a\":{}}}", "9".repeat(100_000)),
            format!("{{\"a\":1e{}}}", "9".repeat(100_000)),
            format!("\"{}\"", "x".repeat(100_000)),
            format!("{{\"{0}\":1,\"{0}\":1}}", "k".repeat(100_000)),
        ] {
            if let Err(error) = parse(&text) {
                assert!(error.to_string().len() < 800);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", head in "[\\[{\"a:,0-9eE.+\\\\u-]{0,40}") {
            let _ = parse(&text);
            let _ = parse(&format!("{{\"a\":{head}"));
        }

        #[test]
        fn what_is_accepted_means_the_same_to_serde_json(text in r#"\{("[ab]":(-?[0-9]{1,25}|true|\[\]|"x")(,"[cd]":(1\.5|null))?)?\}"#) {
            if let Ok(map) = parse(&text) {
                proptest::prop_assert_eq!(serde_json::from_str::<Map<String, Value>>(&text).unwrap(), map);
            }
        }
    }
}
