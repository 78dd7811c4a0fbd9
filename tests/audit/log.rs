//! A log of three days in a home of its own, as the demo's calls would leave it, and the verdict of `bxctl` on it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use boxmaker_tests::binaries::binary;
use ledger::{Entry, Ledger, Paths, Timestamp};
use proto::{Hash32, Layer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Day files by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// How a record is written: before its effect, or after the end of something.
enum Kind {
    Durable,
    Later,
}

/// A home in a temporary directory.
pub(crate) struct Home {
    directory: tempfile::TempDir,
}

/// Where `bxctl audit verify` says the log is broken: file, line, sequence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) seq: Option<u64>,
}

impl Home {
    /// A home without a log.
    pub(crate) fn empty() -> Self {
        // Whatever it was: what a group may write is no home.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("home")).unwrap();
        Self { directory }
    }

    /// A log of three days and sixteen records. Only what has to be durable before its effect is behind the anchor by
    /// itself; ends share the next line's.
    pub(crate) fn with_log() -> Self {
        let home = Self::empty();
        let minute = Arc::new(AtomicU64::new(0));
        let hand = Arc::clone(&minute);
        let clock = move || Timestamp::from_millis(hand.load(Ordering::Relaxed));
        let (ledger, _) = Ledger::open(&home.paths(), Box::new(clock)).unwrap();
        for (day, entries) in days() {
            let morning: Timestamp = format!("{day}T08:00:00.000Z").parse().unwrap();
            minute.store(morning.as_millis(), Ordering::Relaxed);
            for (kind, entry) in entries {
                match kind {
                    Kind::Durable => ledger.append_durable(entry).unwrap(),
                    Kind::Later => ledger.append(entry).unwrap(),
                };
                minute.fetch_add(60_000, Ordering::Relaxed);
            }
        }
        ledger.sync().unwrap();
        home
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths {
            audit: self.home().join("audit"),
            anchor: self.home().join("anchor"),
        }
    }

    /// The day files.
    pub(crate) fn files(&self) -> Files {
        let entries = fs::read_dir(self.paths().audit).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .map(|path| (name(&path), fs::read(&path).unwrap()))
            .collect()
    }

    /// Makes the day files exactly these.
    pub(crate) fn set_files(&self, files: &Files) {
        for gone in self
            .files()
            .keys()
            .filter(|name| !files.contains_key(*name))
        {
            fs::remove_file(self.paths().audit.join(gone)).unwrap();
        }
        for (name, bytes) in files {
            fs::write(self.paths().audit.join(name), bytes).unwrap();
        }
    }

    pub(crate) fn anchor(&self) -> String {
        fs::read_to_string(self.paths().anchor).unwrap()
    }

    pub(crate) fn set_anchor(&self, text: &str) {
        fs::write(self.paths().anchor, text).unwrap();
    }

    /// The sequences that the anchor names.
    pub(crate) fn anchored(&self) -> Vec<usize> {
        let text = self.anchor();
        let seqs = text.lines().map(|line| line.split_once(' ').unwrap().0);
        seqs.map(|seq| seq.parse().unwrap()).collect()
    }

