//! User and group ids: none of ours is root on the host.

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Privileges,
    Severity::{Critical, High},
};
use crate::search::read_start;
use crate::sys::{self, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Privileges, Critical, "ids.map", map)
        .title("No id inside is root on the host")
        .attempts("read /proc/self/uid_map and gid_map")
        .expects("outer ids never include 0")
        .on_host(OnHost::Breaches),
    Check::new(Privileges, Critical, "ids.rewrite-map", rewrite_map)
        .title("The id map cannot be rewritten")
        .attempts("write `0 0 1` to our own and to the agent's uid_map")
        .expects("refused"),
    Check::new(Privileges, High, "ids.become-root", become_root)
        .title("The user becomes root only through sudo")
        .attempts("setresuid and setresgid to 0, setgroups")
        .expects("refused to the user; root inside already is"),
];

fn map(context: &Context) -> Outcome {
    let mut bad = Vec::new();
    let mut seen = Vec::new();
    for file in ["/proc/self/uid_map", "/proc/self/gid_map"] {
        let text = read_start(file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        if text.trim().is_empty() {
            return Outcome::inconclusive(format_args!("`{file}` is empty"));
        }
        for line in text.lines() {
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            if maps_root(&line) && context.plan.root_on_host.is_none_or(|uid| uid == 0) {
                bad.push(format!("`{file}`: {line}"));
            }
            seen.push(line);
        }
    }
    seen.dedup();
    Outcome::breached_by(&bad, seen.join("; "))
}

/// Whether a line of a map (inside, outside, count) includes the host's 0. Outer ids only grow from their start.
fn maps_root(line: &str) -> bool {
    line.split(' ').nth(1) == Some("0")
}

fn rewrite_map(_: &Context) -> Outcome {
    let mut answers = Vec::new();
    for file in [
        "/proc/self/uid_map",
        "/proc/1/uid_map",
        "/proc/self/gid_map",
    ] {
        match std::fs::write(file, "0 0 1\n") {
            Ok(()) => return Outcome::breached(format_args!("`{file}` was rewritten")),
            Err(error) => answers.push(sys::Errno::from(error).to_string()),
        }
    }
    answers.dedup();
    Outcome::held(answers.join(", "))
}

fn become_root(context: &Context) -> Outcome {
    if context.is_root() {
        return Outcome::held("root inside already");
    }
    let attempts = [
        ("setresuid", sys!(libc::SYS_setresuid, 0, 0, 0)),
        ("setresgid", sys!(libc::SYS_setresgid, 0, 0, 0)),
        ("setgroups", sys!(libc::SYS_setgroups, 0, 0)),
    ];
    let worked: Vec<String> = attempts
        .iter()
        .filter(|(_, result)| result.is_ok())
        .map(|(name, _)| format!("{name} worked"))
        .collect();
    let answers: Vec<String> = attempts
        .iter()
        .filter_map(|(_, result)| Some(result.err()?.to_string()))
        .collect();
    Outcome::breached_by(&worked, answers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::maps_root;

    #[test]
    fn a_map_that_includes_the_hosts_root_is_recognised() {
        assert!(maps_root("0 0 4294967295"));
        assert!(!maps_root("0 100000 65536"));
        assert!(!maps_root("0 1000 1"));
    }
}
