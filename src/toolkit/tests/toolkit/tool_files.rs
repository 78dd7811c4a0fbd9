//! The example tool files say what the binaries do.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use proto::tool::{Resource, SchemaType, ToolFile, ToolKind};
use serde_json::{Map, Value, json};

use crate::run::tool;

fn tool_file(name: &str) -> ToolFile {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../profiles/examples/tools")
        .join(format!("{name}.toml"));
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn each_file_parses_and_names_its_binary_kind_and_side_effect() {
    for tool in toolkit::TOOLS {
        let file = tool_file(tool.name);
        assert_eq!(file.command, ["toolkit", tool.name]);
        assert_eq!(file.kind, ToolKind::Stdio);
        assert_eq!(file.profile, "tools/base");
        let resource = match tool.name {
            "fs_write" => Resource::Write,
            "fs_edit" => Resource::Edit,
            _ => Resource::Read,
        };
        assert_eq!(file.side_effect, resource.writes());
        assert_eq!(
            file.resources.into_iter().collect::<Vec<_>>(),
            [("path".to_owned(), resource)]
        );
        assert!(file.description.lines().all(|line| !line.is_empty()));
    }
}

#[test]
fn each_schema_names_exactly_the_arguments_that_the_tool_takes() {
    for tool_entry in toolkit::TOOLS {
        let schema = tool_file(tool_entry.name).arguments;
        assert_eq!(schema.kind, Some(SchemaType::Object));
        assert!(!schema.additional_properties);
        // The tool names its keys in the error about one it does not know.
        let error = tool(tool_entry.name, &json!({"no such key": 1})).failure();
        let (_, keys) = error.split_once("expected ").unwrap();
        let taken: BTreeSet<&str> = keys.split('`').skip(1).step_by(2).collect();
        let declared: BTreeSet<&str> = schema.properties.keys().map(String::as_str).collect();
        assert_eq!(taken, declared);
        // A value of another type than the schema's is refused, one of that type is not.
        for (key, property) in &schema.properties {
            let (right, wrong) = match property.kind.unwrap() {
                SchemaType::String => (json!("replace"), json!(true)),
                SchemaType::Integer => (json!(1), json!("1")),
                SchemaType::Boolean => (json!(true), json!(1)),
                SchemaType::Array => (json!(["*"]), json!("*")),
                other => panic!("no argument is of type {other:?}"),
            };
            let say = |value: Value| {
                let arguments = Map::from_iter([(key.clone(), value)]);
                tool(tool_entry.name, &arguments.into()).failure()
            };
            assert!(is_of_wrong_type(&say(wrong)), "{key}");
            assert!(!is_of_wrong_type(&say(right)), "{key}");
        }
        for key in &schema.required {
            let error = tool(tool_entry.name, &json!({})).failure();
            assert!(
                error.contains("missing field") && declared.contains(key.as_str()),
                "{error}"
            );
        }
    }
}

/// The second is what is said of a value that should be one of several words.
fn is_of_wrong_type(error: &str) -> bool {
    error.contains("invalid type") || error.contains("expected value at")
}
