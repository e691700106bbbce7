//! What is still there when every sandbox of the suite is deleted: it must be nothing.

use std::path::Path;

use sandyard_probe::{Finding, Group, Severity, Verdict};

use super::yard::{Sandbox, Yard};

/// Deletes the sandboxes and looks for what is left of them.
pub(super) async fn run(yard: Yard, data_dir: &Path) -> anyhow::Result<Vec<Finding>> {
    let Yard {
        engine,
        target,
        neighbour,
        tight,
        ..
    } = yard;
    let sandboxes = [target, neighbour, tight];
    for sandbox in &sandboxes {
        engine.delete(&sandbox.info.id).await?;
    }
    let listed = engine.list().await?;
    let mut left = Vec::new();
    for Sandbox { info, .. } in &sandboxes {
        let id = &info.id;
        if listed.iter().any(|other| other.id == *id) {
            left.push(format!("`{id}` is still listed"));
        }
        if data_dir.join("sandboxes").join(id.as_str()).exists() {
            left.push(format!("the folder of `{id}`"));
        }
        if info.init.is_some_and(|init| init.is_alive()) {
            left.push(format!("the first process of `{id}`"));
        }
        left.extend(cgroups_named(id.as_str()));
    }
    Ok(vec![Finding {
        id: "host.leftovers".to_owned(),
        title: "Deleting the sandboxes leaves nothing".to_owned(),
        group: Group::Host,
        what_was_tried: "look for their folders, processes and cgroups".to_owned(),
        expected: "nothing".to_owned(),
        observed: if left.is_empty() {
            "nothing".to_owned()
        } else {
            left.join("; ")
        },
        verdict: if left.is_empty() {
            Verdict::Held
        } else {
            Verdict::Breached
        },
        severity: Severity::High,
    }])
}

/// Cgroup directories whose name holds the sandbox's id.
fn cgroups_named(id: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![(Path::new("/sys/fs/cgroup").to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().contains(id) {
                found.push(format!("`{}`", entry.path().display()));
            } else if depth < 6 {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    found
}
