//! The command line: what can be typed, and which file does it.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::lifecycle::{ManyArgs, Verb};
use crate::commands::{
    attach, completions, config, copies, cp, create, demo, doctor, e2b, exec, files, flows, info,
    key, lifecycle, logs, ls, mcp, network, operations, ports, probe, provider, rm, run, secret,
    selftest, serve, template, timeout, tools, user, volume,
};
use crate::global::Global;
use crate::output;

/// Exit code when we failed, not the command that was run.
const OUR_FAILURE: u8 = 125;

/// Isolated Linux sandboxes for AI agents, in milliseconds.
#[derive(Debug, Parser)]
#[command(
    name = "sandyard",
    version,
    arg_required_else_help = true,
    after_help = "Commands talk to the server at SANDYARD_URL with the key in SANDYARD_API_KEY, but `run`, `tools`, `doctor`,
`selftest` and `demo`, which need none. On the server's own host the key is found in the data directory.

Exit code: 125 when Sandyard failed, 2 when the options are wrong; `exec`, `attach` and `run` pass on the command's."
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
    /// Make a sandbox
    Create(create::CreateArgs),
    /// List sandboxes
    Ls(ls::LsArgs),
    /// Show all that is known of a sandbox
    Info(info::OneArgs),
    /// Run a command in a sandbox
    Exec(exec::ExecArgs),
    /// Attach to a running process of a sandbox
    Attach(attach::AttachArgs),
    /// Copy files and folders in and out of a sandbox
    Cp(cp::CpArgs),
    /// Look at and change files of a sandbox
    Files(files::FilesArgs),
    /// Reach ports of a sandbox from outside
    #[command(subcommand)]
    Ports(ports::PortsCommand),
    /// Show and change what a sandbox may reach
    #[command(subcommand)]
    Network(network::NetworkCommand),
    /// Show what a sandbox tried to reach
    Flows(flows::FlowsArgs),
    /// Keep secrets that sandboxes use without seeing them
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// Keep folders that outlive sandboxes
    #[command(subcommand)]
    Volume(volume::VolumeCommand),
    /// Show what commands in a sandbox wrote
    Logs(logs::LogsArgs),
    /// Show what happened to a sandbox
    Events(logs::WhichArgs),
    /// Show what a sandbox uses
    Metrics(info::OneArgs),
    /// Freeze sandboxes with their memory kept; the next use wakes them
    Pause(ManyArgs),
    /// Make paused or stopped sandboxes run again
    Resume(ManyArgs),
    /// End all processes of sandboxes and keep their files
    Stop(ManyArgs),
    /// Set how long a sandbox lives without activity
    Timeout(timeout::TimeoutArgs),
    /// Remove sandboxes
    Rm(rm::RmArgs),
    /// Keep a sandbox's files as a template
    Snapshot(copies::SnapshotArgs),
    /// Make another sandbox from the files of one
    Fork(copies::ForkArgs),
    /// List what changed in a sandbox since its template
    Diff(copies::DiffArgs),
    /// Manage what sandboxes start from
    Template(template::TemplateArgs),
    /// Manage users
    #[command(subcommand)]
    User(user::UserCommand),
    /// Manage keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Use the server from programs written for E2B
    #[command(subcommand)]
    E2b(e2b::E2bCommand),
    /// Let assistants that start programs use the server, over MCP on standard input and output
    Mcp(mcp::McpArgs),
    /// Show who did what
    Audit(operations::AuditArgs),
    /// Show how the server is
    Health(operations::HealthArgs),
    /// Show where sandboxes run
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// Show the servers that share the store
    #[command(subcommand)]
    Node(operations::NodeCommand),
    /// Look after timers that were given up
    #[command(subcommand)]
    Timer(operations::TimerCommand),
    /// Check and show the server's settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Make a sandbox without a server, run a command in it, and remove it
    Run(run::RunArgs),
    /// Serve the tools of a sandbox for a folder of this machine, over MCP
    Tools(tools::ToolsArgs),
    /// Say which kernel features this host has, what each gives, and how to get the missing ones
    Doctor(doctor::DoctorArgs),
    /// Try to break out of a sandbox on this very host, and report
    Selftest(selftest::SelftestArgs),
    /// Show the doctor's report and a sandbox at work
    Demo,
    /// Print a script that completes these commands in a shell
    Completions(completions::CompletionsArgs),
    /// Do the kernel work for a data directory; started by itself when needed
    #[command(
        override_usage = "sandyard launcher --data-dir DIR [--idle-exit SECONDS] [--tools-port PORT] [--detach]",
        after_help = "Started by the server and by `sandyard run` when none runs for their data directory.

  --data-dir DIR       the data directory it works for
  --idle-exit SECONDS  end after so long without a sandbox or a request
  --tools-port PORT    have sandboxes' tool server on another port than 6060
  --detach             go on in the background"
    )]
    Launcher,
    /// Serve the in-sandbox protocol in a container or machine of your own; `agent --help` says more
    #[command(override_usage = "sandyard agent [OPTION]...")]
    Agent,
    /// Act as the hostile program of the self-test, inside a sandbox
    #[command(hide = true)]
    Probe(probe::ProbeArgs),
}

