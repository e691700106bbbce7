//! `sandyard run`: a sandbox for one command.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::Args;
use sandyard_agent_client::{AgentClient, ClientError, InputTo, ProcessStream, StartOptions};
use sandyard_core::Limits;
use sandyard_core::size::Size;
use sandyard_engine::{DEFAULT_TEMPLATE, SandboxSpec};
use sandyard_wire::Code;
use sandyard_wire::event::{EndEvent, Output, ProcessEvent};
use sandyard_wire::process::{ProcessConfig, ProcessSelector, Pty, Signal, StartRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};

use super::args::some_seconds;
use super::terminal::{RawTerminal, terminal_size};
use super::way_out::{WayOut, WayOutArgs};
use crate::global::Global;
use crate::output;

/// Exit code when the command ran longer than allowed, as `timeout(1)` has it.
const TIMED_OUT: u8 = 124;
/// Exit code when there is no such command, user or directory, as shells have it.
const NOT_STARTED: u8 = 127;

#[derive(Debug, Args)]
#[command(
    after_help = "Where no limit is given, that of `settings.json` in the data directory holds, else 2g of memory,
2 cores, 1024 processes and 4g of disk. It reaches the public internet, and neither this host nor its
neighbours; what was denied is told on standard error.

Exit code: that of the command, or 128 and the number of the signal that ended it; 124 when it ran
out of time, 125 when Sandyard failed, 127 when it could not be started, 2 when the options are wrong.

Examples:
  sandyard run -- python3 -c 'print(6*7)'
  sandyard run -it -- bash
  sandyard run --no-internet --allow pypi.org --allow files.pythonhosted.org -- pip install --target lib six
  echo 'print(1)' | sandyard run -i --memory 256m --timeout 10 -- python3 -"
)]
pub(crate) struct RunArgs {
    /// What the sandbox starts from
    #[arg(long, short = 'T', default_value = DEFAULT_TEMPLATE)]
    template: String,
    /// Memory, like 512m or 2g
    #[arg(long, short, value_name = "SIZE")]
    memory: Option<Size>,
    /// Processor cores, like 0.5 or 2
    #[arg(long, value_name = "CORES")]
    cpu: Option<f64>,
    /// Processes and threads at once
    #[arg(long, value_name = "COUNT")]
    pids: Option<u32>,
    /// Bytes it may write, like 500m or 4g
    #[arg(long, value_name = "SIZE")]
    disk: Option<Size>,
    /// End the command and all it started after this time, like 90 or 10m; 0 for never
    #[arg(long, value_name = "TIME", value_parser = some_seconds)]
    timeout: Option<f64>,
    /// Set a variable for the command; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Working directory inside [default: the home of the user]
    #[arg(long, short = 'w', value_name = "DIR")]
    cwd: Option<String>,
    /// User inside, like user or root [default: user]
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// Pass standard input on
    #[arg(long, short)]
    interactive: bool,
    /// Run in a terminal, standard input included
    #[arg(long, short)]
    tty: bool,
    #[command(flatten)]
    way_out: WayOutArgs,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Makes a sandbox, runs the command with its output as ours, and removes the sandbox.
pub(crate) async fn run(global: &Global, args: RunArgs) -> anyhow::Result<ExitCode> {
    let env = args.variables()?;
    let engine = global.engine().await?;
    let way_out = WayOut::open(global, &args.way_out)?;
    let spec = SandboxSpec {
        template: args.template.clone(),
        limits: args.limits(engine.hello().await?.default_limits)?,
        ..SandboxSpec::default()
    };
    let (sandbox, lease) = engine.create_ephemeral(&spec).await?;
    if args.asks_for_limits() {
        for limitation in &sandbox.limitations {
            output::note(format!("note: this host gives {limitation}"));
        }
    }
    let agent = engine.agent(&sandbox.id);
    way_out.attach(&sandbox.id, agent.endpoint());
    let code = attach(&agent, &args, env).await;
    // Removed by dropping the lease too, but then nobody would see it fail.
    let removed = engine.delete(&sandbox.id).await;
    drop(lease);
    let code = code?;
    removed?;
    Ok(code)
}

impl RunArgs {
    fn asks_for_limits(&self) -> bool {
        self.memory.is_some() || self.disk.is_some() || self.cpu.is_some() || self.pids.is_some()
    }

    fn limits(&self, mut limits: Limits) -> anyhow::Result<Limits> {
        if let Some(Size(bytes)) = self.memory {
            limits.memory_bytes = bytes;
        }
        if let Some(Size(bytes)) = self.disk {
            limits.disk_bytes = bytes;
        }
        if let Some(cores) = self.cpu {
            if !(0.0..=1024.0).contains(&cores) {
                bail!("--cpu takes a number of cores, like 0.5 or 2, not `{cores}`");
            }
            limits.cpu_millis = (cores * 1000.0) as u32;
        }
        limits.pids = self.pids.unwrap_or(limits.pids);
        Ok(limits)
    }

