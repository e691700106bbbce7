//! The command line: what can be typed, and which file does it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use sandyard_engine::{DataDir, Engine, EngineConfig};

use crate::commands::{demo, doctor, ls, probe, rm, run, selftest, template};
use crate::output;

/// Isolated Linux sandboxes for AI agents, in milliseconds.
#[derive(Debug, Parser)]
#[command(name = "sandyard", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where Sandyard keeps its sandboxes and templates [default: /var/lib/sandyard for root, else ~/.local/share/sandyard]
    #[arg(long, global = true, env = "SANDYARD_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Global {
    /// The data directory in force.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| {
            let is_root = rustix::process::geteuid().is_root();
            let path = |name| std::env::var_os(name).map(PathBuf::from);
            DataDir::default_for_user(is_root, path("XDG_DATA_HOME"), path("HOME"))
        })
    }

    /// Reaches the engine, starting its launcher if need be.
    pub(crate) async fn engine(&self) -> anyhow::Result<Engine> {
        let data_dir =
            std::path::absolute(self.data_dir()).context("finding the data directory")?;
        Ok(Engine::connect(EngineConfig::new(data_dir)).await?)
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a sandbox, run a command in it, and remove it
    Run(run::RunArgs),
    /// List sandboxes
    Ls(ls::LsArgs),
    /// Remove sandboxes
    Rm(rm::RmArgs),
    /// Manage what sandboxes start from
    #[command(subcommand)]
    Template(template::TemplateCommand),
    /// Say which kernel features this host has, what each gives, and how to get the missing ones
    Doctor(doctor::DoctorArgs),
    /// Try to break out of a sandbox on this very host, and report
    Selftest(selftest::SelftestArgs),
    /// Show the doctor's report and a sandbox at work
    Demo,
    /// Do the kernel work for this data directory; started by itself when needed
    #[command(override_usage = "sandyard launcher --data-dir DIR [--idle-exit SECONDS] [--detach]")]
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
    let cli = Cli::parse();
    let result = match cli.command {
        // Without a runtime: it forks.
        Command::Doctor(args) => doctor::doctor(&cli.global, &args),
        Command::Probe(args) => probe::probe(args),
        command => async_main(&cli.global, command),
    };
    result.unwrap_or_else(|error| {
        output::error(&error);
        ExitCode::from(125)
    })
}

fn async_main(global: &Global, command: Command) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let code = runtime.block_on(async {
        match command {
            Command::Run(args) => run::run(global, args).await,
            Command::Ls(args) => ls::ls(global, &args).await,
            Command::Rm(args) => rm::rm(global, &args).await,
            Command::Template(command) => template::template(global, command).await,
            Command::Selftest(args) => selftest::selftest(global, args).await,
            Command::Demo => demo::demo(global).await,
            Command::Doctor(_) | Command::Probe(_) | Command::Launcher | Command::Agent => {
                anyhow::bail!("`launcher` and `agent` come first: write their options after them")
            }
        }
    });
    // A thread blocked on reading the terminal must not keep us.
    runtime.shutdown_background();
    code
}
