//! `sandyard run`: one command in a temporary sandbox, without a server.

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

use super::args::{CommandArgs, LimitArgs};
use super::egress::{Egress, EgressArgs};
use super::exit_code::{BROKEN_PIPE, KILLED, NOT_STARTED, TIMED_OUT};
use super::terminal::{RawTerminal, terminal_size};
use crate::global::Global;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "Limits default to those in `settings.json` of the data directory, or else to 2g of memory, 2 cores, 1024 processes and 4g of \
disk. --timeout 0 means no time limit. The sandbox can reach the public internet, but not this host or its local network; \
denied connections are reported on standard error.

Exit code: the command's exit code, or 128 plus the number of the signal that killed it; 124 when the command timed out, \
125 when Sandyard failed, 127 when the command could not be started, 2 when an option is wrong.

Examples:
  sandyard run -- python3 -c 'print(6*7)'
  sandyard run -it -- bash
  sandyard run --no-internet --allow pypi.org -- curl https://pypi.org
  echo 'print(1)' | sandyard run -i --memory 256m --timeout 10s -- python3 -"
)]
pub(crate) struct RunArgs {
    /// Template to start from
    #[arg(long, short = 'T', default_value = DEFAULT_TEMPLATE)]
    template: String,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    options: CommandArgs,
    #[command(flatten)]
    egress: EgressArgs,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Creates a sandbox, runs the command in it, and deletes the sandbox. Exits with the command's exit code.
pub(crate) async fn run(global: &Global, args: RunArgs) -> anyhow::Result<ExitCode> {
    let engine = global.engine().await?;
    let egress = Egress::open(global, &args.egress)?;
    let spec = SandboxSpec {
        template: args.template.clone(),
        limits: args.limits_over(engine.hello().await?.default_limits)?,
        ..SandboxSpec::default()
    };
    let (sandbox, lease) = engine.create_ephemeral(&spec).await?;
    if args.has_limits() {
        for limitation in &sandbox.limitations {
            output::note(format!("note: this host has {limitation}"));
        }
    }
    let agent = engine.agent(&sandbox.id);
    egress.attach(&sandbox.id, agent.endpoint());
    let code = attach(&agent, &args).await;
    if matches!(code, Ok(code) if code == ExitCode::from(KILLED))
        && let Ok(stats) = engine.stats(&sandbox.id).await
        && stats.oom_kills > Some(0)
    {
        let limit = Size(spec.limits.memory_bytes).readable();
        output::note(format!(
            "error: the command ran out of memory ({limit}); --memory sets the limit"
        ));
    }
    // Dropping the lease deletes it too, but does not report a failure.
    let removed = engine.delete(&sandbox.id).await;
    drop(lease);
    let code = code?;
    removed?;
    Ok(code)
}

impl RunArgs {
    fn has_limits(&self) -> bool {
        let LimitArgs {
            memory,
            cpu,
            disk,
            pids,
        } = &self.limits;
        memory.is_some() || disk.is_some() || cpu.is_some() || pids.is_some()
    }

    /// The limits to use: those of the options, otherwise the defaults.
    fn limits_over(&self, mut limits: Limits) -> anyhow::Result<Limits> {
        if let Some(Size(bytes)) = self.limits.memory {
            limits.memory_bytes = bytes;
        }
        if let Some(Size(bytes)) = self.limits.disk {
            limits.disk_bytes = bytes;
        }
        if let Some(cores) = self.limits.cpu {
            if !(0.0..=1024.0).contains(&cores) {
                bail!(
                    "--cpu must be a number of cores between 0 and 1024, for example 0.5 (got {cores})"
                );
            }
            limits.cpu_millis = (cores * 1000.0) as u32;
        }
        limits.pids = self.limits.pids.unwrap_or(limits.pids);
        Ok(limits)
    }

    fn request(&self) -> StartRequest {
        StartRequest {
            process: ProcessConfig {
                cmd: self.command[0].clone(),
                args: self.command[1..].to_vec(),
                envs: self.options.variables(),
                cwd: self.options.cwd.clone(),
            },
            pty: self.options.tty.then(|| Pty {
                size: Some(terminal_size()),
            }),
            tag: None,
            stdin: Some(self.options.interactive || self.options.tty),
        }
    }
}

async fn attach(agent: &AgentClient, args: &RunArgs) -> anyhow::Result<ExitCode> {
    let (tty, interactive) = (args.options.tty, args.options.interactive);
    let timeout = match args.options.timeout {
        Some(seconds) => Some(
            Duration::try_from_secs_f64(seconds)
                .ok()
                .with_context(|| format!("--timeout is too long ({seconds} seconds)"))?,
        ),
        None => None,
    };
    let options = StartOptions {
        timeout,
        user: args.options.user.clone(),
        retain_as: None,
    };
    let mut stream = match agent.start(&args.request(), &options).await {
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
    let raw = tty.then(RawTerminal::enter).flatten();
    let input = (interactive || tty).then(|| {
        let to = if tty { InputTo::Pty } else { InputTo::Stdin };
        tokio::spawn(forward_input(agent.clone(), process.clone(), to))
    });
    let signals = tokio::spawn(forward_signals(agent.clone(), process, tty));
    let end = copy_output(&mut stream).await;
    signals.abort();
    if let Some(input) = input {
        input.abort();
    }
    drop(raw);
    match end {
        Ok(end) => Ok(exit_code(&end)),
        // The reader of our output has ended, as `head` does.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::from(BROKEN_PIPE)),
        Err(error) if has_timed_out(&error) => {
            output::note("error: the command timed out and was killed");
            Ok(ExitCode::from(TIMED_OUT))
        }
        Err(error) => Err(error),
    }
}

async fn copy_output(stream: &mut ProcessStream) -> anyhow::Result<EndEvent> {
    let (mut stdout, mut stderr) = (tokio::io::stdout(), tokio::io::stderr());
    while let Some(event) = stream.next().await {
        match event.context("reading the command's output")? {
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
    bail!("the sandbox ended before the command: it may have run out of memory")
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
        output::note(format!("error: the command was killed: {}", end.status));
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

/// Forwards interrupts, termination requests and terminal resizes to the command.
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
                // The third Ctrl-C kills the command.
                let signal = if interrupts < 3 { Signal::INT } else { Signal::KILL };
                let _ = agent.signal(process.clone(), signal).await;
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
