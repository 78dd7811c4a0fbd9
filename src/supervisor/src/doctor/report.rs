//! A diagnosis as people read it, at most 80 columns where the host's own words allow, and as JSON.

use confine::host::{Landlock, Privilege};
use proto::{Confinement, Layer};
use serde_json::{Value, json as value};

use super::remedy::Advisor;
use super::surroundings::Warden;
use super::{Diagnosis, Failure, Finding};

/// Where lines are broken.
const WIDTH: usize = 80;

/// The diagnosis in words.
pub(crate) fn words(diagnosis: &Diagnosis) -> String {
    let advisor = &diagnosis.advisor;
    let who = match (advisor.privilege, advisor.is_root) {
        (Privilege::Root, _) => "root",
        (Privilege::UserNamespace, true) => "root without all its capabilities",
        (Privilege::UserNamespace, false) => "a plain user",
        (Privilege::Bare, true) => "root without its capabilities and without namespaces",
        (Privilege::Bare, false) => "a plain user without namespaces",
    };
    let place = match advisor.around.warden {
        Warden::Nobody => "",
        Warden::Unit => " in a unit",
        Warden::Docker => " in a container of Docker",
        Warden::Podman => " in a container of Podman",
        Warden::Kubernetes => " in a pod",
        Warden::Nspawn => " in a container of systemd-nspawn",
        Warden::Container => " in a container",
    };
    let landlock = match advisor.landlock {
        Landlock::Abi(abi) => format!("Landlock ABI {abi}"),
        Landlock::Off => "Landlock switched off".to_owned(),
        Landlock::Refused => "no Landlock".to_owned(),
    };
    let mut text = folded(
        &format!("Linux {},", diagnosis.kernel),
        &format!("as {who}{place}, {landlock}"),
    );
    // Profiles that come to the same are told together, in their order.
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for finding in &diagnosis.profiles {
        let outcome = one(&finding.outcome, advisor);
        match told.iter_mut().find(|(other, _)| *other == outcome) {
            Some((_, names)) => names.push(&finding.of),
            None => told.push((outcome, vec![&finding.of])),
        }
    }
    for (outcome, names) in told {
        let head = match names.len() {
            1 => "profile ",
            _ => "profiles ",
        };
        text.push('\n');
        text.push_str(&folded(head, &names.join(" ")));
        text.push_str(&outcome);
    }
    let uid_gaps = diagnosis
        .paths
        .iter()
        .filter(|finding| match &finding.outcome {
            Ok(confinement) => confinement.gap(Layer::Uid).is_some(),
            Err(_) => true,
        });
    for finding in uid_gaps.filter(|_| advisor.privilege.gives_users()) {
        text.push_str(&format!("\ngranted path {}\n", finding.of));
        text.push_str(&one(&finding.outcome, advisor));
    }
    text.push_str(&format!("\nlevel on this host: {}\n", diagnosis.level()));
    text
}

/// What a trial came to, in words.
pub(super) fn one(outcome: &Result<Confinement, Failure>, advisor: &Advisor) -> String {
    match outcome {
        Ok(confinement) => measured(confinement, advisor),
        Err(error) => {
            let mut text = folded("  cannot be launched: ", &error.text);
            if let Some(cure) = cure(error, advisor) {
                text.push_str(&folded("    what helps: ", &cure));
            }
            text
        }
    }
}

/// What helps against a refusal; every other failure says it itself.
fn cure(failure: &Failure, advisor: &Advisor) -> Option<String> {
    let refused = failure.refused.then_some(advisor);
    refused.and_then(Advisor::of_failure)
}

fn measured(confinement: &Confinement, advisor: &Advisor) -> String {
    let held: Vec<&str> = confinement
        .layers
        .iter()
        .map(|layer| layer.as_str())
        .collect();
    let mut text = format!("  level {}\n", confinement.level);
    text.push_str(&folded("  measured: ", &held.join(" ")));
    for (layers, reason, cure) in alike(confinement, advisor) {
        let head = if layers.len() == 1 { "gap" } else { "gaps" };
        text.push_str(&folded(&format!("  {head} {}: ", layers.join(" ")), reason));
        if let Some(cure) = cure {
            text.push_str(&folded("    what helps: ", &cure));
        }
    }
    text
}

