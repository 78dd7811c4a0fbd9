//! Calls in a container that gives less than a grant asks for: refused with the reason, run where the grant or `waive` says
//! so, and recorded as what they were.

use std::collections::BTreeSet;

use proto::audit::{Decision, DecisionRecord, RoleEvent};
use proto::{Confinement, DenyReason, Entry, Layer, Level, Line};

use crate::image::{Image, printed};

/// Starts boxmaker with a configuration, makes the calls, and prints the log; `$1` names the configuration, what follows are
/// pairs of tool and path.
const SCRIPT: &str = r#"
at="--config /etc/boxmaker/$1"
shift
boxmaker up $at >/tmp/up 2>&1 &
up=$!
tries=0
until bxctl status $at >/dev/null 2>&1; do
    kill -0 $up 2>/dev/null && [ $tries -lt 300 ] || { cat /tmp/up; exit 0; }
    tries=$((tries + 1))
    sleep 0.1
done
while [ $# -gt 0 ]; do
    bxctl call "$1" path="$2" $at >/dev/null
    shift 2
done
bxctl audit show --json $at
kill $up
wait $up
"#;

/// A container whose cgroups are read-only, and whose image takes no id maps.
const WITHOUT_LIMITS: &[&str] = &[
    "--cap-add",
    "SYS_ADMIN",
    "--security-opt",
    "seccomp=unconfined",
];
const LIMITS: [Layer; 3] = [Layer::Memory, Layer::Pids, Layer::Cpu];

/// What was recorded of the role and of each call, or what `boxmaker up` said when it ended.
fn recorded(
    image: &Image,
    options: &[&str],
    configuration: &str,
    calls: &[&str],
) -> Result<(Confinement, Vec<Decision>), String> {
    let command = [&["sh", "-c", SCRIPT, "sh", configuration], calls].concat();
    let text = printed(&image.run(options, &command));
    let lines: Option<Vec<Line>> = text
        .lines()
        .map(|line| serde_json::from_str(line).ok())
        .collect();
    let Some(lines) = lines else {
        return Err(text);
    };
    let mut role = None;
    let mut decisions = Vec::new();
    for line in lines {
        match line.entry {
            Entry::Role { event, .. } => {
                if let RoleEvent::Started { confinement } = *event {
                    role = Some(confinement);
                }
            }
            Entry::Decision(decision) => decisions.push(*decision),
            _ => {}
        }
    }
    Ok((role.expect("a role was started"), decisions))
}

/// Whether exactly these layers are gaps.
fn has_gaps(confinement: &Confinement, expected: &[Layer]) {
    let gaps: BTreeSet<Layer> = confinement.gaps.iter().map(|gap| gap.layer).collect();
    assert_eq!(gaps, expected.iter().copied().collect());
    assert_eq!(confinement.level, Level::Partial);
}

#[test]
fn as_root_nothing_starts_without_what_is_neither_there_nor_waived() {
    let Some(image) = Image::get("a start without a waiver") else {
        return;
    };
    let said = recorded(image, WITHOUT_LIMITS, "plain", &[]).expect_err("it does not start");
    for words in [
        "level full is required and partial was measured; gaps: memory: ",
        "Read-only file system",
        "name them in `waive` of config.toml",
    ] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn what_is_waived_is_recorded_and_what_is_not_is_refused() {
    let Some(image) = Image::get("calls with limits waived") else {
        return;
    };
    let calls = [
        "fs_read",
        "/data/a.md",
        "fs_read",
        "/srv/notes/a.md",
        "fs_list",
        "/srv/notes",
    ];
    let (role, decisions) = recorded(image, WITHOUT_LIMITS, "limits", &calls).expect("it starts");
    has_gaps(&role, &LIMITS);
    assert_eq!(role.waived, LIMITS);
    let [volume, refused, content] = decisions.try_into().expect("three decisions");

    assert!(volume.decision.granted().is_some(), "{volume:?}");
    let measured = volume.confinement.expect("it was measured");
    has_gaps(&measured, &LIMITS);
    assert_eq!(measured.waived, LIMITS);

    // A file of the image, for which no uid can be had: the waiver does not speak of that.
    let DecisionRecord::Denied { reason, .. } = refused.decision else {
        panic!("{refused:?}");
    };
    assert_eq!(reason, DenyReason::ConfinementTooWeak);
    let detail = &refused.detail;
    assert!(
        detail
            .starts_with("level full is required and partial was measured; gaps: uid: shared-uid"),
        "{detail}"
    );
    let all = [&[Layer::Uid][..], &LIMITS].concat();
    has_gaps(&refused.confinement.expect("it was measured"), &all);

    // The same file under a grant that is content with less.
    assert!(content.decision.granted().is_some(), "{content:?}");
    has_gaps(&content.confinement.expect("it was measured"), &all);
}

#[test]
fn a_waiver_of_all_that_is_missing_lets_the_refused_call_run() {
    let Some(image) = Image::get("calls with everything waived") else {
        return;
    };
    let calls = ["fs_read", "/srv/notes/a.md"];
    let (_, decisions) = recorded(image, WITHOUT_LIMITS, "all", &calls).expect("it starts");
    let [call] = decisions.try_into().expect("one decision");
    assert!(call.decision.granted().is_some(), "{call:?}");
    let measured = call.confinement.expect("it was measured");
    let all = [&[Layer::Uid][..], &LIMITS].concat();
    has_gaps(&measured, &all);
    assert_eq!(measured.waived, all);
}

#[test]
fn where_all_can_be_enforced_the_same_calls_run_in_full() {
    let Some(image) = Image::get("calls in a privileged container") else {
        return;
    };
    let options = [
        WITHOUT_LIMITS,
        &["--volume", "/sys/fs/cgroup:/sys/fs/cgroup:rw"],
    ]
    .concat();
    let calls = ["fs_read", "/data/a.md", "fs_read", "/srv/notes/a.md"];
    let (role, decisions) = recorded(image, &options, "plain", &calls).expect("it starts");
    assert_eq!((role.level, &role.gaps[..]), (Level::Full, &[][..]));
    let [volume, of_image] = decisions.try_into().expect("two decisions");
    assert!(volume.decision.granted().is_some(), "{volume:?}");
    assert_eq!(
        volume.confinement.expect("it was measured").level,
        Level::Full
    );
    assert!(of_image.decision.granted().is_none(), "{of_image:?}");
    has_gaps(
        &of_image.confinement.expect("it was measured"),
        &[Layer::Uid],
    );
}

#[test]
fn in_a_default_container_what_is_content_with_less_runs_and_what_is_not_is_refused() {
    let Some(image) = Image::get("calls in a default container") else {
        return;
    };
    let calls = ["fs_read", "/data/a.md", "fs_list", "/data"];
    let (role, decisions) = recorded(image, &[], "plain", &calls).expect("it starts");
    assert_eq!(role.level, Level::Partial);
    assert!(role.waived.is_empty(), "{role:?}");
    for layer in [Layer::Mount, Layer::Pid, Layer::Net] {
        assert!(role.gap(layer).is_some(), "{layer}: {role:?}");
    }
    let [refused, content] = decisions.try_into().expect("two decisions");
    let DecisionRecord::Denied { reason, .. } = refused.decision else {
        panic!("{refused:?}");
    };
    assert_eq!(reason, DenyReason::ConfinementTooWeak);
    assert!(content.decision.granted().is_some(), "{content:?}");
    let measured = content.confinement.expect("it was measured");
    // Every sandbox works as the owner of what it was granted, and nothing else is less than of the role.
    assert!(measured.gap(Layer::Uid).is_some(), "{measured:?}");
    assert_eq!(measured.gaps.len(), role.gaps.len() + 1, "{measured:?}");
}

#[test]
fn the_demo_ends_well_in_every_kind_of_container() {
    let Some(image) = Image::get("the demo in containers") else {
        return;
    };
    let user_namespaces: &[&str] = &[
        "--security-opt",
        "seccomp=unconfined",
        "--security-opt",
        "systempaths=unconfined",
    ];
    for (options, states) in [
        (&["--privileged"][..], &["/data/state", "/var/lib/demo"][..]),
        (&["--remap", "--privileged"], &["/var/lib/demo"]),
        (&[], &["/data/state", "/var/lib/demo"]),
        (&["--user", "1000"], &["/tmp/demo"]),
        (user_namespaces, &["/var/lib/demo"]),
        (
            &[&["--user", "1000"], user_namespaces].concat(),
            &["/tmp/demo"],
        ),
    ] {
        for state in states {
            let text = printed(&image.run(options, &["boxmaker", "demo", "--state", state]));
            assert!(
                text.contains("The log is sound"),
                "{options:?} {state}: {text}"
            );
        }
    }
}
