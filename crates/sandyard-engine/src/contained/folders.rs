//! Files and folders that an image lacks. Everything is written in place: some of the files are mounts of their own.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, lchown};
use std::path::Path;

use super::accounts::{Account, Accounts};

/// Longer than any file of accounts.
const MOST_BYTES: u64 = 4 << 20;

/// Makes a folder of root's, unless something is there.
pub(super) fn ensure(path: &Path, mode: u32) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o755).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Makes a folder for somebody. One that is there and empty is given to them; one with something in it stays as it is.
pub(super) fn make_owned(path: &Path, mode: u32, owner: &Account) -> io::Result<()> {
    if !path.is_dir() {
        DirBuilder::new().recursive(true).mode(0o755).create(path)?;
    } else if fs::read_dir(path)?.next().is_some() {
        return Ok(());
    }
    lchown(path, Some(owner.uid), Some(owner.gid))?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Makes somebody's home, with what new homes have here, unless it is there.
pub(super) fn make_home(root: &Path, owner: &Account) -> io::Result<()> {
    let home = root.join(owner.home.trim_start_matches('/'));
    if home.exists() {
        return Ok(());
    }
    make_owned(&home, 0o755, owner)?;
    for name in [".bashrc", ".profile"] {
        let model = root.join("etc/skel").join(name);
        if model.is_file() {
            let copy = home.join(name);
            fs::write(&copy, read(&model)?)?;
            lchown(&copy, Some(owner.uid), Some(owner.gid))?;
        }
    }
    Ok(())
}

/// The image's accounts.
pub(super) fn read_accounts(root: &Path) -> io::Result<Accounts> {
    let text = |name: &str| -> io::Result<String> {
        let text = match read(&root.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        // Nothing of it is written back.
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    Ok(Accounts::read(&text("etc/passwd")?, &text("etc/group")?))
}

/// Adds the accounts that are new.
pub(super) fn add_accounts(root: &Path, accounts: &Accounts) -> io::Result<()> {
    append(&root.join("etc/group"), &accounts.new_group)?;
    let shadow = root.join("etc/shadow");
    // Without such a file passwords are in the other one, where nobody has any.
    if shadow.exists() {
        append(&shadow, &accounts.new_shadow)?;
    }
    append(&root.join("etc/passwd"), &accounts.new_passwd)
}

fn append(path: &Path, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .append(true)
        .create(true)
        .mode(0o644)
        .open(path)?;
    let mut text = Vec::new();
    (&mut file).take(MOST_BYTES).read_to_end(&mut text)?;
    let mut added = String::new();
    if text.last().is_some_and(|last| *last != b'\n') {
        added.push('\n');
    }
    for line in lines {
        added.push_str(line);
        added.push('\n');
    }
    file.write_all(added.as_bytes())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?
        .take(MOST_BYTES)
        .read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contained::accounts::USER;

    #[test]
    fn accounts_are_added_behind_a_missing_newline() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir(root.path().join("etc")).expect("make");
        let passwd = root.path().join("etc/passwd");
        fs::write(&passwd, "root:x:0:0::/root:/bin/sh").expect("write");
        fs::write(root.path().join("etc/shadow"), "root:*:::::::\n").expect("write");
        for _ in 0..2 {
            let mut accounts = read_accounts(root.path()).expect("read");
            accounts.ensure(USER, "/bin/sh");
            add_accounts(root.path(), &accounts).expect("add");
            let text = fs::read_to_string(&passwd).expect("read");
            let expected = "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n";
            assert_eq!(text, expected);
        }
        let shadow = fs::read_to_string(root.path().join("etc/shadow")).expect("read");
        assert_eq!(shadow.lines().count(), 2);
    }

    #[test]
    fn a_folder_with_something_in_it_stays_whose_it_is() {
        let root = tempfile::tempdir().expect("a folder");
        let itself = rustix::process::getuid().as_raw();
        let owner = Account {
            name: USER.to_owned(),
            uid: itself,
            gid: rustix::process::getgid().as_raw(),
            home: "/home/user".to_owned(),
        };
        let folder = root.path().join("workspace");
        make_owned(&folder, 0o775, &owner).expect("give");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
        assert_eq!(mode(&folder), 0o775);
        fs::write(folder.join("file"), "").expect("write");
        make_owned(&folder, 0o700, &owner).expect("give");
        assert_eq!(mode(&folder), 0o775);
        ensure(&root.path().join("tmp"), 0o1777).expect("make");
        assert_eq!(mode(&root.path().join("tmp")), 0o1777);
    }
}
