//! The words of a tool's command: which stand for arguments, and what they become in one call
//! (formats.md section 3).
//!
//! A word is a literal or one whole argument; nothing is split, joined or quoted, and no shell ever reads it.

use proto::tool::{SchemaType, ToolFile, ToolKind};
use serde_json::{Map, Value};

use crate::schema::BadArgument;

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Itself.
    Literal(String),
    /// The text of an argument.
    Argument {
        /// Its name, without braces.
        name: String,
        /// Whether a text that begins with `-` is refused, because the program would take it for an option.
        guarded: bool,
    },
}

/// A word that a command must not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordError {
    /// Its place in the command, from 0.
    pub(crate) place: usize,
    /// The rule that it breaks.
    pub(crate) rule: String,
    /// The way out.
    pub(crate) fix: String,
}

/// Reads the command of a tool. An argument in a command must be `required` by the schema: were it optional, the
/// words after it would move, or an empty word would be passed that nobody wrote.
///
/// # Errors
/// Every word that breaks a rule.
pub(crate) fn words(tool: &ToolFile) -> Result<Vec<Word>, Vec<WordError>> {
    let mut words = Vec::new();
    let mut errors = Vec::new();
    let mut guarded = true;
    for (place, text) in tool.command.iter().enumerate() {
        let mut error = |rule: String, fix: &str| {
            errors.push(WordError {
                place,
                rule,
                fix: fix.to_owned(),
            });
        };
        if text.contains('\0') {
            error("a word of `command` holds a NUL".to_owned(), "remove it");
            continue;
        }
        if place == 0 {
            if let Err(rule) = program(text) {
                error(
                    format!("the program {text:?} {rule}"),
                    "write an absolute path, or the plain name of one of boxmaker's own binaries",
                );
            }
            words.push(Word::Literal(text.clone()));
            continue;
        }
        let Some(name) = placeholder(text) else {
            if let Some(name) = embedded(text, tool) {
                error(
                    format!("the word {text:?} holds `{{{name}}}` and something else"),
                    "make the argument a word of its own: words are never split or joined",
                );
            }
            guarded = guarded && text != "--";
            words.push(Word::Literal(text.clone()));
            continue;
        };
        if tool.kind == ToolKind::Stdio {
            error(
                format!("`{text}` stands in the command of a stdio tool"),
                "remove it (a stdio tool gets its arguments on standard input), or set kind = \"argv\"",
            );
            continue;
        }
        let property = tool.arguments.properties.get(name);
        match property.map(|schema| schema.kind) {
            None => error(
                format!("`{text}` names no argument of the tool"),
                "declare it in [arguments.properties], or write the name of one that is",
            ),
            Some(Some(SchemaType::String | SchemaType::Integer | SchemaType::Boolean)) => {}
            Some(_) => error(
                format!("`{text}` stands for an argument that is no string, integer or boolean"),
                "give the argument one of these types, or use a stdio tool",
            ),
        }
        if property.is_some() && !tool.arguments.required.iter().any(|r| r == name) {
            error(
                format!("`{text}` stands for an argument that a call may leave out"),
                "add it to `required`: a command always has the same number of words",
            );
        }
        words.push(Word::Argument {
            name: name.to_owned(),
            guarded,
        });
    }
    if errors.is_empty() {
        Ok(words)
    } else {
        Err(errors)
    }
}

/// The words of one call, in order; the program first.
///
/// # Errors
/// An argument whose text cannot be a word, or that would be taken for an option.
pub(crate) fn argv(
    words: &[Word],
    arguments: &Map<String, Value>,
) -> Result<Vec<String>, BadArgument> {
    let one = |word: &Word| match word {
        Word::Literal(text) => Ok(text.clone()),
        Word::Argument { name, guarded } => {
            let bad = |rule| BadArgument {
                argument: name.clone(),
                rule,
                meant: None,
            };
            let text = match arguments.get(name) {
                Some(Value::String(text)) => text.clone(),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
                _ => return Err(bad("must be a string, an integer or a boolean")),
            };
            if text.contains('\0') {
                return Err(bad("must not hold a NUL"));
            }
            if *guarded && text.starts_with('-') {
                return Err(bad("must not begin with `-`"));
            }
            Ok(text)
        }
    };
    words.iter().map(one).collect()
}

/// Whether `text` can be the program of a command: an absolute path in its one spelling, or a plain file name.
fn program(text: &str) -> Result<(), String> {
    if text.contains('/') {
        if !text.starts_with('/') {
            return Err("is a relative path".to_owned());
        }
        crate::paths::spelling(text)
            .and_then(|()| crate::paths::kernel_tree(text))
            .map_err(|rule| format!("breaks a rule: {rule}"))?;
        if text == "/" {
            return Err("is a directory".to_owned());
        }
        return Ok(());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if text.is_empty() || text.starts_with('-') || !text.chars().all(plain) {
        return Err(
            "is neither a path nor a plain name of letters, digits, `_` and `-`".to_owned(),
        );
    }
    Ok(())
}

/// The name in a word that is `{name}` and nothing else.
fn placeholder(word: &str) -> Option<&str> {
    let name = word.strip_prefix('{')?.strip_suffix('}')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// An argument whose `{name}` stands inside of `word`. Other braces are the program's own (`HEAD@{1}`).
fn embedded<'a>(word: &str, tool: &'a ToolFile) -> Option<&'a str> {
    let names = tool.arguments.properties.keys();
    names
        .map(String::as_str)
        .find(|name| word.contains(&format!("{{{name}}}")))
}

