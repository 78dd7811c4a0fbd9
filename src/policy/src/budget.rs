//! Budget text: what one program may do, in one line of an owner's command (policy.md section 3). Reads `fs:read:PATH`,
//! `fs:write:PATH`, `env:NAME` and `io`; the forms for tools and hosts are refused until they can be held.

use std::fmt;

/// What one program may do, in the order in which it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    items: Vec<Effect>,
}

/// One thing that a program may do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Read a file, or everything in a directory. The path is as it was written.
    Read(String),
    /// Write a file, or make, change and remove everything in a directory. It says nothing of reading.
    Write(String),
    /// Know a variable of whoever starts the program.
    Env(String),
    /// Use its standard streams, which every program may.
    Io,
}

/// Why a text is no budget: the part that is wrong, the rule, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("budget {text:?}: {rule}; {fix}")]
pub struct BudgetError {
    text: String,
    rule: String,
    fix: String,
}

/// What stands as a `%` with two digits, since it has a meaning of its own in a budget.
const ESCAPED: [(char, &str); 5] = [
    (',', "%2C"),
    ('@', "%40"),
    ('[', "%5B"),
    (']', "%5D"),
    ('%', "%25"),
];

/// How every effect is written.
const FORMS: &str = "write fs:read:PATH, fs:write:PATH, env:NAME or io, with commas between";

/// The most bytes of one budget: an argument of a command is not much longer.
const MOST: usize = 64 * 1024;

impl Budget {
    /// Reads a budget; the empty text is that of a program that may do nothing. Linear in the length of the text.
    ///
    /// # Errors
    /// [`BudgetError`], about the first part that is wrong.
    pub fn parse(text: &str) -> Result<Self, BudgetError> {
        if text.len() > MOST {
            return Err(wrong(
                text,
                &format!("it is longer than {MOST} bytes"),
                "grant directories, not their files",
            ));
        }
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let items = text
            .split(',')
            .map(Effect::parse)
            .collect::<Result<_, _>>()?;
        Ok(Self { items })
    }

    /// Adds what another text says.
    pub fn add(&mut self, other: Self) {
        self.items.extend(other.items);
    }

    /// What it holds, in the order in which it was written.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.items.iter()
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, effect) in self.items.iter().enumerate() {
            let between = if number == 0 { "" } else { "," };
            write!(f, "{between}{effect}")?;
        }
        Ok(())
    }
}

impl Effect {
    fn parse(text: &str) -> Result<Self, BudgetError> {
        let refused = |rule: &str, fix: &str| Err(wrong(text, rule, fix));
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        // A count may stand behind a kind that has nothing else.
        let (name, count) = match kind.split_once('@') {
            Some((name, _)) => (name, true),
            None => (kind, false),
        };
        match (name, rest) {
            ("tool", _) => refused("tools cannot be offered to a program yet", "leave it away"),
            ("net", _) => refused(
                "no host can be reached from a sandbox yet",
                "leave it away: there is no network",
            ),
            _ if count => refused(
                "a count cannot be held yet",
                "leave the @ and what follows it away",
            ),
            ("fs", Some(rest)) => match rest.split_once(':') {
                Some(("read", path)) => Ok(Self::Read(value(text, path, "path")?)),
                Some(("write", path)) => Ok(Self::Write(value(text, path, "path")?)),
                _ => refused("after fs: stands read: or write:, and a path", FORMS),
            },
            ("env", Some(name)) => {
                let name = value(text, name, "name")?;
                match name.contains('=') {
                    true => refused(
                        "a variable's name holds no =, and its value is not part of a budget",
                        "write env:NAME",
                    ),
                    false => Ok(Self::Env(name)),
                }
            }
            ("io", None) => Ok(Self::Io),
            ("io", Some(_)) => refused("nothing stands after io", "write io"),
            ("fs" | "env", None) => refused("it names all there is, which is never granted", FORMS),
            ("", _) => refused("it names no effect", FORMS),
            (other, _) => {
                let near = crate::nearest(other, ["fs", "env", "io"]);
                let rule = match near {
                    Some(near) => format!("{other:?} is no effect; did you mean {near}?"),
                    None => format!("{other:?} is no effect"),
                };
                refused(&rule, FORMS)
            }
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "fs:read:{}", escaped(path)),
            Self::Write(path) => write!(f, "fs:write:{}", escaped(path)),
            Self::Env(name) => write!(f, "env:{}", escaped(name)),
            Self::Io => f.write_str("io"),
        }
    }
}

fn wrong(text: &str, rule: &str, fix: &str) -> BudgetError {
    // Long enough to find the place.
    let text = match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    BudgetError {
        text,
        rule: rule.to_owned(),
        fix: fix.to_owned(),
    }
}

