//! What was measured of a sandbox stands in the record, whoever asks for the record.

use std::fs;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::mounts::in_own_mounts;
use boxmaker_tests::system::Brokerd;
use proto::broker::{RecordEntry, RefuseReason};
use proto::{Arguments, DataClass, DecisionRecord, DenyReason, Layer, Level};

use crate::calls::{Broker, at, session};
use crate::homes::{NOTE, home};

/// ramfs takes no id map, so that a sandbox that works on it has no uid of its own.
#[test]
fn a_sandbox_that_is_too_weak_is_refused_and_the_denial_says_what_was_measured() {
    if skipped_without_root("a_sandbox_that_is_too_weak_is_refused") {
        return;
    }
    in_own_mounts(|| {
        let home = home(Brokerd::Relay);
        home.mount("files/plain", "ramfs", c"");
        let file = home.file("plain/a.md", NOTE);
        assert_eq!(fs::read_to_string(&file).unwrap(), NOTE);
        for (id, least) in [("strict", "full"), ("lax", "partial")] {
            home.grant(
                id,
                &format!(
                    "tool = \"fs_read\"\nmode = \"auto\"\nmax_taint = \"private\"\nconfinement = \"{least}\"\n\
                     [constraints]\npaths = [\"read:@FILES@/plain\"]\n"
                ),
            );
        }
        let mut broker = Broker::up_in(home);
        let prepare = broker.request("fs_read", "strict", &at(&file));
        let refused = broker.try_prepare(prepare.clone()).unwrap_err();
        let weak = RefuseReason::Denied(DenyReason::ConfinementTooWeak);
        assert_eq!(refused.reason, weak, "{}", refused.detail);
        broker.wait_empty();
        broker.record(RecordEntry::Decision {
            session: session("s"),
            call: prepare.call,
            tool: "fs_read".to_owned(),
            arguments: Arguments::Text("{}".to_owned()),
            session_taint: DataClass::Private,
            decision: DecisionRecord::Denied {
                reason: DenyReason::ConfinementTooWeak,
                grant: None,
            },
            detail: refused.detail,
            generation: prepare.generation,
            ticket: refused.ticket,
        });
        let (_, denial) = broker.home.decisions().pop().unwrap();
        let measured = denial.confinement.unwrap();
        assert_eq!(measured.level, Level::Partial);
        let gaps: Vec<Layer> = measured.gaps.iter().map(|gap| gap.layer).collect();
        assert_eq!(gaps, [Layer::Uid]);
        assert_eq!(denial.arguments, Arguments::Text(prepare.arguments));

        let ran = broker.call("fs_read", "lax", &at(&file));
        assert_eq!(ran.stdout, NOTE, "{}", ran.stderr);
        let (_, decision) = broker.home.decisions().pop().unwrap();
        let weaker = decision.confinement.unwrap();
        assert_eq!((weaker.level, weaker.gaps), (measured.level, measured.gaps));
        broker.home.sound();
    });
}
