//! The rules of a tool file that its types do not carry (formats.md section 3).

use proto::ToolName;
use proto::tool::{MAX_OUTPUT, SchemaType, ToolFile, ToolKind};

use super::LoadError;
use super::document::Document;
use super::words::Place;
use crate::command;
use crate::policy::Tool;

/// Reads one tool file. A tool with a mistake is not returned.
pub(super) fn read(
    document: &Document<'_>,
    name: ToolName,
    errors: &mut Vec<LoadError>,
) -> Option<Tool> {
    let file: ToolFile = document.read(Place::Tool, errors)?;
    let before = errors.len();
    if file.description.trim().is_empty() {
        let rule = "`description` is empty".to_owned();
        errors.push(document.error(
            &["description"],
            rule,
            "say in a sentence what the tool does",
        ));
    }
    if !is_profile_name(&file.profile) {
        errors.push(document.error(
            &["profile"],
            format!("`profile` {:?} is no name of a profile", file.profile),
            "write names of a-z, 0-9, _ and -, joined by /, such as \"tools/base\"",
        ));
    }
    if !(1..=MAX_OUTPUT).contains(&file.max_output) {
        errors.push(document.error(
            &["max_output"],
            format!("`max_output` is {}", file.max_output),
            format!("write 1 to {MAX_OUTPUT}: a result must fit a frame"),
        ));
    }
    super::schema::check(document, &file.arguments, errors);
    resources(document, &file, errors);
    let words = words(document, &file, errors);
    let loaded = errors.len() == before;
    words
        .filter(|_| loaded)
        .map(|words| Tool { name, file, words })
}

fn resources(document: &Document<'_>, file: &ToolFile, errors: &mut Vec<LoadError>) {
    for argument in file.resources.keys() {
        let property = file.arguments.properties.get(argument);
        if property.and_then(|schema| schema.kind) != Some(SchemaType::String) {
            errors.push(document.error(
                &["resources", argument],
                format!("`resources` names {argument:?}, which is no argument of type string"),
                format!("declare it in [arguments.properties.{argument}] with type = \"string\""),
            ));
        }
    }
}

fn words(
    document: &Document<'_>,
    file: &ToolFile,
    errors: &mut Vec<LoadError>,
) -> Option<Vec<command::Word>> {
    if file.command.is_empty() {
        errors.push(document.error(
            &["command"],
            "`command` is empty".to_owned(),
            "write the program, then its words",
        ));
        return None;
    }
    let words = match command::words(file) {
        Ok(words) => words,
        Err(wrong) => {
            errors.extend(wrong.into_iter().map(|word| {
                let place = word.place.to_string();
                document.error(&["command", &place], word.rule, word.fix)
            }));
            return None;
        }
    };
    if file.kind == ToolKind::Argv {
        for argument in command::unused(&words, file) {
            errors.push(document.error(
                &["arguments", "properties", argument],
                format!("no word of `command` stands for the argument {argument:?}"),
                format!("add the word \"{{{argument}}}\", or remove the argument: an argv tool reads nothing else"),
            ));
        }
        if file.arguments.additional_properties {
            errors.push(document.error(
                &["arguments", "additionalProperties"],
                "an argv tool would never see arguments that nothing declares".to_owned(),
                "remove additionalProperties",
            ));
        }
    }
    Some(words)
}

fn is_profile_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    name.split('/')
        .all(|part| !part.is_empty() && part.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::is_profile_name;

    #[test]
    fn a_profile_has_parts_of_small_letters_digits_and_two_marks() {
        for name in [
            "tools/base",
            "a",
            "tools/git-log",
            "tools/python3",
            "my_tools/2",
        ] {
            assert!(is_profile_name(name), "{name}");
        }
        for name in [
            "",
            "/",
            "tools/",
            "/base",
            "tools//base",
            "Tools/base",
            "tools/a.b",
            "tools/é",
            "a b",
        ] {
            assert!(!is_profile_name(name), "{name}");
        }
    }
}