    fn variables(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let pairs = self.env.iter().map(|pair| match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => bail!("--env takes NAME=VALUE, not `{pair}`"),
        });
        pairs.collect()
    }

    fn request(&self, mut envs: BTreeMap<String, String>) -> StartRequest {
        if self.tty {
            let term = std::env::var("TERM").unwrap_or_else(|_| "xterm-256color".to_owned());
            envs.entry("TERM".to_owned()).or_insert(term);
        }
        StartRequest {
            process: ProcessConfig {
                cmd: self.command[0].clone(),
                args: self.command[1..].to_vec(),
                envs,
                cwd: self.cwd.clone(),
            },
            pty: self.tty.then(|| Pty {
                size: Some(terminal_size()),
            }),
            tag: None,
            stdin: Some(self.interactive || self.tty),
        }
    }
}

async fn attach(
    agent: &AgentClient,
    args: &RunArgs,
    env: BTreeMap<String, String>,
) -> anyhow::Result<ExitCode> {
    let timeout = match args.timeout {
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).ok().with_context(|| {
            format!("--timeout takes a time, like 0.5, 90 or 10m, not `{seconds}`")
        })?),
        None => None,
    };
    let options = StartOptions {
        timeout,
        user: args.user.clone(),
        retain_as: None,
    };
    let mut stream = match agent.start(&args.request(env), &options).await {
        Err(ClientError::Remote {
            code: Code::InvalidArgument,
            message,
        }) => {
            output::note(format!("error: {message}"));
            return Ok(ExitCode::from(NOT_STARTED));
        }
        other => other.context("starting the command")?,
    };
    let process = ProcessSelector::Pid(stream.pid());
    let raw = if args.tty { RawTerminal::enter() } else { None };
    let input = (args.interactive || args.tty).then(|| {
        let to = if args.tty {
            InputTo::Pty
        } else {
            InputTo::Stdin
        };
        tokio::spawn(forward_input(agent.clone(), process.clone(), to))
    });
    let signals = tokio::spawn(forward_signals(agent.clone(), process, args.tty));
    let end = copy_output(&mut stream).await;
    signals.abort();
    if let Some(input) = input {
        input.abort();
    }
    drop(raw);
    match end {
        Ok(end) => Ok(exit_code(&end)),
        // Whoever reads us has heard enough, as `head` does; shells call that the signal it would have been.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::from(128 + 13)),
        Err(error) if has_timed_out(&error) => {
            output::note("error: the command ran out of time and was ended");
            Ok(ExitCode::from(TIMED_OUT))
        }
        Err(error) => Err(error),
    }
}

async fn copy_output(stream: &mut ProcessStream) -> anyhow::Result<EndEvent> {
    let (mut stdout, mut stderr) = (tokio::io::stdout(), tokio::io::stderr());
    while let Some(event) = stream.next().await {
        match event.context("following the command")? {
            ProcessEvent::Data(Output::Stdout(bytes) | Output::Pty(bytes)) => {
                stdout.write_all(&bytes).await?;
                stdout.flush().await?;
            }
            ProcessEvent::Data(Output::Stderr(bytes)) => {
                stderr.write_all(&bytes).await?;
                stderr.flush().await?;
            }
            ProcessEvent::End(end) => return Ok(end),
            _ => {}
        }
    }
    bail!("the sandbox ended before the command did: it may have run out of memory")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}

fn has_timed_out(error: &anyhow::Error) -> bool {
    let code = error
        .downcast_ref::<ClientError>()
        .and_then(ClientError::code);
    code == Some(Code::DeadlineExceeded)
}

fn exit_code(end: &EndEvent) -> ExitCode {
    if !end.exited {
        output::note(format!("error: the command was ended: {}", end.status));
    }
    ExitCode::from(end.shell_code() as u8)
}

async fn forward_input(
    agent: AgentClient,
    process: ProcessSelector,
    to: InputTo,
) -> anyhow::Result<()> {
    let mut stdin = tokio::io::stdin();
    let mut input = agent.open_input(process.clone(), to).await?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = stdin.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        input.send(Bytes::copy_from_slice(&buffer[..read])).await?;
    }
    input.finish().await?;
    if matches!(to, InputTo::Stdin) {
        agent.close_stdin(process).await?;
    }
    Ok(())
}

/// Passes on what the user's terminal sends us: interrupts, the wish to end, and its new size.
async fn forward_signals(
    agent: AgentClient,
    process: ProcessSelector,
    tty: bool,
) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut resize = signal(SignalKind::window_change())?;
    let mut interrupts = 0;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {
                interrupts += 1;
                // The third time the user means it.
                let wanted = if interrupts < 3 { Signal::INT } else { Signal::KILL };
                let _ = agent.signal(process.clone(), wanted).await;
            }
            _ = terminate.recv() => {
                let _ = agent.signal(process.clone(), Signal::TERM).await;
            }
            _ = resize.recv() => {
                if tty {
                    let _ = agent.resize(process.clone(), terminal_size()).await;
                }
            }
        }
    }
}
