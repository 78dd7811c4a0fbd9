//! How a result will be labelled (policy.md section 1): by every grant that has a say in the call, not only by the
//! one that lets it run, so that a looser grant never launders a label.

use proto::tool::ResultKind;
use proto::{DataClass, Labels};

use crate::paths::{self, Binding};
use crate::policy::Entry;

/// The labels of a call that uses `bindings`: the highest class and mark among all grants of the tool, deny grants
/// apart, that cover or overlap it, whatever their mode, expiry or taint. A tool that marks its own result secret
/// raises the class to secret.
///
/// A grant overlaps a call that names paths when one of its paths contains one of the call's or lies in it, read or
/// written. A call that names no path is overlapped by every grant.
pub(crate) fn labels(entry: &Entry, bindings: &[Binding]) -> Labels {
    let named: Vec<&str> = bindings
        .iter()
        .filter(|binding| !binding.whole)
        .map(|binding| binding.path.as_str())
        .collect();
    let floor = Labels {
        class: match entry.tool.file.result {
            ResultKind::Text => DataClass::Public,
            ResultKind::Secret => DataClass::Secret,
        },
        untrusted: false,
    };
    let overlapping = entry.grants.iter().filter(|grant| {
        named.is_empty()
            || grant.paths.iter().any(|granted| {
                named
                    .iter()
                    .any(|path| paths::overlap(path, granted.path()))
            })
    });
    overlapping.fold(floor, |labels, grant| {
        labels.max(Labels {
            class: grant.file.result_class,
            untrusted: grant.file.untrusted,
        })
    })
}
