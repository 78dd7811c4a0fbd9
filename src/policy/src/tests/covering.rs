//! Which paths a grant covers, and which a deny grant touches, by their spelling.

use super::*;

const A: &str = r#"{"path":"/srv/a"}"#;

#[test]
fn deny_grants_override_whatever_their_path_overlaps() {
    let allow = reads(&["read:/srv", "read:/deep/er"], "");
    for (deny, path, denied) in [
        (&[][..], "/srv/a", true),
        (&["read:/srv/a"][..], "/srv/a", true),
        (&["read:/srv"][..], "/srv/a", true),
        (&["read:/"][..], "/srv/a", true),
        // What would be read contains what is denied.
        (&["read:/srv/a/b/c"][..], "/srv/a", true),
        // A deny entry is about the place, not about the direction.
        (&["write:/srv/a"][..], "/srv/a", true),
        (&["read:/x", "read:/srv/a"][..], "/srv/a", true),
        (&["read:/srv/ab"][..], "/srv/a", false),
        (&["read:/srv/b"][..], "/srv/a", false),
    ] {
        let policy = policy(&[("yes", &allow), ("no", &denies("read", deny))]);
        let decided = decide(&policy, FRESH, "read", &format!("{{\"path\":\"{path}\"}}"));
        if denied {
            let denial = decided.unwrap_err();
            assert_eq!(denial.reason, DenyReason::DeniedByGrant, "{deny:?}");
            assert_eq!(denial.grant, Some(GrantId::new("no").unwrap()), "{deny:?}");
        } else {
            assert_eq!(answer(&decided), Ok("yes"), "{deny:?}");
        }
    }
}

