//! What holds for every policy and every call: narrowing anything never lets more run, and the supervisor's judgement
//! never differs from brokerd's on the grant that was taken.
//!
//! Two kinds of narrowing change what a call *means* and are left out of the property about paths: a relative path,
//! which is joined to whatever single root is left, and a tool without path arguments, whose call is the whole tree.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proto::grant::Mode;

use super::*;
use crate::BindingAccess;

const PLACES: [&str; 5] = ["/", "/a", "/a/b", "/a/b/c", "/e"];
const SPELLINGS: [&str; 14] = [
    "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/x", "/e/f", "/ab", "/", "/a/../e", "/proc/1", "b",
    "b/c", "f", "../e",
];
/// How many of these, from the front, are absolute.
const ABSOLUTE: usize = 10;

/// A tool and the text of its arguments.
type Call = (&'static str, String);

#[derive(Debug, Clone)]
struct Spec {
    tool: &'static str,
    mode: &'static str,
    max_taint: &'static str,
    class: &'static str,
    after: &'static str,
    expired: bool,
    paths: Vec<(&'static str, String)>,
}

impl Spec {
    fn text(&self) -> String {
        let paths: Vec<String> = self.paths.iter().map(|(a, p)| format!("{a}:{p}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        if self.mode == "deny" {
            return denies(self.tool, &paths);
        }
        let end = if self.expired { "2020" } else { "2030" };
        let more = format!(
            "mode = {:?}\nmax_taint = {:?}\nresult_class = {:?}\nafter_untrusted = {:?}\nexpires = \"{end}-01-01T00:00:00.000Z\"",
            self.mode, self.max_taint, self.class, self.after
        );
        grant(self.tool, &paths, &more)
    }
}

prop_compose! {
    // No class below a ceiling, so that no store of this world launders and every world loads.
    fn spec(modes: &'static [&'static str])(
        tool in select(&["read", "read", "copy", "log"][..]),
        mode in select(modes),
        max_taint in select(&["public", "private", "private", "private"][..]),
        class in select(&["private", "secret"][..]),
        after in select(&["allow", "deny"][..]),
        expired in prop::bool::weighted(0.1),
        reads in subsequence(PLACES.to_vec(), 0..4),
        writes in subsequence(PLACES.to_vec(), 0..4),
    ) -> Spec {
        let reads = reads.into_iter().map(|p| ("read", p.to_owned()));
        let writes = writes.into_iter().map(|p| ("write", p.to_owned()));
        Spec { tool, mode, max_taint, class, after, expired, paths: reads.chain(writes).collect() }
    }
}

/// Grants, and a call of the tool that the first of them is for.
fn scene() -> impl Strategy<Value = (Vec<Spec>, Call)> {
    scene_of(&["read", "copy", "log"], &SPELLINGS)
}

fn scene_of(
    tools: &'static [&'static str],
    spellings: &'static [&'static str],
) -> impl Strategy<Value = (Vec<Spec>, Call)> {
    let modes = &["auto", "auto", "auto", "auto", "auto", "ask", "deny"];
    let specs = prop::collection::vec(spec(modes), 2..8);
    (specs, select(tools)).prop_flat_map(move |(mut specs, tool)| {
        specs[0].tool = tool;
        (Just(specs), call(tool, spellings))
    })
}

/// The policy of these grants, also where loading refuses an ask that never asks.
fn world(specs: &[Spec]) -> Policy {
    match load_world(specs) {
        Ok(policy) => policy,
        Err(_) => unrefused(specs),
    }
}

/// The policy, or the numbers of the grants that never ask; no other mistake can be made in these worlds.
fn load_world(specs: &[Spec]) -> Result<Policy, Vec<usize>> {
    let texts: Vec<(String, String)> = specs
        .iter()
        .enumerate()
        .map(|(n, spec)| (format!("g{n}"), spec.text()))
        .collect();
    let texts: Vec<(&str, &str)> = texts
        .iter()
        .map(|(id, t)| (id.as_str(), t.as_str()))
        .collect();
    load(&texts).map_err(|errors| {
        let number = |error: LoadError| {
            assert!(error.rule.contains("never asks"), "{error}");
            let id = error.file["grants/g".len()..]
                .trim_end_matches(".toml")
                .to_owned();
            id.parse().unwrap()
        };
        errors.into_iter().map(number).collect()
    })
}

