//! How results are labelled: by all grants that have a say, never by the most lenient one.

use proto::Labels;

use super::*;

fn labels(grants: &[(&str, &str)], tool: &str, arguments: &str) -> (DataClass, bool) {
    let Labels { class, untrusted } = decide(&policy(grants), FRESH, tool, arguments)
        .unwrap()
        .labels();
    (class, untrusted)
}

const A: &str = r#"{"path":"/srv/a"}"#;

#[test]
fn the_taken_grant_labels_the_result() {
    use DataClass::{Private, Public, Secret};
    for (more, want) in [
        ("", (Private, true)),
        (
            "result_class = \"public\"\nuntrusted = false",
            (Public, false),
        ),
        ("result_class = \"secret\"", (Secret, true)),
    ] {
        assert_eq!(
            labels(&[("g", &reads(&["read:/srv"], more))], "read", A),
            want
        );
    }
}

#[test]
fn every_overlapping_grant_has_a_say_whatever_its_state() {
    let open = reads(
        &["read:/srv"],
        "result_class = \"public\"\nuntrusted = false",
    );
    for state in [
        "",
        "mode = \"ask\"\nmax_taint = \"secret\"",
        "expires = \"2020-01-01T00:00:00.000Z\"",
        "max_taint = \"public\"",
    ] {
        for (path, overlaps) in [
            ("/srv", true),
            ("/", true),
            ("/srv/a/deep", true),
            ("/srv/b", false),
            ("/srv/ab", false),
        ] {
            let path = format!("read:{path}");
            let strict = reads(&[&path], &format!("result_class = \"secret\"\n{state}"));
            let want = if overlaps {
                (DataClass::Secret, true)
            } else {
                (DataClass::Public, false)
            };
            assert_eq!(
                labels(&[("a", &open), ("z", &strict)], "read", A),
                want,
                "{path} {state}"
            );
        }
    }
}

#[test]
fn grants_of_other_tools_and_deny_grants_have_none() {
    let open = reads(
        &["read:/srv"],
        "result_class = \"public\"\nuntrusted = false",
    );
    let other = grant("log", &["read:/srv"], "result_class = \"secret\"");
    let deny = denies("read", &["read:/srv/b"]);
    let want = (DataClass::Public, false);
    assert_eq!(
        labels(&[("a", &open), ("b", &other), ("c", &deny)], "read", A),
        want
    );
}

#[test]
fn a_relative_spelling_does_not_hide_from_a_grant_with_two_roots() {
    let open = reads(
        &["read:/srv"],
        "result_class = \"public\"\nuntrusted = false",
    );
    let strict = reads(
        &["read:/srv/a", "read:/x"],
        "result_class = \"secret\"\nmax_taint = \"public\"",
    );
    for path in ["a", "/srv/a"] {
        let arguments = serde_json::json!({ "path": path }).to_string();
        let got = labels(&[("open", &open), ("strict", &strict)], "read", &arguments);
        assert_eq!(got, (DataClass::Secret, true), "{path}");
    }
}

#[test]
fn a_call_that_names_no_path_is_labelled_by_every_grant() {
    let open = reads(
        &["read:/srv"],
        "result_class = \"public\"\nuntrusted = false",
    );
    let strict = reads(&["read:/x"], "result_class = \"secret\"");
    let both = [("open", open.as_str()), ("strict", strict.as_str())];
    assert_eq!(labels(&both, "read", "{}"), (DataClass::Secret, true));
    assert_eq!(labels(&both, "read", A), (DataClass::Public, false));
    let open = grant(
        "log",
        &["read:/srv"],
        "result_class = \"public\"\nuntrusted = false",
    );
    let strict = grant("log", &["read:/x"], "result_class = \"secret\"");
    let both = [("open", open.as_str()), ("strict", strict.as_str())];
    assert_eq!(
        labels(&both, "log", r#"{"count":1}"#),
        (DataClass::Secret, true)
    );
}

#[test]
fn a_tool_with_secret_results_is_secret_under_any_grant() {
    let grant = reads(
        &["read:/srv"],
        "result_class = \"public\"\nuntrusted = false",
    );
    let secret = READ.replace(
        "side_effect = false",
        "side_effect = false\nresult = \"secret\"",
    );
    for (tool, class) in [
        (READ, DataClass::Public),
        (secret.as_str(), DataClass::Secret),
    ] {
        let files = files(&[("tools/read", tool), ("grants/g", &grant)]);
        let policy = Policy::load(&files, 1).unwrap();
        let decision = decide(&policy, FRESH, "read", A).unwrap();
        assert_eq!(
            decision.labels(),
            Labels {
                class,
                untrusted: false
            }
        );
    }
}
