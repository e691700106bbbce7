//! Where what commands write goes.

use bytes::Bytes;
use sandyard_wire::Code;

use super::Shell;
use super::execute::Outcome;
use super::lex::Direction;
use super::syntax::Redirect;
use crate::agent::disk::path::parent;
use crate::agent::rules::Rule;

impl Shell {
    /// Does what a rule says.
    pub(super) async fn obey(&mut self, rule: &Rule, redirects: &[Redirect]) {
        let stamp = self.machine.stamp(&self.account);
        let mut outcome = Outcome {
            out: rule.stdout.clone().into_bytes(),
            err: rule.stderr.clone().into_bytes(),
            code: rule.exit_code,
        };
        for (path, content) in &rule.files {
            let path = self.path(path);
            let disk = &self.machine.disk;
            let made = disk.make_all(parent(&path), &stamp);
            let content = Bytes::copy_from_slice(content.as_bytes());
            let written =
                made.and_then(|()| disk.write(&path, content, &stamp, Default::default()));
            if let Err(error) = written {
                outcome
                    .err
                    .extend(format!("sandyard fake: {}\n", error.message).bytes());
            }
        }
        self.deliver(outcome, redirects);
        if rule.keeps_running {
            std::future::pending::<()>().await;
        }
    }

    /// Sends what a command wrote where it belongs.
    pub(super) fn deliver(&mut self, outcome: Outcome, redirects: &[Redirect]) {
        self.last = outcome.code;
        let Outcome {
            mut out, mut err, ..
        } = outcome;
        for redirect in redirects {
            let done = match redirect {
                Redirect::Join(2, _) => {
                    out.append(&mut err);
                    Ok(())
                }
                Redirect::Join(..) => {
                    err.append(&mut out);
                    Ok(())
                }
                Redirect::File(_, Direction::Read, _) => Ok(()),
                Redirect::File(number, direction, word) => {
                    let text = match number {
                        Some(2) => std::mem::take(&mut err),
                        Some(_) => std::mem::take(&mut out),
                        None => [std::mem::take(&mut out), std::mem::take(&mut err)].concat(),
                    };
                    self.write_file(&self.text(word), text, *direction)
                }
            };
            if let Err(message) = done {
                err.extend(message.bytes());
                self.last = 1;
            }
        }
        self.write(&out);
        self.complain(&err);
    }

    fn write_file(&self, name: &str, text: Vec<u8>, direction: Direction) -> Result<(), String> {
        if name == "/dev/null" {
            return Ok(());
        }
        let (path, stamp) = (self.path(name), self.machine.stamp(&self.account));
        let written = match direction {
            Direction::Append => self.machine.disk.append(&path, &text, &stamp),
            _ => self
                .machine
                .disk
                .write(&path, text.into(), &stamp, Default::default()),
        };
        written.map_err(|error| match error.code {
            Code::NotFound => format!("sh: {name}: No such file or directory\n"),
            Code::ResourceExhausted => format!("sh: {name}: No space left on device\n"),
            _ => format!("sh: {name}: {}\n", error.message),
        })
    }
}
