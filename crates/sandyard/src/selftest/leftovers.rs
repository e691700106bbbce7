//! Deletes the sandboxes of the suite and checks that nothing remains.

use std::path::Path;

use sandyard_probe::{Finding, Group, Severity, Verdict};

use super::environment::{Sandbox, TestEnv};

/// Deletes the sandboxes and looks for their folders, processes and cgroups.
pub(super) async fn run(env: TestEnv, data_dir: &Path) -> anyhow::Result<Vec<Finding>> {
    let TestEnv {
        engine,
        target,
        neighbour,
        tight,
        ..
    } = env;
    let sandboxes = [target, neighbour, tight];
    for sandbox in &sandboxes {
        engine.delete(&sandbox.info.id).await?;
    }
    let listed = engine.list().await?;
    let mut leftovers = Vec::new();
    for Sandbox { info, .. } in &sandboxes {
        let id = &info.id;
        if listed.iter().any(|other| other.id == *id) {
            leftovers.push(format!("`{id}` is still listed"));
        }
        if data_dir.join("sandboxes").join(id.as_str()).exists() {
            leftovers.push(format!("the folder of `{id}`"));
        }
        if info.init.is_some_and(|init| init.is_alive()) {
            leftovers.push(format!("the first process of `{id}`"));
        }
        leftovers.extend(cgroups_named(id.as_str()));
    }
    Ok(vec![Finding {
        id: "host.leftovers".to_owned(),
        title: "Deleting the sandboxes leaves nothing".to_owned(),
        group: Group::Host,
        what_was_tried: "look for their folders, processes and cgroups".to_owned(),
        expected: "nothing".to_owned(),
        observed: if leftovers.is_empty() {
            "nothing".to_owned()
        } else {
            leftovers.join("; ")
        },
        verdict: if leftovers.is_empty() {
            Verdict::Held
        } else {
            Verdict::Breached
        },
        severity: Severity::High,
    }])
}

/// Cgroup directories whose name contains the sandbox's ID.
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
