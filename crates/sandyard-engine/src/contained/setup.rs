//! What the first process of a container does before it becomes the agent.

use std::io;
use std::path::Path;

use sandyard_agent::{AgentConfig, EgressListeners, StartFiles};
use sandyard_link::container_end::AGENT_SOCKET;

use super::accounts::{Account, USER};
use super::options::Options;
use super::{folders, listener, log, privileges};
use crate::init::{egress, resolver_settings};
use crate::sys::fds;
use crate::trust;

const ROOT: &str = "/";
/// The folder for projects.
const WORKSPACE: &str = "/workspace";
/// The gateway's certificate, if programs are to trust it.
const CERTIFICATE: &str = "/.sandyard/gateway.pem";

/// Sets the container up. What the image or the container engine does not allow is logged and left out, except for the agent's
/// socket and dropping privileges.
pub(super) fn set_up(options: Options) -> io::Result<AgentConfig> {
    let root = Path::new(ROOT);
    // First, so that nothing can be sent before.
    let egress = options.has_egress.then(open_egress).transpose()?;
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
        log(&"/proc is not mounted: the agent cannot report processes and resource usage");
    }
    let user = attempt("add accounts", add_accounts(root, options.user.as_deref()));
    if let Some(user) = &user {
        make_user_folders(user, options.workdir.as_deref());
    }
    let mut lasting_env = trust_gateway();
    lasting_env.extend(options.env);
    let listener = listener::open(Path::new(AGENT_SOCKET))?;
    // Before any command runs.
    privileges::drop_others()?;
    // Programs inside could write to them and fill the log of the container engine.
    attempt("silence standard streams", fds::silence_standard_streams());
    Ok(AgentConfig {
        host_listener: Some(listener),
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

/// Sets up egress, and makes it the DNS server.
fn open_egress() -> io::Result<EgressListeners> {
    let mut limitations = Vec::new();
    let egress = egress::open_here(&mut limitations).map_err(io::Error::other)?;
    limitations.iter().for_each(|limitation| log(limitation));
    let settings = resolver_settings(egress.name_server);
    attempt(
        "write /etc/resolv.conf",
        std::fs::write("/etc/resolv.conf", settings),
    );
    Ok(egress.listeners)
}

/// Adds the account `user`, which clients of a sandbox expect, and the account that commands run as, where they are missing.
/// Returns the latter.
fn add_accounts(root: &Path, requested: Option<&str>) -> io::Result<Account> {
    let mut accounts = folders::read_accounts(root)?;
    let has = |path: &str| root.join(path).exists();
    let shell = if has("bin/bash") {
        "/bin/bash"
    } else {
        "/bin/sh"
    };
    // In this order: an id without an account becomes `user`.
    let requested = accounts.ensure(requested.unwrap_or(USER), shell);
    let user = accounts.ensure(USER, shell);
    folders::add_accounts(root, &accounts)?;
    for account in [&user, &requested] {
        attempt("make a home", folders::make_home(root, account));
    }
    Ok(requested)
}

fn make_user_folders(user: &Account, workdir: Option<&str>) {
    let workspace = Path::new(WORKSPACE);
    attempt(
        "make /workspace",
        folders::make_owned(workspace, 0o775, user),
    );
    if let Some(workdir) = workdir.map(Path::new).filter(|path| !path.exists()) {
        let made = folders::make_owned(workdir, 0o755, user);
        attempt(&format!("make {}", workdir.display()), made);
    }
}

/// Makes programs trust the gateway if its certificate exists. Returns variables for programs that do not use the system's list.
fn trust_gateway() -> std::collections::BTreeMap<String, String> {
    let trusted = trust::trust_in_place(Path::new(ROOT), Path::new(CERTIFICATE));
    let record = attempt("trust the gateway", trusted).flatten();
    trust::variables(record.as_ref())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Logs a failure.
fn attempt<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(error) => {
            log(&format_args!("cannot {what}: {error}"));
            None
        }
    }
}
