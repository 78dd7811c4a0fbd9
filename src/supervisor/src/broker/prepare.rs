//! `prepare`: the supervisor's own judgement of a call, and its sandbox up to the measurement (protocol.md section 4).

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use proto::broker::{Prepare, Prepared as PreparedMessage, RefuseReason, Refused};
use proto::{Confinement, DenyReason, Envelope, Level, Message, Ticket};

use super::Life;
use super::call::{Call, Prepared, RefusedCall};
use super::record::cut;
use crate::design::{Refusal, design};
use crate::in_full;
use crate::sandbox::{Built, ToolSandbox};

impl Life {
    pub(super) fn prepare(self: &Arc<Self>, id: u64, prepare: Prepare) {
        let own = self.core.loaded.policy.generation();
        if prepare.generation != own {
            let said = prepare.generation;
            let detail =
                format!("the call was decided under generation {said}, the policy is {own}");
            self.refused(id, RefuseReason::StaleGeneration, detail, None);
            return;
        }
        if self.core.stopping.load(Ordering::SeqCst) {
            let reason = RefuseReason::Denied(DenyReason::LaunchFailed);
            self.refused(id, reason, "the supervisor is stopping".to_owned(), None);
            return;
        }
        // What could not be recorded is not built first.
        if let Err(error) = self.core.ledger.open_for_more() {
            let reason = RefuseReason::Denied(DenyReason::AuditUnavailable);
            self.refused(id, reason, error.to_string(), None);
            return;
        }
        let ticket = match self.tickets.reserve(&self.core.numbers) {
            Ok(ticket) => ticket,
            Err(error) => {
                let reason = RefuseReason::Denied(DenyReason::LimitReached);
                self.refused(id, reason, error.to_string(), None);
                return;
            }
        };
        let call = Call {
            session: prepare.session,
            call: prepare.call,
            tool: prepare.tool,
            grant: prepare.grant,
            generation: prepare.generation,
            arguments: prepare.arguments,
        };
        let life = Arc::clone(self);
        self.workers
            .spawn("prepare", move || life.build(id, ticket, call));
    }

    /// Builds the sandbox of `call` and answers.
    fn build(&self, id: u64, ticket: Ticket, call: Call) {
        let (refusal, confinement) = match self.try_build(&call) {
            Ok(built) => {
                let confinement = built.sandbox.confinement().clone();
                match too_weak(&confinement, self.required(&call)) {
                    None => return self.built(id, ticket, call, built),
                    Some(detail) => {
                        let reason = DenyReason::ConfinementTooWeak;
                        (Refusal::new(reason, detail), Some(confinement))
                    }
                }
            }
            Err(refusal) => (refusal, None),
        };
        let Refusal { reason, detail, .. } = refusal;
        let refused = RefusedCall { call, confinement };
        self.tickets.refused(ticket, refused);
        self.refused(id, RefuseReason::Denied(reason), detail, Some(ticket));
    }

    fn try_build(&self, call: &Call) -> Result<Built, Refusal> {
        let policy = &self.core.loaded.policy;
        let now = self.core.now();
        let permit = policy::permit(policy, &call.tool, &call.grant, &call.arguments, now)
            .map_err(|denial| Refusal::new(denial.reason, denial.owner))?;
        let design = design(&self.core.loaded, permit)?;
        ToolSandbox::build(&self.core.launcher, design)
            .map_err(|error| Refusal::new(DenyReason::LaunchFailed, in_full(&error)))
    }

    /// The least level that the call's grant accepts.
    fn required(&self, call: &Call) -> Level {
        let grant = self.core.loaded.policy.grant(&call.grant);
        grant.map_or(Level::Full, |grant| grant.file().confinement)
    }

    fn built(&self, id: u64, ticket: Ticket, call: Call, built: Built) {
        let Built {
            sandbox,
            stdout,
            stderr,
        } = built;
        let confinement = sandbox.confinement().clone();
        let prepared = Prepared {
            call,
            confinement: confinement.clone(),
            sandbox,
        };
        if let Err(error) = self.tickets.prepared(ticket, prepared, Instant::now()) {
            let reason = RefuseReason::Denied(DenyReason::LaunchFailed);
            self.refused(id, reason, error.to_string(), None);
            return;
        }
        let message = Message::Prepared(PreparedMessage {
            ticket,
            confinement,
        });
        let descriptors = [stdout.as_fd(), stderr.as_fd()];
        if !self.line.send(&Envelope::new(id, message), &descriptors) {
            self.tickets.abort(ticket);
        }
    }

    fn refused(&self, id: u64, reason: RefuseReason, detail: String, ticket: Option<Ticket>) {
        let refused = Refused {
            reason,
            detail: cut(detail),
            ticket,
        };
        self.line.answer(id, Message::Refused(refused));
    }
}

/// Why `confinement` does not do where `required` is the least; none if it does.
pub(crate) fn too_weak(confinement: &Confinement, required: Level) -> Option<String> {
    if confinement.satisfies(required) {
        return None;
    }
    let gaps = gaps(confinement);
    Some(format!(
        "level {required} is required and {} was measured; {gaps}",
        confinement.level
    ))
}

/// The gaps that nothing waives, in words; those with one reason together.
fn gaps(confinement: &Confinement) -> String {
    let open = confinement
        .gaps
        .iter()
        .filter(|gap| !confinement.waived.contains(&gap.layer));
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for gap in open {
        let known = reasons.iter_mut().find(|(reason, _)| *reason == gap.reason);
        match known {
            Some((_, layers)) => layers.push(gap.layer.as_str()),
            None => reasons.push((&gap.reason, vec![gap.layer.as_str()])),
        }
    }
    let open: Vec<String> = reasons
        .iter()
        .map(|(reason, layers)| format!("{}: {reason}", layers.join(", ")))
        .collect();
    if open.is_empty() {
        "every gap is waived, but a level of none never does".to_owned()
    } else {
        format!("gaps: {}", open.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use proto::{Gap, Hash32, Layer};

    use super::*;

    fn measured(level: Level, gaps: &[Layer], waived: &[Layer]) -> Confinement {
        let gap = |layer: &Layer| Gap {
            layer: *layer,
            reason: "not there".to_owned(),
        };
        Confinement {
            level,
            layers: Vec::new(),
            asserted: Vec::new(),
            gaps: gaps.iter().map(gap).collect(),
            waived: waived.to_vec(),
            landlock_abi: 6,
            plan: Hash32::ZERO,
        }
    }

    #[test]
    fn a_level_that_is_enough_passes_and_one_that_is_not_is_refused_with_its_gaps() {
        let full = measured(Level::Full, &[], &[]);
        assert_eq!(too_weak(&full, Level::Full), None);
        let partial = measured(Level::Partial, &[Layer::Memory, Layer::Cpu], &[Layer::Cpu]);
        assert_eq!(too_weak(&partial, Level::Partial), None);
        let why = too_weak(&partial, Level::Full).unwrap();
        assert!(why.contains("level full is required and partial was measured"));
        assert!(why.contains("memory: not there") && !why.contains("cpu"));
    }

    #[test]
    fn waived_gaps_pass_but_no_waiver_makes_none_pass() {
        let waived = measured(Level::Partial, &[Layer::Memory], &[Layer::Memory]);
        assert_eq!(too_weak(&waived, Level::Full), None);
        let none = measured(Level::None, &[Layer::Seccomp], &[Layer::Seccomp]);
        assert!(too_weak(&none, Level::Partial).is_some());
    }
}
