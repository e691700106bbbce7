//! The commands it knows, as far as tests use them.

use bytes::Bytes;

use super::Shell;
use super::execute::Outcome;
use crate::agent::disk::path::{name, parent};

impl Shell {
    /// Runs a command; none when there is none of that name, or not with these options.
    pub(super) async fn builtin(
        &mut self,
        command: &str,
        arguments: &[String],
        input: Option<Bytes>,
        is_redirected: bool,
    ) -> Option<Outcome> {
        let command = name(command);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Some(match (command, words.as_slice()) {
            ("true" | ":" | "set" | "wait" | "sync", _) => Outcome::code(0),
            ("false", _) => Outcome::code(1),
            ("echo", ["-n", rest @ ..]) => Outcome::out(rest.join(" ")),
            ("echo", ["-e" | "-en" | "-ne", ..]) => return None,
            ("echo", rest) => Outcome::out(rest.join(" ") + "\n"),
            ("exit", []) => self.leave(self.last),
            ("exit", [code]) => self.leave(code.parse::<i32>().ok()? & 0xff),
            ("break", []) if self.loops > 0 => {
                self.is_breaking = true;
                Outcome::code(0)
            }
            ("sleep", [seconds]) => {
                seconds
                    .trim_end_matches(['s', 'm', 'h'])
                    .parse::<f64>()
                    .ok()?;
                self.sleep().await;
                Outcome::code(0)
            }
            ("pwd", []) => Outcome::out(self.cwd.clone() + "\n"),
            ("cd", []) => self.change_folder(self.account.home),
            ("cd", [path]) => self.change_folder(path),
            ("cat", []) | ("cat", ["-"]) => self.pass_on(input, is_redirected).await,
            ("cat", paths) if !paths.iter().any(|path| path.starts_with('-')) => self.cat(paths),
            ("ls", rest) => self.ls(rest)?,
            ("env" | "printenv" | "export", []) => {
                let line = |(name, value): (&String, &String)| format!("{name}={value}\n");
                Outcome::out(self.env.iter().map(line).collect::<String>())
            }
            ("printenv", [name]) => match self.env.get(*name) {
                Some(value) => Outcome::out(value.clone() + "\n"),
                None => Outcome::code(1),
            },
            ("export", pairs) => {
                for (name, value) in pairs.iter().filter_map(|pair| pair.split_once('=')) {
                    self.env.insert(name.to_owned(), value.to_owned());
                }
                Outcome::code(0)
            }
            ("unset", names) => {
                names.iter().for_each(|name| drop(self.env.remove(*name)));
                Outcome::code(0)
            }
            ("whoami", []) | ("id", ["-un"]) => Outcome::out(format!("{}\n", self.account.name)),
            ("id", ["-u" | "-g"]) => Outcome::out(format!("{}\n", self.account.id)),
            ("hostname", []) => Outcome::out(self.machine.settings().hostname.clone() + "\n"),
            ("touch", paths) => self.each(paths, "touch", |shell, path| {
                shell
                    .machine
                    .disk
                    .append(path, b"", &shell.machine.stamp(&shell.account))
            })?,
            ("mkdir", ["-p", paths @ ..]) => self.each(paths, "mkdir", |shell, path| {
                shell
                    .machine
                    .disk
                    .make_all(path, &shell.machine.stamp(&shell.account))
            })?,
            ("mkdir", paths) => self.mkdir(paths)?,
            ("rm", rest) => self.rm(rest)?,
            ("mv" | "cp", [from, to]) if !from.starts_with('-') => self.copy(command, from, to),
            ("test", condition) => self.test(condition)?,
            ("[", [condition @ .., "]"]) => self.test(condition)?,
            _ => return None,
        })
    }

    fn leave(&mut self, code: i32) -> Outcome {
        self.exit = Some(code);
        Outcome::code(code)
    }

    fn test(&self, condition: &[&str]) -> Option<Outcome> {
        let words: Vec<String> = condition.iter().map(|word| (*word).to_owned()).collect();
        self.holds(&words)
            .map(|holds| Outcome::code(i32::from(!holds)))
    }

    fn change_folder(&mut self, path: &str) -> Outcome {
        let wanted = self.path(path);
        if !self.machine.disk.is_folder(&wanted) {
            return Outcome::failed(format!("sh: cd: {path}: No such file or directory"));
        }
        self.cwd = wanted;
        Outcome::code(0)
    }

    /// Passes its input on as it comes.
    async fn pass_on(&mut self, input: Option<Bytes>, is_redirected: bool) -> Outcome {
        if let Some(input) = input {
            return Outcome::out(input.to_vec());
        }
        let Some(process) = self.process.clone() else {
            return Outcome::code(0);
        };
        let mut kept = Vec::new();
        while let Some(bytes) = process.read_input().await {
            match is_redirected {
                true => kept.extend_from_slice(&bytes),
                false => self.write(&bytes),
            }
        }
        Outcome::out(kept)
    }

