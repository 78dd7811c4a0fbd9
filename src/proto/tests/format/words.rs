//! The words of the enums that are plain words on the wire and in files, as `words.json` lists them.

use std::collections::{BTreeMap, BTreeSet};

use proto::audit::{ExitCause, OutcomeStatus, SessionEvent};
use proto::config::CgroupChoice;
use proto::grant::{AfterUntrusted, Mode};
use proto::tool::{Resource, ResultKind, SchemaType, ToolKind};
use proto::{Answer, DataClass, DenyReason, ErrorCode, Layer, Level};
use serde::de::DeserializeOwned;

use crate::fixtures;

fn known<T: DeserializeOwned>() -> BTreeSet<String> {
    fixtures::words::<T>(r#""?""#)
}

#[test]
fn every_enum_has_the_words_of_its_list_and_no_other() {
    let listed: BTreeMap<String, BTreeSet<String>> =
        serde_json::from_slice(&fixtures::bytes("words.json")).unwrap();
    let known = BTreeMap::from([
        ("answer".to_owned(), known::<Answer>()),
        ("after_untrusted".to_owned(), known::<AfterUntrusted>()),
        ("cgroup".to_owned(), known::<CgroupChoice>()),
        ("class".to_owned(), known::<DataClass>()),
        ("deny_reason".to_owned(), known::<DenyReason>()),
        ("error_code".to_owned(), known::<ErrorCode>()),
        ("exit_cause".to_owned(), known::<ExitCause>()),
        ("layer".to_owned(), known::<Layer>()),
        ("level".to_owned(), known::<Level>()),
        ("mode".to_owned(), known::<Mode>()),
        ("outcome_status".to_owned(), known::<OutcomeStatus>()),
        ("resource".to_owned(), known::<Resource>()),
        ("result_kind".to_owned(), known::<ResultKind>()),
        ("schema_type".to_owned(), known::<SchemaType>()),
        ("session_event".to_owned(), known::<SessionEvent>()),
        ("tool_kind".to_owned(), known::<ToolKind>()),
    ]);
    assert_eq!(known, listed);
}

#[test]
fn reasons_and_layers_print_as_they_stand_on_the_wire() {
    for reason in DenyReason::ALL {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.to_string());
    }
    for layer in Layer::ALL {
        assert_eq!(serde_json::to_value(layer).unwrap(), layer.to_string());
    }
    assert_eq!(known::<DenyReason>().len(), DenyReason::ALL.len());
    assert_eq!(known::<Layer>().len(), Layer::ALL.len());
}

#[test]
fn classes_and_levels_are_ordered_and_print_as_they_stand_on_the_wire() {
    let classes = [DataClass::Public, DataClass::Private, DataClass::Secret];
    assert!(classes.is_sorted());
    for class in classes {
        assert_eq!(serde_json::to_value(class).unwrap(), class.to_string());
    }
    let levels = [Level::None, Level::Partial, Level::Full];
    assert!(levels.is_sorted());
    for level in levels {
        assert_eq!(serde_json::to_value(level).unwrap(), level.to_string());
    }
}
