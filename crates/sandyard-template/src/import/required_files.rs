//! Adds what every sandbox needs to an imported root: mount points, accounts, the account `user`.

use std::path::Path;

use crate::build::{Builder, Owner, ROOT};
use crate::copy::Owners;
use crate::error::Result;
use crate::host::etc::PIP_CONF;
use crate::host::users::{self, USER};
use crate::manifest::Template;
use crate::tree::Tree;

/// Largest account file that is read, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// What an imported root must have.
#[derive(Debug)]
pub(super) struct Requirements<'a> {
    pub(super) owners: Owners,
    /// Add the account `user` with `sudo`, and `/workspace`.
    pub(super) user: bool,
    /// Program to install as `sudo` if the root has none.
    pub(super) shim: Option<&'a Path>,
}

/// Adds to `root` what is missing there and in the layers `below`, and does not change what exists.
pub(super) fn add_required_files(
    root: &Tree,
    below: Option<&Template>,
    requirements: &Requirements<'_>,
) -> Result<()> {
    let mut build = Builder::new(root, requirements.owners);
    if let Some(template) = below {
        build = build.above(template);
    }
    // The engine mounts over these, so they must not be links.
    for path in ["dev", "proc", "sys"] {
        if !build.is_real_dir(path) {
            build.dir(path, 0o755, ROOT)?;
        }
    }
    for (path, mode) in [
        ("run", 0o755),
        ("tmp", 0o1777),
        ("etc", 0o755),
        ("root", 0o700),
    ] {
        if !build.exists(path) {
            build.dir(path, mode, ROOT)?;
        }
    }
    if build.read("etc/passwd", MAX_BYTES)?.is_none() {
        build.file("etc/passwd", users::minimal_passwd(), 0o644, ROOT)?;
    }
    if build.read("etc/group", MAX_BYTES)?.is_none() {
        build.file("etc/group", users::minimal_group(), 0o644, ROOT)?;
    }
    if requirements.user {
        let owner = add_user(&mut build)?;
        if !build.exists("workspace") {
            build.dir("workspace", 0o755, owner)?;
        }
        if !build.exists("etc/pip.conf") {
            build.file("etc/pip.conf", PIP_CONF, 0o644, ROOT)?;
        }
        allow_sudo(&mut build, requirements.shim)?;
    }
    Ok(())
}

/// Adds the account unless it exists. Returns its ids.
fn add_user(build: &mut Builder<'_>) -> Result<Owner> {
    let mut passwd = build.read("etc/passwd", MAX_BYTES)?.unwrap_or_default();
    let mut group = build.read("etc/group", MAX_BYTES)?.unwrap_or_default();
    if let Some(owner) = find_account(&passwd) {
        return Ok(owner);
    }
    let gid = match find(&group, USER).and_then(|line| number(line, 2)) {
        Some(gid) => gid,
        None => {
            let gid = free_id(&group);
            push_line(&mut group, &format!("{USER}:x:{gid}:"));
            gid
        }
    };
    let owner = Owner(free_id(&passwd), gid);
    let shell = if build.exists("bin/bash") {
        "/bin/bash"
    } else {
        "/bin/sh"
    };
    push_line(
        &mut passwd,
        &format!("{USER}:x:{}:{}::/home/{USER}:{shell}", owner.0, owner.1),
    );
    build.file("etc/passwd", passwd, 0o644, ROOT)?;
    build.file("etc/group", join_admins(&group), 0o644, ROOT)?;
    if let Some(mut shadow) = build.read("etc/shadow", MAX_BYTES)? {
        let gid = find(&group, "shadow")
            .and_then(|line| number(line, 2))
            .unwrap_or(0);
        push_line(&mut shadow, &users::shadow_line(USER));
        build.file("etc/shadow", shadow, 0o640, Owner(0, gid))?;
    }
    add_home(build, owner)?;
    Ok(owner)
}

fn add_home(build: &mut Builder<'_>, owner: Owner) -> Result<()> {
    if build.exists("home/user") {
        return Ok(());
    }
    if !build.exists("home") {
        build.dir("home", 0o755, ROOT)?;
    }
    // Shells add `.local/bin` to the PATH only if it exists.
    for path in ["home/user", "home/user/.local", "home/user/.local/bin"] {
        build.dir(path, 0o755, owner)?;
    }
    build.link("home/user/workspace", "/workspace")?;
    for name in [".bashrc", ".profile"] {
        if let Some(text) = build.read(&format!("etc/skel/{name}"), MAX_BYTES)? {
            build.file(&format!("home/user/{name}"), text, 0o644, owner)?;
        }
    }
    Ok(())
}

