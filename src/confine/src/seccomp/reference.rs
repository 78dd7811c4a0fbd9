//! The filter as seccompiler makes it: three programs, stacked, from the same sets, which are read here by other code
//! than the compiler's. What the compiler makes has to answer every call alike; tests and the benchmark compare.

use std::collections::BTreeMap;

use seccompiler::TargetArch;
use serde_json::{Value, json};

use super::instruction::{
    ARCH, ARCH_X86_64, ENOSYS, EPERM, Instruction, JUMP_EQUAL, JUMP_GREATER_EQUAL, LOAD_WORD, NR,
    RETURN, RETURN_ALLOW, RETURN_KILL_PROCESS, X32_BIT,
};
use super::interpret::{self, Call};

const CLOSED: &str = include_str!("closed.json");
const SETS: [(&str, &str); 5] = [
    ("base", include_str!("base.json")),
    ("serve", include_str!("serve.json")),
    ("bare", include_str!("bare.json")),
    ("bare-fixed", include_str!("bare-fixed.json")),
    ("bare-old", include_str!("bare-old.json")),
];

/// The programs in the order in which they would be installed: x32 calls kill; what the sets allow passes, the rest is
/// ENOSYS; what is closed is EPERM. seccompiler kills foreign architectures in both of its own.
#[derive(Debug)]
pub struct Stacked(pub(super) [Vec<Instruction>; 3]);

/// When a call is meant: `None` is always, else the lists of seccompiler's conditions of which one must hold.
type Rules = BTreeMap<String, Option<Vec<Value>>>;

impl Stacked {
    /// What seccompiler makes of the sets of these names and of what is always closed.
    ///
    /// # Panics
    /// A name is not that of a set.
    #[must_use]
    pub fn of(names: &[&str]) -> Self {
        let chosen = SETS.iter().filter(|(name, _)| names.contains(name));
        let texts: Vec<_> = chosen.map(|(_, text)| *text).chain([CLOSED]).collect();
        assert_eq!(texts.len(), names.len() + 1, "{names:?}");
        let filters = json!({
            "allow": {
                "mismatch_action": { "errno": ENOSYS },
                "match_action": "allow",
                "filter": rules(&texts, "allow"),
            },
            "refuse": {
                "mismatch_action": "allow",
                "match_action": { "errno": EPERM },
                "filter": rules(&texts, "refuse"),
            },
        });
        Self([
            x32_killer(),
            compile(&filters, "allow"),
            compile(&filters, "refuse"),
        ])
    }

    /// The programs as [`seccompiler::apply_filter`] takes them.
    #[must_use]
    pub fn programs(&self) -> [Vec<seccompiler::sock_filter>; 3] {
        self.0.each_ref().map(|program| super::installable(program))
    }

    /// How many instructions all of them take to judge a call of this architecture's own.
    #[must_use]
    pub fn steps(&self, nr: u32, args: [u64; 6]) -> usize {
        let arch = ARCH_X86_64;
        self.run(&Call { arch, nr, args }).1
    }

    /// The verdict and the instructions that it took. All programs run, the most restrictive action wins, and among
    /// equal ones that of the program installed last (seccomp(2); the kernel asks the newest first and replaces its
    /// answer only by a stricter one).
    pub(super) fn run(&self, call: &Call) -> (u32, usize) {
        let mut answer = RETURN_ALLOW;
        let mut steps = 0;
        for program in self.0.iter().rev() {
            let (next, more) = interpret::run(program, call);
            steps += more;
            if strictness(next) < strictness(answer) {
                answer = next;
            }
        }
        (answer, steps)
    }
}

/// Lower is stricter: the action as a signed number, as the kernel compares it, so that killing the process is least.
const fn strictness(answer: u32) -> i32 {
    (answer & 0xffff_0000).cast_signed()
}

/// One of the programs that seccompiler makes of its own format.
pub(super) fn compile(filters: &Value, name: &str) -> Vec<Instruction> {
    let text = filters.to_string();
    let compiled = seccompiler::compile_from_json(text.as_bytes(), TargetArch::x86_64);
    let program = compiled.map(|mut compiled| compiled.remove(name));
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    let program = program.unwrap_or_default();
    let steps = program.iter();
    let steps = steps.map(|step| Instruction::new(step.code, step.jt, step.jf, step.k));
    steps.collect()
}

/// Numbers with the sign bit are no calls of either kind and go on to become ENOSYS.
fn x32_killer() -> Vec<Instruction> {
    vec![
        Instruction::new(LOAD_WORD, 0, 0, ARCH),
        Instruction::new(JUMP_EQUAL, 0, 3, ARCH_X86_64),
        Instruction::new(LOAD_WORD, 0, 0, NR),
        Instruction::new(JUMP_GREATER_EQUAL, 2, 0, X32_BIT << 1),
        Instruction::new(JUMP_GREATER_EQUAL, 0, 1, X32_BIT),
        Instruction::new(RETURN, 0, 0, RETURN_KILL_PROCESS),
        Instruction::new(RETURN, 0, 0, RETURN_ALLOW),
    ]
}

/// The rules that these files state under `allow` or `refuse`. An unconditional entry swallows the conditional ones of
/// the same call: seccompiler would do the opposite and let the conditions win.
fn rules(texts: &[&str], key: &str) -> Vec<Value> {
    let mut found = Rules::new();
    for text in texts {
        let file: Value = serde_json::from_str(text).unwrap_or_default();
        for group in list(&file[key]) {
            for call in list(&group["calls"]) {
                let call = call.as_str().unwrap_or_default().to_owned();
                let known = found.entry(call).or_insert_with(|| Some(Vec::new()));
                match (known.as_mut(), group.get("when")) {
                    (Some(known), Some(when)) => known.extend(list(when).iter().map(conditions)),
                    _ => *known = None,
                }
            }
        }
    }
    let mut rules = Vec::new();
    for (call, when) in found {
        match when {
            None => rules.push(json!({ "syscall": call })),
            Some(when) => rules.extend(
                when.into_iter()
                    .map(|args| json!({ "syscall": call, "args": args })),
            ),
        }
    }
    rules
}

/// Conditions that must all hold, in seccompiler's words.
fn conditions(all: &Value) -> Value {
    let all = list(all).iter().flat_map(|condition| {
        [
            ("is", "eq"),
            ("is_not", "ne"),
            ("has", "masked_eq"),
            ("lacks", "masked_eq"),
        ]
        .map(|(word, op)| {
            let text = condition.get(word)?.as_str()?;
            let (radix, digits) = match text.split_at_checked(2)? {
                ("0x", digits) => (16, digits),
                ("0o", digits) => (8, digits),
                _ => return None,
            };
            let bits = u32::from_str_radix(digits, radix).ok()?;
            let op = if op == "masked_eq" {
                json!({ op: bits })
            } else {
                json!(op)
            };
            let value = if word == "lacks" { 0 } else { bits };
            Some(json!({ "index": condition["argument"], "type": "dword", "op": op, "val": value }))
        })
    });
    all.flatten().collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
