//! Mistakes in grant files, and what is right beside each of them.

use super::*;

#[test]
fn grants_state_what_they_must() {
    expect(
        "grants/g.toml",
        "",
        &["-: `tool` is required", "-: `mode` is required"],
    );
    expect(
        "grants/g.toml",
        "tool = \"read\"\nmode = \"auto\"\n",
        &["-: `max_taint` is required"],
    );
    expect(
        "grants/g.toml",
        "tool = \"read\"\nmode = \"ask\"\n",
        &["-: `max_taint` is required"],
    );
    expect("grants/g.toml", "tool = \"read\"\nmode = \"deny\"\n", &[]);
    expect(
        "grants/g.toml",
        &grant("gone", &[], ""),
        &["1: there is no file tools/gone.toml"],
    );
    expect(
        "grants/g.toml",
        &grant("copy", &[], ""),
        &["1: does not state `after_untrusted`"],
    );
    expect(
        "grants/g.toml",
        &grant("copy", &[], "after_untrusted = \"allow\""),
        &[],
    );
    expect(
        "grants/g.toml",
        &grant("edit", &[], ""),
        &["1: does not state `after_untrusted`"],
    );
    // One that is stated wrong is not missing as well.
    expect(
        "grants/g.toml",
        &grant("copy", &[], "after_untrusted = \"never\""),
        &["4: `after_untrusted`: unknown value"],
    );
    // A tool without side effects gets one from a whole path that it may write.
    expect("grants/g.toml", &grant("log", &["read:/a"], ""), &[]);
    expect(
        "grants/g.toml",
        &grant("log", &["write:/a"], ""),
        &["1: does not state `after_untrusted`"],
    );
    expect("grants/g.toml", &reads(&["write:/a"], ""), &[]);
    expect(
        "grants/g.toml",
        &reads(&[], "expires = \"1999-01-01T00:00:00.000Z\""),
        &[],
    );
}

#[test]
fn what_a_grant_does_not_state_is_the_narrower() {
    let policy = policy(&[("g", &reads(&["read:/srv"], ""))]);
    let grant = policy.grant(&GrantId::new("g").unwrap()).unwrap().file();
    assert_eq!(grant.confinement, proto::Level::Full);
    assert_eq!(
        (grant.result_class, grant.untrusted),
        (DataClass::Private, true)
    );
    assert_eq!((grant.after_untrusted, grant.expires), (None, None));
    assert_eq!(grant.run_as, None);
}

#[test]
fn wrong_values_name_their_line_and_what_to_write() {
    for (line, part) in [
        ("result_class = \"top\"", "`result_class`: unknown value"),
        ("untrusted = \"no\"", "`untrusted`: invalid type"),
        ("expires = 2026-01-01T00:00:00Z", "`expires`: invalid type"),
        ("expires = \"2026-01-01\"", "`expires`: "),
        (
            "after_untrusted = \"never\"",
            "`after_untrusted`: unknown value",
        ),
        ("confinement = \"none\"", "`confinement` is none"),
        ("confinement = \"some\"", "`confinement`: unknown value"),
        ("as = 0", "`as`: invalid type"),
        ("as = \"\"", "`as` \"\" is neither"),
        ("as = \"a b\"", "neither the name nor the number"),
        ("as = \"-1\"", "neither the name nor the number"),
        ("as = \"4294967295\"", "neither the name nor the number"),
        ("constraints = []", "`constraints` is no table"),
        (
            "constraints = [[\"read:/a\"], [\"x.org\"], []]",
            "`constraints` is no table",
        ),
        ("constraints.paths = []", "`constraints.paths` is empty"),
        (
            "constraints.paths = \"read:/a\"",
            "`constraints.paths`: invalid type",
        ),
        ("constraints.paths = [\"\"]", "must begin with"),
        (
            "constraints.paths = [\"read:/a\", \"read:/a\"]",
            "stands twice",
        ),
        ("constraints.paths = [\"read:/a/../b\"]", "`..`"),
        ("constraints.paths = [\"read:a\"]", "must be absolute"),
        (
            "constraints.paths = [\"read:/proc/1\"]",
            "must not lie in /proc",
        ),
    ] {
        let text = format!("tool = \"read\"\nmode = \"auto\"\nmax_taint = \"private\"\n{line}\n");
        expect("grants/g.toml", &text, &[&format!("4: {part}")]);
    }
    // A list's item stands on a line of its own.
    let text = "tool = \"read\"\nmode = \"auto\"\nmax_taint = \"private\"\n[constraints]\npaths = [\n \"read:/a\",\n \"read:/a/\",\n]\n";
    expect("grants/g.toml", text, &["7: must not end in `/`"]);
}

