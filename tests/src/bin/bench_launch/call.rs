//! The parts of one audited call, each by itself: what the supervisor and brokerd do for `fs_read` of a note, without
//! the sockets between them.

use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use confine::Plan;
use confine::derive::derive;
use confine::host::{Host, Privilege};
use confine::launch::{GrantedTree, IdentityChoice, StageStdio};
use confine::plan::{Access, Mount, Program};
use confine::resolve::Root;
use ledger::{Ledger, Paths};
use policy::{Decided, Decision, SessionView};
use proto::audit::{Arguments, ExitStatus};
use proto::{CallId, Confinement, DataClass, Entry, Hash32, Level, SessionId, Timestamp};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::Outcome;
use crate::report::Row;
use crate::setting::{OWNER, Setting};

const WALL: Duration = Duration::from_secs(30);

/// The parts with their samples.
pub(crate) struct Parts<'a> {
    setting: &'a Setting,
    ledger: Ledger,
    decide: Row,
    plan: Row,
    prepare: Row,
    record: Row,
    run: Row,
    sum: Row,
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl<'a> Parts<'a> {
    pub(crate) fn new(setting: &'a Setting) -> Outcome<Self> {
        let paths = Paths {
            audit: setting.directory.join("ledger/audit"),
            anchor: setting.directory.join("ledger/anchor"),
        };
        let (ledger, _) = Ledger::open(&paths, Box::new(now))?;
        Ok(Self {
            setting,
            ledger,
            decide: Row::new("decide: the policy's checks"),
            plan: Row::new("plan: permit, paths, facts of the host, plan"),
            prepare: Row::new("prepare: the sandbox, built and measured"),
            record: Row::new("record: one line, on the disk"),
            run: Row::new("run: from the start to the empty sandbox"),
            sum: Row::new("all of these"),
        })
    }

    pub(crate) fn round(&mut self, keep: bool) -> Outcome<()> {
        let arguments = self.setting.arguments();
        let policy = &self.setting.policy;
        let session = SessionView {
            taint: DataClass::Private,
            untrusted: false,
        };
        let begun = Instant::now();
        let decision = policy::decide(policy, session, "fs_read", &arguments, now());
        let decide = begun.elapsed();
        let Decided::Runs(decision) = decision.map_err(|denial| denial.owner)? else {
            return Err("the grant asks; the bench needs one that does not".into());
        };

        let begun = Instant::now();
        let (plan, trees, input) = design(self.setting, &decision, &arguments)?;
        let planned = begun.elapsed();

        let (stdin, feed) = pipe_with(PipeFlags::CLOEXEC)?;
        let (out, stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (err, stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        let stdio = StageStdio {
            stdin,
            stdout,
            stderr,
        };
        let launcher = &self.setting.launcher;
        let begun = Instant::now();
        let prepared = launcher.prepare(plan, trees, stdio, IdentityChoice::Fresh)?;
        let prepare = begun.elapsed();

        let entry = entry(decision, &arguments, prepared.confinement())?;
        let begun = Instant::now();
        self.ledger.append_durable(entry)?;
        let record = begun.elapsed();

        let begun = Instant::now();
        let running = prepared.start()?;
        File::from(feed).write_all(input.as_bytes())?;
        let mut text = String::new();
        File::from(out).read_to_string(&mut text)?;
        let ended = running.wait(WALL);
        let run = begun.elapsed();
        if ended.exit != Some(ExitStatus::Code(0)) || !text.contains("Beans") {
            let said = std::io::read_to_string(File::from(err))?;
            return Err(format!("fs_read: {ended:?}: {text}{said}").into());
        }
        if keep {
            let times = [decide, planned, prepare, record, run];
            self.sum.samples.push(times.iter().sum());
            let rows = [
                &mut self.decide,
                &mut self.plan,
                &mut self.prepare,
                &mut self.record,
                &mut self.run,
            ];
            for (row, time) in rows.into_iter().zip(times) {
                row.samples.push(time);
            }
        }
        Ok(())
    }

    pub(crate) fn rows(self) -> Vec<Row> {
        vec![
            self.decide,
            self.plan,
            self.prepare,
            self.record,
            self.run,
            self.sum,
        ]
    }
}

/// What the supervisor makes of a call that reads one file.
fn design(
    setting: &Setting,
    decision: &Decision,
    arguments: &str,
) -> Outcome<(Plan, Vec<GrantedTree>, String)> {
    let permit = policy::permit(
        &setting.policy,
        decision.tool(),
        decision.grant(),
        arguments,
        now(),
    )
    .map_err(|denial| denial.owner)?;
    let binding = permit.bindings().first().ok_or("the call binds nothing")?;
    let root = Root::open(binding.root.as_ref())?.ok_or("no granted root")?;
    let found = root.resolve(binding.path.as_ref())?.ok_or("no note")?;
    let tree = Mount::Tree {
        path: binding.path.clone(),
        directory: found.directory,
        access: Access::Read,
        exec: false,
    };
    let profile = &permit.tool().file().profile;
    let profile = setting.profiles.get(profile).ok_or("no profile")?;
    let mut argv = permit.argv();
    let program = setting
        .binaries
        .join(argv.first().map_or("", String::as_str));
    if let Some(first) = argv.first_mut() {
        *first = program.to_string_lossy().into_owned();
    }
    let host = Host::take(profile, &program, Privilege::Root)?;
    let program = Program {
        argv,
        env: Default::default(),
        cwd: permit.cwd(),
        input: Hash32::ZERO,
    };
    let plan = derive(profile, program, &[tree], Level::Full, &host)?;
    let trees = vec![GrantedTree {
        descriptor: found.descriptor,
        owner: (OWNER, OWNER),
    }];
    Ok((plan, trees, permit.input().to_owned()))
}

fn entry(decision: Decision, arguments: &str, confinement: &Confinement) -> Outcome<Entry> {
    let labels = decision.labels();
    let detail = decision.detail().to_owned();
    Ok(Entry::Decision(Box::new(proto::audit::Decision {
        session: SessionId::new("bench")?,
        call: CallId(1),
        tool: decision.tool().to_string(),
        arguments: Arguments::Text(arguments.to_owned()),
        session_taint: DataClass::Private,
        labels: Some(labels),
        detail,
        generation: 1,
        confinement: Some(confinement.clone()),
        decision: decision.into_record(),
    })))
}
