//! Accounts that an image lacks, as lines to add to its files.

/// The account that every sandbox has.
pub(super) const USER: &str = "user";
/// Its id, where free.
const FIRST_ID: u32 = 1000;
/// Ids behind are for other things than people.
const LAST_ID: u32 = 59_999;
/// For an image that has no accounts at all.
const ROOT: &str = "root:x:0:0:root:/root:/bin/sh";
const ROOT_GROUP: &str = "root:x:0:";

/// Somebody that commands run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) home: String,
}

/// The account files as they are, and what is to be added to them.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    passwd: Vec<String>,
    group: Vec<String>,
    pub(super) new_passwd: Vec<String>,
    pub(super) new_group: Vec<String>,
    pub(super) new_shadow: Vec<String>,
}

impl Accounts {
    /// Reads the files' text; empty where there is no file.
    pub(super) fn read(passwd: &str, group: &str) -> Self {
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        let mut accounts = Self {
            passwd: lines(passwd),
            group: lines(group),
            ..Self::default()
        };
        if accounts.passwd.is_empty() {
            accounts.passwd.push(ROOT.to_owned());
            accounts.new_passwd.push(ROOT.to_owned());
        }
        if accounts.group.is_empty() {
            accounts.group.push(ROOT_GROUP.to_owned());
            accounts.new_group.push(ROOT_GROUP.to_owned());
        }
        accounts
    }

    /// Finds or adds whom an image's `USER` means: a name or a number, with a group behind a colon or without.
    pub(super) fn ensure(&mut self, requested: &str, shell: &str) -> Account {
        let (user, group) = match requested.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (requested, None),
        };
        let found = self.find(|account| match user.parse::<u32>() {
            Ok(uid) => account.uid == uid,
            Err(_) => account.name == user,
        });
        found.unwrap_or_else(|| {
            let uid = user.parse().ok();
            let name = match uid {
                None => user.to_owned(),
                Some(_) if self.find(|account| account.name == USER).is_none() => USER.to_owned(),
                Some(uid) => format!("{USER}{uid}"),
            };
            self.add(&name, uid, group, shell)
        })
    }

    fn add(&mut self, name: &str, uid: Option<u32>, group: Option<&str>, shell: &str) -> Account {
        let uid = uid.unwrap_or_else(|| free_id(&self.passwd));
        let gid = match group.and_then(|group| self.group_id(group)) {
            Some(gid) => gid,
            None => self.add_group(name, uid),
        };
        let home = format!("/home/{name}");
        let line = format!("{name}:x:{uid}:{gid}::{home}:{shell}");
        self.passwd.push(line.clone());
        self.new_passwd.push(line);
        self.new_shadow.push(format!("{name}:*:19000:0:99999:7:::"));
        Account {
            name: name.to_owned(),
            uid,
            gid,
            home,
        }
    }

    /// The group of that name or number; a number need not have a name.
    fn group_id(&self, requested: &str) -> Option<u32> {
        let named = || {
            let line = self
                .group
                .iter()
                .find(|line| field(line, 0) == Some(requested));
            number(line?, 2)
        };
        requested.parse().ok().or_else(named)
    }

    fn add_group(&mut self, name: &str, uid: u32) -> u32 {
        if let Some(gid) = self.group_id(name) {
            return gid;
        }
        let is_taken = self.group.iter().any(|line| number(line, 2) == Some(uid));
        let gid = if is_taken { free_id(&self.group) } else { uid };
        let line = format!("{name}:x:{gid}:");
        self.group.push(line.clone());
        self.new_group.push(line);
        gid
    }

    fn find(&self, is_it: impl Fn(&Account) -> bool) -> Option<Account> {
        let accounts = self.passwd.iter().filter_map(|line| {
            Some(Account {
                name: field(line, 0)?.to_owned(),
                uid: number(line, 2)?,
                gid: number(line, 3)?,
                home: field(line, 5).unwrap_or("/").to_owned(),
            })
        });
        accounts.into_iter().find(is_it)
    }
}

fn field(line: &str, index: usize) -> Option<&str> {
    line.split(':').nth(index)
}

fn number(line: &str, index: usize) -> Option<u32> {
    field(line, index)?.parse().ok()
}

/// 1000, or the next that nobody has.
fn free_id(lines: &[String]) -> u32 {
    let taken: Vec<u32> = lines.iter().filter_map(|line| number(line, 2)).collect();
    (FIRST_ID..=LAST_ID)
        .find(|id| !taken.contains(id))
        .unwrap_or(LAST_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: (&str, &str) = (
        "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "root:x:0:\nstaff:x:50:\n",
    );
    const NODE: (&str, &str) = (
        "root:x:0:0:root:/root:/bin/bash\nnode:x:1000:1000::/home/node:/bin/bash\n",
        "root:x:0:\nnode:x:1000:\n",
    );

    fn ids(account: &Account) -> (&str, u32, u32) {
        (&account.name, account.uid, account.gid)
    }

    #[test]
    fn a_plain_image_gets_the_user_with_its_usual_id() {
        let mut accounts = Accounts::read(DEBIAN.0, DEBIAN.1);
        let account = accounts.ensure(USER, "/bin/bash");
        assert_eq!(ids(&account), ("user", 1000, 1000));
        assert_eq!(
            accounts.new_passwd,
            ["user:x:1000:1000::/home/user:/bin/bash"]
        );
        assert_eq!(accounts.new_group, ["user:x:1000:"]);
        assert_eq!(accounts.new_shadow, ["user:*:19000:0:99999:7:::"]);
        // Once there, it is found.
        assert_eq!(accounts.ensure(USER, "/bin/sh"), account);
        assert_eq!(accounts.new_passwd.len(), 1);
    }

    #[test]
    fn ids_that_are_taken_are_left_to_their_owners() {
        let mut accounts = Accounts::read(NODE.0, NODE.1);
        assert_eq!(ids(&accounts.ensure(USER, "/bin/sh")), ("user", 1001, 1001));
        let node = accounts.ensure("node:node", "/bin/sh");
        assert_eq!(
            (ids(&node), node.home.as_str()),
            (("node", 1000, 1000), "/home/node")
        );
        assert_eq!(
            ids(&accounts.ensure("1000", "/bin/sh")),
            ("node", 1000, 1000)
        );
    }

    #[test]
    fn a_number_without_an_account_becomes_one() {
        let mut accounts = Accounts::read(DEBIAN.0, DEBIAN.1);
        assert_eq!(
            ids(&accounts.ensure("1234:50", "/bin/sh")),
            ("user", 1234, 50)
        );
        assert_eq!(
            ids(&accounts.ensure("4321:staff", "/bin/sh")),
            ("user4321", 4321, 50)
        );
    }

    #[test]
    fn an_image_with_no_files_at_all_gets_root_too() {
        let mut accounts = Accounts::read("", "");
        accounts.ensure(USER, "/bin/sh");
        assert_eq!(accounts.new_passwd.len(), 2);
        assert!(accounts.new_passwd[0].starts_with("root:x:0:0:"));
        assert_eq!(accounts.new_group, ["root:x:0:", "user:x:1000:"]);
    }

    #[test]
    fn broken_lines_are_passed_over() {
        let mut accounts = Accounts::read("broken\n::::\nroot:x:0:0:root:/root:/bin/sh\n", "x\n");
        assert_eq!(accounts.ensure(USER, "/bin/sh").uid, 1000);
        assert_eq!(accounts.ensure("root", "/bin/sh").uid, 0);
    }
}