#[test]
fn writing_as_root_is_refused() {
    let more = |user: &str| format!("after_untrusted = \"deny\"\nas = \"{user}\"");
    for user in ["root", "0", "00"] {
        expect(
            "grants/g.toml",
            &grant("copy", &["read:/a"], &more(user)),
            &["5: works as root"],
        );
        expect(
            "grants/g.toml",
            &grant("edit", &["read:/a"], &more(user)),
            &["5: works as root"],
        );
        expect(
            "grants/g.toml",
            &grant("log", &["write:/a"], &more(user)),
            &["5: works as root"],
        );
        expect(
            "grants/g.toml",
            &grant("log", &["read:/a"], &more(user)),
            &[],
        );
    }
    for user in ["alice", "_x.y-z", "1000"] {
        expect(
            "grants/g.toml",
            &grant("copy", &["write:/a"], &more(user)),
            &[],
        );
    }
}

#[test]
fn deny_grants_hold_nothing_that_could_be_evaded() {
    expect("grants/g.toml", &denies("copy", &["read:/a"]), &[]);
    expect(
        "grants/g.toml",
        &denies("gone", &[]),
        &["1: there is no file"],
    );
    for line in [
        "max_taint = \"public\"",
        "result_class = \"private\"",
        "untrusted = true",
        "expires = \"2030-01-01T00:00:00.000Z\"",
        "after_untrusted = \"deny\"",
        "confinement = \"full\"",
        "as = \"alice\"",
    ] {
        let text = format!("tool = \"copy\"\nmode = \"deny\"\n{line}\n");
        expect("grants/g.toml", &text, &["3: stands in a deny grant"]);
    }
    expect(
        "grants/g.toml",
        "tool = \"copy\"\nmode = \"deny\"\nconstraints.paths = []\n",
        &["3: is empty"],
    );
}

#[test]
fn stores_do_not_launder() {
    let load_both = |writer: &str, reader: &str| load(&[("w", writer), ("r", reader)]);
    let writes = |path: &str, taint: &str| {
        grant(
            "copy",
            &[path],
            &format!("after_untrusted = \"allow\"\nmax_taint = \"{taint}\""),
        )
    };
    for (path, taint, reader, good) in [
        ("write:/s", "private", reads(&["read:/s"], ""), true),
        (
            "write:/s",
            "secret",
            reads(&["read:/s"], "result_class = \"secret\""),
            true,
        ),
        (
            "write:/s",
            "public",
            reads(&["read:/s"], "result_class = \"public\""),
            true,
        ),
        ("write:/s", "secret", reads(&["read:/s"], ""), false),
        (
            "write:/s",
            "private",
            reads(&["read:/s"], "result_class = \"public\""),
            false,
        ),
        (
            "write:/s",
            "private",
            reads(&["read:/s"], "untrusted = false"),
            false,
        ),
        (
            "write:/s/in",
            "private",
            reads(&["read:/s"], "untrusted = false"),
            false,
        ),
        (
            "write:/s",
            "private",
            reads(&["read:/s/in"], "untrusted = false"),
            false,
        ),
        (
            "write:/s",
            "private",
            reads(&["read:/st"], "untrusted = false"),
            true,
        ),
        (
            "read:/s",
            "private",
            reads(&["read:/s"], "untrusted = false"),
            true,
        ),
        (
            "write:/s",
            "private",
            reads(&["read:/s"], "untrusted = false\nmode = \"ask\""),
            false,
        ),
        (
            "write:/s",
            "private",
            reads(
                &["read:/s"],
                "untrusted = false\nexpires = \"1999-01-01T00:00:00.000Z\"",
            ),
            false,
        ),
        ("write:/s", "private", denies("read", &["read:/s"]), true),
    ] {
        match load_both(&writes(path, taint), &reader) {
            Ok(_) => assert!(good, "{path} {taint}\n{reader}"),
            Err(errors) => {
                assert!(
                    !good && errors.len() == 1,
                    "{path} {taint}\n{reader}\n{errors:#?}"
                );
                assert_eq!(
                    (errors[0].file.as_str(), errors[0].line),
                    ("grants/w.toml", Some(5))
                );
                assert!(
                    errors[0]
                        .rule
                        .starts_with("grant w writes what grant r reads as "),
                    "{}",
                    errors[0].rule
                );
            }
        }
    }
    // What a tool edits it reads back.
    let edits = |more: &str| grant("edit", &["read:/s", "write:/s"], more);
    let trusted = "after_untrusted = \"allow\"\nuntrusted = false";
    let errors = load(&[("one", &edits(trusted))]).unwrap_err();
    assert!(errors[0].rule.contains("reads as trusted"), "{errors:?}");
    assert!(load(&[("one", &edits("after_untrusted = \"allow\""))]).is_ok());
    // One grant can be both ends.
    let both = "after_untrusted = \"deny\"\nmax_taint = \"secret\"";
    let errors = load(&[("one", &grant("copy", &["read:/s", "write:/s/out"], both))]).unwrap_err();
    assert!(
        errors[0]
            .rule
            .contains("grant one writes what grant one reads as private"),
        "{}",
        errors[0].rule
    );
}
