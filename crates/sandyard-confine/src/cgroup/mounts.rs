//! Finds the mounted cgroup hierarchies and this process's own group in each.

use std::path::{Path, PathBuf};

use crate::mountinfo;

/// One mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// Where it is mounted.
    pub(super) point: PathBuf,
    /// Controllers of a v1 hierarchy; `None` for v2.
    pub(super) v1: Option<Vec<String>>,
    /// This process's own group, relative to the mount point; empty when it is the mount's root or lies outside of it.
    pub(super) own_group: PathBuf,
}

/// Finds the hierarchies that are mounted for this process.
pub(super) fn find() -> Vec<Mount> {
    let own_groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    select(mountinfo::mounts(), &own_groups)
}

/// Selects the hierarchies, with the text of `/proc/self/cgroup`. Earlier mounts win: later ones are copies elsewhere.
fn select(mounts: Vec<mountinfo::Mount>, own_groups: &str) -> Vec<Mount> {
    let mut hierarchies: Vec<Mount> = Vec::new();
    for mount in mounts {
        let v1 = match mount.kind.as_str() {
            "cgroup2" => None,
            "cgroup" => Some(controllers(mount.super_options)),
            _ => continue,
        };
        if hierarchies.iter().any(|second| same_tree(&second.v1, &v1)) {
            continue;
        }
        let own_group = own_path(own_groups, v1.as_deref())
            .and_then(|path| path.strip_prefix(&mount.root).ok().map(Path::to_owned))
            .filter(|path| path.components().all(is_plain))
            .unwrap_or_default();
        hierarchies.push(Mount {
            point: mount.point,
            v1,
            own_group,
        });
    }
    hierarchies
}

/// A group outside of our cgroup namespace shows as `/../..`; such a path is of no use.
fn is_plain(component: std::path::Component<'_>) -> bool {
    matches!(component, std::path::Component::Normal(_))
}

fn same_tree(first: &Option<Vec<String>>, second: &Option<Vec<String>>) -> bool {
    match (first, second) {
        (None, None) => true,
        (Some(first), Some(second)) => first.iter().any(|name| second.contains(name)),
        _ => false,
    }
}

fn controllers(mut super_options: Vec<String>) -> Vec<String> {
    super_options.retain(|option| !matches!(option.as_str(), "rw" | "ro"));
    super_options
}

/// Finds our own group in lines like `4:memory:/a/b` or `0::/a/b`.
fn own_path<'text>(own_groups: &'text str, v1: Option<&[String]>) -> Option<&'text Path> {
    own_groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        let matches = match v1 {
            None => names.is_empty(),
            Some(wanted) => names
                .split(',')
                .any(|name| wanted.iter().any(|want| want == name)),
        };
        matches.then(|| Path::new(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(mountinfo: &str, own_groups: &str) -> Vec<Mount> {
        select(mountinfo::parse(mountinfo.as_bytes()), own_groups)
    }

    fn mount(point: &str, v1: Option<&[&str]>, own_group: &str) -> Mount {
        Mount {
            point: point.into(),
            v1: v1.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            own_group: own_group.into(),
        }
    }

    #[test]
    fn pure_v2_is_one_mount_with_our_group() {
        let mounts = parse(
            "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n",
        );
        let own_group = "user.slice/user-1000.slice/user@1000.service/app.slice/x.scope";
        assert_eq!(mounts, [mount("/sys/fs/cgroup", None, own_group)]);
    }

    #[test]
    fn hybrid_with_co_mounted_controllers_is_understood() {
        let mounts = parse(
            "22 1 8:1 / / rw - ext4 /dev/sda rw\n\
             31 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
             32 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
             33 23 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n",
            "5:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n",
        );
        assert_eq!(
            mounts,
            [
                mount("/sys/fs/cgroup/unified", None, "c"),
                mount("/sys/fs/cgroup/cpu,cpuacct", Some(&["cpu", "cpuacct"]), "a"),
                mount(
                    "/sys/fs/cgroup/systemd",
                    Some(&["xattr", "name=systemd"]),
                    "b"
                ),
            ]
        );
    }

    #[test]
    fn container_bind_mount_is_its_own_root() {
        let mounts = parse(
            "40 1 0:9 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory",
            "4:memory:/docker/abc/sub",
        );
        assert_eq!(
            mounts,
            [mount("/sys/fs/cgroup/memory", Some(&["memory"]), "sub")]
        );
    }

    #[test]
    fn group_outside_of_the_namespace_is_no_path() {
        let mounts = parse("40 1 0:9 / /c rw - cgroup2 none rw", "0::/../../other");
        assert_eq!(mounts, [mount("/c", None, "")]);
    }

    #[test]
    fn second_mount_of_the_same_tree_is_ignored() {
        let mounts = parse(
            "40 1 0:9 / /first rw - cgroup2 none rw\n41 1 0:9 / /second rw - cgroup2 none rw",
            "",
        );
        assert_eq!(mounts, [mount("/first", None, "")]);
    }
}
