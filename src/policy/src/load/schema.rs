//! The rules of a tool's schema that its types do not carry (policy.md section 3): nothing in it may be a check that
//! is not made.

use proto::tool::{Schema, SchemaType};
use toml::de::DeValue;

use super::LoadError;
use super::document::Document;

/// Keywords that say something about objects only.
const OF_OBJECTS: [&str; 3] = ["additionalProperties", "properties", "required"];

/// Checks the `[arguments]` of a tool.
pub(super) fn check(document: &Document<'_>, arguments: &Schema, errors: &mut Vec<LoadError>) {
    if arguments.kind != Some(SchemaType::Object) {
        errors.push(document.error(
            &["arguments", "type"],
            "the arguments of a tool are an object".to_owned(),
            "write type = \"object\" in [arguments]",
        ));
    }
    level(document, arguments, &mut vec!["arguments"], errors);
}

fn level<'a>(
    document: &Document<'_>,
    schema: &'a Schema,
    at: &mut Vec<&'a str>,
    errors: &mut Vec<LoadError>,
) {
    let here = at.join(".");
    // `arguments` itself was judged above.
    if schema.kind != Some(SchemaType::Object) && at.len() > 1 {
        for keyword in OF_OBJECTS {
            let path = below(at, &[keyword]);
            if document.has(&path) {
                let rule =
                    format!("`{here}.{keyword}` stands in a schema that is not of type object");
                errors.push(document.error(&path, rule, "add type = \"object\", or remove it"));
            }
        }
    }
    for (place, name) in schema.required.iter().enumerate() {
        let number = place.to_string();
        let path = below(at, &["required", &number]);
        if !schema.properties.contains_key(name) {
            let rule = format!("`{here}.required` names {name:?}, which is not in `properties`");
            errors.push(document.error(&path, rule, "declare it, or remove it"));
        }
        if schema.required[..place].contains(name) {
            let rule = format!("`{here}.required` names {name:?} twice");
            errors.push(document.error(&path, rule, "remove one"));
        }
    }
    let path = below(at, &["default"]);
    if document.value(&path).is_some_and(|value| !is_json(value)) {
        let rule = format!("`{here}.default` holds a date or a number that JSON does not have");
        errors.push(document.error(&path, rule, "write a text or another number"));
    }
    for (name, property) in &schema.properties {
        if name.is_empty() || name.chars().any(char::is_control) {
            let rule = format!("`{here}.properties` holds the name {name:?}");
            let fix = "names are not empty and hold no control character";
            errors.push(document.error(&below(at, &["properties", name]), rule, fix));
        }
        at.extend(["properties", name]);
        level(document, property, at, errors);
        at.truncate(at.len() - 2);
    }
}

fn below<'a>(at: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [at, rest].concat()
}

/// Whether a TOML value has a JSON counterpart.
fn is_json(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Datetime(_) => false,
        DeValue::Float(number) => number.as_str().parse::<f64>().is_ok_and(f64::is_finite),
        DeValue::Array(items) => items.iter().all(|item| is_json(item.get_ref())),
        DeValue::Table(table) => table.iter().all(|(_, value)| is_json(value.get_ref())),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Boolean(_) => true,
    }
}