/// The same grants, each loaded alone and put together without the rules between them.
fn unrefused(specs: &[Spec]) -> Policy {
    let mut grants = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        let alone = policy(&[(&format!("g{number}"), &spec.text())]);
        grants.extend(alone.grants().cloned());
    }
    let tools = policy(&[]).tools().cloned().collect();
    Policy::new(
        7,
        proto::config::Config::default(),
        tools,
        grants,
        BTreeMap::new(),
    )
}

prop_compose! {
    fn call(tool: &'static str, spellings: &'static [&'static str])(
        one in prop::option::weighted(0.9, select(spellings)),
        two in prop::option::weighted(0.4, select(spellings)),
        strange in prop::bool::weighted(0.05),
    ) -> Call {
        let mut arguments = serde_json::Map::new();
        let names = if tool == "copy" { ["from", "to"] } else { ["path", "other"] };
        if tool == "log" {
            arguments.insert("count".to_owned(), 1.into());
        } else {
            // A copy that lacks one of its paths stops before anything of interest.
            let two = if tool == "copy" { two.or(one) } else { two };
            for (name, value) in names.into_iter().zip([one, two]) {
                arguments.extend(value.map(|value| (name.to_owned(), value.into())));
            }
        }
        if strange {
            arguments.insert("strange".to_owned(), 1.into());
        }
        (tool, serde_json::Value::Object(arguments).to_string())
    }
}

fn session() -> impl Strategy<Value = SessionView> {
    let taint = select(
        &[
            DataClass::Public,
            DataClass::Private,
            DataClass::Private,
            DataClass::Secret,
        ][..],
    );
    (taint, any::<bool>()).prop_map(|(taint, untrusted)| SessionView { taint, untrusted })
}

fn absolute(arguments: &str) -> bool {
    let arguments = crate::arguments::parse(arguments).unwrap();
    arguments
        .values()
        .all(|value| value.as_str().is_none_or(|text| text.starts_with('/')))
}

/// How far a call comes by itself.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Refused,
    Asks,
    Runs,
}

