//! A command as it is prepared before the fork, so that the child only makes system calls.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use sandyard_wire::ConnectError;
use sandyard_wire::process::ProcessConfig;

use crate::egress::add_proxy_variables;
use crate::path;
use crate::settings::Settings;
use crate::user::{self, Account, Accounts};
use crate::workdir;

/// The search path for programs unless the sandbox or the command sets another, after the user's own `~/.local/bin`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A command ready to be executed.
#[derive(Debug)]
pub(crate) struct Command {
    /// Paths to try, in order.
    pub(super) programs: Vec<CString>,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
    pub(super) cwd: CString,
    /// The user to change to; `None` where that is impossible.
    pub(super) identity: Option<Identity>,
    /// Text for `/proc/self/oom_score_adj`.
    pub(super) oom_score_adj: Option<String>,
}

/// Numbers of a user.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
}

impl Command {
    /// Prepares a request's command for a user.
    pub(crate) fn prepare(
        config: &ProcessConfig,
        account: &Account,
        accounts: &Accounts,
        settings: &Settings,
    ) -> Result<Self, ConnectError> {
        if config.cmd.is_empty() {
            return Err(ConnectError::invalid_argument("no command given"));
        }
        let env = environment(config, account, settings);
        let search = env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
        let cmd = installed_shell(&config.cmd);
        let mut argv = vec![c_string(cmd, "command")?];
        for argument in &config.args {
            argv.push(c_string(argument, "argument")?);
        }
        Ok(Self {
            programs: programs(cmd, search)?,
            argv,
            cwd: path::to_c(&working_directory(config, account, settings)?)?,
            env: env
                .iter()
                .map(|(key, value)| variable(key, value))
                .collect::<Result<_, _>>()?,
            identity: user::can_become(account.uid, account.gid).then(|| Identity {
                uid: account.uid,
                gid: account.gid,
                groups: accounts.groups_of(account),
            }),
            oom_score_adj: settings.oom_score_adj.map(|adj| adj.to_string()),
        })
    }

    /// Adds an environment variable.
    pub(super) fn add_variable(&mut self, name: &str, value: &str) -> Result<(), ConnectError> {
        self.env.push(variable(name, value)?);
        Ok(())
    }
}

fn environment(
    config: &ProcessConfig,
    account: &Account,
    settings: &Settings,
) -> BTreeMap<String, String> {
    let login = [
        ("PATH", default_path(&account.home)),
        ("HOME", account.home.to_string_lossy().into_owned()),
        ("USER", account.name.clone()),
        ("LOGNAME", account.name.clone()),
        ("SHELL", account.shell.clone()),
    ];
    let mut env: BTreeMap<String, String> = login
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    for (key, value) in settings.env.iter().chain(&config.envs) {
        env.insert(key.clone(), value.clone());
    }
    if let Some(proxy) = settings.proxy {
        add_proxy_variables(&mut env, proxy);
    }
    env
}

/// `pip install` and `pipx` put programs of users other than root below the home.
fn default_path(home: &Path) -> String {
    format!("{}/.local/bin:{DEFAULT_PATH}", home.display())
}

fn working_directory(
    config: &ProcessConfig,
    account: &Account,
    settings: &Settings,
) -> Result<PathBuf, ConnectError> {
    let requested = config.cwd.as_deref().filter(|cwd| !cwd.is_empty());
    if let Some(requested) = requested {
        let cwd = path::resolve(requested, account, settings)?;
        return if cwd.is_dir() {
            Ok(cwd)
        } else {
            Err(ConnectError::invalid_argument(format!(
                "cwd '{}' does not exist",
                cwd.display()
            )))
        };
    }
    if let Some(common) = workdir::common(settings, account) {
        return Ok(common);
    }
    let fallback = [
        settings.default_workdir.as_deref().map(Path::new),
        Some(account.home.as_path()),
    ];
    let found = fallback.into_iter().flatten().find(|dir| dir.is_dir());
    Ok(found.unwrap_or(Path::new("/")).to_owned())
}

/// Clients start commands with bash. A template without it has the shell that every system has; the options `-l`, `-i` and `-c` are the
/// same.
fn installed_shell(cmd: &str) -> &str {
    match cmd {
        "/bin/bash" if !Path::new(cmd).exists() => "/bin/sh",
        _ => cmd,
    }
}

fn programs(cmd: &str, search: &str) -> Result<Vec<CString>, ConnectError> {
    if cmd.contains('/') {
        return Ok(vec![c_string(cmd, "command")?]);
    }
    search
        .split(':')
        .filter(|dir| dir.starts_with('/'))
        .map(|dir| path::to_c(&Path::new(dir).join(cmd)))
        .collect()
}

fn variable(key: &str, value: &str) -> Result<CString, ConnectError> {
    if key.is_empty() || key.contains('=') {
        return Err(ConnectError::invalid_argument(format!(
            "'{}' is not a valid name of an environment variable",
            key.escape_debug()
        )));
    }
    c_string(&format!("{key}={value}"), "variable")
}

fn c_string(text: &str, what: &str) -> Result<CString, ConnectError> {
    CString::new(text)
        .map_err(|_| ConnectError::invalid_argument(format!("{what} contains a NUL byte")))
}

/// A command's program, for messages.
pub(super) fn display_program(command: &Command) -> String {
    let name = command.argv.first().map(|name| name.to_bytes());
    String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_looked_for_along_the_path() {
        let found = programs("ls", "/a:relative:/b").unwrap();
        assert_eq!(found, [c"/a/ls".to_owned(), c"/b/ls".to_owned()]);
        assert_eq!(programs("./ls", "/a").unwrap(), [c"./ls".to_owned()]);
    }

    #[test]
    fn names_of_variables_must_be_names() {
        assert!(variable("", "x").is_err());
        assert!(variable("A=B", "x").is_err());
        assert!(variable("A", "x\0y").is_err());
        assert_eq!(variable("A", "b=c").unwrap(), c"A=b=c".to_owned());
    }
}
