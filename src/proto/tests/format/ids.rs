//! Identifiers, hashes and times: what is one, what is not, and that the two constructors agree.

use proptest::prelude::*;
use proto::{GrantId, Hash32, InvalidId, SessionId, Timestamp, ToolName};

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// The rule of all three, said another way than the crate does: a list of bytes.
fn is_name(text: &str, allowed: &[u8]) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| allowed.contains(&byte))
        && !text.starts_with('.')
}

const SESSION: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-";
const NAME: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-_.";

#[test]
fn the_ends_of_the_rules_are_where_they_are_said_to_be() {
    let longest = "a".repeat(64);
    for good in ["a", "-", "0", longest.as_str()] {
        assert_eq!(SessionId::new(good).unwrap().as_str(), good);
    }
    for bad in [
        "",
        "A",
        "a_b",
        "a.b",
        "..",
        "a/b",
        "a b",
        "a\n",
        "é",
        &"a".repeat(65),
    ] {
        SessionId::new(bad).unwrap_err();
    }
    for good in ["fs_read", "a.b", "a..b", "-", "_", longest.as_str()] {
        assert_eq!(ToolName::new(good).unwrap().as_str(), good);
        assert_eq!(GrantId::new(good).unwrap().as_str(), good);
    }
    for bad in ["", ".", "..", ".a", "a/b", "A", "a\0", &"a".repeat(65)] {
        ToolName::new(bad).unwrap_err();
        GrantId::new(bad).unwrap_err();
    }
}

#[test]
fn an_error_names_text_and_rule_and_is_short_and_plain() {
    let InvalidId { kind, text, rule } = SessionId::new("é\u{1b}".repeat(5000)).unwrap_err();
    assert_eq!((kind, text.chars().count()), ("session id", 80));
    assert_eq!(rule, "1 to 64 characters of a-z, 0-9 and -");
    let shown = ToolName::new("\u{1b}[2J").unwrap_err().to_string();
    assert_eq!(
        shown,
        r#""\u{1b}[2J" is not a tool name: 1 to 64 characters of a-z, 0-9, _, . and -"#
    );
}

#[test]
fn a_hash_is_64_lower_case_digits_and_nothing_else() {
    let good = "00ff".repeat(16);
    assert_eq!(good.parse::<Hash32>().unwrap().to_string(), good);
    assert_eq!(Hash32::ZERO.to_string(), "0".repeat(64));
    for bad in [
        "00FF".repeat(16),
        "00ff".repeat(15),
        "00ff".repeat(17),
        "0x".to_owned() + &"0".repeat(62),
        "é".repeat(32),
        String::new(),
        " ".to_owned() + &"0".repeat(63),
    ] {
        bad.parse::<Hash32>().unwrap_err();
        serde_json::from_str::<Hash32>(&json(&bad)).unwrap_err();
    }
}

#[test]
fn a_time_has_one_spelling() {
    for good in [
        "1970-01-01T00:00:00.000Z",
        "2026-09-17T08:05:00.000Z",
        "2024-02-29T23:59:59.999Z",
        "9999-12-31T23:59:59.999Z",
    ] {
        assert_eq!(good.parse::<Timestamp>().unwrap().to_string(), good);
    }
    for bad in [
        "2026-09-17T08:05:00Z",
        "2026-09-17T08:05:00.0Z",
        "2026-09-17T08:05:00.000000Z",
        "2026-09-17T08:05:00.0001Z",
        "2026-09-17T08:05:00.000",
        "2026-09-17T08:05:00.000z",
        "2026-09-17t08:05:00.000Z",
        "2026-09-17 08:05:00.000Z",
        "2026-09-17T08:05:00.000+00:00",
        "2026-09-17T24:00:00.000Z",
        "2026-09-17T08:05:60.000Z",
        "2026-02-29T08:05:00.000Z",
        "2026-13-01T08:05:00.000Z",
        "2026-00-01T08:05:00.000Z",
        "1969-12-31T23:59:59.999Z",
        "10000-01-01T00:00:00.000Z",
        " 2026-09-17T08:05:00.000Z",
        "2026-09-17T08:05:00.000Z ",
        "1789632300000",
        "",
    ] {
        assert!(bad.parse::<Timestamp>().is_err(), "{bad:?} was taken");
        assert!(
            serde_json::from_str::<Timestamp>(&json(bad)).is_err(),
            "{bad:?} was taken"
        );
    }
    assert!(serde_json::from_str::<Timestamp>("1789632300000").is_err());
}

#[test]
fn a_time_past_the_year_9999_is_its_end() {
    assert_eq!(Timestamp::from_millis(u64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
}

proptest! {
    #[test]
    fn any_text_is_an_identifier_only_by_the_rule(text in "\\PC{0,70}|[a-z0-9._-]{0,70}|\\.[a-z]{0,3}") {
        prop_assert_eq!(SessionId::new(text.clone()).is_ok(), is_name(&text, SESSION));
        prop_assert_eq!(ToolName::new(text.clone()).is_ok(), is_name(&text, NAME));
        prop_assert_eq!(GrantId::new(text.clone()).is_ok(), is_name(&text, NAME));
    }

    #[test]
    fn deserialising_validates_as_the_constructor_does(text in "\\PC{0,70}|[a-z0-9._-]{1,66}") {
        let quoted = json(&text);
        prop_assert_eq!(serde_json::from_str::<SessionId>(&quoted).ok(), SessionId::new(text.clone()).ok());
        prop_assert_eq!(serde_json::from_str::<ToolName>(&quoted).ok(), ToolName::new(text.clone()).ok());
        prop_assert_eq!(serde_json::from_str::<GrantId>(&quoted).ok(), GrantId::new(text.clone()).ok());
        prop_assert_eq!(serde_json::from_str::<Hash32>(&quoted).ok(), text.parse().ok());
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&quoted).ok(), text.parse().ok());
    }

    #[test]
    fn a_hash_survives_its_text(bytes in any::<[u8; 32]>()) {
        let hash = Hash32::new(bytes);
        let back: Hash32 = hash.to_string().parse().unwrap();
        prop_assert_eq!(back.as_bytes(), &bytes);
    }

    #[test]
    fn a_time_survives_its_text_and_sorts_as_its_text_does(
        one in 0..=Timestamp::MAX.as_millis(),
        other in 0..=Timestamp::MAX.as_millis(),
    ) {
        let (one, other) = (Timestamp::from_millis(one), Timestamp::from_millis(other));
        prop_assert_eq!(one.to_string().parse::<Timestamp>().unwrap(), one);
        prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
    }

    #[test]
    fn any_text_that_is_a_time_is_written_back_as_it_stood(
        text in "[0-9]{4}-[0-9]{2}-[0-9]{2}[T t][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?(Z|z|\\+00:00)?",
    ) {
        if let Ok(time) = text.parse::<Timestamp>() {
            prop_assert_eq!(time.to_string(), text);
        }
    }
}