/// The gaps, those with one reason and one cure together: their layers, the reason, the cure.
fn alike<'a>(
    confinement: &'a Confinement,
    advisor: &Advisor,
) -> Vec<(Vec<String>, &'a str, Option<String>)> {
    let mut found: Vec<(Vec<String>, &str, Option<String>)> = Vec::new();
    for gap in &confinement.gaps {
        let waived = match confinement.waived.contains(&gap.layer) {
            true => " (waived)",
            false => "",
        };
        let layer = format!("{}{waived}", gap.layer);
        let cure = advisor.of_gap(gap.layer, confinement);
        let same = |(_, reason, known): &&mut (Vec<String>, &str, Option<String>)| {
            *reason == gap.reason && *known == cure
        };
        match found.iter_mut().find(same) {
            Some((layers, ..)) => layers.push(layer),
            None => found.push((vec![layer], &gap.reason, cure)),
        }
    }
    found
}

/// `text` after `head`, broken at spaces so that lines keep within the width; what follows is indented by six.
pub(super) fn folded(head: &str, text: &str) -> String {
    let mut lines = String::new();
    let mut line = head.trim_end().to_owned();
    for word in text.split_whitespace() {
        let fits = line.chars().count() + 1 + word.chars().count() <= WIDTH;
        if fits {
            line.push(' ');
        } else {
            lines.push_str(&line);
            lines.push('\n');
            line = " ".repeat(6);
        }
        line.push_str(word);
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}

/// The diagnosis as one JSON document.
pub(crate) fn json(diagnosis: &Diagnosis) -> Value {
    let findings = |key: &str, findings: &[Finding]| -> Vec<Value> {
        findings
            .iter()
            .map(|finding| match &finding.outcome {
                Ok(confinement) => {
                    let gaps: Vec<Value> = confinement
                        .gaps
                        .iter()
                        .map(|gap| {
                            let cure = diagnosis.advisor.of_gap(gap.layer, confinement);
                            value!({ "layer": gap.layer, "reason": gap.reason, "helps": cure })
                        })
                        .collect();
                    value!({
                        key: finding.of,
                        "level": confinement.level,
                        "layers": confinement.layers,
                        "asserted": confinement.asserted,
                        "gaps": gaps,
                        "waived": confinement.waived,
                    })
                }
                Err(error) => value!({
                    key: finding.of,
                    "error": error.text,
                    "helps": cure(error, &diagnosis.advisor),
                }),
            })
            .collect()
    };
    value!({
        "kernel": diagnosis.kernel,
        "privilege": match diagnosis.advisor.privilege {
            Privilege::Root => "root",
            Privilege::UserNamespace => "user",
            Privilege::Bare => "bare",
        },
        "refused": diagnosis.refusal,
        "place": match diagnosis.advisor.around.warden {
            Warden::Nobody => None,
            Warden::Unit => Some("unit"),
            Warden::Docker => Some("docker"),
            Warden::Podman => Some("podman"),
            Warden::Kubernetes => Some("kubernetes"),
            Warden::Nspawn => Some("systemd-nspawn"),
            Warden::Container => Some("container"),
        },
        "landlock_abi": diagnosis.advisor.landlock.abi(),
        "level": diagnosis.level(),
        "profiles": findings("profile", &diagnosis.profiles),
        "paths": findings("path", &diagnosis.paths),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_folded_and_nothing_is_lost() {
        let text = "one two three ".repeat(20);
        let folded = folded("  gap uid: ", &text);
        assert!(folded.lines().all(|line| line.chars().count() <= WIDTH));
        let words: Vec<&str> = folded.split_whitespace().skip(2).collect();
        assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
    }
}
