//! Users and groups of the sandbox, read from its own files.
//!
//! The program is static, so the C library's look-ups are not available; nor are they wanted, since they may load
//! code from the sandbox's own tree.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sandyard_wire::{Code, ConnectError};

use crate::fs;

/// Maximum size that is read; the sandbox's root may write anything there.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// One line of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: PathBuf,
    pub(crate) shell: String,
}

/// The accounts at one moment.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: Vec<Account>,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    name: String,
    gid: u32,
    members: Vec<String>,
}

impl Accounts {
    /// Reads the files afresh, because anybody inside may have added a user a moment ago.
    pub(crate) fn load() -> Self {
        let read = |path| fs::read_small(Path::new(path), MAX_FILE_BYTES).unwrap_or_default();
        Self::parse(
            &String::from_utf8_lossy(&read("/etc/passwd")),
            &String::from_utf8_lossy(&read("/etc/group")),
        )
    }

    fn parse(passwd: &str, group: &str) -> Self {
        let mut users: Vec<Account> = passwd.lines().filter_map(parse_account).collect();
        if !users.iter().any(|account| account.uid == 0) {
            // An image may have no such file at all; there is always a root.
            users.push(Account {
                name: "root".to_owned(),
                uid: 0,
                gid: 0,
                home: "/root".into(),
                shell: "/bin/sh".to_owned(),
            });
        }
        Self {
            users,
            groups: group.lines().filter_map(parse_group).collect(),
        }
    }

    /// Finds a user by name.
    pub(crate) fn find(&self, name: &str) -> Result<&Account, ConnectError> {
        self.users
            .iter()
            .find(|account| account.name == name)
            .ok_or_else(|| {
                // COMPAT(e2b): the SDK's tests expect this text.
                ConnectError::new(Code::Unauthenticated, format!("invalid username: '{name}'"))
            })
    }

    /// The groups a login as this user belongs to, its own first.
    pub(crate) fn groups_of(&self, account: &Account) -> Vec<u32> {
        let mut gids = vec![account.gid];
        for group in &self.groups {
            if group.members.contains(&account.name) && !gids.contains(&group.gid) {
                gids.push(group.gid);
            }
        }
        gids
    }

    /// Names by number, for listings.
    pub(crate) fn names(&self) -> Names {
        let mut names = Names::default();
        for account in &self.users {
            names
                .users
                .entry(account.uid)
                .or_insert_with(|| account.name.clone());
        }
        for group in &self.groups {
            names
                .groups
                .entry(group.gid)
                .or_insert_with(|| group.name.clone());
        }
        names
    }
}

/// Names of users and groups by number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl Names {
    pub(crate) fn user(&self, uid: u32) -> String {
        name_or_number(&self.users, uid)
    }

    pub(crate) fn group(&self, gid: u32) -> String {
        name_or_number(&self.groups, gid)
    }
}

fn name_or_number(names: &HashMap<u32, String>, id: u32) -> String {
    names.get(&id).cloned().unwrap_or_else(|| id.to_string())
}

fn parse_account(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let (uid, gid) = (fields.nth(1)?, fields.next()?);
    let home = fields.nth(1)?;
    let shell = fields.next().unwrap_or_default();
    Some(Account {
        name: name.to_owned(),
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        home: if home.starts_with('/') { home } else { "/" }.into(),
        shell: if shell.is_empty() { "/bin/sh" } else { shell }.to_owned(),
    })
}

fn parse_group(line: &str) -> Option<Group> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let gid = fields.nth(1)?.parse().ok()?;
    let members = fields.next().unwrap_or_default().split(',');
    Some(Group {
        name: name.to_owned(),
        gid,
        members: members
            .map(str::trim)
            .filter(|member| !member.is_empty())
            .map(str::to_owned)
            .collect(),
    })
}

/// Whether this process could become that user.
///
/// In a sandbox whose user namespace maps a single id there is nobody else to become, and commands run as what the
/// agent is, with the named user's home and names.
pub(crate) fn can_become(uid: u32, gid: u32) -> bool {
    if !rustix::process::geteuid().is_root() {
        return false;
    }
    let maps = |file: &str, id| {
        fs::read_small(Path::new(file), 64 * 1024)
            .is_ok_and(|map| id_is_mapped(&String::from_utf8_lossy(&map), id))
    };
    maps("/proc/self/uid_map", uid) && maps("/proc/self/gid_map", gid)
}

fn id_is_mapped(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        match (numbers.next(), numbers.nth(1)) {
            (Some(Ok(first)), Some(Ok(count))) => (first..first + count).contains(&u64::from(id)),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nbroken\nuser:x:1000:1000::/home/user:\n";
    const GROUP: &str = "root:x:0:\nsudo:x:27:user,other\nuser:x:1000:\n";

    #[test]
    fn a_user_is_found_with_home_shell_and_groups() {
        let accounts = Accounts::parse(PASSWD, GROUP);
        let user = accounts.find("user").unwrap();
        assert_eq!((user.uid, user.gid), (1000, 1000));
        assert_eq!(user.home, Path::new("/home/user"));
        assert_eq!(user.shell, "/bin/sh");
        assert_eq!(accounts.groups_of(user), [1000, 27]);
    }

    #[test]
    fn an_unknown_user_is_refused_in_the_expected_words() {
        let error = Accounts::parse(PASSWD, GROUP).find("nobody").unwrap_err();
        assert_eq!(error.code, Code::Unauthenticated);
        assert_eq!(error.message, "invalid username: 'nobody'");
    }

    #[test]
    fn there_is_a_root_even_without_files() {
        assert_eq!(Accounts::parse("", "").find("root").unwrap().uid, 0);
    }

    #[test]
    fn names_fall_back_to_numbers() {
        let names = Accounts::parse(PASSWD, GROUP).names();
        assert_eq!(
            (names.user(1000), names.user(7)),
            ("user".into(), "7".into())
        );
        assert_eq!(names.group(27), "sudo");
    }

    #[test]
    fn only_ids_within_the_map_can_be_taken() {
        let map = "         0     100000      65536\n";
        assert!(id_is_mapped(map, 1000));
        assert!(!id_is_mapped(map, 65536));
        assert!(!id_is_mapped("0 1000 1", 1000));
    }
}
