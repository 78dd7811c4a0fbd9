//! Check 10: arguments against the part of JSON Schema that a tool file may state (policy.md section 3).
//!
//! Whether the schema itself makes sense was settled when it was loaded; this file only compares.

use proto::tool::{Schema, SchemaType};
use serde_json::{Map, Value};

use crate::nearest::nearest;

/// An argument that does not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument `{argument}` {rule}{}", did_you_mean(meant.as_deref()))]
pub(crate) struct BadArgument {
    /// The argument by its path, for example `options.depth`, cut after 128 characters.
    pub(crate) argument: String,
    /// What it must be.
    pub(crate) rule: &'static str,
    /// The argument of the tool that it probably was meant to be, shown like `argument`.
    pub(crate) meant: Option<String>,
}

/// The question at the end of a sentence about a name that is not known; nothing where no name is near.
pub(crate) fn did_you_mean(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Checks the arguments of a call. Members that a schema does not name are refused unless it says
/// `additionalProperties = true`, at every level.
pub(crate) fn check(schema: &Schema, arguments: &Map<String, Value>) -> Result<(), BadArgument> {
    members(schema, arguments, &[])
}

fn members(schema: &Schema, object: &Map<String, Value>, path: &[&str]) -> Result<(), BadArgument> {
    // Before what is required: a misspelt name is both unknown and missing, and the name is what helps.
    let unknown = |name: &&String| !schema.properties.contains_key(*name);
    if !schema.additional_properties
        && let Some(name) = object.keys().find(unknown)
    {
        let free = schema.properties.keys().map(String::as_str);
        let meant = nearest(name, free.filter(|name| !object.contains_key(*name)));
        return Err(BadArgument {
            meant: meant.map(shown),
            ..bad(path, Some(name), "is not known to this tool")
        });
    }
    for name in &schema.required {
        if !object.contains_key(name) {
            return Err(bad(path, Some(name), "is required"));
        }
    }
    for (name, value) in object {
        if let Some(inner) = schema.properties.get(name) {
            let mut path = path.to_vec();
            path.push(name);
            one(inner, value, &path)?;
        }
    }
    Ok(())
}

fn one(schema: &Schema, value: &Value, path: &[&str]) -> Result<(), BadArgument> {
    if let Some(kind) = schema.kind
        && !is(kind, value)
    {
        return Err(bad(path, None, must_be(kind)));
    }
    match value {
        Value::Object(object) => members(schema, object, path),
        _ => Ok(()),
    }
}

/// Whether `value` is of the type. An integer is a JSON integer of 64 bits: `1.0` is none, and neither is a number
/// so large that it was read as floating point. A boolean is never a number.
fn is(kind: SchemaType, value: &Value) -> bool {
    match kind {
        SchemaType::Object => value.is_object(),
        SchemaType::Array => value.is_array(),
        SchemaType::String => value.is_string(),
        SchemaType::Integer => value.is_i64() || value.is_u64(),
        SchemaType::Number => value.is_number(),
        SchemaType::Boolean => value.is_boolean(),
        SchemaType::Null => value.is_null(),
    }
}

const fn must_be(kind: SchemaType) -> &'static str {
    match kind {
        SchemaType::Object => "must be an object",
        SchemaType::Array => "must be an array",
        SchemaType::String => "must be a string",
        SchemaType::Integer => "must be an integer",
        SchemaType::Number => "must be a number",
        SchemaType::Boolean => "must be true or false",
        SchemaType::Null => "must be null",
    }
}

fn bad(path: &[&str], last: Option<&str>, rule: &'static str) -> BadArgument {
    let argument = path
        .iter()
        .copied()
        .chain(last)
        .collect::<Vec<_>>()
        .join(".");
    BadArgument {
        argument: shown(&argument),
        rule,
        meant: None,
    }
}

