//! The sets as data: reads `closed.json` and the named sets, joins them, and puts them into the words of seccompiler.
//! Knows nothing of instructions and nothing of the kernel beyond the names of its calls.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::SeccompError;

/// Refused in every sandbox.
const CLOSED: (&str, &str) = ("closed", include_str!("closed.json"));

/// What a profile may name.
const SETS: &[(&str, &str)] = &[
    ("base", include_str!("base.json")),
    ("serve", include_str!("serve.json")),
];

/// Every name that a profile's `seccomp` may hold.
#[must_use]
pub fn names() -> Vec<&'static str> {
    SETS.iter().map(|(name, _)| *name).collect()
}

/// One file of sets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    /// What it is for.
    #[serde(rename = "about")]
    _about: String,
    #[serde(default)]
    allow: Vec<Group>,
    #[serde(default)]
    refuse: Vec<Group>,
}

/// Calls that share a reason and conditions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    #[serde(rename = "for")]
    _reason: String,
    calls: Vec<String>,
    /// Alternatives, each a list of conditions that must all hold; absent: always.
    #[serde(default)]
    when: Option<Vec<Vec<Condition>>>,
}

/// A comparison of the lower 32 bits of one argument. Every argument that is compared here is an `int`, an `unsigned`
/// or a `umode_t` to the kernel, which drops the upper half: comparing 64 bits would let it slip through.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition {
    /// Which argument, from 0.
    argument: u8,
    /// It equals this.
    is: Option<Bits>,
    /// It differs from this.
    is_not: Option<Bits>,
    /// All these bits are set.
    has: Option<Bits>,
    /// What the number means.
    comment: String,
}

/// A number as people write flags and modes: `0x…` or `0o…`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct Bits(u32);

impl TryFrom<String> for Bits {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = |prefix, radix| {
            text.strip_prefix(prefix)
                .and_then(|digits| u32::from_str_radix(digits, radix).ok())
        };
        digits("0x", 16)
            .or_else(|| digits("0o", 8))
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no 32-bit number in 0x or 0o"))
    }
}

/// The alternatives under which a call is meant; `None` is always.
type When = Option<Vec<Vec<Condition>>>;

/// The joined sets: by the name of a call, when it is allowed and when it is refused.
#[derive(Debug, Default)]
pub(super) struct Joined {
    allow: BTreeMap<String, When>,
    refuse: BTreeMap<String, When>,
}

impl Joined {
    /// Joins the closed calls and the sets of these names; what one set allows, all of them allow, and what one refuses
    /// stays refused.
    ///
    /// # Errors
    /// [`SeccompError::UnknownSet`], [`SeccompError::NoSet`] for an empty list, or [`SeccompError::Data`].
    pub(super) fn read(sets: &[String]) -> Result<Self, SeccompError> {
        if sets.is_empty() {
            return Err(SeccompError::NoSet);
        }
        let mut joined = Self::default();
        joined.add(CLOSED)?;
        for name in sets {
            let set = SETS.iter().find(|(known, _)| known == name);
            joined.add(*set.ok_or_else(|| SeccompError::UnknownSet(name.clone()))?)?;
        }
        Ok(joined)
    }

