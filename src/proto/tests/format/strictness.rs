//! Every fixture, spoiled in one place at a time: an unknown field, a field twice, a field missing, another version.
//! The fixtures themselves decode (`messages`, `records`), so each refusal here has its twin.

use proto::session_log::LogRecord;
use proto::{Envelope, ErrorCode, Line};
use serde_json::{Map, Value};

use crate::{fixtures, messages, records};

/// Decodes a spoiled fixture and gives back what it became, or the error.
type Decoder = fn(&[u8]) -> Result<Value, String>;

fn envelope(bytes: &[u8]) -> Result<Value, String> {
    let decoded = Envelope::decode(bytes).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(decoded).unwrap())
}

fn line(bytes: &[u8]) -> Result<Value, String> {
    let decoded: Line = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(decoded).unwrap())
}

fn record(bytes: &[u8]) -> Result<Value, String> {
    let decoded: LogRecord = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(decoded).unwrap())
}

/// Every JSON fixture with the decoder of its kind.
fn every_fixture() -> Vec<(String, Value, Decoder)> {
    let mut all: Vec<(String, Decoder)> = Vec::new();
    for (name, _) in messages::table() {
        all.push((format!("message/{name}.json"), envelope));
    }
    for (name, _) in records::audit() {
        all.push((format!("audit/{name}.json"), line));
    }
    for (name, _) in records::sessions() {
        all.push((format!("session/{name}.json"), record));
    }
    all.into_iter()
        .map(|(name, decode)| {
            let value: Value = serde_json::from_slice(&fixtures::bytes(&name)).unwrap();
            assert_eq!(
                decode(value.to_string().as_bytes()).as_ref(),
                Ok(&value),
                "{name}"
            );
            (name, value, decode)
        })
        .collect()
}

