//! Mistakes in tool files, and what is right beside each of them.

use super::*;

#[test]
fn tool_files_are_checked_beyond_their_types() {
    for (from, to, want) in [
        ("", "", &[][..]),
        (
            "lines.type = \"integer\"",
            "lines = [\"integer\"]",
            &["15: `arguments.properties.lines` is no table"],
        ),
        ("\"Reads files.\"", "\" \"", &["2: `description` is empty"]),
        (
            "description = \"Reads files.\"",
            "",
            &["-: `description` is required"],
        ),
        (
            "[\"toolkit\", \"fs_read\"]",
            "[]",
            &["4: `command` is empty"],
        ),
        (
            "[\"toolkit\", \"fs_read\"]",
            "[\"bin/toolkit\"]",
            &["4: is a relative path"],
        ),
        (
            "[\"toolkit\", \"fs_read\"]",
            "[\"toolkit\",\n \"{path}\"]",
            &["5: stands in the command of a stdio tool"],
        ),
        ("tools/base", "", &["5: is no name of a profile"]),
        ("tools/base", "/tools", &["5: is no name of a profile"]),
        ("tools/base", "../x", &["5: is no name of a profile"]),
        ("tools/base", "a//b", &["5: is no name of a profile"]),
        ("side_effect = false", "max_output = 786432", &[]),
        (
            "side_effect = false",
            "max_output = 786433",
            &["6: `max_output` is 786433"],
        ),
        (
            "side_effect = false",
            "max_output = 0",
            &["6: `max_output` is 0"],
        ),
        (
            "side_effect = false",
            "max_output = -1",
            &["6: `max_output`: invalid value"],
        ),
        (
            "side_effect = false",
            "timeout = \"0s\"",
            &["6: `timeout`: "],
        ),
        (
            "side_effect = false",
            "result = \"private\"",
            &["6: `result`: unknown value"],
        ),
        (
            "other = \"read\"",
            "gone = \"read\"",
            &["9: names \"gone\", which is no argument"],
        ),
        (
            "other = \"read\"",
            "lines = \"read\"",
            &["9: names \"lines\", which is no argument of type string"],
        ),
        (
            "other = \"read\"",
            "other = \"exec\"",
            &["9: `resources.other`: unknown value"],
        ),
        (
            "type = \"object\"",
            "type = \"string\"",
            &["11: the arguments of a tool are an object"],
        ),
        (
            "type = \"object\"",
            "",
            &["10: the arguments of a tool are an object"],
        ),
        (
            "type = \"object\"",
            "type = \"object\"\nrequired = [\"path\", \"gone\"]",
            &["12: names \"gone\""],
        ),
        (
            "type = \"object\"",
            "type = \"object\"\nrequired = [\"path\", \"path\"]",
            &["12: names \"path\" twice"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.required = []",
            &["15: is not of type object"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.properties = {}",
            &["15: is not of type object"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.additionalProperties = true",
            &["15: is not of type object"],
        ),
        (
            "lines.type = \"integer\"",
            "lines = { type = \"object\", additionalProperties = {} }",
            &[
                "15: `arguments.properties.lines.additionalProperties`: invalid type: table, expected true or false",
            ],
        ),
        (
            "lines.type = \"integer\"",
            "lines.default = nan",
            &["15: holds a date or a number"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.default = [{ a = 2026-01-01 }]",
            &["15: holds a date or a number"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.default = [{ a = 1.5 }]",
            &[],
        ),
        (
            "lines.type = \"integer\"",
            "lines = { type = \"object\", properties.a.enum = [] }",
            &["15: `arguments.properties.lines.properties.a.enum` is known"],
        ),
        (
            "lines.type = \"integer\"",
            "lines = { type = \"object\", required = [\"a\"] }",
            &["15: `arguments.properties.lines.required` names \"a\""],
        ),
        (
            "lines.type = \"integer\"",
            "\"\" = { type = \"string\" }",
            &["15: holds the name \"\""],
        ),
        (
            "lines.type = \"integer\"",
            "lines.type = \"int\"",
            &["15: `arguments.properties.lines.type`: unknown value"],
        ),
    ] {
        assert!(READ.contains(from));
        expect("tools/x.toml", &READ.replacen(from, to, 1), want);
    }
}

#[test]
fn argv_tools_take_every_argument_as_a_word() {
    for (from, to, want) in [
        ("", "", &[][..]),
        (
            "\"{to}\"",
            "\"{to}\", \"{gone}\"",
            &["4: `{gone}` names no argument"],
        ),
        ("\"{to}\"", "\"x={to}\"", &["4: and something else"]),
        (
            "\"/usr/bin/cp\"",
            "\"{from}\"",
            &["4: the program \"{from}\""],
        ),
        (
            ", \"to\"]",
            "]",
            &["4: `{to}` stands for an argument that a call may leave out"],
        ),
        (
            "to.type = \"string\"",
            "to.type = \"string\"\nmore.type = \"string\"",
            &["15: no word of `command` stands for the argument \"more\""],
        ),
        (
            "type = \"object\"",
            "type = \"object\"\nadditionalProperties = true",
            &["11: would never see"],
        ),
    ] {
        assert!(COPY.contains(from));
        expect("tools/x.toml", &COPY.replacen(from, to, 1), want);
    }
}
