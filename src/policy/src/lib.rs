//! Pure decisions: which call may run, under which grant, and how its result is labelled.
//!
//! State and inputs go in, a decision comes out. This crate knows no socket, no file, no clock and no global: the
//! time is an argument, the configuration is a map of bytes, and a path is only a spelling that the supervisor
//! resolves later. brokerd runs [`decide`], the supervisor runs [`permit`] on the grant that was taken, and both
//! walk through the same checks, so that neither can be talked into what the other refuses.
//!
//! ```
//! use std::collections::BTreeMap;
//! use policy::{Decided, Policy, SessionView, decide, permit};
//! use proto::{DataClass, Timestamp};
//!
//! let files = BTreeMap::from([
//!     ("tools/cat.toml".to_owned(), br#"
//!         description = "Shows one file."
//!         kind = "argv"
//!         command = ["/usr/bin/cat", "--", "{path}"]
//!         profile = "tools/base"
//!         side_effect = false
//!         resources = { path = "read" }
//!         [arguments]
//!         type = "object"
//!         required = ["path"]
//!         properties.path.type = "string"
//!     "#.to_vec()),
//!     ("grants/notes.toml".to_owned(), br#"
//!         tool = "cat"
//!         mode = "auto"
//!         max_taint = "private"
//!         constraints.paths = ["read:/srv/notes"]
//!     "#.to_vec()),
//! ]);
//! let policy = Policy::load(&files, 1).map_err(|errors| errors[0].to_string())?;
//! let session = SessionView { taint: DataClass::Private, untrusted: false };
//! let now = Timestamp::from_millis(0);
//!
//! let call = r#"{"path": "/srv/notes/a.md"}"#;
//! let Decided::Runs(decision) = decide(&policy, session, "cat", call, now).map_err(|denial| denial.owner)? else {
//!     panic!("the grant's mode is auto");
//! };
//! assert_eq!(decision.grant().as_str(), "notes");
//! let permit = permit(&policy, decision.tool(), decision.grant(), call, now).map_err(|denial| denial.owner)?;
//! assert_eq!(permit.argv(), ["/usr/bin/cat", "--", "/srv/notes/a.md"]);
//!
//! let outside = decide(&policy, session, "cat", r#"{"path": "/srv/notes/../shadow"}"#, now);
//! assert_eq!(outside.unwrap_err().reason, proto::DenyReason::NoGrant);
//! # Ok::<(), String>(())
//! ```

pub mod arguments;
pub mod budget;
mod call;
mod checks;
mod command;
mod decide;
mod denial;
mod labels;
mod load;
mod nearest;
mod paths;
mod permit;
mod policy;
mod schema;
#[cfg(test)]
mod tests;

pub use decide::{Decided, Decision, Question, SessionView, decide};
pub use denial::Denial;
pub use load::{LoadError, Sound, hashes, line_of, profile_file};
pub use nearest::nearest;
pub use paths::{Binding, BindingAccess, GrantedPath};
pub use permit::{Permit, permit};
pub use policy::{GrantEntry, Policy, Tool};