    /// Runs `bxctl audit verify` with these words behind it.
    pub(crate) fn verify(&self, words: &[&str]) -> Output {
        Command::new(binary("bxctl"))
            .args(["audit", "verify"])
            .args(words)
            .arg("--home")
            .arg(self.home())
            .env_remove("BOXMAKER_HOME")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// What `bxctl audit verify --json` says of a log that is to be sound.
    pub(crate) fn sound(&self) -> Value {
        let output = self.verify(&["--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(verdict["verdict"], "sound");
        verdict
    }

    /// Where `bxctl audit verify --json` says that the log is broken, and why.
    pub(crate) fn broken(&self) -> (Place, String) {
        let output = self.verify(&["--json"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(verdict["verdict"], "broken");
        let place = Place {
            file: verdict["file"].as_str().unwrap().to_owned(),
            line: verdict["line"].as_u64().unwrap(),
            seq: verdict["seq"].as_u64(),
        };
        (place, verdict["reason"].as_str().unwrap().to_owned())
    }

    /// The same without `--json`: the place and the reason stand in the first line for a person.
    pub(crate) fn told_as_broken(&self) -> String {
        let output = self.verify(&[]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// One stored line, without its newline, by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) offset: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Stored {
    pub(crate) fn place(&self, seq: usize) -> Place {
        Place {
            file: self.file.clone(),
            line: self.line,
            seq: Some(seq as u64),
        }
    }
}

/// The lines of the files in order; the index of each is its sequence.
pub(crate) fn stored(files: &Files) -> Vec<Stored> {
    let mut lines = Vec::new();
    for (file, bytes) in files {
        let mut offset = 0;
        for (index, piece) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            lines.push(Stored {
                file: file.clone(),
                line: index as u64 + 1,
                offset,
                bytes: piece.strip_suffix(b"\n").unwrap().to_vec(),
            });
            offset += piece.len();
        }
    }
    lines
}

/// The files that hold these lines.
pub(crate) fn joined(lines: &[Stored]) -> Files {
    let mut files = Files::new();
    for line in lines {
        let file = files.entry(line.file.clone()).or_default();
        file.extend_from_slice(&line.bytes);
        file.push(b'\n');
    }
    files
}

pub(crate) fn hash(bytes: &[u8]) -> Hash32 {
    Hash32::new(Sha256::digest(bytes).into())
}

/// The days with their records, as a supervisor writes them.
fn days() -> [(&'static str, Vec<(Kind, Entry)>); 3] {
    let [first, second] = ["s-1", "s-2"];
    let notes = json!({"outcome": "allowed", "grant": "notes"});
    let vault = json!({"outcome": "allowed", "grant": "vault"});
    let outside = json!({"outcome": "denied", "reason": "no_grant", "grant": null});
    let tainted = json!({"outcome": "denied", "reason": "taint_too_high", "grant": "out"});
    [
        (
            "2026-09-17",
            vec![
                durable(policy()),
                durable(role(
                    json!({"state": "started", "confinement": confinement()}),
                )),
                durable(session(first, "opened")),
                durable(decision(first, 1, "fs_read", "notes/a.md", &notes)),
                later(outcome(3, first, "result")),
                durable(decision(first, 2, "fs_read", "../etc/shadow", &outside)),
            ],
        ),
        (
            "2026-09-18",
            vec![
                durable(decision(first, 3, "fs_read", "vault/key", &vault)),
                later(outcome(6, first, "result")),
                durable(decision(first, 4, "fs_write", "out/key", &tainted)),
                later(session(first, "ended")),
                durable(session(second, "opened")),
            ],
        ),
        (
            "2026-09-21",
            vec![
                durable(decision(second, 1, "misbehave", "a \"b\" \\ ü\n", &notes)),
                later(outcome(11, second, "failed")),
                later(session(second, "ended")),
                later(role(json!({"state": "ended", "exit": {"code": 0}}))),
                durable(policy()),
            ],
        ),
    ]
}

fn durable(entry: Value) -> (Kind, Entry) {
    (Kind::Durable, serde_json::from_value(entry).unwrap())
}

fn later(entry: Value) -> (Kind, Entry) {
    (Kind::Later, serde_json::from_value(entry).unwrap())
}

fn policy() -> Value {
    let files = json!({"config.toml": hash(b"config"), "grants/notes.toml": hash(b"notes")});
    json!({"type": "policy", "generation": 1, "files": files})
}

fn role(event: Value) -> Value {
    json!({"type": "role", "role": "brokerd", "pid": 71, "event": event})
}

fn session(session: &str, event: &str) -> Value {
    json!({"type": "session", "session": session, "event": event, "by": "bxctl"})
}

fn confinement() -> Value {
    json!({
        "level": "full", "layers": Layer::ALL, "asserted": [{"layer": "seccomp", "what": "x32"}],
        "gaps": [], "waived": [], "landlock_abi": 7, "plan": hash(b"plan"),
    })
}

fn decision(session: &str, call: u64, tool: &str, path: &str, decision: &Value) -> Value {
    let denied = decision["outcome"] == "denied";
    let labels = json!({"class": "private", "untrusted": false});
    json!({
        "type": "decision", "session": session, "call": call, "tool": tool,
        "arguments": json!({"path": path}).to_string(), "session_taint": "private",
        "decision": decision, "labels": if denied { Value::Null } else { labels },
        "detail": "", "generation": 1,
        "confinement": if denied { Value::Null } else { confinement() },
    })
}

fn outcome(of: u64, session: &str, status: &str) -> Value {
    json!({
        "type": "outcome", "of": of, "session": session, "status": status, "class": "private",
        "untrusted": false, "truncated": false, "bytes": 18, "cause": "exited", "exit": {"code": 0},
        "usage": {"wall_ms": 12, "cpu_ms": 3, "max_rss": 2048},
    })
}
