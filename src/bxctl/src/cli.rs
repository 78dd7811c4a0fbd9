//! The words of the command line. Data only: what each command does is in the file of its name.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use proto::{ApprovalId, SessionId, ToolName};

const EXAMPLE: &str = "\
Example:
  bxctl tools                           which tools there are
  bxctl call fs_read path=/srv/a.md     let one run, if a grant covers the call
  bxctl pending                         which calls wait for an answer
  bxctl audit show --since 1h           what was decided, and how it ended
  bxctl audit verify                    whether the log is whole

Exit status: 0 done; 1 refused or failed; 2 usage or unusable input. A call
that a signal interrupts ends by it: 130 in a shell after Ctrl-C.
BOXMAKER_HOME and BOXMAKER_CONFIG say where boxmaker lives; --home and
--config override them. A plain user's own are ~/.local/state/boxmaker and
~/.config/boxmaker.";

/// The owner's command line of boxmaker: call tools, read grants and the log
#[derive(Debug, Parser)]
#[command(name = "bxctl", version, after_help = EXAMPLE, disable_help_subcommand = true)]
pub struct Cli {
    /// Where its state is kept [default: /var/lib/boxmaker]
    #[arg(long, global = true, value_name = "DIR", display_order = 100)]
    pub home: Option<PathBuf>,
    /// Where the configuration is [default: /etc/boxmaker]
    #[arg(long, global = true, value_name = "DIR", display_order = 101)]
    pub config: Option<PathBuf>,
    /// Print JSON instead of text for people
    #[arg(long, global = true, display_order = 102)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Call one tool and print its result
    Call(CallWords),
    /// Show every call that waits for an answer
    Pending,
    /// Let a call run that waits for an answer
    Approve(AnswerWords),
    /// Refuse a call that waits for an answer
    Refuse(AnswerWords),
    /// List the sessions that the log knows
    Sessions,
    /// List the grants of the configuration
    Grants(GrantsWords),
    /// List the tools of the configuration
    Tools,
    /// Check the configuration without using it
    Check,
    /// Verify or read the audit log
    #[command(subcommand, disable_help_subcommand = true)]
    Audit(AuditCommand),
    /// Say what the running supervisor is doing
    Status,
}

const CALL_EXAMPLE: &str = "\
The arguments of the tool are one of:
  KEY=VALUE ...   VALUE has the type that the tool's file says
  KEY:=JSON ...   any JSON value, whatever the tool's file says
  '{...}'         all of them as one JSON object
  -               the same, from standard input

Examples:
  bxctl call fs_read path=/srv/notes/a.md
  bxctl call fs_read path=/srv/notes/a.md first:=3
  bxctl call fs_read '{\"path\": \"/srv/notes/a.md\"}'
  generate-arguments | bxctl call fs_write -

The result goes to standard output as the tool wrote it, one line about the
decision to standard error. Without --session the call has a session of its
own that ends with it. Ctrl-C gives the call up: its tool is stopped, its
question to the owner withdrawn, and what became of it is said.";

/// The words of `bxctl call`.
#[derive(Debug, Args)]
#[command(after_help = CALL_EXAMPLE)]
pub struct CallWords {
    /// The tool, as `bxctl tools` lists it
    pub tool: String,
    /// What the tool is to get, in one of the forms below
    #[arg(value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
    /// Call in this session, and leave it open
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionId>,
}

/// The words of `bxctl approve` and `bxctl refuse`.
#[derive(Debug, Args)]
pub struct AnswerWords {
    /// The question, as `bxctl pending` shows it
    pub id: ApprovalId,
}

/// The words of `bxctl grants`.
#[derive(Debug, Args)]
pub struct GrantsWords {
    /// Only the grants of this tool
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<ToolName>,
}

/// The commands of `bxctl audit`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check every line, hash and number, and the anchor
    Verify,
    /// Print records, the oldest first
    Show(ShowWords),
}

const SHOW_EXAMPLE: &str = "\
WORD is allowed or denied, or how an allowed call ended: result, failed,
unknown (nobody saw the end).
TIME is a day (2026-09-17), a day and time in UTC (2026-09-17T08:05), or how
long ago (90s, 15m, 2h, 3d, 1w). With --json the stored lines are printed as
they are, one JSON document a line.";

/// The words of `bxctl audit show`.
#[derive(Debug, Default, Args)]
#[command(after_help = SHOW_EXAMPLE)]
pub struct ShowWords {
    /// Only records of this session
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionId>,
    /// Only calls of this tool, as the caller named it
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only calls that were decided or ended as WORD says
    #[arg(long, value_enum, value_name = "WORD", hide_possible_values = true)]
    pub outcome: Option<OutcomeWord>,
    /// Only records of this time and later
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only records before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only the last N of them; a call and its end are one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
}

/// How a call was decided, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutcomeWord {
    /// Let run
    Allowed,
    /// Refused
    Denied,
    /// Let run, and ended with a result
    Result,
    /// Let run, and failed
    Failed,
    /// Let run, and nobody saw the end
    Unknown,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn help(command: &mut clap::Command, pages: &mut Vec<String>) {
        pages.push(command.render_help().to_string());
        pages.push(command.render_long_help().to_string());
        for below in command.get_subcommands_mut() {
            help(below, pages);
        }
    }

    #[test]
    fn every_page_of_help_fits_80_columns() {
        let mut command = Cli::command();
        command.build();
        let mut pages = Vec::new();
        help(&mut command, &mut pages);
        assert!(pages.len() > 24, "{}", pages.len());
        for line in pages.iter().flat_map(|page| page.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
