//! The mount table as seen from here.

use std::path::PathBuf;

/// One line of /proc/self/mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) point: PathBuf,
    pub(crate) options: Vec<String>,
    pub(crate) kind: String,
}

impl Mount {
    pub(crate) fn is_read_only(&self) -> bool {
        self.options.iter().any(|option| option == "ro")
    }

    /// The mount(2) flags to give again with a remount: leaving a locked one out is refused for that alone.
    pub(crate) fn flags(&self) -> u64 {
        let flag = |option: &String| match option.as_str() {
            "nosuid" => libc::MS_NOSUID,
            "nodev" => libc::MS_NODEV,
            "noexec" => libc::MS_NOEXEC,
            "noatime" => libc::MS_NOATIME,
            "nodiratime" => libc::MS_NODIRATIME,
            "relatime" => libc::MS_RELATIME,
            _ => 0,
        };
        self.options.iter().map(flag).fold(0, |all, one| all | one)
    }
}

/// Every mount of our namespace.
pub(crate) fn mounts() -> Vec<Mount> {
    parse(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

fn parse(table: &str) -> Vec<Mount> {
    table
        .lines()
        .filter_map(|line| {
            let (front, back) = line.split_once(" - ")?;
            let mut front = front.split(' ').skip(4);
            let point = unescape(front.next()?);
            let options = front.next()?.split(',').map(str::to_owned).collect();
            Some(Mount {
                point,
                options,
                kind: back.split(' ').next()?.to_owned(),
            })
        })
        .collect()
}

/// Undoes the kernel's octal escapes of space, tab, newline and backslash.
fn unescape(field: &str) -> PathBuf {
    let text = field
        .replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\");
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_mount_table_is_read() {
        let table = "22 1 0:21 /sub /a\\040b ro,nosuid,relatime shared:1 - tmpfs none rw,size=4k\n";
        let mounts = parse(table);
        assert_eq!(mounts[0].point, PathBuf::from("/a b"));
        assert_eq!(mounts[0].kind, "tmpfs");
        assert!(mounts[0].is_read_only());
        assert_eq!(mounts[0].flags(), libc::MS_NOSUID | libc::MS_RELATIME);
    }
}