/// Reads the command line and does it.
pub(crate) fn main() -> ExitCode {
    let Cli { global, command } = Cli::parse();
    let result = match command {
        // Without a runtime: these fork.
        Command::Doctor(args) => doctor::doctor(&global, &args),
        Command::Probe(args) => probe::probe(args),
        // And these wait for nobody.
        Command::Config(command) => config::config(&global, &command),
        Command::Completions(args) => Ok(completions::completions(&args, Cli::command())),
        command => async_main(&global, command),
    };
    let result = result.and_then(|code| output::finish().map(|()| code));
    result.unwrap_or_else(|error| {
        output::error(&error);
        ExitCode::from(OUR_FAILURE)
    })
}

/// Prints the help of a command that does not come this way otherwise.
pub(crate) fn help_of(name: &str) -> ExitCode {
    let mut command = Cli::command();
    let help = command
        .find_subcommand_mut(name)
        .map(|command| command.render_long_help().to_string());
    output::line(help.unwrap_or_default().trim_end());
    ExitCode::SUCCESS
}

fn async_main(global: &Global, command: Command) -> anyhow::Result<ExitCode> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // A client has little to do at once; the server takes all cores.
    if !matches!(command, Command::Serve(_)) {
        builder.worker_threads(2);
    }
    let runtime = builder
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let code = runtime.block_on(Box::pin(dispatch(global, command)));
    // A thread blocked on reading the terminal must not keep us.
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
        Command::Attach(args) => attach::attach(global, args).await,
        Command::Cp(args) => cp::cp(global, args).await,
        Command::Files(args) => files::files(global, args).await,
        Command::Ports(command) => ports::ports(global, command).await,
        Command::Network(command) => network::network(global, command).await,
        Command::Flows(args) => flows::flows(global, &args).await,
        Command::Secret(command) => secret::secret(global, command).await,
        Command::Volume(command) => volume::volume(global, command).await,
        Command::Logs(args) => logs::logs(global, &args).await,
        Command::Events(args) => logs::events(global, &args).await,
        Command::Metrics(args) => info::metrics(global, &args).await,
        Command::Pause(args) => lifecycle::each(global, Verb::Pause, &args).await,
        Command::Resume(args) => lifecycle::each(global, Verb::Resume, &args).await,
        Command::Stop(args) => lifecycle::each(global, Verb::Stop, &args).await,
        Command::Timeout(args) => timeout::timeout(global, &args).await,
        Command::Rm(args) => rm::rm(global, &args).await,
        Command::Snapshot(args) => copies::snapshot(global, &args).await,
        Command::Fork(args) => copies::fork(global, args).await,
        Command::Diff(args) => copies::diff(global, &args).await,
        Command::Template(args) => template::template(global, args).await,
        Command::User(command) => user::user(global, command).await,
        Command::Key(command) => key::key(global, command).await,
        Command::E2b(command) => e2b::e2b(global, command).await,
        Command::Mcp(args) => mcp::mcp(global, &args).await,
        Command::Audit(args) => operations::audit(global, &args).await,
        Command::Health(args) => operations::health(global, &args).await,
        Command::Provider(command) => provider::provider(global, command).await,
        Command::Node(command) => operations::node(global, command).await,
        Command::Timer(command) => operations::timer(global, command).await,
        Command::Run(args) => run::run(global, args).await,
        Command::Tools(args) => tools::tools(args).await,
        Command::Selftest(args) => selftest::selftest(global, args).await,
        Command::Demo => demo::demo(global).await,
        Command::Doctor(_) | Command::Probe(_) | Command::Config(_) | Command::Completions(_) => {
            unreachable!("done without a runtime")
        }
        Command::Launcher | Command::Agent => {
            anyhow::bail!("`launcher` and `agent` come first: write their options after them")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_makes_sense() {
        Cli::command().debug_assert();
    }

    fn parse(words: &[&str]) -> Result<Command, clap::Error> {
        Cli::try_parse_from([&["sandyard"], words].concat()).map(|cli| cli.command)
    }

    #[test]
    fn what_a_sandbox_may_reach_is_said_the_same_way_everywhere() {
        for words in [
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
            assert!(parse(words).is_ok(), "{words:?}: {:?}", parse(words));
        }
        for words in [
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
            assert!(parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn volumes_have_a_name_and_a_place() {
        for words in [
            &["volume", "create", "data", "--json"][..],
            &["volume", "ls", "--json"],
            &["volume", "rm", "data", "more"],
            &["create", "--volume", "data:/mnt/data", "--volume", "b:/b"],
        ] {
            assert!(parse(words).is_ok(), "{words:?}: {:?}", parse(words));
        }
        for words in [
            &["volume", "create"][..],
            &["volume", "rm"],
            &["create", "--volume", "data"],
            &["create", "--volume", ":/mnt"],
            &["create", "--volume", "data:mnt"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_secret_never_stands_on_the_command_line() {
        for words in [
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
            assert!(parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_command_keeps_its_own_options() {
        let words = ["sandyard", "exec", "-it", "abc", "--", "ls", "--json", "-i"];
        let Command::Exec(args) = Cli::parse_from(words).command else {
            panic!("it is exec")
        };
        assert_eq!(args.words(), ["ls", "--json", "-i"]);
    }
}
