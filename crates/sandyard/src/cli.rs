//! The command line: every command, and the function that runs it.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory, FromArgMatches as _, Parser, Subcommand};
use clap_complete::env::CompleteEnv;

use crate::commands::exit_code::SANDYARD_FAILED;
use crate::commands::info::SandboxArgs;
use crate::commands::lifecycle::{SandboxesArgs, Verb};
use crate::commands::{
    attach, completions, config, cp, create, demo, doctor, e2b, exec, files, flows, forward, info,
    key, lifecycle, login, logs, ls, mcp, network, operations, ports, probe, processes, provider,
    rm, run, secret, selftest, serve, shell, snapshot, stats, template, timeout, tools, update,
    user, version, volume,
};
use crate::completion;
use crate::global::Global;
use crate::help;
use crate::output::{self, Format};

/// Isolated Linux sandboxes for AI agents
#[derive(Debug, Parser)]
#[command(
    name = "sandyard",
    version,
    arg_required_else_help = true,
    after_help = "Most commands send requests to the server at SANDYARD_URL, with the API key in SANDYARD_API_KEY. On the server's host, the \
admin key in the data directory is used if SANDYARD_API_KEY is not set. `sandyard login` stores the URL and a key. `run`, `tools`, `doctor`, `selftest`, `demo`, \
`config` and `completions` need no server.

Exit code: 125 when Sandyard failed, 2 when an option is wrong. `exec`, `attach` and `run` exit with the exit code of the \
command."
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server
    Serve(serve::ServeArgs),
    /// Create a sandbox
    Create(create::CreateArgs),
    /// List sandboxes
    Ls(ls::LsArgs),
    /// Show details of a sandbox
    Info(SandboxArgs),
    /// Run a command in a sandbox
    Exec(exec::ExecArgs),
    /// Open a shell in a sandbox
    Shell(shell::ShellArgs),
    /// Attach to a running process in a sandbox
    Attach(attach::AttachArgs),
    /// List commands that run in a sandbox
    Ps(processes::PsArgs),
    /// Kill a command that runs in a sandbox
    Kill(processes::KillArgs),
    /// Wait until a command has ended or a sandbox has a status
    Wait(processes::WaitArgs),
    /// Copy files and directories from and to sandboxes
    Cp(cp::CpArgs),
    /// Manage files in a sandbox
    Files(files::FilesArgs),
    /// Manage access to ports of a sandbox
    #[command(subcommand)]
    Ports(ports::PortsCommand),
    /// Open a port of a sandbox in the browser
    Open(forward::OpenArgs),
    /// Forward TCP ports of this host to a sandbox
    PortForward(forward::ForwardArgs),
    /// Manage the egress policy of a sandbox
    #[command(subcommand)]
    Network(network::NetworkCommand),
    /// Show network connections of a sandbox
    Flows(flows::FlowsArgs),
    /// Manage secrets that sandboxes can use but not read
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// Manage volumes: directories that outlive sandboxes
    #[command(subcommand)]
    Volume(volume::VolumeCommand),
    /// Show the output of commands in a sandbox
    Logs(logs::LogsArgs),
    /// Show lifecycle events of a sandbox or of all sandboxes
    Events(logs::EventsArgs),
    /// Show CPU, memory and disk usage of a sandbox
    Metrics(SandboxArgs),
    /// Show the resource usage of running sandboxes, live
    #[command(visible_alias = "top")]
    Stats(stats::StatsArgs),
    /// Change the name, the metadata or the timeout of a sandbox
    Update(update::UpdateArgs),
    /// Pause sandboxes with their memory; any request wakes them
    Pause(SandboxesArgs),
    /// Resume paused or stopped sandboxes
    Resume(SandboxesArgs),
    /// Stop all processes of sandboxes and keep their files
    Stop(SandboxesArgs),
    /// Set the idle timeout of a sandbox
    Timeout(timeout::TimeoutArgs),
    /// Delete sandboxes
    Rm(rm::RmArgs),
    /// Delete stopped and failed sandboxes
    Prune(rm::PruneArgs),
    /// Save the files of a sandbox as a template
    Snapshot(snapshot::SnapshotArgs),
    /// Create a sandbox from the files of another one
    Fork(snapshot::ForkArgs),
    /// List files of a sandbox that differ from its template
    #[command(after_help = "A is an added file, M a modified one, D a deleted one.")]
    Diff(SandboxArgs),
    /// Manage templates that sandboxes start from
    Template(template::TemplateArgs),
    /// Store the URL of a server and a key for it
    Login(login::LoginArgs),
    /// Delete the stored key of a server
    Logout(login::LogoutArgs),
    /// Choose between the servers that you logged in to
    #[command(subcommand)]
    Context(login::ContextCommand),
    /// Manage users
    #[command(subcommand)]
    User(user::UserCommand),
    /// Manage API keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Use the server with programs written for E2B
    #[command(subcommand)]
    E2b(e2b::E2bCommand),
    /// Connect an MCP client to the server through standard streams
    Mcp(mcp::McpArgs),
    /// Show the audit log
    Audit(operations::AuditArgs),
    /// Show server health
    Health(Format),
    /// List providers and orphans
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// List servers that share the store
    #[command(subcommand, hide = true)]
    Node(operations::NodeCommand),
    /// Manage failed timers
    #[command(subcommand, hide = true)]
    Timer(operations::TimerCommand),
    /// Check and show server settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Run a command in a temporary sandbox, without a server
    Run(run::RunArgs),
    /// Serve the tools of a sandbox for a local directory, over MCP
    Tools(tools::ToolsArgs),
    /// Check this host's kernel features and how to enable others
    Doctor(Format),
    /// Try to break out of a sandbox on this host and print a report
    Selftest(selftest::SelftestArgs),
    /// Check this host and run a script in a sandbox
    Demo,
    /// Show the versions of this program and of the server
    Version(Format),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
    /// Run the privileged launcher of a data directory (started automatically)
    #[command(
        hide = true,
        override_usage = "sandyard launcher --data-dir DIR [--idle-exit SECONDS] [--tools-port PORT] [--detach]",
        after_help = "The server and `sandyard run` start a launcher when none is running for their data directory.

  --data-dir DIR       Data directory
  --idle-exit SECONDS  Exit after this time without sandboxes and requests
  --tools-port PORT    Port of the tool server in sandboxes [default: 6060]
  --detach             Run in the background"
    )]
    Launcher,
    /// Run the sandbox agent in your own container or machine (see `agent --help`)
    #[command(hide = true, override_usage = "sandyard agent [OPTION]...")]
    Agent,
    /// Run an escape check in a sandbox of the self-test
    #[command(hide = true)]
    Probe(probe::ProbeArgs),
}

