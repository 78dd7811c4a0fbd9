//! The few rules that values carry themselves: joining labels, and whether a measured level is enough.

use proto::{Confinement, DataClass, Gap, Labels, Layer, Level};

use crate::samples::{full, partial};

fn with(level: Level, gaps: &[Layer], waived: &[Layer]) -> Confinement {
    let gap = |layer: &Layer| Gap {
        layer: *layer,
        reason: String::new(),
    };
    Confinement {
        level,
        gaps: gaps.iter().map(gap).collect(),
        waived: waived.to_vec(),
        ..full()
    }
}

#[test]
fn a_launch_passes_when_its_level_is_enough() {
    assert!(full().satisfies(Level::Full));
    assert!(full().satisfies(Level::Partial));
    let partial = with(Level::Partial, &[Layer::Memory], &[]);
    assert!(partial.satisfies(Level::Partial));
    assert!(!partial.satisfies(Level::Full));
}

#[test]
fn a_launch_below_its_level_passes_only_when_every_gap_is_waived() {
    let gaps = [Layer::Memory, Layer::Pids];
    assert!(with(Level::Partial, &gaps, &gaps).satisfies(Level::Full));
    assert!(!with(Level::Partial, &gaps, &[Layer::Memory]).satisfies(Level::Full));
    assert!(!with(Level::Partial, &gaps, &[Layer::Cpu]).satisfies(Level::Full));
    assert!(!with(Level::Partial, &[], &[]).satisfies(Level::Full));
}

#[test]
fn nothing_is_waived_when_the_level_is_none() {
    let gaps = [Layer::Seccomp];
    assert!(!with(Level::None, &gaps, &gaps).satisfies(Level::Full));
    assert!(!with(Level::None, &gaps, &gaps).satisfies(Level::None));
    assert!(with(Level::Partial, &gaps, &gaps).satisfies(Level::Full));
}

#[test]
fn a_gap_is_found_by_its_layer() {
    assert_eq!(partial().gap(Layer::LandlockNet), partial().gaps.first());
    assert_eq!(partial().gap(Layer::Mount), None);
}

#[test]
fn joined_labels_are_the_higher_class_and_the_stronger_mark() {
    let labels = |class, untrusted| Labels { class, untrusted };
    let (public, secret) = (
        labels(DataClass::Public, true),
        labels(DataClass::Secret, false),
    );
    let joined = labels(DataClass::Secret, true);
    assert_eq!(public.max(secret), joined);
    assert_eq!(secret.max(public), joined);
    assert_eq!(public.max(public), public);
    assert_eq!(secret.max(secret), secret);
}
