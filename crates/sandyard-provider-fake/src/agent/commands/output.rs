//! Where the output of a command goes.

use bytes::Bytes;
use sandyard_wire::{Code, Output};

use super::line::Redirect;
use super::{Process, Runner};
use crate::agent::disk::path::parent;
use crate::agent::rules::{Rule, Rules};

/// What a command wrote, and its exit code.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) exit_code: i32,
}

impl Outcome {
    pub(super) fn stdout(text: impl Into<Vec<u8>>) -> Self {
        Self {
            stdout: text.into(),
            ..Self::default()
        }
    }

    pub(super) fn code(exit_code: i32) -> Self {
        Self {
            exit_code,
            ..Self::default()
        }
    }

    /// Adds a line to standard error.
    pub(super) fn fail(&mut self, message: &str) {
        self.stderr.extend_from_slice(message.as_bytes());
        self.stderr.push(b'\n');
        self.exit_code = 1;
    }

    pub(super) fn unknown(rules: &Rules, line: &str) -> Self {
        Self {
            stderr: rules.unknown(line).into_bytes(),
            exit_code: 127,
            ..Self::default()
        }
    }
}

/// Where one of the two outputs goes.
#[derive(Clone)]
enum Target {
    Stdout,
    Stderr,
    File(String),
    Discard,
}

impl Runner {
    /// Writes the files of a rule and returns its answer.
    pub(super) fn apply(&self, rule: &Rule) -> Outcome {
        let mut outcome = Outcome {
            stdout: rule.stdout.clone().into_bytes(),
            stderr: rule.stderr.clone().into_bytes(),
            exit_code: rule.exit_code,
        };
        let (disk, stamp) = (&self.machine.disk, self.machine.stamp(&self.account));
        for (path, content) in &rule.files {
            let path = self.path(path);
            let content = Bytes::copy_from_slice(content.as_bytes());
            let written = disk
                .make_all(parent(&path), &stamp)
                .and_then(|()| disk.write(&path, content, &stamp, Default::default()));
            if let Err(error) = written {
                outcome.fail(&format!("sandyard fake: {}", error.message));
            }
        }
        outcome
    }

    /// Delivers what a command wrote. A command that keeps running never returns.
    pub(super) async fn finish(
        &mut self,
        process: &Process,
        outcome: Outcome,
        redirects: &[Redirect],
        keeps_running: bool,
    ) {
        self.exit_code = outcome.exit_code;
        let mut targets = [Target::Stdout, Target::Stderr];
        for redirect in redirects {
            match redirect {
                Redirect::Join { from, to } => targets[*from] = targets[*to].clone(),
                Redirect::File { from, path, .. } if path == "/dev/null" => {
                    targets[*from] = Target::Discard;
                }
                Redirect::File {
                    from,
                    path,
                    is_append,
                } => {
                    let is_open = *is_append || self.write_file(process, path, None);
                    targets[*from] = match is_open {
                        true => Target::File(path.clone()),
                        false => Target::Discard,
                    };
                }
            }
        }
        for (target, bytes) in targets.iter().zip([outcome.stdout, outcome.stderr]) {
            match target {
                Target::Stdout => write_stdout(process, &bytes),
                Target::Stderr => write_stderr(process, &bytes),
                Target::File(path) => {
                    self.write_file(process, path, Some(&bytes));
                }
                Target::Discard => {}
            }
        }
        if keeps_running {
            std::future::pending::<()>().await;
        }
    }

    /// Appends bytes to a file, or empties it when there are none; returns whether that succeeded.
    fn write_file(&mut self, process: &Process, name: &str, bytes: Option<&[u8]>) -> bool {
        let (path, stamp) = (self.path(name), self.machine.stamp(&self.account));
        let disk = &self.machine.disk;
        let written = match bytes {
            Some(bytes) => disk.append(&path, bytes, &stamp),
            None => disk.write(&path, Bytes::new(), &stamp, Default::default()),
        };
        let Err(error) = written else { return true };
        let reason = match error.code {
            Code::NotFound => "No such file or directory",
            Code::ResourceExhausted => "No space left on device",
            _ => &error.message,
        };
        write_stderr(process, format!("sh: {name}: {reason}\n").as_bytes());
        self.exit_code = 1;
        false
    }
}

pub(super) fn write_stdout(process: &Process, bytes: &[u8]) {
    process.push(output(process, bytes, Output::Stdout));
}

pub(super) fn write_stderr(process: &Process, bytes: &[u8]) {
    process.push(output(process, bytes, Output::Stderr));
}

fn output(process: &Process, bytes: &[u8], pipe: fn(Bytes) -> Output) -> Output {
    if !process.is_terminal {
        return pipe(Bytes::copy_from_slice(bytes));
    }
    // A terminal returns to the start of the line after each line feed.
    let text = String::from_utf8_lossy(bytes).replace('\n', "\r\n");
    Output::Pty(text.into())
}