/// The command line with its help.
fn declared() -> clap::Command {
    help::complete(Cli::command())
}

/// Parses the command line and runs the command.
pub(crate) fn main() -> ExitCode {
    // A shell that asks for candidates.
    CompleteEnv::with_factory(|| completion::complete_names(declared()))
        .var(completions::VARIABLE)
        .complete();
    let mut declared = declared();
    let parsed = declared
        .try_get_matches_from_mut(help::arguments(std::env::args_os()))
        .map_err(help::keep_best_suggestion)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let Cli { global, command } = match parsed {
        Ok(parsed) => parsed,
        Err(error) => error.format(&mut declared).exit(),
    };
    let result = match command {
        // No async runtime: these fork.
        Command::Doctor(format) => doctor::doctor(&global, format),
        Command::Probe(args) => probe::probe(args),
        // These need none.
        Command::Config(command) => config::config(&global, &command),
        Command::Completions(args) => completions::completions(&args),
        Command::Logout(args) => login::logout(&global, &args),
        Command::Context(command) => login::context(&global, command),
        command => async_main(&global, command),
    };
    let result = result.and_then(|code| output::finish().map(|()| code));
    result.unwrap_or_else(|error| {
        output::error(&error);
        ExitCode::from(SANDYARD_FAILED)
    })
}

/// Prints the help of a command that [`crate::role`] runs.
pub(crate) fn help_of(name: &str) -> ExitCode {
    let mut command = declared();
    let help = command
        .find_subcommand_mut(name)
        .map(|command| command.render_long_help().to_string());
    output::line(help.unwrap_or_default().trim_end());
    ExitCode::SUCCESS
}

fn async_main(global: &Global, command: Command) -> anyhow::Result<ExitCode> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // A client needs few threads; the server uses all cores.
    if !matches!(command, Command::Serve(_)) {
        builder.worker_threads(2);
    }
    let runtime = builder
        .enable_all()
        .build()
        .context("starting the async runtime")?;
    let code = runtime.block_on(Box::pin(dispatch(global, command)));
    // Do not wait for a thread that is blocked reading the terminal.
    runtime.shutdown_background();
    code
}