/// The arguments of an argv tool that no word stands for: it would never see them.
pub(crate) fn unused<'a>(words: &[Word], tool: &'a ToolFile) -> Vec<&'a str> {
    let used = |argument: &str| {
        words
            .iter()
            .any(|word| matches!(word, Word::Argument { name, .. } if name == argument))
    };
    let names = tool.arguments.properties.keys().map(String::as_str);
    names.filter(|name| !used(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(kind: &str, command: &[&str]) -> ToolFile {
        serde_json::from_value(json!({
            "description": "d", "kind": kind, "command": command, "profile": "p",
            "arguments": {"type": "object", "required": ["s", "i", "b", "list"], "properties": {
                "s": {"type": "string"}, "i": {"type": "integer"}, "b": {"type": "boolean"},
                "list": {"type": "array"}, "any": {}, "optional": {"type": "string"}}}
        }))
        .unwrap()
    }

    #[test]
    fn programs_are_absolute_or_plain() {
        for program in ["/usr/bin/git", "toolkit", "boxmaker-stage"] {
            assert!(words(&tool("argv", &[program])).is_ok(), "{program}");
        }
        for program in [
            "",
            "/",
            "bin/git",
            "./git",
            "../git",
            "/usr/../bin/git",
            "/usr//git",
            "/bin/",
            ".",
            "..",
            "a b",
            "-x",
            "{s}",
            "git\0",
            "/proc/self/exe",
            "/dev/fd/3",
        ] {
            let errors = words(&tool("argv", &[program])).unwrap_err();
            assert_eq!((errors.len(), errors[0].place), (1, 0), "{program:?}");
        }
    }

    #[test]
    fn a_placeholder_is_a_whole_word_for_a_required_scalar() {
        let good = [
            "/bin/x",
            "{s}",
            "HEAD@{1}",
            "{}",
            "{\"s\": 1}",
            "",
            "--",
            "{i}",
            "{b}",
        ];
        let read = words(&tool("argv", &good)).unwrap();
        let argument = |name: &str, guarded| Word::Argument {
            name: name.to_owned(),
            guarded,
        };
        assert_eq!(read[1], argument("s", true));
        assert_eq!(read[7..], [argument("i", false), argument("b", false)]);
        for (word, rule) in [
            ("--file={s}", "and something else"),
            ("{s}{i}", "and something else"),
            ("{gone}", "names no argument"),
            ("{list}", "no string, integer or boolean"),
            ("{any}", "no string, integer or boolean"),
            ("{optional}", "may leave out"),
            ("a\0b", "NUL"),
        ] {
            let errors = words(&tool("argv", &["/bin/x", word])).unwrap_err();
            assert!(
                errors.iter().any(|e| e.rule.contains(rule)),
                "{word}: {errors:?}"
            );
        }
    }

    #[test]
    fn a_stdio_command_holds_no_placeholder() {
        assert!(words(&tool("stdio", &["toolkit", "fs_read"])).is_ok());
        for word in ["{s}", "{gone}", "--x={s}"] {
            assert!(words(&tool("stdio", &["toolkit", word])).is_err(), "{word}");
        }
    }

    #[test]
    fn arguments_become_words_without_being_split() {
        let words = words(&tool("argv", &["/bin/x", "{s}", "{i}", "{b}", "--", "{s}"])).unwrap();
        let call = |arguments: Value| argv(&words, arguments.as_object().unwrap());
        let text = "a b;$(c) \"'\n*";
        assert_eq!(
            call(json!({"s": text, "i": 7, "b": true})).unwrap(),
            ["/bin/x", text, "7", "true", "--", text]
        );
        for (arguments, want) in [
            (
                json!({"s": "-a", "i": 7, "b": true}),
                "argument `s` must not begin with `-`",
            ),
            (
                json!({"s": "a", "i": -7, "b": true}),
                "argument `i` must not begin with `-`",
            ),
            (
                json!({"s": "a\0", "i": 7, "b": true}),
                "argument `s` must not hold a NUL",
            ),
        ] {
            assert_eq!(call(arguments).unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn after_a_literal_double_dash_a_leading_dash_passes() {
        let words = words(&tool("argv", &["/bin/x", "--", "{s}"])).unwrap();
        let arguments = json!({"s": "-rf"});
        assert_eq!(
            argv(&words, arguments.as_object().unwrap()).unwrap(),
            ["/bin/x", "--", "-rf"]
        );
        // An argument that happens to be `--` opens nothing: it is no literal.
        let words = self::words(&tool("argv", &["/bin/x", "{s}", "{s}"])).unwrap();
        let arguments = json!({"s": "--"});
        assert!(argv(&words, arguments.as_object().unwrap()).is_err());
    }
}
