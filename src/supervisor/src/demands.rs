//! Which grants ask for more confinement than this host gave brokerd, so that the owner hears of it at the start and not
//! by the first refused call.

use policy::GrantEntry;
use proto::grant::Mode;
use proto::{Confinement, Level, Timestamp};

/// How many files are named.
const NAMED: usize = 5;

/// The warning for the grants that can let nothing run where `measured` is what a sandbox comes to; none if there is no
/// such grant. A grant that has expired at `now` or denies asks for nothing.
pub(crate) fn unmet<'a>(
    grants: impl Iterator<Item = &'a GrantEntry>,
    measured: &Confinement,
    now: Timestamp,
) -> Option<String> {
    if measured.satisfies(Level::Full) {
        return None;
    }
    let asks = |grant: &&GrantEntry| {
        let file = grant.file();
        file.mode != Mode::Deny
            && file.confinement == Level::Full
            && file.expires.is_none_or(|end| end > now)
    };
    let mut files: Vec<String> = grants
        .filter(asks)
        .map(|grant| format!("grants/{}.toml", grant.id()))
        .collect();
    let (asks, their) = match files.len() {
        0 => return None,
        1 => ("asks", "its"),
        _ => ("ask", "their"),
    };
    let more = files.len().saturating_sub(NAMED);
    if more > 0 {
        files.truncate(NAMED);
        files.push(format!("{more} more"));
    }
    let gaps = measured
        .gaps
        .iter()
        .filter(|gap| !measured.waived.contains(&gap.layer));
    let gaps: Vec<&str> = gaps.map(|gap| gap.layer.as_str()).collect();
    Some(format!(
        "{} {asks} for confinement \"full\", and this host gives {} (gaps: {}): {their} calls are refused; `boxmaker \
         doctor` says what helps, or write confinement = \"partial\" above [constraints]",
        files.join(", "),
        measured.level,
        gaps.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use policy::Policy;
    use proto::{Gap, Hash32, Layer};

    use super::*;

    const TOOL: &str = "description = \"x\"\nkind = \"stdio\"\ncommand = [\"/bin/x\"]\nprofile = \"tools/base\"\n\
                        side_effect = false\n[arguments]\ntype = \"object\"\n";

    fn policy(grants: &[(String, &str)]) -> Policy {
        let mut files = BTreeMap::from([("tools/x.toml".to_owned(), TOOL.as_bytes().to_vec())]);
        for (id, keys) in grants {
            let text = format!("tool = \"x\"\n{keys}\n");
            files.insert(format!("grants/{id}.toml"), text.into_bytes());
        }
        Policy::load(&files, 1).unwrap()
    }

    fn measured(level: Level, waived: &[Layer]) -> Confinement {
        let gaps = match level {
            Level::Full => Vec::new(),
            _ => vec![Gap {
                layer: Layer::Uid,
                reason: "shared".to_owned(),
            }],
        };
        Confinement {
            level,
            layers: Vec::new(),
            asserted: Vec::new(),
            gaps,
            waived: waived.to_vec(),
            landlock_abi: 6,
            plan: Hash32::ZERO,
        }
    }

    fn told(grants: &[(String, &str)], measured: &Confinement) -> Option<String> {
        let now = "2026-09-17T08:05:00.000Z".parse().unwrap();
        unmet(policy(grants).grants(), measured, now)
    }

    const FULL: &str = "mode = \"auto\"\nmax_taint = \"private\"";
    const PARTIAL: &str = "mode = \"auto\"\nmax_taint = \"private\"\nconfinement = \"partial\"";
    const EXPIRED: &str =
        "mode = \"auto\"\nmax_taint = \"private\"\nexpires = \"2026-09-17T08:05:00.000Z\"";

    #[test]
    fn a_grant_that_asks_for_more_than_there_is_is_named_and_others_are_not() {
        let grants = [
            ("a".to_owned(), FULL),
            ("b".to_owned(), PARTIAL),
            ("c".to_owned(), EXPIRED),
            ("d".to_owned(), "mode = \"deny\""),
        ];
        let text = told(&grants, &measured(Level::Partial, &[])).unwrap();
        assert!(
            text.starts_with("grants/a.toml asks for confinement \"full\", and this host gives partial (gaps: uid): its calls"),
            "{text}"
        );
        assert_eq!(told(&grants[1..], &measured(Level::Partial, &[])), None);
    }

    #[test]
    fn where_the_host_gives_all_or_the_gaps_are_waived_nothing_is_said() {
        let grants = [("a".to_owned(), FULL)];
        assert_eq!(told(&grants, &measured(Level::Full, &[])), None);
        assert_eq!(
            told(&grants, &measured(Level::Partial, &[Layer::Uid])),
            None
        );
        assert!(told(&grants, &measured(Level::Partial, &[Layer::Cpu])).is_some());
    }

    #[test]
    fn of_many_grants_some_are_named_and_the_rest_counted() {
        let grants: Vec<_> = (0..8).map(|id| (format!("g{id}"), FULL)).collect();
        let text = told(&grants, &measured(Level::Partial, &[])).unwrap();
        assert!(text.contains("grants/g4.toml, 3 more ask for"), "{text}");
        assert!(
            !text.contains("g5") && text.contains("their calls"),
            "{text}"
        );
    }
}
