//! The commands with fixed behaviour.

use super::Runner;
use super::output::Outcome;
use crate::agent::Result;
use crate::agent::disk::path::name;

impl Runner {
    /// Runs a command; none when it is unknown, or not known with these options.
    pub(super) fn builtin(&mut self, arguments: &[&str]) -> Option<Outcome> {
        let Some((command, arguments)) = arguments.split_first() else {
            return Some(Outcome::default());
        };
        let machine = self.machine.clone();
        let (disk, stamp) = (&machine.disk, machine.stamp(&self.account));
        Some(match (name(command), arguments) {
            // Time does not pass in tests.
            ("true" | ":" | "sleep", _) => Outcome::default(),
            ("false", _) => Outcome::code(1),
            ("echo", ["-n", rest @ ..]) => Outcome::stdout(rest.join(" ")),
            ("echo", ["-e" | "-en" | "-ne", ..]) => return None,
            ("echo", rest) => Outcome::stdout(rest.join(" ") + "\n"),
            ("exit", rest @ ([] | [_])) => {
                let code = match rest.first() {
                    Some(code) => code.parse::<i32>().ok()? & 0xff,
                    None => self.exit_code,
                };
                self.has_exited = true;
                Outcome::code(code)
            }
            ("pwd", []) => Outcome::stdout(self.cwd.clone() + "\n"),
            ("cd", rest @ ([] | [_])) => {
                self.change_folder(rest.first().unwrap_or(&self.account.home))
            }
            ("cat", paths) => self.each("cat", paths, |path, output| {
                output.extend_from_slice(&disk.read(path)?);
                Ok(())
            })?,
            ("ls", ["-A", paths @ ..] | paths) => {
                let shows_hidden = arguments.first() == Some(&"-A");
                let paths = if paths.is_empty() { &["."] } else { paths };
                self.each("ls", paths, |path, output| {
                    for (entry, _) in disk.list(path, 1)? {
                        if shows_hidden || !name(&entry).starts_with('.') {
                            output.extend(format!("{}\n", name(&entry)).bytes());
                        }
                    }
                    Ok(())
                })?
            }
            ("touch", paths) => {
                self.each("touch", paths, |path, _| disk.append(path, b"", &stamp))?
            }
            ("mkdir", ["-p", paths @ ..]) => {
                self.each("mkdir", paths, |path, _| disk.make_all(path, &stamp))?
            }
            ("rm", ["-rf", paths @ ..]) => {
                self.each("rm", paths, |path, _| disk.remove(path).map(drop))?
            }
            ("env" | "printenv", []) => {
                let line = |(name, value): (&String, &String)| format!("{name}={value}\n");
                Outcome::stdout(self.env.iter().map(line).collect::<String>())
            }
            ("whoami", []) => Outcome::stdout(format!("{}\n", self.account.name)),
            ("id", ["-u"]) => Outcome::stdout(format!("{}\n", self.account.id)),
            ("hostname", []) => Outcome::stdout(machine.settings().hostname.clone() + "\n"),
            _ => return None,
        })
    }

    fn change_folder(&mut self, path: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let folder = self.path(path);
        match self.machine.disk.is_folder(&folder) {
            true => self.cwd = folder,
            false => outcome.fail(&format!("sh: cd: {path}: No such file or directory")),
        }
        outcome
    }

    /// Does the same for every path; none when there are options among them.
    fn each(
        &self,
        command: &str,
        paths: &[&str],
        work: impl Fn(&str, &mut Vec<u8>) -> Result<()>,
    ) -> Option<Outcome> {
        if paths.is_empty() || paths.iter().any(|path| path.starts_with('-')) {
            return None;
        }
        let mut outcome = Outcome::default();
        for path in paths {
            if let Err(error) = work(&self.path(path), &mut outcome.stdout) {
                let reason = match error.code {
                    sandyard_wire::Code::NotFound => "No such file or directory",
                    _ => &error.message,
                };
                outcome.fail(&format!("{command}: {path}: {reason}"));
            }
        }
        Some(outcome)
    }
}
