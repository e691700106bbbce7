//! The user of the first process, and the host name.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use rustix::process::{Gid, Uid};
use sandyard_wire::egress::NAME_SERVER;

use super::egress::PROXIED_NAME_SERVER;
use crate::error::Result;
use crate::mode::Mode;
use crate::sys::OperationExt;

/// Becomes user and group 0 of the new user namespace, without other groups, in a new session.
pub(super) fn become_root(mode: Mode) -> Result<()> {
    if mode.has_many_ids() {
        // With a single mapped id the kernel denies setgroups, and there is no other group to drop.
        rustix::thread::set_thread_groups(&[]).operation("drop", "supplementary groups")?;
    }
    let (root, group) = (Uid::ROOT, Gid::ROOT);
    rustix::thread::set_thread_res_gid(group, group, group).operation("become group", 0)?;
    rustix::thread::set_thread_res_uid(root, root, root).operation("become user", 0)?;
    rustix::process::setsid().operation("start", "a session")?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    // The change of user made the process undumpable, which makes its /proc files unreadable even for root inside.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
        .operation("make", "dumpable")?;
    Ok(())
}

/// Sets the host name, makes it resolve to loopback, and sets the DNS server.
pub(super) fn set_hostname(root: &Path, hostname: &str, name_server: Ipv4Addr) -> Result<()> {
    rustix::system::sethostname(hostname.as_bytes()).operation("set host name", hostname)?;
    for (file, text) in generated_files(hostname, name_server) {
        let path = root.join(file);
        // A template without /etc is legal, if unusual.
        if path.parent().is_some_and(Path::is_dir) {
            // Replaced: the template may have a link there.
            let _ = fs::remove_file(&path);
            fs::write(&path, text).operation("write", path.display())?;
        }
    }
    Ok(())
}

/// Files that the engine writes in every sandbox, by path inside. A diff leaves them out.
fn generated_files(hostname: &str, name_server: Ipv4Addr) -> [(&'static str, String); 3] {
    let hosts = format!(
        "127.0.0.1 localhost {hostname}\n::1 localhost ip6-localhost ip6-loopback {hostname}\nff02::1 ip6-allnodes\nff02::2 ip6-allrouters\n"
    );
    [
        ("etc/hostname", format!("{hostname}\n")),
        ("etc/hosts", hosts),
        // No search list: names are complete.
        ("etc/resolv.conf", resolver_settings(name_server)),
    ]
}

/// The text of `/etc/resolv.conf`. Its timeouts are longer than a DNS query may take.
pub(crate) fn resolver_settings(name_server: Ipv4Addr) -> String {
    format!("nameserver {name_server}\noptions edns0 timeout:10 attempts:3\n")
}

/// The generated files with either DNS server, for a sandbox whose network is unknown.
pub(crate) fn possible_files(hostname: &str) -> impl Iterator<Item = (&'static str, String)> {
    [NAME_SERVER, PROXIED_NAME_SERVER]
        .into_iter()
        .flat_map(move |name_server| generated_files(hostname, name_server))
}
