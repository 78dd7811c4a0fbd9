//! Any bytes are a message of the stage, or to it, or an error. What a stage reports is judged without harm, and is not
//! full while a layer is missing.
#![no_main]

use std::sync::LazyLock;

use confine::Plan;
use confine::measure::judge::{Evidence, judge};
use confine::message::{from_stage_again, to_stage_again};
use confine::plan::Identity;
use libfuzzer_sys::fuzz_target;
use proto::{Hash32, Layer, Level};

/// What the report of the seeds is about.
static PLAN: LazyLock<Option<Plan>> =
    LazyLock::new(|| serde_json::from_slice(include_bytes!("../seeds/plan/small.json")).ok());

fuzz_target!(|body: &[u8]| {
    if let Ok(text) = to_stage_again(body) {
        assert_eq!(to_stage_again(&text).ok(), Some(text));
    }
    let Ok((text, inside)) = from_stage_again(body) else {
        return;
    };
    let again = from_stage_again(&text).ok().map(|(text, _)| text);
    assert_eq!(again, Some(text));
    let (Some(inside), Some(plan)) = (inside, PLAN.as_ref()) else {
        return;
    };
    let of_layers = |layers: &[Layer]| {
        layers
            .iter()
            .map(|layer| (*layer, Ok(())))
            .collect::<Vec<_>>()
    };
    let identity = Identity {
        uid: inside.status.uid.first().copied().unwrap_or(1),
        gid: inside.status.gid.first().copied().unwrap_or(1),
    };
    let found = judge(&Evidence {
        bare: None,
        plan,
        hash: Hash32::ZERO,
        identity,
        shared: None,
        owners: &[],
        outside: Ok(inside.status.clone()),
        inside: &inside,
        namespaces: &of_layers(Layer::ALL),
        limits: &of_layers(Layer::ALL),
        landlock_abi: 7,
        waive: &[],
    });
    for layer in Layer::ALL {
        let gap = found.gaps.iter().any(|gap| gap.layer == *layer);
        assert_ne!(gap, found.layers.contains(layer), "{layer}");
    }
    assert_eq!(found.level == Level::Full, found.gaps.is_empty());
    let status = &inside.status;
    if found.level != Level::None {
        assert!(status.no_new_privs && status.seccomp == 2 && status.capabilities == [0; 5]);
    }
});