    fn add(&mut self, (name, text): (&'static str, &str)) -> Result<(), SeccompError> {
        let set: Set =
            serde_json::from_str(text).map_err(|source| SeccompError::Data { name, source })?;
        for group in set.allow {
            merge(&mut self.allow, group);
        }
        for group in set.refuse {
            merge(&mut self.refuse, group);
        }
        Ok(())
    }

    /// The two filters in seccompiler's own format, under `allow` and `refuse`.
    pub(super) fn to_filters(&self) -> Value {
        json!({
            "allow": {
                "mismatch_action": { "errno": super::ENOSYS },
                "match_action": "allow",
                "filter": rules(&self.allow),
            },
            "refuse": {
                "mismatch_action": "allow",
                "match_action": { "errno": super::EPERM },
                "filter": rules(&self.refuse),
            },
        })
    }
}

/// Adds the calls of a group. An unconditional entry swallows the conditional ones of the same call: seccompiler would
/// do the opposite and let the conditions win.
fn merge(into: &mut BTreeMap<String, When>, group: Group) {
    for call in group.calls {
        let known = into.entry(call).or_insert_with(|| Some(Vec::new()));
        *known = match (known.take(), group.when.clone()) {
            (Some(mut known), Some(more)) => {
                known.extend(more);
                Some(known)
            }
            _ => None,
        };
    }
}

fn rules(calls: &BTreeMap<String, When>) -> Vec<Value> {
    let mut rules = Vec::new();
    for (call, when) in calls {
        match when {
            None => rules.push(json!({ "syscall": call })),
            Some(alternatives) => rules.extend(alternatives.iter().map(|all| {
                let args: Vec<Value> = all.iter().flat_map(Condition::to_json).collect();
                json!({ "syscall": call, "args": args })
            })),
        }
    }
    rules
}

impl Condition {
    fn to_json(&self) -> Vec<Value> {
        let mut found = Vec::new();
        let mut push = |op: Value, bits: u32| {
            found.push(json!({
                "index": self.argument, "type": "dword", "op": op, "val": bits, "comment": self.comment,
            }));
        };
        if let Some(Bits(bits)) = self.is {
            push(json!("eq"), bits);
        }
        if let Some(Bits(bits)) = self.is_not {
            push(json!("ne"), bits);
        }
        if let Some(Bits(bits)) = self.has {
            push(json!({ "masked_eq": bits }), bits);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_compares_exactly_once_and_says_what_it_means() {
        for (name, text) in SETS.iter().chain([&CLOSED]) {
            let set: Set = serde_json::from_str(text).unwrap();
            for group in set.allow.iter().chain(&set.refuse) {
                assert!(!group.calls.is_empty(), "{name}: {group:?}");
                for condition in group.when.iter().flatten().flatten() {
                    assert_eq!(condition.to_json().len(), 1, "{name}: {condition:?}");
                    assert!(!condition.comment.is_empty(), "{name}: {condition:?}");
                }
                let empty = group.when.iter().flatten().any(Vec::is_empty)
                    || group.when.as_ref().is_some_and(Vec::is_empty);
                assert!(!empty, "{name}: {group:?}");
            }
        }
    }

    #[test]
    fn no_set_allows_a_call_that_is_closed_without_condition() {
        let joined = Joined::read(&names().iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        let joined = joined.unwrap();
        for (call, when) in &joined.refuse {
            let allowed = joined.allow.contains_key(call);
            assert_eq!(when.is_some(), allowed, "{call}");
        }
    }

    #[test]
    fn an_unconditional_entry_swallows_conditions_in_either_order() {
        let group = |when: Option<&str>| Group {
            _reason: String::new(),
            calls: vec!["read".to_owned()],
            when: when.map(|text| serde_json::from_str(text).unwrap()),
        };
        let some = Some(r#"[[{"argument": 0, "is": "0x1", "comment": "one"}]]"#);
        for (first, second, alternatives) in [
            (some, None, None),
            (None, some, None),
            (some, some, Some(2)),
        ] {
            let mut calls = BTreeMap::new();
            merge(&mut calls, group(first));
            merge(&mut calls, group(second));
            assert_eq!(calls["read"].as_ref().map(Vec::len), alternatives);
        }
    }

    #[test]
    fn numbers_are_hexadecimal_or_octal_and_fit_32_bits() {
        let read = |text: &str| Bits::try_from(text.to_owned()).map(|bits| bits.0);
        assert_eq!(read("0x5412"), Ok(0x5412));
        assert_eq!(read("0o4000"), Ok(2048));
        for bad in ["4000", "0x", "0o8", "0x100000000", "-0x1"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