/// A name that may be the caller's own: no control characters, and not without end.
fn shown(name: &str) -> String {
    let letters = name.chars().take(128).flat_map(char::escape_debug);
    letters.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(schema: Value, arguments: Value) -> Result<(), String> {
        let schema: Schema = serde_json::from_value(schema).unwrap();
        let Value::Object(arguments) = arguments else {
            panic!("not an object")
        };
        check(&schema, &arguments).map_err(|bad| bad.to_string())
    }

    #[test]
    fn each_type_accepts_its_own_values_and_no_others() {
        let values = [
            ("object", json!({})),
            ("array", json!([])),
            ("string", json!("1")),
            ("integer", json!(1)),
            ("integer", json!(-1)),
            ("integer", json!(u64::MAX)),
            ("number", json!(1.5)),
            ("number", json!(1.0)),
            ("number", json!(1e30)),
            ("boolean", json!(true)),
            ("null", json!(null)),
        ];
        let types = [
            "object", "array", "string", "integer", "number", "boolean", "null",
        ];
        for kind in types {
            let schema = json!({"type": "object", "properties": {"v": {"type": kind}}});
            for (own, value) in &values {
                let fits = *own == kind || (kind == "number" && *own == "integer");
                let answer = judge(schema.clone(), json!({ "v": value }));
                assert_eq!(answer.is_ok(), fits, "{kind} {value} {answer:?}");
                if let Err(error) = answer {
                    assert!(error.starts_with("argument `v` must be "), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_large_integer_is_no_integer() {
        let schema = json!({"type": "object", "properties": {"v": {"type": "integer"}}});
        let schema: Schema = serde_json::from_value(schema).unwrap();
        let read = |text: &str| crate::arguments::parse(text).unwrap();
        assert!(check(&schema, &read(r#"{"v":18446744073709551615}"#)).is_ok());
        for text in [
            r#"{"v":18446744073709551616}"#,
            r#"{"v":1e2}"#,
            r#"{"v":-0}"#,
        ] {
            let bad = check(&schema, &read(text)).unwrap_err();
            assert_eq!(bad.to_string(), "argument `v` must be an integer", "{text}");
        }
    }

    #[test]
    fn members_are_required_and_closed_at_every_level() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}, "free": {}}},
            "open": {"type": "object", "additionalProperties": true, "properties": {"n": {"type": "integer"}}},
        }});
        for (arguments, want) in [
            (json!({"a": {"b": "x"}}), Ok(())),
            (json!({"a": {"b": "x", "free": [{"any": 1}]}}), Ok(())),
            (
                json!({"a": {"b": "x"}, "open": {"n": 1, "other": {"x": 1}}}),
                Ok(()),
            ),
            (json!({}), Err("argument `a` is required")),
            (json!({"a": {}}), Err("argument `a.b` is required")),
            (
                json!({"a": {"b": null}}),
                Err("argument `a.b` must be a string"),
            ),
            (
                json!({"a": {"b": "x", "c": 1}}),
                Err("argument `a.c` is not known to this tool"),
            ),
            (
                json!({"a": {"b": "x"}, "z": 1}),
                Err("argument `z` is not known to this tool"),
            ),
            (
                json!({"a": {"b": "x", "free": {"k": 1}}}),
                Err("argument `a.free.k` is not known to this tool"),
            ),
            (
                json!({"a": {"b": "x"}, "open": {"n": true}}),
                Err("argument `open.n` must be an integer"),
            ),
        ] {
            assert_eq!(
                judge(schema.clone(), arguments.clone()),
                want.map_err(str::to_owned),
                "{arguments}"
            );
        }
    }

    #[test]
    fn an_unknown_argument_is_named_first_with_the_one_that_it_may_have_been() {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "first": {"type": "integer"},
            "options": {"type": "object", "properties": {"depth": {"type": "integer"}}},
        }});
        for (arguments, want) in [
            (
                json!({"pth": "x"}),
                "argument `pth` is not known to this tool; did you mean `path`?",
            ),
            // What is right beside it, or wrong too, changes nothing.
            (
                json!({"path": 1, "frist": 1}),
                "argument `frist` is not known to this tool; did you mean `first`?",
            ),
            (
                json!({"path": "x", "options": {"depht": 1}}),
                "argument `options.depht` is not known to this tool; did you mean `depth`?",
            ),
            // A name that is given already was not meant.
            (
                json!({"path": "x", "pth": "y"}),
                "argument `pth` is not known to this tool",
            ),
            (
                json!({"nothing": "x"}),
                "argument `nothing` is not known to this tool",
            ),
        ] {
            let told = judge(schema.clone(), arguments.clone());
            assert_eq!(told, Err(want.to_owned()), "{arguments}");
        }
        assert_eq!(judge(schema, json!({"path": "x", "first": 1})), Ok(()));
    }

    #[test]
    fn a_hostile_name_is_shown_escaped_and_cut() {
        let name = format!("\u{1b}[2J\n{}", "x".repeat(10_000));
        let error = judge(json!({"type": "object"}), json!({ name: 1 })).unwrap_err();
        assert!(error.contains("\\u{1b}[2J\\nxxx"), "{error}");
        assert!(error.len() < 250 && !error.chars().any(char::is_control));
    }
}