    fn cat(&self, paths: &[&str]) -> Outcome {
        let mut outcome = Outcome::default();
        for path in paths {
            match self.machine.disk.read(&self.path(path)) {
                Ok(content) => outcome.out.extend_from_slice(&content),
                Err(_) => {
                    let is_folder = self.machine.disk.is_folder(&self.path(path));
                    let why = if is_folder {
                        "Is a directory"
                    } else {
                        "No such file or directory"
                    };
                    outcome.err.extend(format!("cat: {path}: {why}\n").bytes());
                    outcome.code = 1;
                }
            }
        }
        outcome
    }

    fn ls(&self, rest: &[&str]) -> Option<Outcome> {
        let (flags, paths): (Vec<&str>, Vec<&str>) =
            rest.iter().partition(|word| word.starts_with('-'));
        if !flags
            .iter()
            .all(|flag| flag[1..].chars().all(|letter| "aA1".contains(letter)))
        {
            return None;
        }
        let shows_hidden = flags.iter().any(|flag| flag.contains(['a', 'A']));
        let paths = if paths.is_empty() { vec!["."] } else { paths };
        let mut outcome = Outcome::default();
        for path in &paths {
            let full = self.path(path);
            let Ok(node) = self.machine.disk.get(&full) else {
                let message = format!("ls: cannot access '{path}': No such file or directory\n");
                outcome.err.extend(message.bytes());
                outcome.code = 2;
                continue;
            };
            if !node.is_folder() {
                outcome.out.extend(format!("{path}\n").bytes());
                continue;
            }
            if paths.len() > 1 {
                outcome.out.extend(format!("{path}:\n").bytes());
            }
            for (entry, _) in self.machine.disk.list(&full, 1).unwrap_or_default() {
                if shows_hidden || !name(&entry).starts_with('.') {
                    outcome.out.extend(format!("{}\n", name(&entry)).bytes());
                }
            }
        }
        Some(outcome)
    }

    /// Does the same to several paths.
    fn each(
        &self,
        paths: &[&str],
        command: &str,
        work: impl Fn(&Self, &str) -> Result<(), sandyard_wire::ConnectError>,
    ) -> Option<Outcome> {
        if paths.is_empty() || paths.iter().any(|path| path.starts_with('-')) {
            return None;
        }
        let mut outcome = Outcome::default();
        for path in paths {
            if let Err(error) = work(self, &self.path(path)) {
                outcome
                    .err
                    .extend(format!("{command}: {}\n", error.message).bytes());
                outcome.code = 1;
            }
        }
        Some(outcome)
    }

    fn mkdir(&self, paths: &[&str]) -> Option<Outcome> {
        self.each(paths, "mkdir", |shell, path| {
            let disk = &shell.machine.disk;
            if disk.get(path).is_ok() {
                let message = format!("cannot create directory '{path}': File exists");
                return Err(sandyard_wire::ConnectError::invalid_argument(message));
            }
            disk.get(parent(path))?;
            disk.make_all(path, &shell.machine.stamp(&shell.account))
        })
    }

    fn rm(&self, rest: &[&str]) -> Option<Outcome> {
        let (flags, paths): (Vec<&str>, Vec<&str>) =
            rest.iter().partition(|word| word.starts_with('-'));
        if !flags
            .iter()
            .all(|flag| flag[1..].chars().all(|letter| "rRf".contains(letter)))
        {
            return None;
        }
        let (deep, calm) = (
            flags.iter().any(|f| f.contains(['r', 'R'])),
            flags.iter().any(|f| f.contains('f')),
        );
        self.each(&paths, "rm", |shell, path| {
            let refuse = |why: &str| {
                let message = format!("cannot remove '{path}': {why}");
                Err(sandyard_wire::ConnectError::invalid_argument(message))
            };
            if shell.machine.disk.is_folder(path) && !deep {
                return refuse("Is a directory");
            }
            if !shell.machine.disk.remove(path)? && !calm {
                return refuse("No such file or directory");
            }
            Ok(())
        })
    }

    fn copy(&self, command: &str, from: &str, to: &str) -> Outcome {
        let (source, mut target) = (self.path(from), self.path(to));
        let disk = &self.machine.disk;
        if disk.is_folder(&target) {
            target = format!("{}/{}", target.trim_end_matches('/'), name(&source));
        }
        let done = match command {
            "mv" => disk.rename(&source, &target),
            _ => disk.read(&source).and_then(|content| {
                let stamp = self.machine.stamp(&self.account);
                disk.write(&target, content, &stamp, Default::default())
            }),
        };
        match done {
            Ok(()) => Outcome::code(0),
            Err(error) => Outcome::failed(format!("{command}: {}", error.message)),
        }
    }
}