async fn dispatch(global: &Global, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(args) => serve::serve(global, &args).await,
        Command::Create(args) => create::create(global, args).await,
        Command::Ls(args) => ls::ls(global, &args).await,
        Command::Info(args) => info::info(global, &args).await,
        Command::Exec(args) => exec::exec(global, args).await,
        Command::Shell(args) => shell::shell(global, args).await,
        Command::Attach(args) => attach::attach(global, args).await,
        Command::Ps(args) => processes::ps(global, &args).await,
        Command::Kill(args) => processes::kill(global, &args).await,
        Command::Wait(args) => processes::wait(global, &args).await,
        Command::Open(args) => forward::open(global, &args).await,
        Command::PortForward(args) => forward::forward(global, &args).await,
        Command::Cp(args) => cp::cp(global, args).await,
        Command::Files(args) => files::files(global, args).await,
        Command::Ports(command) => ports::ports(global, command).await,
        Command::Network(command) => network::network(global, command).await,
        Command::Flows(args) => flows::flows(global, &args).await,
        Command::Secret(command) => secret::secret(global, command).await,
        Command::Volume(command) => volume::volume(global, command).await,
        Command::Logs(args) => logs::logs(global, &args).await,
        Command::Events(args) => logs::events(global, &args).await,
        Command::Metrics(args) => stats::metrics(global, &args).await,
        Command::Stats(args) => stats::stats(global, &args).await,
        Command::Pause(args) => lifecycle::change_state(global, Verb::Pause, &args).await,
        Command::Resume(args) => lifecycle::change_state(global, Verb::Resume, &args).await,
        Command::Stop(args) => lifecycle::change_state(global, Verb::Stop, &args).await,
        Command::Timeout(args) => timeout::timeout(global, &args).await,
        Command::Update(args) => update::update(global, args).await,
        Command::Rm(args) => rm::rm(global, &args).await,
        Command::Prune(args) => rm::prune(global, &args).await,
        Command::Snapshot(args) => snapshot::snapshot(global, &args).await,
        Command::Fork(args) => snapshot::fork(global, args).await,
        Command::Diff(args) => snapshot::diff(global, &args).await,
        Command::Template(args) => template::template(global, args).await,
        Command::Login(args) => login::login(global, &args).await,
        Command::Version(format) => version::version(global, format).await,
        Command::User(command) => user::user(global, command).await,
        Command::Key(command) => key::key(global, command).await,
        Command::E2b(command) => e2b::e2b(global, command).await,
        Command::Mcp(args) => mcp::mcp(global, &args).await,
        Command::Audit(args) => operations::audit(global, &args).await,
        Command::Health(format) => operations::health(global, format).await,
        Command::Provider(command) => provider::provider(global, command).await,
        Command::Node(command) => operations::node(global, command).await,
        Command::Timer(command) => operations::timer(global, command).await,
        Command::Run(args) => run::run(global, args).await,
        Command::Tools(args) => tools::tools(args).await,
        Command::Selftest(args) => selftest::selftest(global, args).await,
        Command::Demo => demo::demo(global).await,
        Command::Doctor(_)
        | Command::Probe(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Logout(_)
        | Command::Context(_) => unreachable!("handled in `main`"),
        Command::Launcher | Command::Agent => {
            anyhow::bail!("options of `launcher` and `agent` must follow the command")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        declared().debug_assert();
    }

    #[test]
    fn help_lists_every_command_that_is_not_hidden_once() {
        let help = declared().render_help().to_string();
        for command in declared().get_subcommands() {
            let start = format!("  {:12}  ", command.get_name());
            let count = help.lines().filter(|line| line.starts_with(&start)).count();
            assert_eq!(count, usize::from(!command.is_hide_set()), "{start}");
        }
        for line in help.lines().filter(|line| line.starts_with("  ")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(
            help.contains("--data-dir DIR") && help.contains("Exit code: 125"),
            "{help}"
        );
    }

    #[test]
    fn examples_and_usage_of_every_command_fit_80_columns() {
        fn check(command: &mut clap::Command) {
            let usage = command.render_usage().to_string();
            let after = command.get_after_help().map(ToString::to_string);
            let after = after.unwrap_or_default();
            let examples = after.lines().filter(|line| line.starts_with("  "));
            for line in usage.lines().chain(examples) {
                assert!(line.chars().count() <= 80, "{line}");
            }
            command.get_subcommands_mut().for_each(check);
        }
        let mut command = declared();
        command.build();
        command
            .get_subcommands_mut()
            .filter(|command| !command.is_hide_set())
            .for_each(check);
    }

    #[test]
    fn help_of_help_is_help() {
        for arguments in [["sandyard", "help", "--help"], ["sandyard", "help", "-h"]] {
            let arguments = help::arguments(arguments.map(Into::into).into_iter());
            let error = declared().try_get_matches_from(arguments).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp);
        }
    }

    #[test]
    fn global_options_are_one_line_in_the_help_of_a_command() {
        let mut command = declared();
        command.build();
        let network = command.find_subcommand_mut("network").unwrap();
        let help = network
            .find_subcommand_mut("allow")
            .unwrap()
            .render_help()
            .to_string();
        assert_eq!(help.matches("--data-dir").count(), 1, "{help}");
        assert!(
            help.contains("Global options: --data-dir DIR, --url URL"),
            "{help}"
        );
    }

    #[test]
    fn names_of_other_programs_work() {
        for (name, expected) in [
            ("list", "Ls"),
            ("inspect", "Info"),
            ("delete", "Rm"),
            ("start", "Resume"),
            ("shell", "Shell"),
            ("ssh", "Shell"),
        ] {
            let arguments = if name == "list" {
                vec![name]
            } else {
                vec![name, "web"]
            };
            let command = format!("{:?}", parse(&arguments).unwrap());
            assert!(command.starts_with(expected), "{name}: {command}");
        }
        for arguments in [["secret", "list"], ["template", "list"]] {
            assert!(parse(&arguments).is_ok(), "{arguments:?}");
        }
    }

    #[test]
    fn the_most_similar_command_is_suggested() {
        for (typed, expected) in [
            ("creat", "'create'"),
            ("exce", "'exec'"),
            ("heath", "'health'"),
        ] {
            let error = parse(&[typed]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(error.matches("similar subcommand").count(), 1, "{error}");
            assert!(!error.contains("similar subcommands"), "{error}");
        }
    }

    fn parse(arguments: &[&str]) -> Result<Command, clap::Error> {
        let matches = declared().try_get_matches_from([&["sandyard"], arguments].concat());
        let matches = matches.map_err(help::keep_best_suggestion)?;
        Cli::from_arg_matches(&matches).map(|cli| cli.command)
    }

    #[test]
    fn network_options_are_the_same_in_every_command() {
        for arguments in [
            &[
                "create",
                "--no-internet",
                "--allow",
                "pypi.org",
                "--deny",
                "*:25",
            ][..],
            &["create", "--secret", "TOKEN=github"],
            &["network", "show", "abc", "--json"],
            &[
                "network",
                "set",
                "abc",
                "--no-internet",
                "--allow",
                "10.0.0.0/8:5432",
            ],
            &["network", "set", "abc", "--from", "-"],
            &["network", "set", "abc", "--internet", "--deny", "*:25"],
            &["network", "allow", "abc", "a.example", "[2001:db8::1]:80"],
            &["network", "deny", "abc", "*.example.com"],
            &["flows", "abc", "--denied", "--follow", "--json", "-n", "10"],
            &[
                "secret",
                "set",
                "a",
                "--host",
                "*.example.com",
                "--value-from",
                "env:A",
                "--shared",
            ],
            &["secret", "ls"],
            &["secret", "rm", "a"],
        ] {
            assert!(
                parse(arguments).is_ok(),
                "{arguments:?}: {:?}",
                parse(arguments)
            );
        }
        for arguments in [
            &["create", "--allow", "http://pypi.org/"][..],
            &["create", "--secret", "TOKEN"],
            &[
                "network",
                "set",
                "abc",
                "--from",
                "x",
                "--allow",
                "a.example",
            ],
            &["network", "set", "abc"],
            &["network", "set", "abc", "--json"],
            &["network", "set", "abc", "--internet", "--no-internet"],
            &["network", "allow", "abc"],
            &["network", "deny", "abc", "a b"],
            &["flows", "abc", "-n", "0"],
            &["secret", "set", "a", "--host", "https://a/b"],
            &["secret", "set", "a"],
        ] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn volumes_have_a_name_and_a_path() {
        for arguments in [
            &["volume", "create", "data", "--json"][..],
            &["volume", "ls", "--json"],
            &["volume", "rm", "data", "more"],
            &["create", "--volume", "data:/mnt/data", "--volume", "b:/b"],
        ] {
            assert!(
                parse(arguments).is_ok(),
                "{arguments:?}: {:?}",
                parse(arguments)
            );
        }
        for arguments in [
            &["volume", "create"][..],
            &["volume", "rm"],
            &["create", "--volume", "data"],
            &["create", "--volume", ":/mnt"],
            &["create", "--volume", "data:mnt"],
        ] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn a_secret_is_not_accepted_on_the_command_line() {
        for arguments in [
            &["secret", "set", "a", "--host", "a.example", "s3cret"][..],
            &[
                "secret",
                "set",
                "a",
                "--host",
                "a.example",
                "--value",
                "s3cret",
            ],
        ] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn options_after_the_command_belong_to_it() {
        let arguments = ["sandyard", "exec", "-it", "abc", "--", "ls", "--json", "-i"];
        let Command::Exec(args) = Cli::parse_from(arguments).command else {
            panic!("not exec")
        };
        assert_eq!(args.command(), ["ls", "--json", "-i"]);
    }
}
