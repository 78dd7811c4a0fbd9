//! Any text is judged as the arguments of a call, by brokerd's judgement and the supervisor's. What the first lets run
//! the second permits, and nothing is bound that no grant holds.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use policy::{Decided, Policy, SessionView, arguments, decide, permit};
use proto::{DataClass, Timestamp};

/// The examples that the documents explain.
macro_rules! files {
    ($($name:literal),*) => {
        [$(($name, include_bytes!(concat!("../../profiles/examples/", $name)).as_slice())),*]
    };
}

static POLICY: LazyLock<Option<Policy>> = LazyLock::new(|| {
    let files = files![
        "tools/columns.toml",
        "tools/fs_edit.toml",
        "tools/fs_list.toml",
        "tools/fs_read.toml",
        "tools/fs_search.toml",
        "tools/fs_stat.toml",
        "tools/fs_write.toml",
        "tools/git_log.toml",
        "tools/jq.toml",
        "tools/rg.toml",
        "grants/columns.toml",
        "grants/fs_edit.toml",
        "grants/fs_list.toml",
        "grants/fs_read-drafts.toml",
        "grants/fs_read.toml",
        "grants/fs_search.toml",
        "grants/fs_stat.toml",
        "grants/fs_write.toml",
        "grants/git_log.toml",
        "grants/jq.toml",
        "grants/rg.toml"
    ];
    let files: BTreeMap<_, _> = files
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()))
        .collect();
    Policy::load(&files, 1).ok()
});

const TOOLS: [&str; 10] = [
    "columns",
    "fs_edit",
    "fs_list",
    "fs_read",
    "fs_search",
    "fs_stat",
    "fs_write",
    "git_log",
    "jq",
    "rg",
];

fuzz_target!(|text: &str| {
    let Some(policy) = POLICY.as_ref() else {
        panic!("the examples do not load");
    };
    if let Ok(map) = arguments::parse(text) {
        let value = serde_json::from_str::<serde_json::Value>(text).ok();
        assert_eq!(value, Some(map.into()));
    }
    let now = Timestamp::from_millis(0);
    for tool in TOOLS {
        for untrusted in [false, true] {
            let session = SessionView {
                taint: DataClass::Private,
                untrusted,
            };
            let Ok(decided) = decide(policy, session, tool, text, now) else {
                continue;
            };
            let decision = match decided {
                Decided::Runs(decision) => decision,
                Decided::Asks(question) => question.approved("owner"),
            };
            let permit = match permit(policy, decision.tool(), decision.grant(), text, now) {
                Ok(permit) => permit,
                Err(denial) => panic!("{tool}: {}", denial.owner),
            };
            // A tool of kind argv gets its arguments as words.
            assert!(permit.input() == text || permit.input().is_empty());
            for binding in permit.bindings() {
                let below = binding.path.strip_prefix(&binding.root);
                assert!(
                    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
                    "{binding:?}"
                );
                assert!(
                    !binding.path.split('/').any(|part| part == ".."),
                    "{binding:?}"
                );
                assert!(
                    permit
                        .grant()
                        .paths()
                        .iter()
                        .any(|path| path.path() == binding.root)
                );
            }
        }
    }
});