#[test]
fn one_of_two_paths_is_enough_to_be_denied() {
    let policy = policy(&[
        ("yes", &reads(&["read:/srv"], "")),
        ("no", &denies("read", &["read:/srv/x"])),
    ]);
    let call = |other: &str| format!(r#"{{"path":"/srv/a","other":"{other}"}}"#);
    assert_eq!(
        answer(&decide(&policy, FRESH, "read", &call("/srv/b"))),
        Ok("yes")
    );
    assert_eq!(
        answer(&decide(&policy, FRESH, "read", &call("/srv/x/y"))),
        Err(DenyReason::DeniedByGrant)
    );
}

#[test]
fn a_deny_grant_alone_denies_what_it_touches_and_nothing_else_is_granted() {
    let policy = policy(&[("no", &denies("read", &["read:/srv"]))]);
    assert_eq!(
        answer(&decide(&policy, FRESH, "read", A)),
        Err(DenyReason::DeniedByGrant)
    );
    assert_eq!(
        answer(&decide(&policy, FRESH, "read", r#"{"path":"/x"}"#)),
        Err(DenyReason::NoGrant)
    );
}

#[test]
fn deny_grants_read_a_relative_path_as_the_grant_would() {
    let policy = policy(&[
        ("yes", &reads(&["read:/srv"], "")),
        ("no", &denies("read", &["read:/srv/x"])),
    ]);
    assert_eq!(
        answer(&decide(&policy, FRESH, "read", r#"{"path":"y"}"#)),
        Ok("yes")
    );
    assert_eq!(
        answer(&decide(&policy, FRESH, "read", r#"{"path":"x/y"}"#)),
        Err(DenyReason::DeniedByGrant)
    );
}

#[test]
fn a_tool_without_path_arguments_is_denied_by_its_whole_paths() {
    let one = r#"{"count":1}"#;
    let deny = denies("log", &["read:/repo/secret"]);
    let outer = grant("log", &["read:/repo"], "");
    let other = grant("log", &["read:/other"], "");
    let touched = policy(&[("outer", &outer), ("no", &deny)]);
    let denial = decide(&touched, FRESH, "log", one).unwrap_err();
    assert_eq!(denial.reason, DenyReason::DeniedByGrant);
    assert_eq!(denial.grant, Some(GrantId::new("no").unwrap()));
    // A second grant that hands over something else is not touched.
    let both = policy(&[("outer", &outer), ("other", &other), ("no", &deny)]);
    assert_eq!(answer(&decide(&both, FRESH, "log", one)), Ok("other"));
    let free = policy(&[("outer", &outer)]);
    assert_eq!(answer(&decide(&free, FRESH, "log", one)), Ok("outer"));
}

#[test]
fn paths_are_covered_by_their_spelling() {
    let policy = policy(&[("g", &reads(&["read:/srv/notes", "read:/srv/one.md"], ""))]);
    for (path, covered) in [
        ("/srv/notes", true),
        ("/srv/notes/a", true),
        ("/srv/notes/.hidden/..a/a..", true),
        ("/srv/notes/a b\u{e9}\n", true),
        ("/srv/one.md", true),
        ("/srv/one.md/below", true),
        ("/srv/one.md2", false),
        ("/srv/notes2", false),
        ("/srv/Notes", false),
        ("/srv", false),
        ("/", false),
        ("", false),
        ("/srv/notes/", false),
        ("/srv/notes//a", false),
        ("//srv/notes/a", false),
        ("/srv/./notes/a", false),
        ("/srv/notes/.", false),
        ("/srv/notes/..", false),
        ("/srv/notes/../notes/a", false),
        ("/srv/notes/a/../../../etc/passwd", false),
        ("/../srv/notes/a", false),
        ("/srv/notes\u{0}/a", false),
        ("/srv/notes/a\u{0}", false),
        (" /srv/notes/a", false),
        ("file:///srv/notes/a", false),
        ("~/srv/notes/a", false),
        ("\\srv\\notes\\a", false),
        ("/srv/notes%2f..%2f..%2fetc", false),
        ("/srv\u{2215}notes/a", false),
        // Two roots, so that no relative path has a meaning.
        ("a", false),
        ("srv/notes/a", false),
    ] {
        let arguments = serde_json::json!({ "path": path }).to_string();
        let want = if covered {
            Ok("g")
        } else {
            Err(DenyReason::NoGrant)
        };
        assert_eq!(
            answer(&decide(&policy, FRESH, "read", &arguments)),
            want,
            "{path:?}"
        );
    }
    for value in ["null", "1", "true", "[\"/srv/notes\"]", "{}"] {
        let arguments = format!(r#"{{"path":{value}}}"#);
        assert_eq!(
            answer(&decide(&policy, FRESH, "read", &arguments)),
            Err(DenyReason::NoGrant),
            "{value}"
        );
    }
}

#[test]
fn a_relative_path_lies_beneath_the_single_root() {
    let policy = policy(&[("g", &reads(&["read:/srv/notes"], ""))]);
    for (path, covered) in [
        ("a", true),
        ("a/b", true),
        (".", false),
        ("./a", false),
        ("../x", false),
        ("a/..", false),
        ("a/", false),
    ] {
        let arguments = serde_json::json!({ "path": path }).to_string();
        let want = if covered {
            Ok("g")
        } else {
            Err(DenyReason::NoGrant)
        };
        assert_eq!(
            answer(&decide(&policy, FRESH, "read", &arguments)),
            want,
            "{path:?}"
        );
    }
}

#[test]
fn the_kernels_trees_are_closed_even_under_a_grant_for_everything() {
    let policy = policy(&[("g", &reads(&["read:/"], ""))]);
    for (path, covered) in [
        ("/proc", false),
        ("/proc/self/mem", false),
        ("sys/x", false),
        ("/dev/sda", false),
        ("/procs", true),
        ("srv", true),
    ] {
        let arguments = serde_json::json!({ "path": path }).to_string();
        let want = if covered {
            Ok("g")
        } else {
            Err(DenyReason::NoGrant)
        };
        assert_eq!(
            answer(&decide(&policy, FRESH, "read", &arguments)),
            want,
            "{path:?}"
        );
    }
}

#[test]
fn reading_and_writing_are_granted_apart_and_by_one_grant() {
    let deny = "after_untrusted = \"deny\"";
    let call = r#"{"from":"/in/a","to":"/out/a"}"#;
    for (paths, covered) in [
        (&["read:/in", "write:/out"][..], true),
        (&["read:/in", "read:/out"][..], false),
        (&["write:/in", "write:/out"][..], false),
        (&["write:/in", "read:/out"][..], false),
        (&["read:/in"][..], false),
        (&["write:/out"][..], false),
        (&[][..], false),
    ] {
        let policy = policy(&[("g", &grant("copy", paths, deny))]);
        let want = if covered {
            Ok("g")
        } else {
            Err(DenyReason::NoGrant)
        };
        assert_eq!(
            answer(&decide(&policy, FRESH, "copy", call)),
            want,
            "{paths:?}"
        );
    }
    let halves = policy(&[
        ("a", &grant("copy", &["read:/in"], deny)),
        ("b", &grant("copy", &["write:/out"], deny)),
    ]);
    assert_eq!(
        answer(&decide(&halves, FRESH, "copy", call)),
        Err(DenyReason::NoGrant)
    );
}

#[test]
fn a_grant_without_paths_covers_calls_that_name_none() {
    let policy = policy(&[("g", &reads(&[], ""))]);
    assert_eq!(
        answer(&decide(&policy, FRESH, "read", r#"{"lines":1}"#)),
        Ok("g")
    );
    assert_eq!(
        answer(&decide(&policy, FRESH, "read", A)),
        Err(DenyReason::NoGrant)
    );
}