/// The JSON pointer of every object in `value`.
fn objects(value: &Value) -> Vec<String> {
    let below = |step: String, inner: &Value| -> Vec<String> {
        objects(inner)
            .into_iter()
            .map(|rest| format!("/{step}{rest}"))
            .collect()
    };
    match value {
        Value::Object(fields) => {
            let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
            let inner = fields
                .iter()
                .flat_map(|(key, inner)| below(escape(key), inner));
            std::iter::once(String::new()).chain(inner).collect()
        }
        Value::Array(items) => {
            let inner = items.iter().enumerate();
            inner
                .flat_map(|(index, inner)| below(index.to_string(), inner))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn object<'a>(value: &'a mut Value, pointer: &str) -> &'a mut Map<String, Value> {
    value.pointer_mut(pointer).unwrap().as_object_mut().unwrap()
}

#[test]
fn an_unknown_field_is_refused_at_every_level() {
    let mut spoiled = 0;
    for (name, value, decode) in every_fixture() {
        for pointer in objects(&value) {
            let mut copy = value.clone();
            object(&mut copy, &pointer).insert("surprise".into(), Value::from(1));
            assert!(
                decode(copy.to_string().as_bytes()).is_err(),
                "{name} at {pointer:?}: {copy}"
            );
            spoiled += 1;
        }
    }
    assert!(spoiled > 200, "{spoiled}");
}

#[test]
fn a_field_that_stands_twice_is_refused_at_every_level() {
    // The file list of a policy entry is a map and not a struct; only the supervisor writes it.
    let map = |pointer: &str| pointer == "/entry/files";
    for (name, value, decode) in every_fixture() {
        for pointer in objects(&value).into_iter().filter(|pointer| !map(pointer)) {
            for key in object(&mut value.clone(), &pointer).keys() {
                let mut copy = value.clone();
                let fields = object(&mut copy, &pointer);
                let again = format!("{}:{},", Value::from(key.as_str()), fields[key]);
                fields.insert("MARK".into(), Value::Null);
                let text = copy.to_string();
                let twice = text.replace("\"MARK\":null,", &again).replace(
                    ",\"MARK\":null",
                    &format!(",{}", again.trim_end_matches(',')),
                );
                assert_eq!(
                    twice.len(),
                    text.len() - "\"MARK\":null,".len() + again.len()
                );
                assert!(
                    decode(twice.as_bytes()).is_err(),
                    "{name} at {pointer:?}: {twice}"
                );
            }
        }
    }
}

#[test]
fn a_field_that_is_missing_is_an_error_or_null() {
    for (name, value, decode) in every_fixture() {
        for pointer in objects(&value)
            .into_iter()
            .filter(|pointer| pointer != "/entry/files")
        {
            for key in object(&mut value.clone(), &pointer).keys() {
                let mut copy = value.clone();
                object(&mut copy, &pointer).remove(key);
                if let Ok(became) = decode(copy.to_string().as_bytes()) {
                    object(&mut copy, &pointer).insert(key.clone(), Value::Null);
                    assert_eq!(became, copy, "{name} without {pointer}/{key}");
                }
            }
        }
    }
}

#[test]
fn a_number_is_never_taken_for_a_text_nor_a_text_for_a_number() {
    for (name, value, decode) in every_fixture() {
        for pointer in objects(&value) {
            let fields = object(&mut value.clone(), &pointer).clone();
            for (key, field) in fields {
                let other = match field {
                    Value::String(_) | Value::Bool(_) => Value::from(1.5),
                    Value::Number(_) => Value::from("1"),
                    _ => continue,
                };
                let mut copy = value.clone();
                object(&mut copy, &pointer).insert(key, other);
                assert!(
                    decode(copy.to_string().as_bytes()).is_err(),
                    "{name}: {copy}"
                );
            }
        }
    }
}

#[test]
fn another_version_is_told_apart_from_a_bad_message() {
    let ping = |version: &str| {
        format!(r#"{{"v":{version},"id":7,"final":true,"msg":{{"kind":"ping","body":{{}}}}}}"#)
    };
    assert!(Envelope::decode(ping("1").as_bytes()).is_ok());
    for version in ["0", "2", "4294967295", "4294967296", "18446744073709551615"] {
        let error = Envelope::decode(ping(version).as_bytes()).unwrap_err();
        assert_eq!(
            (error.code, error.id),
            (ErrorCode::BadVersion, Some(7)),
            "{version}"
        );
        assert_eq!(
            error.detail,
            format!("protocol version {version}, this build speaks 1")
        );
    }
    for version in ["-1", "1.0", "\"1\"", "null", "18446744073709551616"] {
        let error = Envelope::decode(ping(version).as_bytes()).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadMessage, "{version}");
    }
    let later = br#"{"v":2,"id":9,"final":true,"msg":{"kind":"of_the_future"},"extra":[]}"#;
    let error = Envelope::decode(later).unwrap_err();
    assert_eq!((error.code, error.id), (ErrorCode::BadVersion, Some(9)));
}

#[test]
fn the_error_to_a_bad_message_names_its_id_if_it_could_be_read() {
    let bad = |body: &str| {
        let error = Envelope::decode(body.as_bytes()).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadMessage, "{body}");
        error.id
    };
    assert_eq!(
        bad(r#"{"v":1,"id":7,"final":true,"msg":{"kind":"x","body":{}}}"#),
        Some(7)
    );
    assert_eq!(bad(r#"{"v":1,"id":7,"final":true}"#), Some(7));
    assert_eq!(
        bad(r#"{"v":1,"id":7,"final":true,"msg":{"kind":"ping","body":{}}} x"#),
        None
    );
    assert_eq!(bad(r#"{"v":1,"id":-7}"#), None);
    assert_eq!(bad(""), None);
    assert_eq!(bad("\u{feff}{}"), None);
}

#[test]
fn what_an_error_quotes_is_cut_and_shows_no_control_character() {
    let name = "\\u001b[2J".repeat(100_000);
    let body = format!(r#"{{"v":1,"id":7,"final":true,"msg":{{"kind":"{name}","body":{{}}}}}}"#);
    let error = Envelope::decode(body.as_bytes()).unwrap_err();
    assert!(
        error
            .detail
            .starts_with("not a message: unknown variant `\u{fffd}[2J"),
        "{}",
        error.detail
    );
    assert!(error.detail.chars().count() < 450);
    assert!(!error.detail.contains(char::is_control));
}

#[test]
fn text_nested_too_deep_is_an_error_and_no_overflow() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = open.repeat(200_000);
        assert!(Envelope::decode(deep.as_bytes()).is_err());
        let closed = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        let body = format!(r#"{{"v":1,"id":7,"final":true,"msg":{closed}}}"#);
        let error = Envelope::decode(body.as_bytes()).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadMessage);
    }
}

#[test]
fn bytes_that_are_no_utf_8_are_refused() {
    let body = br#"{"v":1,"id":7,"final":true,"msg":{"kind":"error","body":{"code":"internal","detail":"?"}}}"#;
    assert!(Envelope::decode(body).is_ok());
    let spoiled: Vec<u8> = body
        .iter()
        .map(|byte| if *byte == b'?' { 0xff } else { *byte })
        .collect();
    assert_eq!(
        Envelope::decode(&spoiled).unwrap_err().code,
        ErrorCode::BadMessage
    );
    let lone = String::from_utf8_lossy(body).replace('?', "\\ud800");
    assert_eq!(
        Envelope::decode(lone.as_bytes()).unwrap_err().code,
        ErrorCode::BadMessage
    );
}