/// What a path or a name means, with the five escapes taken out.
fn value(text: &str, written: &str, what: &str) -> Result<String, BudgetError> {
    if written.is_empty() {
        return Err(wrong(text, &format!("the {what} is missing"), FORMS));
    }
    if let Some(odd) = written.chars().find(|c| c.is_control()) {
        let rule = format!("a {what} holds no control character, and this one holds {odd:?}");
        return Err(wrong(text, &rule, "grant the directory above it"));
    }
    if let Some((_, count)) = written.rsplit_once('@')
        && !count.is_empty()
        && count.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(wrong(
            text,
            "a count cannot be held yet",
            "leave it away, or write %40 for an @ that is meant",
        ));
    }
    let mut meant = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((before, after)) = rest.split_once('%') {
        meant.push_str(before);
        let known = ESCAPED.iter().find(|(_, form)| {
            after
                .get(..2)
                .is_some_and(|digits| digits.eq_ignore_ascii_case(&form[1..]))
        });
        let Some((character, _)) = known else {
            return Err(wrong(
                text,
                "after % stands 2C, 40, 5B, 5D or 25",
                "write %25 for a % that is meant",
            ));
        };
        meant.push(*character);
        rest = &after[2..];
    }
    meant.push_str(rest);
    Ok(meant)
}

fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match ESCAPED.iter().find(|(character, _)| *character == c) {
            Some((_, form)) => written.push_str(form),
            None => written.push(c),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn effects(text: &str) -> Vec<Effect> {
        let budget = Budget::parse(text).unwrap();
        budget.effects().cloned().collect()
    }

    #[test]
    fn what_is_added_comes_after_what_was_there() {
        let mut budget = Budget::parse("fs:read:a").unwrap();
        budget.add(Budget::parse("env:B,io").unwrap());
        assert_eq!(budget.to_string(), "fs:read:a,env:B,io");
    }

    #[test]
    fn a_budget_may_be_as_long_as_the_bound_and_no_longer() {
        let text = |length: usize| format!("fs:read:{}", "a".repeat(length - "fs:read:".len()));
        assert_eq!(MOST, 65_536);
        assert!(Budget::parse(&text(MOST)).is_ok());
        let error = Budget::parse(&text(MOST + 1)).unwrap_err().to_string();
        assert!(error.contains("longer than 65536 bytes"), "{error}");
    }

    #[test]
    fn every_form_is_read_in_its_order() {
        assert_eq!(
            effects("io,fs:read:/srv/notes,fs:write:out,env:LANG"),
            [
                Effect::Io,
                Effect::Read("/srv/notes".to_owned()),
                Effect::Write("out".to_owned()),
                Effect::Env("LANG".to_owned()),
            ]
        );
        assert_eq!(effects(""), []);
        assert_eq!(
            effects("fs:read:/a%2Cb%40c%5bd%5D%25:e"),
            [Effect::Read("/a,b@c[d]%:e".to_owned())]
        );
    }

    #[test]
    fn what_cannot_be_held_or_makes_no_sense_is_refused_with_the_rule() {
        for (text, says) in [
            ("tool", "tools cannot be offered"),
            ("tool:search@3", "tools cannot be offered"),
            ("net:example.org", "no host can be reached"),
            ("net@2", "no host can be reached"),
            ("io@3", "a count cannot be held"),
            ("fs:read:/a@12", "a count cannot be held"),
            ("env:A@1", "a count cannot be held"),
            ("fs", "all there is"),
            ("env", "all there is"),
            ("all", "\"all\" is no effect"),
            ("fs:read", "read: or write:"),
            ("fs:exec:/bin/sh", "read: or write:"),
            ("fs:read:", "the path is missing"),
            ("env:", "the name is missing"),
            ("env:A=b", "holds no ="),
            ("io:", "nothing stands after io"),
            ("io,,io", "names no effect"),
            ("io,", "names no effect"),
            ("oi", "is no effect"),
            ("IO", "is no effect"),
            ("fs:read:/a\nb", "control character"),
            ("fs:read:/100%", "after % stands"),
            ("fs:read:/a%2", "after % stands"),
            ("fs:read:/a%é", "after % stands"),
            (" io", "is no effect"),
        ] {
            let error = Budget::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
            assert!(error.contains("; "), "{error}");
        }
        assert_eq!(effects("fs:read:/a@b"), [Effect::Read("/a@b".to_owned())]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_read_round_trips(text in "\\PC*|[a-z:,@%/0-9]*") {
            if let Ok(budget) = Budget::parse(&text) {
                let again = Budget::parse(&budget.to_string());
                prop_assert_eq!(again, Ok(budget));
            }
        }

        #[test]
        fn every_path_can_be_written(path in "/[^\\p{Cc}]{1,40}") {
            let budget = Budget { items: vec![Effect::Read(path.clone()), Effect::Write(path)] };
            prop_assert_eq!(Budget::parse(&budget.to_string()), Ok(budget));
        }
    }
}
