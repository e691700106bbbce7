//! What the first process of a container does before it becomes the agent.

use std::io;
use std::path::Path;

use sandyard_agent::{AgentConfig, EgressDoors, StartFiles};
use sandyard_link::inside::AGENT_SOCKET;

use super::accounts::{Account, USER};
use super::options::Options;
use super::{door, folders, privileges, say};
use crate::init::{resolver_settings, way_out};
use crate::sys::fds;
use crate::trust;

const ROOT: &str = "/";
/// Where projects are.
const WORKSPACE: &str = "/workspace";
/// The gateway's certificate, if somebody put it there.
const CERTIFICATE: &str = "/.sandyard/gateway.pem";

/// Sets everything up. What an image or a container engine does not let us do is told and done without, but for the host's door.
pub(super) fn set_up(options: Options) -> io::Result<AgentConfig> {
    let root = Path::new(ROOT);
    // Before anything can leave.
    let egress = options.has_way_out.then(open_way_out).transpose()?;
    for (path, mode) in [
        ("/run", 0o755),
        ("/tmp", 0o1777),
        ("/etc", 0o755),
        ("/root", 0o700),
    ] {
        attempt(
            &format!("make {path}"),
            folders::ensure(Path::new(path), mode),
        );
    }
    if !Path::new("/proc/self").exists() {
        say(&"there is no /proc: some of what the agent tells is missing");
    }
    let user = attempt("add accounts", add_accounts(root, options.user.as_deref()));
    if let Some(user) = &user {
        give_folders(user, options.workdir.as_deref());
    }
    let mut lasting_env = trusting();
    lasting_env.extend(options.env);
    let door = door::open(Path::new(AGENT_SOCKET))?;
    // Nothing may run with more than it is to have.
    privileges::give_up()?;
    // Programs inside could write there, and it is kept outside.
    attempt("silence standard streams", fds::silence_standard_streams());
    Ok(AgentConfig {
        host_listener: Some(door),
        tcp: Some(([127, 0, 0, 1], sandyard_agent::DEFAULT_PORT).into()),
        needs_token: true,
        default_user: user.map_or_else(|| "root".to_owned(), |user| user.name),
        default_workdir: options.workdir,
        egress,
        lasting_env: lasting_env.into_iter().collect(),
        is_init: rustix::process::getpid().is_init(),
        ends_by_signal: true,
        start: Some(StartFiles::default()),
        ..AgentConfig::default()
    })
}

/// Opens the way out, and has names looked up there.
fn open_way_out() -> io::Result<EgressDoors> {
    let mut lacks = Vec::new();
    let way_out = way_out::open_here(&mut lacks).map_err(io::Error::other)?;
    lacks.iter().for_each(|lack| say(lack));
    let settings = resolver_settings(way_out.name_server);
    attempt(
        "write /etc/resolv.conf",
        std::fs::write("/etc/resolv.conf", settings),
    );
    Ok(way_out.doors)
}

/// Makes sure of the account `user`, which clients of a sandbox expect, and of the one that commands run as; returns that.
fn add_accounts(root: &Path, wanted: Option<&str>) -> io::Result<Account> {
    let mut accounts = folders::read_accounts(root)?;
    let has = |path: &str| root.join(path).exists();
    let shell = if has("bin/bash") {
        "/bin/bash"
    } else {
        "/bin/sh"
    };
    // In this order: a number that nobody has becomes `user`.
    let wanted = accounts.ensure(wanted.unwrap_or(USER), shell);
    let user = accounts.ensure(USER, shell);
    folders::add_accounts(root, &accounts)?;
    for account in [&user, &wanted] {
        attempt("make a home", folders::make_home(root, account));
    }
    Ok(wanted)
}

fn give_folders(user: &Account, workdir: Option<&str>) {
    let workspace = Path::new(WORKSPACE);
    attempt("make /workspace", folders::give(workspace, 0o775, user));
    if let Some(workdir) = workdir.map(Path::new).filter(|path| !path.exists()) {
        let made = folders::give(workdir, 0o755, user);
        attempt(&format!("make {}", workdir.display()), made);
    }
}

/// Makes programs trust the gateway, if its certificate is there; returns what those have to be told that do not look by themselves.
fn trusting() -> std::collections::BTreeMap<String, String> {
    let trusted = trust::trust_in_place(Path::new(ROOT), Path::new(CERTIFICATE));
    let record = attempt("trust the gateway", trusted).flatten();
    trust::variables(record.as_ref())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Tells what failed.
fn attempt<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(error) => {
            say(&format_args!("cannot {what}: {error}"));
            None
        }
    }
}
