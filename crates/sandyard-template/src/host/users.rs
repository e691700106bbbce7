//! Accounts inside: the system's usual ones, with the host's numbers, and `user`. No account of a person, no password.

use std::collections::HashMap;
use std::fmt::Write as _;

/// The account sandboxes run as.
pub(crate) const USER: &str = "user";
/// Its id, where free.
pub(crate) const USER_ID: u32 = 1000;
/// What lets it become root.
pub(crate) const SUDO_RULE: &str = "user ALL=(ALL:ALL) NOPASSWD: ALL";
/// A whole sudoers file with that rule. `#includedir` is no comment, and the only spelling all versions know.
pub(crate) const SUDOERS: &str = "\
Defaults env_reset
Defaults !requiretty
Defaults secure_path=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"
root ALL=(ALL:ALL) ALL
user ALL=(ALL:ALL) NOPASSWD: ALL
#includedir /etc/sudoers.d
";

/// Ids above are people's, and not shown; `nobody` is the exception.
const LAST_SYSTEM_ID: u32 = 999;
const OVERFLOW_ID: u32 = 65534;

/// Accounts that programs look up by name: name, usual id, home, and whether sandboxes have it even if the host does not.
const ACCOUNTS: [(&str, u32, &str, bool); 16] = [
    ("root", 0, "/root", true),
    ("daemon", 1, "/usr/sbin", true), // at, portmap and the like drop to it
    ("bin", 2, "/bin", true),         // owner of files in old packages
    ("sys", 3, "/dev", false),
    ("games", 5, "/usr/games", false),   // owner of high scores
    ("man", 6, "/var/cache/man", false), // man-db drops to it
    ("lp", 7, "/var/spool/lpd", false),
    ("mail", 8, "/var/mail", false),
    ("news", 9, "/var/spool/news", false),
    ("uucp", 10, "/var/spool/uucp", false),
    ("proxy", 13, "/bin", false),
    ("www-data", 33, "/var/www", false), // web servers drop to it
    ("backup", 34, "/var/backups", false),
    ("_apt", 100, "/nonexistent", false), // apt downloads as it
    ("messagebus", 101, "/nonexistent", false), // dbus-daemon drops to it
    ("nobody", OVERFLOW_ID, "/nonexistent", true),
];

/// Groups that programs look up by name, in the same way.
const GROUPS: [(&str, u32, bool); 33] = [
    ("root", 0, true),
    ("daemon", 1, true),
    ("bin", 2, true),
    ("sys", 3, true),
    ("adm", 4, true),
    ("tty", 5, true), // owner of terminals in devpts
    ("disk", 6, false),
    ("lp", 7, false),
    ("mail", 8, true), // setgid programs in /usr
    ("news", 9, false),
    ("uucp", 10, false),
    ("man", 12, false),
    ("proxy", 13, false),
    ("kmem", 15, false),
    ("dialout", 20, false),
    ("sudo", 27, true),    // `user` is in it
    ("wheel", 998, false), // the same, on Fedora, Arch and Alpine
    ("audio", 29, false),
    ("www-data", 33, false),
    ("backup", 34, false),
    ("shadow", 42, true), // reads /etc/shadow: setgid programs in /usr
    ("utmp", 43, true),   // the same for /run/utmp
    ("video", 44, false),
    ("plugdev", 46, false),
    ("staff", 50, false), // owner of /usr/local on Debian
    ("games", 60, false),
    ("users", 100, true),
    ("crontab", 101, false),
    ("_ssh", 102, false), // setgid ssh-agent
    ("ssh", 103, false),  // the same, formerly
    ("input", 104, false),
    ("nogroup", OVERFLOW_ID, true),
    ("nobody", OVERFLOW_ID, false), // the same, on Fedora
];

/// The text of the account files.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) passwd: String,
    pub(super) group: String,
    pub(super) shadow: String,
    pub(super) gshadow: String,
    /// Who may read `shadow`.
    pub(super) shadow_gid: u32,
}

