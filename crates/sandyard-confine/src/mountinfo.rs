//! The mounts of this process's mount namespace, from `/proc/self/mountinfo` (see proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The directory of the file system that is its root.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Options of this mount: `ro`, `nosuid`, …
    pub options: Vec<String>,
    /// Type of the file system: `ext4`, `cgroup2`, …
    pub kind: String,
    /// Options of the file system.
    pub super_options: Vec<String>,
}

impl Mount {
    /// Says whether nothing can be written through this mount.
    pub fn is_read_only(&self) -> bool {
        self.options.iter().any(|option| option == "ro")
    }
}

/// Every mount this process sees, in the kernel's order. Empty where `/proc` is not mounted.
pub fn mounts() -> Vec<Mount> {
    parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// Reads the text of a mountinfo file. Lines that are not understood are left out.
pub fn parse(table: &[u8]) -> Vec<Mount> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

/// Parses `id parent device root point options [optional-field…] - type source super-options`.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(3);
    let root = unescape(fields.next()?);
    let point = unescape(fields.next()?);
    let options = list(fields.next()?);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    Some(Mount {
        root,
        point,
        options,
        kind: String::from_utf8_lossy(fields.next()?).into_owned(),
        super_options: fields.nth(1).map(list).unwrap_or_default(),
    })
}

fn list(field: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(field);
    text.split(',').map(str::to_owned).collect()
}

/// Undoes the octal escapes of the kernel (`\040` for a space).
fn unescape(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        rest = match code.filter(|_| byte == b'\\') {
            Some(code) => {
                plain.push(code);
                &after[3..]
            }
            None => {
                plain.push(byte);
                after
            }
        };
    }
    OsString::from_vec(plain).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed_whatever_optional_fields_it_has() {
        let table = br"22 1 0:21 /sub /a\040b ro,nosuid,relatime - tmpfs none rw,size=4k
36 35 98:0 /mnt1 /usr/my\040local rw,noatime master:1 shared:2 - ext4 /dev/root rw

36 35 98:0 /mnt1";
        let list = |options: &[&str]| options.iter().map(|option| (*option).to_owned()).collect();
        assert_eq!(
            parse(table),
            [
                Mount {
                    root: "/sub".into(),
                    point: "/a b".into(),
                    options: list(&["ro", "nosuid", "relatime"]),
                    kind: "tmpfs".to_owned(),
                    super_options: list(&["rw", "size=4k"]),
                },
                Mount {
                    root: "/mnt1".into(),
                    point: "/usr/my local".into(),
                    options: list(&["rw", "noatime"]),
                    kind: "ext4".to_owned(),
                    super_options: list(&["rw"]),
                },
            ]
        );
    }

    #[test]
    fn escapes_in_mount_points_are_undone() {
        assert_eq!(unescape(br"/a\040b\134c\x"), PathBuf::from(r"/a b\c\x"));
    }
}
