//! What commands do: the user's rules first, then a few commands that always give the same answer.
//!
//! This is not a shell. A line is commands between `;`, `&&` and `||`, with quotes, variables and redirections. Everything else
//! is refused with exit code 127, so that no test passes because a line was half understood.

mod builtin;
mod line;
mod output;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sandyard_wire::ConnectError;
use sandyard_wire::process::ProcessConfig;

use super::account::Account;
use super::machine::Machine;
use super::process::Process;
use crate::agent::Result;
use line::{Action, Condition, Redirect};
use output::{Outcome, write_stdout};

/// Maximum length of a line typed into a terminal.
const MAX_LINE: usize = 64 << 10;

/// How often a command that waits for a file checks whether it exists.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// What a client wants to run.
#[derive(Debug)]
enum Program {
    /// A line for a shell.
    Line(String),
    /// A program and its arguments.
    Arguments(Vec<String>),
    /// A shell that reads lines from its input.
    Interactive,
}

/// Runs the command of one process.
#[derive(Debug)]
pub(super) struct Runner {
    machine: Arc<Machine>,
    account: Account,
    program: Program,
    env: BTreeMap<String, String>,
    cwd: String,
    exit_code: i32,
    has_exited: bool,
}

impl Runner {
    /// Checks the request and collects the environment of the command.
    pub(super) fn prepare(
        machine: &Arc<Machine>,
        account: Account,
        config: &ProcessConfig,
    ) -> Result<Self> {
        let settings = machine.settings().clone();
        let cwd = match config.cwd.as_deref().filter(|cwd| !cwd.is_empty()) {
            Some(requested) => {
                let cwd = account.resolve(requested)?;
                if !machine.disk.is_folder(&cwd) {
                    let message = format!("cwd '{cwd}' does not exist");
                    return Err(ConnectError::invalid_argument(message));
                }
                cwd
            }
            None => {
                let default = settings.default_workdir.unwrap_or(account.home.to_owned());
                Some(default)
                    .filter(|cwd| machine.disk.is_folder(cwd))
                    .unwrap_or("/".to_owned())
            }
        };
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let mut env: BTreeMap<String, String> = [
            ("PATH", path),
            ("HOME", account.home),
            ("USER", account.name),
            ("LOGNAME", account.name),
            ("SHELL", "/bin/bash"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        env.extend(settings.env);
        env.extend(config.envs.clone());
        Ok(Self {
            machine: machine.clone(),
            account,
            program: program(config),
            env,
            cwd,
            exit_code: 0,
            has_exited: false,
        })
    }

    /// Runs the command and returns its exit code.
    pub(super) async fn run(mut self, process: &Process) -> i32 {
        match std::mem::replace(&mut self.program, Program::Interactive) {
            Program::Line(line) => self.line(process, &line).await,
            Program::Arguments(arguments) => self.command(process, &arguments, &[]).await,
            Program::Interactive => self.read_lines(process).await,
        }
        self.exit_code
    }

    /// Runs lines as they are typed, until the input ends.
    async fn read_lines(&mut self, process: &Process) {
        let prompt = if process.is_terminal { "$ " } else { "" };
        let echo = |bytes: &[u8]| {
            if process.is_terminal {
                write_stdout(process, bytes);
            }
        };
        let mut line = Vec::new();
        write_stdout(process, prompt.as_bytes());
        while let Some(input) = process.read_input().await {
            for byte in input {
                match byte {
                    b'\r' | b'\n' => {
                        echo(b"\n");
                        let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                        self.line(process, &text).await;
                        if self.has_exited {
                            return;
                        }
                        write_stdout(process, prompt.as_bytes());
                    }
                    // Ctrl-C and Ctrl-D.
                    3 if process.is_terminal => {
                        line.clear();
                        write_stdout(process, format!("^C\n{prompt}").as_bytes());
                    }
                    4 if process.is_terminal && line.is_empty() => return,
                    byte if line.len() < MAX_LINE => {
                        line.push(byte);
                        echo(&[byte]);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Runs a line: as a rule says, or command by command.
    async fn line(&mut self, process: &Process, line: &str) {
        let line = line.trim();
        if let Some(rule) = self.machine.rules.find(line) {
            let outcome = self.apply(&rule);
            return self.finish(process, outcome, &[], rule.keeps_running).await;
        }
        let Some(steps) = line::parse(line, &self.env, self.account.home) else {
            let outcome = Outcome::unknown(&self.machine.rules, line);
            return self.finish(process, outcome, &[], false).await;
        };
        for step in steps {
            let is_due = match step.condition {
                Condition::Always => true,
                Condition::Success => self.exit_code == 0,
                Condition::Failure => self.exit_code != 0,
            };
            if !is_due {
                continue;
            }
            // A paused instance does nothing until it is resumed; a stopped one ends this task.
            if self.machine.wait_while_paused().await.is_err() {
                return std::future::pending().await;
            }
            match step.action {
                Action::WaitForFile(path) => self.wait_for_file(&path).await,
                Action::Run(arguments, redirects) => {
                    self.command(process, &arguments, &redirects).await;
                }
            }
            if self.has_exited {
                return;
            }
        }
    }

    async fn wait_for_file(&mut self, path: &str) {
        while self.machine.disk.get(&self.path(path)).is_err() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.exit_code = 0;
    }

    async fn command(&mut self, process: &Process, arguments: &[String], redirects: &[Redirect]) {
        let line = arguments.join(" ");
        if let Some(rule) = self.machine.rules.find(&line) {
            let outcome = self.apply(&rule);
            let keeps_running = rule.keeps_running;
            return self
                .finish(process, outcome, redirects, keeps_running)
                .await;
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let outcome = match arguments.as_slice() {
            ["cat" | "/bin/cat"] => copy_input(process, !redirects.is_empty()).await,
            arguments => self
                .builtin(arguments)
                .unwrap_or_else(|| Outcome::unknown(&self.machine.rules, &line)),
        };
        self.finish(process, outcome, redirects, false).await;
    }

    /// Makes a path of the command absolute.
    fn path(&self, path: &str) -> String {
        let resolved = super::account::resolve(path, &self.cwd, self.account.home);
        // A path that is too long or contains a NUL byte names no file.
        resolved.unwrap_or_else(|_| path.to_owned())
    }
}

/// Copies the input to the output until it ends: as it arrives, or at the end when the output is redirected.
async fn copy_input(process: &Process, is_redirected: bool) -> Outcome {
    let mut outcome = Outcome::default();
    while let Some(bytes) = process.read_input().await {
        match is_redirected {
            true => outcome.stdout.extend_from_slice(&bytes),
            false => write_stdout(process, &bytes),
        }
    }
    outcome
}

/// Most clients have a shell run a line; the others name a program.
fn program(config: &ProcessConfig) -> Program {
    let name = config.cmd.rsplit('/').next().unwrap_or_default();
    if !matches!(name, "sh" | "bash" | "dash") {
        let arguments = std::iter::once(&config.cmd).chain(&config.args);
        return Program::Arguments(arguments.cloned().collect());
    }
    let is_line =
        |flag: &String| flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c');
    match config.args.iter().position(is_line) {
        Some(at) => Program::Line(config.args.get(at + 1).cloned().unwrap_or_default()),
        None => Program::Interactive,
    }
}
