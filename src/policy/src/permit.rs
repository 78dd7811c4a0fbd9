//! The supervisor's own judgement of a call that brokerd says was allowed (protocol.md section 4, step 2): everything
//! of a decision that needs no session, on the one grant that was taken.

use std::sync::Arc;

use proto::tool::ToolKind;
use proto::{DenyReason, GrantId, Timestamp, ToolName};

use crate::arguments;
use crate::call::Call;
use crate::checks::{self, Stop};
use crate::denial::Denial;
use crate::paths::Binding;
use crate::policy::{GrantEntry, Policy, Tool};

/// A call that may be launched. Only [`permit`] makes one, and it cannot be copied: the launch takes it by value.
///
/// ```compile_fail,E0451
/// // Nobody else can make one from another: its fields are private.
/// fn widen(permit: policy::Permit, bindings: Vec<policy::Binding>) -> policy::Permit {
///     policy::Permit { bindings, ..permit }
/// }
/// ```
///
/// ```compile_fail,E0277
/// // Nobody can copy one.
/// fn clone<T: Clone>() {}
/// clone::<policy::Permit>();
/// ```
///
/// ```compile_fail,E0277
/// // Nobody can read one from bytes.
/// fn read<T: serde::de::DeserializeOwned>() {}
/// read::<policy::Permit>();
/// ```
///
/// ```compile_fail,E0277
/// // Nobody can have one out of nothing.
/// fn nothing<T: Default>() {}
/// nothing::<policy::Permit>();
/// ```
///
/// ```compile_fail,E0382
/// // Nobody can launch one twice.
/// fn launch(permit: policy::Permit) {}
/// fn twice(permit: policy::Permit) {
///     launch(permit);
///     launch(permit);
/// }
/// ```
#[derive(Debug)]
#[must_use = "a permit that is not launched has no effect"]
pub struct Permit {
    tool: Arc<Tool>,
    grant: Arc<GrantEntry>,
    input: String,
    argv: Vec<String>,
    bindings: Vec<Binding>,
}

impl Permit {
    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    /// The grant.
    #[must_use]
    pub fn grant(&self) -> &GrantEntry {
        &self.grant
    }

    /// What a stdio tool gets on standard input: the arguments, byte for byte as they were judged. Empty for an argv
    /// tool, which reads nothing.
    #[must_use]
    pub fn input(&self) -> &str {
        match self.tool.file().kind {
            ToolKind::Stdio => &self.input,
            ToolKind::Argv => "",
        }
    }

    /// The program and its words, arguments in their places. The program stands as the tool file names it: an
    /// absolute path, or the plain name of one of boxmaker's own binaries.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        self.argv.clone()
    }

    /// What the call may use, and nothing else: the paths that it names, or the grant's whole paths if the tool
    /// declares no path argument.
    #[must_use]
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// The working directory: the grant's single root, if the call uses anything of it, else `/`.
    ///
    /// Whether it is a directory, or exists, is not known here.
    #[must_use]
    pub fn cwd(&self) -> String {
        let root = self
            .grant
            .single_root()
            .filter(|_| !self.bindings.is_empty());
        root.unwrap_or("/").to_owned()
    }
}

/// Judges a call of `tool` with `arguments` under `grant` alone, at `now`: tool, mode, expiry, deny grants, paths and
/// schema. It permits whatever [`decide`](crate::decide()) allows under that grant, for any session, and nothing that
/// the grant does not cover. Whether a grant that asks was answered is for the commit to see, where the answer is.
///
/// # Errors
/// The refusal, with the reason that `decide` would have given.
pub fn permit(
    policy: &Policy,
    tool: &ToolName,
    grant: &GrantId,
    arguments: &str,
    now: Timestamp,
) -> Result<Permit, Denial> {
    let name = tool.as_str();
    let Some(entry) = policy.entry(name) else {
        let storable = arguments::parse(arguments).is_ok();
        let known = policy.tools().map(Tool::name);
        return Err(Denial::unknown_tool(name, storable, known));
    };
    let map = arguments::parse(arguments).map_err(|error| Denial::unreadable(name, &error))?;
    let call = Call::new(&entry.tool, &map);

    let refuse = |reason, grant: &GrantEntry, named: Option<&GrantId>, stop: Stop<'_>| {
        Denial::stopped(reason, name, named, None, [(grant, &stop)].into_iter())
    };
    let Some(taken) = entry.grants.iter().find(|entry| entry.id() == grant) else {
        return Err(match policy.grant(grant) {
            Some(other) if other.denies() && other.file().tool == *tool => refuse(
                DenyReason::DeniedByGrant,
                other,
                Some(grant),
                Stop::AllowsNothing,
            ),
            Some(other) => refuse(DenyReason::NoGrant, other, None, Stop::AllowsNothing),
            None => Denial::stopped(DenyReason::NoGrant, name, None, None, std::iter::empty()),
        });
    };
    if let Some(stop) = checks::expired(taken, now) {
        return Err(refuse(DenyReason::GrantExpired, taken, Some(grant), stop));
    }
    if let Some(deny) = checks::denied(entry, &call, Some(taken)) {
        let stop = Stop::DeniedBy(deny);
        return Err(refuse(DenyReason::DeniedByGrant, taken, Some(deny), stop));
    }
    let bindings = checks::covered(&call, taken)
        .map_err(|stop| refuse(DenyReason::NoGrant, taken, None, stop))?;
    let argv = checks::arguments(&call).map_err(|error| Denial::bad_argument(name, &error))?;
    Ok(Permit {
        tool: Arc::clone(&entry.tool),
        grant: Arc::clone(taken),
        input: arguments.to_owned(),
        argv,
        bindings,
    })
}