/// Lets `user` become root without a password, by the root's own `sudo` or by ours.
fn allow_sudo(build: &mut Builder<'_>, shim: Option<&Path>) -> Result<()> {
    let has_sudo = ["usr/bin/sudo", "bin/sudo", "usr/local/bin/sudo"]
        .iter()
        .any(|path| build.exists(path));
    if !has_sudo {
        let path = if build.exists("usr/bin") {
            "usr/bin/sudo"
        } else {
            "bin/sudo"
        };
        return match shim {
            Some(program) => build.install(path, program, 0o4755),
            None => Ok(()),
        };
    }
    let Some(mut sudoers) = build.read("etc/sudoers", MAX_BYTES)? else {
        return build.file("etc/sudoers", users::SUDOERS, 0o440, ROOT);
    };
    let text = String::from_utf8_lossy(&sudoers);
    if text.lines().any(|line| line.trim_end() == users::SUDO_RULE) {
        return Ok(());
    }
    let reads_directory = text.lines().any(|line| {
        matches!(
            line.split_whitespace().next(),
            Some("@includedir" | "#includedir")
        )
    });
    if reads_directory {
        if !build.exists("etc/sudoers.d") {
            build.dir("etc/sudoers.d", 0o750, ROOT)?;
        }
        return build.file(
            "etc/sudoers.d/sandyard-user",
            format!("{}\n", users::SUDO_RULE),
            0o440,
            ROOT,
        );
    }
    push_line(&mut sudoers, users::SUDO_RULE);
    build.file("etc/sudoers", sudoers, 0o440, ROOT)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

fn field(line: &[u8], index: usize) -> Option<&[u8]> {
    line.split(|byte| *byte == b':').nth(index)
}

fn number(line: &[u8], index: usize) -> Option<u32> {
    std::str::from_utf8(field(line, index)?).ok()?.parse().ok()
}

fn find<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    lines(text).find(|line| field(line, 0) == Some(name.as_bytes()))
}

fn find_account(passwd: &[u8]) -> Option<Owner> {
    let line = find(passwd, USER)?;
    Some(Owner(number(line, 2)?, number(line, 3)?))
}

/// 1000, or the next free id.
fn free_id(text: &[u8]) -> u32 {
    let taken: Vec<_> = lines(text).filter_map(|line| number(line, 2)).collect();
    (users::USER_ID..60_000)
        .find(|id| !taken.contains(id))
        .unwrap_or(users::USER_ID)
}

/// Makes `user` a member of the groups that administrators have.
fn join_admins(group: &[u8]) -> Vec<u8> {
    let joined = lines(group).map(|line| {
        let mut line = line.to_vec();
        let is_admin = matches!(field(&line, 0), Some(b"sudo" | b"wheel"));
        if is_admin && let Some(members) = field(&line, 3) {
            let separator: &[u8] = if members.is_empty() { b"" } else { b"," };
            line = [&line, separator, USER.as_bytes()].concat();
        }
        line
    });
    joined.collect::<Vec<_>>().join(&b'\n')
}

fn push_line(text: &mut Vec<u8>, line: &str) {
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend_from_slice(line.as_bytes());
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_id_is_not_given_again() {
        assert_eq!(free_id(b"root:x:0:0::/:/bin/sh\n"), 1000);
        assert_eq!(
            free_id(b"ubuntu:x:1000:1000::/:/bin/sh\nx:x:1001:1::/:\n"),
            1002
        );
    }

    #[test]
    fn the_user_joins_the_administrators() {
        let joined = join_admins(b"root:x:0:\nsudo:x:27:\nwheel:x:10:root\nadm:x:4:a\n");
        assert_eq!(
            joined,
            b"root:x:0:\nsudo:x:27:user\nwheel:x:10:root,user\nadm:x:4:a\n"
        );
    }

    #[test]
    fn lines_are_added_after_a_missing_newline() {
        let mut text = b"a".to_vec();
        push_line(&mut text, "b");
        assert_eq!(text, b"a\nb\n");
    }
}
