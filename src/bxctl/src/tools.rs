//! `bxctl tools`: what can be called, from the configuration.

use policy::{Policy, Tool};
use proto::tool::{Resource, SchemaType, ToolFile};
use proto::{GrantId, ToolName};
use serde::Serialize;

use crate::screen::Tone;
use crate::table::{Cell, Fit, Table};

/// The tools as JSON.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    tools: Vec<Item<'a>>,
}

#[derive(Debug, Serialize)]
struct Item<'a> {
    name: &'a ToolName,
    /// Whether it changes anything, whatever its file says.
    has_side_effects: bool,
    /// Every grant that names it, deny grants included.
    grants: Vec<&'a GrantId>,
    #[serde(flatten)]
    file: &'a ToolFile,
}

fn grants<'a>(policy: &'a Policy, tool: &'a Tool) -> Vec<&'a GrantId> {
    let own = policy
        .grants()
        .filter(|grant| grant.file().tool == *tool.name());
    own.map(policy::GrantEntry::id).collect()
}

/// Every field of the tools, for programs.
#[must_use]
pub fn document(policy: &Policy) -> Document<'_> {
    let item = |tool| Item {
        name: tool_name(tool),
        has_side_effects: tool.has_side_effects(),
        grants: grants(policy, tool),
        file: tool.file(),
    };
    Document {
        tools: policy.tools().map(item).collect(),
    }
}

const fn tool_name(tool: &Tool) -> &ToolName {
    tool.name()
}

/// The tools for people: each with its arguments, those that it needs before those that it takes.
#[must_use]
pub fn table(policy: &Policy) -> Table {
    let mut table = Table::new(&[
        ("tool", Fit::Wrap),
        ("does", Fit::Wrap),
        ("arguments", Fit::Wrap),
        ("changes things", Fit::Whole),
        ("grants", Fit::Wrap),
    ]);
    for tool in policy.tools() {
        let grants = grants(policy, tool);
        table.row(vec![
            tool.name().as_str().into(),
            Cell::new(first_sentence(&tool.file().description)),
            Cell::list(arguments(tool.file())),
            if tool.has_side_effects() {
                "yes".into()
            } else {
                "no".into()
            },
            if grants.is_empty() {
                Cell::new("none").tone(Tone::Warning)
            } else {
                Cell::list(grants.iter().map(|id| id.as_str()))
            },
        ]);
    }
    table
}

/// Descriptions are written for a model too and may be long; a person who looks for a tool needs the beginning.
fn first_sentence(text: &str) -> &str {
    let end = [". ", ".\n", "\n"]
        .iter()
        .filter_map(|end| text.find(end))
        .min();
    text.get(..end.map_or(text.len(), |end| end + 1))
        .unwrap_or(text)
        .trim_end()
}

/// One text for each argument: `path: read path`, `[first]: integer` where it may be left out.
fn arguments(file: &ToolFile) -> Vec<String> {
    let needed = |name: &String| file.arguments.required.contains(name);
    let mut names: Vec<&String> = file.arguments.properties.keys().collect();
    names.sort_by_key(|name| !needed(name));
    let mut texts: Vec<String> = names
        .into_iter()
        .map(|name| {
            let kind = match file.resources.get(name) {
                Some(Resource::Read) => "path to read",
                Some(Resource::Write) => "path to write",
                Some(Resource::Edit) => "path to edit",
                None => file
                    .arguments
                    .properties
                    .get(name)
                    .map_or("any", |schema| kind(schema.kind)),
            };
            if needed(name) {
                format!("{name}: {kind}")
            } else {
                format!("[{name}]: {kind}")
            }
        })
        .collect();
    if texts.is_empty() {
        texts.push("none".to_owned());
    }
    texts
}

const fn kind(kind: Option<SchemaType>) -> &'static str {
    match kind {
        None => "any",
        Some(SchemaType::Object) => "object",
        Some(SchemaType::Array) => "list",
        Some(SchemaType::String) => "text",
        Some(SchemaType::Integer) => "integer",
        Some(SchemaType::Number) => "number",
        Some(SchemaType::Boolean) => "true or false",
        Some(SchemaType::Null) => "null",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_the_first_sentence_of_a_description() {
        assert_eq!(
            first_sentence("Read one file. A text file comes back."),
            "Read one file."
        );
        assert_eq!(first_sentence("Show v1.2\nof it"), "Show v1.2");
        assert_eq!(first_sentence("Read one file."), "Read one file.");
        assert_eq!(first_sentence(""), "");
    }
}
