//! `bxctl audit verify`: the ledger's verdict, in words.

use ledger::{Report, Sound};

use super::AuditError;
use crate::failure::{Done, Failure};
use crate::place::Place;
use crate::screen::{Screen, Tone};
use crate::visible;

/// `bxctl audit verify`: [`Done::Refused`] if the log is broken.
///
/// # Errors
/// The log cannot be read, or there is none.
pub fn run(place: &Place, screen: &Screen, json: bool) -> Result<Done, Failure> {
    let report = ledger::verify(&crate::place::ledger(place)).map_err(AuditError::from)?;
    if json {
        screen.json(&report)?;
    } else {
        screen.print(&verdict(&report, screen.out.colour))?;
    }
    Ok(match report {
        Report::Sound(_) => Done::Well,
        Report::Broken(_) => Done::Refused,
    })
}

fn verdict(report: &Report, colour: bool) -> String {
    let sound = match report {
        Report::Sound(sound) => sound,
        Report::Broken(broken) => {
            return format!(
                "{} at {}\n  this is the first bad line; keep the files as they are and find out who could write to them\n",
                Tone::Bad.paint("broken", colour),
                visible::line(&broken.to_string()),
            );
        }
    };
    let Sound {
        lines,
        files,
        head,
        anchored,
        kept,
        torn,
    } = sound;
    let mut text = format!(
        "{}: {} in {}\n",
        Tone::Good.paint("sound", colour),
        visible::count(*lines, "record"),
        visible::count(*files, "file")
    );
    if let Some(last) = lines.checked_sub(1) {
        text.push_str(&format!("head    seq {last}, sha256 {head}\n"));
    }
    text.push_str(&match anchored {
        Some(seq) => match lines.saturating_sub(seq + 1) {
            0 => format!("anchor  names seq {seq}, the head\n"),
            ahead => format!(
                "anchor  names seq {seq}; after it the chain has {}, whose removal would not show\n",
                visible::count(ahead, "record")
            ),
        },
        None => "anchor  names no record yet\n".to_owned(),
    });
    if *kept > 0 {
        text.push_str(&format!(
            "torn    {}, each kept and told by a recovery record\n",
            visible::count(*kept, "line")
        ));
    }
    if let Some(torn) = torn {
        text.push_str(&format!(
            "torn    the last line of {} ({} at {}): a write that goes on, or one that a crash cut\n",
            visible::line(&torn.file), visible::count(torn.length, "byte"), torn.offset
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use ledger::{Broken, Torn};
    use proto::Hash32;

    use super::*;

    fn sound() -> Sound {
        Sound {
            lines: 5,
            files: 2,
            head: Hash32::ZERO,
            anchored: Some(4),
            kept: 0,
            torn: None,
        }
    }

    #[test]
    fn a_sound_log_is_told_with_records_files_head_and_anchor() {
        let zeros = "0".repeat(64);
        assert_eq!(
            verdict(&Report::Sound(sound()), false),
            format!(
                "sound: 5 records in 2 files\nhead    seq 4, sha256 {zeros}\nanchor  names seq 4, the head\n"
            )
        );
    }

    #[test]
    fn what_the_anchor_does_not_cover_and_what_is_torn_is_told() {
        let torn = Some(Torn {
            file: "2026-09-17.jsonl".to_owned(),
            offset: 100,
            length: 7,
        });
        let text = verdict(
            &Report::Sound(Sound {
                anchored: Some(2),
                kept: 1,
                torn,
                ..sound()
            }),
            false,
        );
        assert!(
            text.contains("anchor  names seq 2; after it the chain has 2 records"),
            "{text}"
        );
        assert!(text.contains("torn    1 line, each kept"), "{text}");
        assert!(text.contains("2026-09-17.jsonl (7 bytes at 100)"), "{text}");
        let text = verdict(
            &Report::Sound(Sound {
                lines: 0,
                anchored: None,
                ..sound()
            }),
            false,
        );
        assert!(
            text.contains("names no record yet") && !text.contains("head"),
            "{text}"
        );
    }

    #[test]
    fn a_broken_log_names_file_line_offset_seq_and_reason() {
        let broken = Broken {
            file: "2026-09-17.jsonl".to_owned(),
            line: 3,
            offset: 812,
            seq: Some(2),
            reason: "its hash is wrong".to_owned(),
        };
        let text = verdict(&Report::Broken(broken), false);
        assert!(
            text.starts_with("broken at 2026-09-17.jsonl:3 (byte 812, seq 2): its hash is wrong\n"),
            "{text}"
        );
    }
}