fn reach(specs: &[Spec], session: SessionView, call: &Call) -> Reach {
    match decide(&world(specs), session, call.0, &call.1) {
        Ok(Decided::Runs(_)) => Reach::Runs,
        Ok(Decided::Asks(_)) => Reach::Asks,
        Err(_) => Reach::Refused,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn adding_a_deny_grant_never_lets_more_run(
        (mut specs, call) in scene(), deny in spec(&["deny"]), session in session(),
    ) {
        let before = reach(&specs, session, &call);
        specs.push(deny);
        prop_assert!(before >= reach(&specs, session, &call));
    }

    #[test]
    fn removing_a_grant_that_allows_never_lets_more_run(
        (specs, call) in scene(), which in any::<prop::sample::Index>(), session in session(),
    ) {
        let mut fewer = specs.clone();
        if fewer.remove(which.index(specs.len())).mode != "deny" {
            prop_assert!(reach(&specs, session, &call) >= reach(&fewer, session, &call));
        }
    }

    #[test]
    fn narrowing_a_path_never_lets_more_run(
        (specs, call) in scene_of(&["read", "copy"], &SPELLINGS[..ABSOLUTE]),
        which in any::<prop::sample::Index>(), entry in any::<prop::sample::Index>(), drop in any::<bool>(),
        session in session(),
    ) {
        let mut narrower = specs.clone();
        let spec = &mut narrower[which.index(specs.len())];
        if spec.mode == "deny" || spec.paths.is_empty() {
            return Ok(());
        }
        let entry = entry.index(spec.paths.len());
        if drop {
            spec.paths.remove(entry);
        } else {
            let path = &mut spec.paths[entry].1;
            *path = format!("{}/b", path.trim_end_matches('/'));
            let moved = spec.paths.remove(entry);
            if !spec.paths.contains(&moved) {
                spec.paths.push(moved);
            }
        }
        prop_assert!(reach(&specs, session, &call) >= reach(&narrower, session, &call));
    }

    #[test]
    fn asking_instead_of_running_never_lets_more_run(
        (mut specs, call) in scene(), which in any::<prop::sample::Index>(), session in session(),
    ) {
        let before = reach(&specs, session, &call);
        let which = which.index(specs.len());
        if specs[which].mode == "auto" {
            specs[which].mode = "ask";
            let after = reach(&specs, session, &call);
            prop_assert!(before >= after && (after > Reach::Refused || before == after));
        }
    }

    #[test]
    fn an_ask_that_is_refused_as_one_that_never_asks_never_asks(
        (mut specs, call) in scene(), like in any::<prop::sample::Index>(), session in session(),
    ) {
        // A copy of another grant, so that it is hidden often.
        let mut ask = specs[like.index(specs.len())].clone();
        ask.mode = "ask";
        specs.push(ask);
        if let Err(hidden) = load_world(&specs)
            && let Ok(Decided::Asks(question)) = decide(&unrefused(&specs), session, call.0, &call.1)
        {
            let hidden: Vec<String> = hidden.iter().map(|number| format!("g{number}")).collect();
            prop_assert!(!hidden.contains(&question.grant().to_string()));
        }
    }

    #[test]
    fn a_more_tainted_or_steered_session_never_runs_more(
        (specs, call) in scene(), low in session(), high in session(),
    ) {
        let high = SessionView {
            taint: low.taint.max(high.taint),
            untrusted: low.untrusted || high.untrusted,
        };
        prop_assert!(reach(&specs, low, &call) >= reach(&specs, high, &call));
    }

    #[test]
    fn a_further_grant_never_launders_a_label(
        (mut specs, call) in scene(), more in spec(&["auto", "ask"]), session in session(),
    ) {
        let before = decide(&world(&specs), session, call.0, &call.1);
        // In front, so that it is taken if it can be.
        specs.insert(0, more);
        let after = decide(&world(&specs), session, call.0, &call.1);
        if let (Ok(before), Ok(after)) = (before, after) {
            if absolute(&call.1) {
                prop_assert_eq!(after.labels().max(before.labels()), after.labels());
            }
            let own = world(&specs).grant(after.grant()).unwrap().file().result_class;
            prop_assert!(after.labels().class >= own);
        }
    }

    #[test]
    fn a_permit_never_refuses_what_a_decision_allows(
        (specs, call) in scene(), session in session(),
    ) {
        let policy = world(&specs);
        if let Ok(decision) = decide(&policy, session, call.0, &call.1) {
            let permit = permit(&policy, call.0, decision.grant().as_str(), &call.1);
            prop_assert!(permit.is_ok(), "{:?}", permit);
        }
    }

    #[test]
    fn a_permit_never_permits_what_its_grant_does_not_cover((specs, call) in scene()) {
        let policy = world(&specs);
        let lowest = SessionView { taint: DataClass::Public, untrusted: false };
        for (n, spec) in specs.iter().enumerate() {
            let Ok(permit) = permit(&policy, call.0, &format!("g{n}"), &call.1) else { continue };
            prop_assert!(permit.grant().file().mode != Mode::Deny);
            prop_assert!(!spec.expired && spec.tool == call.0);
            prop_assert!(decide(&policy, lowest, call.0, &call.1).is_ok());
            for binding in permit.bindings() {
                let access = match binding.access {
                    BindingAccess::Read => "read",
                    BindingAccess::Write => "write",
                };
                prop_assert!(spec.paths.contains(&(access, binding.root.clone())));
                prop_assert!(Path::new(&binding.path).starts_with(&binding.root));
                prop_assert!(!binding.path.contains("..") && !binding.path.starts_with("/proc"));
                prop_assert_eq!(binding.whole, call.0 == "log");
            }
            for deny in specs.iter().filter(|other| other.mode == "deny" && other.tool == call.0) {
                prop_assert!(!deny.paths.is_empty());
                for (_, denied) in &deny.paths {
                    for binding in permit.bindings() {
                        prop_assert!(!Path::new(&binding.path).starts_with(denied));
                        prop_assert!(!Path::new(denied).starts_with(&binding.path));
                    }
                }
            }
        }
    }

    #[test]
    fn no_text_makes_a_judge_panic((specs, _) in scene(), tool in "\\PC{0,8}|read", text in "\\PC*|\\{\"path\":.{0,12}\\}") {
        let policy = world(&specs);
        let _ = decide(&policy, FRESH, &tool, &text);
        let _ = permit(&policy, "read", "g0", &text);
    }

    #[test]
    fn no_damage_to_a_file_makes_loading_panic(
        cut in any::<prop::sample::Index>(), length in 0..12usize, junk in prop::collection::vec(any::<u8>(), 0..6),
    ) {
        let sound = grant("copy", &["read:/a", "write:/b"], "after_untrusted = \"deny\"");
        for (file, text) in [("tools/x.toml", READ), ("tools/y.toml", COPY), ("grants/g.toml", &sound)] {
            let mut bytes = text.as_bytes().to_vec();
            let from = cut.index(bytes.len());
            let to = bytes.len().min(from + length);
            bytes.splice(from..to, junk.iter().copied());
            for error in mistakes(file, &bytes) {
                prop_assert!(error.len() > 3);
            }
        }
    }
}
