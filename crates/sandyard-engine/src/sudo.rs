//! `sudo` for templates whose host has none: this program, installed setuid-root inside the sandbox.
//!
//! It becomes root *inside*, which is nobody outside, and runs the command. There is no policy to check: the sandbox belongs
//! to its user.

use std::ffi::{CString, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Gid, Uid};

/// Acts as `sudo` if that is the name this program was called by. Returns the exit code.
pub fn main_if_called_so() -> Option<u8> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    if Path::new(&name).file_name()? != "sudo" {
        return None;
    }
    Some(run(arguments.collect()))
}

fn run(arguments: Vec<OsString>) -> u8 {
    let options = match parse(arguments) {
        Ok(options) => options,
        Err(problem) => return fail(1, &problem),
    };
    let Some((uid, gid, home)) = account(&options.user) else {
        return fail(1, &format!("unknown user: {}", options.user));
    };
    if let Err(error) = switch(uid, gid) {
        return fail(1, &format!("cannot become {}: {error}", options.user));
    }
    let shell = OsString::from("/bin/bash");
    let (program, rest) = match options.command.split_first() {
        Some((program, rest)) if !options.shell => (program.clone(), rest.to_vec()),
        Some(_) => {
            let line: Vec<String> = options
                .command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            (shell, vec!["-l".into(), "-c".into(), line.join(" ").into()])
        }
        None if options.shell => (shell, vec!["-l".into()]),
        None => {
            return fail(
                1,
                "usage: sudo [-u USER] [-i|-s] [NAME=VALUE…] COMMAND [ARGUMENT…]",
            );
        }
    };
    let mut command = Command::new(&program);
    command
        .args(rest)
        .envs(options.env)
        .env("HOME", home)
        .env("USER", &options.user)
        .env("LOGNAME", &options.user);
    command.env("SUDO_USER", "user").env(
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    );
    let error = command.exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    };
    fail(code, &format!("{}: {error}", program.display()))
}

#[derive(Default)]
struct Options {
    user: String,
    shell: bool,
    env: Vec<(String, String)>,
    command: Vec<OsString>,
}

fn parse(arguments: Vec<OsString>) -> Result<Options, String> {
    let mut options = Options {
        user: "root".to_owned(),
        ..Options::default()
    };
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments
        .peek()
        .and_then(|argument| argument.to_str())
        .map(str::to_owned)
    {
        match argument.as_str() {
            "-u" | "--user" => {
                arguments.next();
                let user = arguments.peek().and_then(|user| user.to_str());
                options.user = user.ok_or("-u needs a user")?.to_owned();
            }
            "-i" | "-s" | "--login" | "--shell" => options.shell = true,
            // Never asks a password, so these say nothing new.
            "-n" | "-E" | "-H" | "-S" | "-k" | "-b" | "--non-interactive" | "--preserve-env"
            | "--stdin" => {}
            "-v" | "-l" | "-K" => {
                return Ok(Options {
                    command: vec!["true".into()],
                    ..options
                });
            }
            "--" => {
                arguments.next();
                break;
            }
            option if option.starts_with('-') => {
                return Err(format!("option `{option}` is not supported"));
            }
            word => match word.split_once('=') {
                Some((name, value)) if !name.is_empty() && !name.contains('/') => {
                    options.env.push((name.to_owned(), value.to_owned()));
                }
                _ => break,
            },
        }
        arguments.next();
    }
    options.command = arguments.collect();
    Ok(options)
}

/// User id, group id and home of a user by name, from `/etc/passwd`.
fn account(name: &str) -> Option<(Uid, Gid, String)> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.len() >= 6 && fields[0] == name).then(|| {
            Some((
                Uid::from_raw(fields[2].parse().ok()?),
                Gid::from_raw(fields[3].parse().ok()?),
                fields[5].to_owned(),
            ))
        })?
    });
    found.or_else(|| (name == "root").then(|| (Uid::ROOT, Gid::ROOT, "/root".to_owned())))
}

fn switch(uid: Uid, gid: Gid) -> std::io::Result<()> {
    // A sandbox with a single user id has nobody else to become.
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if map.split_ascii_whitespace().skip(2).step_by(3).eq(["1"]) {
        return Ok(());
    }
    rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    rustix::thread::set_thread_groups(&[gid])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

fn fail(code: u8, problem: &str) -> u8 {
    let text = CString::new(format!("sudo: {problem}\n")).map(CString::into_bytes);
    let _ = std::io::stderr()
        .write_all(&text.unwrap_or_else(|_| OsString::from("sudo: failed\n").into_vec()));
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_end_where_the_command_begins() {
        let options = parse(arguments("-n -u user A=1 env -i")).expect("parse");
        assert_eq!((options.user.as_str(), options.env.len()), ("user", 1));
        assert_eq!(options.command, arguments("env -i"));
    }

    #[test]
    fn an_option_that_would_change_the_meaning_is_refused() {
        assert!(parse(arguments("-g staff id")).is_err());
    }
}
