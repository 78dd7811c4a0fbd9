//! The sets as data: reads `closed.json` and the named sets, and joins them. Knows nothing of instructions and nothing of
//! the kernel beyond the names of its calls.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::CompileError;
use super::decision::{Alternatives, Atom, Clause, Test};

/// Refused in every sandbox.
const CLOSED: (&str, &str) = ("closed", include_str!("../closed.json"));

/// What a profile may name.
pub(super) const SETS: [(&str, &str); 2] = [
    ("base", include_str!("../base.json")),
    ("serve", include_str!("../serve.json")),
];

/// What narrows the sets of a profile where a sandbox has no namespaces; no profile names one.
pub(super) const NARROWING: [(&str, &str); 3] = [
    ("bare", include_str!("../bare.json")),
    ("bare-fixed", include_str!("../bare-fixed.json")),
    ("bare-old", include_str!("../bare-old.json")),
];

/// The ways to narrow what sets allow: not at all, or as much as it takes.
pub(super) const NARROWED: [&[&str]; 5] = [
    &[],
    &["bare"],
    &["bare", "bare-fixed"],
    &["bare", "bare-old"],
    &["bare", "bare-fixed", "bare-old"],
];

/// One file of sets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
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
    /// None of these bits is set.
    lacks: Option<Bits>,
    /// What the number means.
    #[serde(rename = "comment")]
    _comment: String,
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
pub(in super::super) struct Joined {
    allow: BTreeMap<String, When>,
    refuse: BTreeMap<String, When>,
}

impl Joined {
    /// Joins the closed calls and the sets of these names; what one set allows, all of them allow, and what one refuses
    /// stays refused.
    ///
    /// # Errors
    /// [`CompileError::Data`].
    pub(super) fn read(names: &[&str]) -> Result<Self, CompileError> {
        let known = SETS.iter().chain(&NARROWING);
        let named = known.filter(|(name, _)| names.contains(name));
        let texts: Vec<_> = [CLOSED].iter().chain(named).copied().collect();
        Self::of(&texts)
    }

    /// Joins the sets of these texts, each with a name.
    ///
    /// # Errors
    /// [`CompileError::Data`].
    pub(in super::super) fn of(texts: &[(&'static str, &str)]) -> Result<Self, CompileError> {
        let mut joined = Self::default();
        for (name, text) in texts {
            joined.add(name, text)?;
        }
        Ok(joined)
    }

    fn add(&mut self, name: &'static str, text: &str) -> Result<(), CompileError> {
        let set: Set =
            serde_json::from_str(text).map_err(|source| CompileError::Data { name, source })?;
        for group in set.allow {
            merge(&mut self.allow, group);
        }
        for group in set.refuse {
            merge(&mut self.refuse, group);
        }
        Ok(())
    }

    /// Every call that stands in one of the sets, by name.
    pub(super) fn calls(&self) -> BTreeSet<&str> {
        let names = self.allow.keys().chain(self.refuse.keys());
        names.map(String::as_str).collect()
    }

    /// When a call is allowed, if it is not refused.
    pub(super) fn allowed(&self, call: &str) -> Alternatives {
        alternatives(self.allow.get(call))
    }

    /// When a call is refused.
    pub(super) fn refused(&self, call: &str) -> Alternatives {
        alternatives(self.refuse.get(call))
    }
}

#[cfg(test)]
impl Joined {
    /// The same with one more call that is always allowed.
    pub(super) fn with_allowed(mut self, call: &str) -> Self {
        self.allow.insert(call.to_owned(), None);
        self
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

/// No entry is no alternative, and an entry without condition one that asks nothing.
fn alternatives(when: Option<&When>) -> Alternatives {
    match when {
        None => Alternatives::new(),
        Some(None) => [Clause::new()].into(),
        Some(Some(alternatives)) => alternatives
            .iter()
            .map(|all| all.iter().flat_map(Condition::atoms).collect())
            .collect(),
    }
}

impl Condition {
    /// What must hold, and whether it must hold or must not; a mask is one question for each of its bits.
    fn atoms(&self) -> Vec<(Atom, bool)> {
        let atom = |test| Atom {
            argument: self.argument,
            test,
        };
        let equal = |bits: Bits| atom(Test::Equal(bits.0));
        let mut found = Vec::new();
        found.extend(self.is.map(|bits| (equal(bits), true)));
        found.extend(self.is_not.map(|bits| (equal(bits), false)));
        if let Some(Bits(mask)) = self.has {
            let bits = (0..32).map(|bit| 1 << bit).filter(|bit| mask & bit != 0);
            found.extend(bits.map(|bit| (atom(Test::AnyBit(bit)), true)));
        }
        found.extend(self.lacks.map(|bits| (atom(Test::AnyBit(bits.0)), false)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_compares_exactly_once_and_says_what_it_means() {
        for (name, text) in SETS.iter().chain(&NARROWING).chain([&CLOSED]) {
            let set: Set = serde_json::from_str(text).unwrap();
            for group in set.allow.iter().chain(&set.refuse) {
                assert!(!group.calls.is_empty(), "{name}: {group:?}");
                for condition in group.when.iter().flatten().flatten() {
                    let ways = [
                        condition.is,
                        condition.is_not,
                        condition.has,
                        condition.lacks,
                    ];
                    assert_eq!(ways.iter().flatten().count(), 1, "{name}: {condition:?}");
                    assert!(!condition.atoms().is_empty(), "{name}: {condition:?}");
                    assert!(condition.argument < 6, "{name}: {condition:?}");
                    assert!(!condition._comment.is_empty(), "{name}: {condition:?}");
                }
                let empty = group.when.iter().flatten().any(Vec::is_empty)
                    || group.when.as_ref().is_some_and(Vec::is_empty);
                assert!(!empty, "{name}: {group:?}");
            }
        }
    }

    #[test]
    fn no_set_allows_a_call_that_is_closed_without_condition() {
        let joined = Joined::read(&SETS.map(|(name, _)| name)).unwrap();
        for (call, when) in &joined.refuse {
            let allowed = joined.allow.contains_key(call);
            assert_eq!(when.is_some(), allowed, "{call}");
        }
    }

    #[test]
    fn what_narrows_allows_nothing() {
        for (name, text) in NARROWING {
            let set: Set = serde_json::from_str(text).unwrap();
            assert!(set.allow.is_empty() && !set.refuse.is_empty(), "{name}");
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