impl Accounts {
    /// Accounts that fit the files in the host's `/usr`: known names with the numbers they have in the host's files.
    pub(super) fn like(host_passwd: &str, host_group: &str) -> Self {
        let host_users = ids(host_passwd);
        let host_groups = ids(host_group);
        let groups = choose(&GROUPS, &host_groups);
        let gid_of = |name: &str| {
            groups
                .iter()
                .find(|(group, _)| *group == name)
                .map(|(_, gid)| *gid)
        };
        let nogroup = gid_of("nogroup").unwrap_or(OVERFLOW_ID);
        let required = ACCOUNTS.map(|(name, id, _, always)| (name, id, always));
        let (mut passwd, mut shadow) = (String::new(), String::new());
        for (name, uid) in choose(&required, &host_users) {
            let home = ACCOUNTS
                .iter()
                .find(|account| account.0 == name)
                .map_or("/", |account| account.2);
            let gid = gid_of(name).unwrap_or(nogroup);
            let shell = if uid == 0 {
                "/bin/bash"
            } else {
                "/usr/sbin/nologin"
            };
            let _ = writeln!(passwd, "{name}:x:{uid}:{gid}:{name}:{home}:{shell}");
            let _ = writeln!(shadow, "{}", shadow_line(name));
        }
        let _ = writeln!(
            passwd,
            "{USER}:x:{USER_ID}:{USER_ID}::/home/{USER}:/bin/bash"
        );
        let _ = writeln!(shadow, "{}", shadow_line(USER));
        let (mut group, mut gshadow) = (String::new(), String::new());
        for (name, gid) in &groups {
            let members = if matches!(*name, "sudo" | "wheel") {
                USER
            } else {
                ""
            };
            let _ = writeln!(group, "{name}:x:{gid}:{members}");
            let _ = writeln!(gshadow, "{name}:*::{members}");
        }
        let _ = writeln!(group, "{USER}:x:{USER_ID}:");
        let _ = writeln!(gshadow, "{USER}:!::");
        Self {
            passwd,
            group,
            shadow,
            gshadow,
            shadow_gid: gid_of("shadow").unwrap_or(0),
        }
    }
}

/// An account nobody can log in to with a password.
pub(crate) fn shadow_line(name: &str) -> String {
    format!("{name}:*:19000:0:99999:7:::")
}

/// Accounts for a root that has none at all.
pub(crate) fn minimal_passwd() -> String {
    format!(
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:{OVERFLOW_ID}:{OVERFLOW_ID}:nobody:/nonexistent:/bin/false\n"
    )
}

/// Groups for a root that has none at all.
pub(crate) fn minimal_group() -> String {
    format!("root:x:0:\ntty:x:5:\nsudo:x:27:\nnogroup:x:{OVERFLOW_ID}:\n")
}

/// Names and numbers of a passwd or group file.
fn ids(text: &str) -> HashMap<&str, u32> {
    let line = |line: &'_ str| -> Option<(usize, u32)> {
        let mut fields = line.split(':');
        let name = fields.next()?;
        Some((name.len(), fields.nth(1)?.parse().ok()?))
    };
    text.lines()
        .filter_map(|text| line(text).map(|(length, id)| (&text[..length], id)))
        .filter(|(_, id)| *id <= LAST_SYSTEM_ID || *id == OVERFLOW_ID)
        .collect()
}

/// Those of the wanted that the host has, with its numbers, and those always there; no number twice.
fn choose(
    required: &[(&'static str, u32, bool)],
    host: &HashMap<&str, u32>,
) -> Vec<(&'static str, u32)> {
    let mut chosen: Vec<(&str, u32)> = Vec::new();
    for (name, usual, always) in required {
        let id = match (host.get(name), always) {
            // Root is 0 wherever we are.
            (Some(id), _) if *name != "root" => *id,
            (_, true) => *usual,
            _ => continue,
        };
        if chosen.iter().all(|(_, taken)| *taken != id) {
            chosen.push((name, id));
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:$6$hash:0:0:root:/root:/bin/zsh\n_apt:x:42:65534::/nonexistent:/bin/false\n\
        alice:x:1001:1001:Alice:/home/alice:/bin/bash\nsecretd:x:120:120::/:/bin/false\nbroken\n";
    const GROUP: &str =
        "root:x:0:\nshadow:x:77:\nalice:x:1001:\nsudo:x:27:alice\nwheel:x:10:alice\nuucp:x:10:\n";

    #[test]
    fn people_and_their_passwords_stay_out() {
        let accounts = Accounts::like(PASSWD, GROUP);
        for text in [
            &accounts.passwd,
            &accounts.group,
            &accounts.shadow,
            &accounts.gshadow,
        ] {
            for secret in ["alice", "$6$", "secretd", "zsh", "broken"] {
                assert!(!text.contains(secret), "{secret} in {text}");
            }
        }
    }

    #[test]
    fn known_names_have_the_hosts_numbers() {
        let accounts = Accounts::like(PASSWD, GROUP);
        assert!(accounts.passwd.contains("\n_apt:x:42:65534:"));
        assert_eq!(accounts.shadow_gid, 77);
        assert!(accounts.group.contains("\nsudo:x:27:user\n"));
        assert!(
            accounts
                .passwd
                .ends_with("user:x:1000:1000::/home/user:/bin/bash\n")
        );
    }

    #[test]
    fn no_number_is_given_twice() {
        let accounts = Accounts::like(PASSWD, GROUP);
        for text in [&accounts.passwd, &accounts.group] {
            let mut ids: Vec<_> = text
                .lines()
                .filter_map(|line| line.split(':').nth(2))
                .collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), all, "{text}");
        }
    }

    #[test]
    fn a_host_without_account_files_still_gives_the_basics() {
        let accounts = Accounts::like("", "");
        for name in ["root:", "daemon:", "nobody:", "user:"] {
            assert!(
                accounts.passwd.lines().any(|line| line.starts_with(name)),
                "{name}"
            );
        }
    }
}
