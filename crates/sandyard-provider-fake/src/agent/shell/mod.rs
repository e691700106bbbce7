//! Runs the shell lines that tests are made of, in memory and always with the same result.
//!
//! It knows lists, pipes, redirections, variables, `while`, `if`, `for`, and a few commands. A user's rules come first; a line
//! that neither knows is refused by name, so that no test passes because something was half understood.

mod commands;
mod conditions;
mod deliver;
mod execute;
mod expand;
mod lex;
mod parse;
mod syntax;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use sandyard_wire::process::ProcessConfig;
use sandyard_wire::{ConnectError, Output};

use super::account::Account;
use super::machine::Machine;
use super::process::Process;

/// Longest line that is typed.
const MAX_LINE: usize = 64 << 10;

/// What a client asked to run.
#[derive(Debug)]
enum Program {
    /// A line for a shell.
    Line(String),
    /// A program with its arguments.
    Words(Vec<String>),
    /// A shell that reads lines.
    Shell,
}

/// One shell, with all that a process has.
#[derive(Debug)]
pub(super) struct Shell {
    machine: Arc<Machine>,
    account: Account,
    program: Program,
    env: BTreeMap<String, String>,
    cwd: String,
    process: Option<Arc<Process>>,
    /// How the last command ended.
    last: i32,
    /// Set once the shell is to end.
    exit: Option<i32>,
    /// How many loops it is in, and how often they went round.
    loops: usize,
    rounds: u32,
    is_breaking: bool,
    /// What is written goes to the last of these, where there is one.
    captured: Vec<Vec<u8>>,
}

impl Shell {
    /// Gets ready to run what was asked for.
    pub(super) fn prepare(
        machine: &Arc<Machine>,
        account: Account,
        config: &ProcessConfig,
    ) -> Result<Self, ConnectError> {
        let settings = machine.settings().clone();
        let cwd = match config.cwd.as_deref().filter(|cwd| !cwd.is_empty()) {
            Some(asked) => {
                let cwd = account.resolve(asked)?;
                if !machine.disk.is_folder(&cwd) {
                    let message = format!("cwd '{cwd}' does not exist");
                    return Err(ConnectError::invalid_argument(message));
                }
                cwd
            }
            None => {
                let asked = settings.default_workdir.unwrap_or(account.home.to_owned());
                Some(asked)
                    .filter(|cwd| machine.disk.is_folder(cwd))
                    .unwrap_or("/".to_owned())
            }
        };
        let mut env: BTreeMap<String, String> = [
            (
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            ),
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
            process: None,
            last: 0,
            exit: None,
            loops: 0,
            rounds: 0,
            is_breaking: false,
            captured: Vec::new(),
        })
    }

    /// Runs it as this process; returns its exit code.
    pub(super) async fn run(mut self, process: Arc<Process>) -> i32 {
        self.process = Some(process.clone());
        match std::mem::replace(&mut self.program, Program::Shell) {
            Program::Line(line) => self.line(&line).await,
            Program::Words(words) => self.words(words).await,
            Program::Shell => self.interact(&process).await,
        }
        self.exit.unwrap_or(self.last)
    }

    /// Runs lines as they are typed, until the input ends.
    async fn interact(&mut self, process: &Process) {
        let is_terminal = process.is_terminal;
        let prompt = if is_terminal { "$ " } else { "" };
        let mut line = Vec::new();
        self.write(prompt.as_bytes());
        while let (None, Some(typed)) = (self.exit, process.read_input().await) {
            for byte in typed {
                match byte {
                    b'\r' | b'\n' => {
                        self.echo(is_terminal, b"\n");
                        let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                        if !text.trim().is_empty() {
                            self.line(&text).await;
                        }
                        if self.exit.is_some() {
                            return;
                        }
                        self.write(prompt.as_bytes());
                    }
                    // Ctrl-C and Ctrl-D.
                    3 if is_terminal => {
                        line.clear();
                        self.write(format!("^C\n{prompt}").as_bytes());
                    }
                    4 if is_terminal && line.is_empty() => return,
                    byte if line.len() < MAX_LINE => {
                        line.push(byte);
                        self.echo(is_terminal, &[byte]);
                    }
                    _ => {}
                }
            }
        }
    }

    fn echo(&mut self, is_terminal: bool, bytes: &[u8]) {
        if is_terminal {
            self.write(bytes);
        }
    }

    /// Writes to standard output.
    fn write(&mut self, bytes: &[u8]) {
        match (self.captured.last_mut(), &self.process) {
            (Some(captured), _) => captured.extend_from_slice(bytes),
            (None, Some(process)) => process.push(output(process, bytes, Output::Stdout)),
            (None, None) => {}
        }
    }

    /// Writes to standard error.
    fn complain(&self, bytes: &[u8]) {
        if let Some(process) = &self.process {
            process.push(output(process, bytes, Output::Stderr));
        }
    }
}

fn output(process: &Process, bytes: &[u8], pipe: fn(Bytes) -> Output) -> Output {
    if !process.is_terminal {
        return pipe(Bytes::copy_from_slice(bytes));
    }
    // A terminal goes back to the beginning of the line by itself.
    let mut shown = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if *byte == b'\n' {
            shown.push(b'\r');
        }
        shown.push(*byte);
    }
    Output::Pty(shown.into())
}

/// What a client means: most of them have a shell run a line.
fn program(config: &ProcessConfig) -> Program {
    let name = config.cmd.rsplit('/').next().unwrap_or_default();
    if !matches!(name, "sh" | "bash" | "dash") {
        let words = std::iter::once(&config.cmd).chain(&config.args);
        return Program::Words(words.cloned().collect());
    }
    let is_line =
        |flag: &String| flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c');
    match config.args.iter().position(is_line) {
        Some(at) => Program::Line(config.args.get(at + 1).cloned().unwrap_or_default()),
        None => Program::Shell,
    }
}
