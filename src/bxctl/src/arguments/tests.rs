//! What words become which arguments, and which are refused.

use super::*;

fn schema() -> Schema {
    serde_json::from_str(
        r#"{"type": "object", "properties": {"path": {"type": "string"}, "first": {"type": "integer"},
            "ratio": {"type": "number"}, "hidden": {"type": "boolean"}, "tags": {"type": "array"}}}"#,
    )
    .unwrap()
}

fn built(words: &[&str]) -> Result<String, ArgumentError> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    build(&words, Some(&schema()), &mut io::empty())
}

#[test]
fn values_get_the_type_that_the_tool_says() {
    assert_eq!(
        built(&["path=7", "first=7", "hidden=true", "ratio=0.5", "tags=[1]"]).unwrap(),
        r#"{"first":7,"hidden":true,"path":"7","ratio":0.5,"tags":[1]}"#
    );
}

#[test]
fn an_argument_that_no_schema_names_is_text() {
    assert_eq!(
        built(&["other=7", "empty="]).unwrap(),
        r#"{"empty":"","other":"7"}"#
    );
    assert_eq!(
        build(&["first=7".into()], None, &mut io::empty()).unwrap(),
        r#"{"first":"7"}"#
    );
}

#[test]
fn only_the_first_equals_sign_splits() {
    assert_eq!(built(&["path=a=b:=c"]).unwrap(), r#"{"path":"a=b:=c"}"#);
}

#[test]
fn raw_json_goes_in_as_it_is_whatever_the_type() {
    assert_eq!(
        built(&["path:=[1, {\"a\": null}]"]).unwrap(),
        r#"{"path":[1,{"a":null}]}"#
    );
    assert!(
        matches!(built(&["path:=x"]), Err(ArgumentError::NotJson { key, .. }) if key == "path")
    );
}

#[test]
fn a_value_of_another_type_is_refused_and_the_type_named() {
    for (word, named) in [
        ("first=x", "an integer"),
        ("first=1.0", "an integer"),
        ("first=", "an integer"),
        ("hidden=yes", "true or false"),
        ("ratio=\"1\"", "a number"),
        ("tags={}", "a JSON list"),
    ] {
        let error = built(&[word]).unwrap_err();
        assert!(
            matches!(&error, ArgumentError::WrongType { wanted, .. } if *wanted == named),
            "{error}"
        );
    }
}

#[test]
fn an_object_is_sent_as_it_was_typed() {
    let typed = r#" {"b": 1,  "a": 2, "a": 3}"#;
    assert_eq!(built(&[typed]).unwrap(), typed);
    assert_eq!(
        build(&["-".into()], None, &mut typed.as_bytes()).unwrap(),
        typed
    );
}

#[test]
fn no_words_are_an_empty_object() {
    assert_eq!(built(&[]).unwrap(), "{}");
}

#[test]
fn what_is_no_object_is_refused() {
    for word in ["{", "{\"a\": }", "{} x"] {
        assert!(
            matches!(built(&[word]), Err(ArgumentError::NotObject { .. })),
            "{word}"
        );
    }
    assert!(matches!(
        build(&["-".into()], None, &mut "[1]".as_bytes()),
        Err(ArgumentError::NotObject { .. })
    ));
    assert!(matches!(built(&["path"]), Err(ArgumentError::NoKey { word }) if word == "path"));
    assert!(matches!(built(&["=x"]), Err(ArgumentError::NoKey { .. })));
    assert!(matches!(built(&["a=1", "{}"]), Err(ArgumentError::Mixed)));
    assert!(matches!(built(&["a=1", "a=1"]), Err(ArgumentError::Twice { key }) if key == "a"));
}

#[test]
fn standard_input_is_read_up_to_what_could_be_sent() {
    let mut endless = io::repeat(b' ');
    assert!(matches!(
        build(&["-".into()], None, &mut endless),
        Err(ArgumentError::TooLong)
    ));
}

#[test]
fn a_schema_is_wanted_for_plain_words_only() {
    let wants = |word: &str| wants_schema(&[word.to_owned()]);
    assert!(wants("a=1"));
    assert!(!wants("a:=1") && !wants("-") && !wants("{\"a\": \"x=y\"}"));
}
