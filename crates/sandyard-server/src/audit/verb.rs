//! What the audit calls an operation: the same words whichever dialect or path the request used.

use axum::http::Method;
use sandyard_agent_client::wire::routes::FILES;

/// Operations that have another name in some dialect, or a name that says how instead of what.
const VERBS: [(&str, &[&str]); 11] = [
    (
        "run command",
        &[
            "run_command",
            "run_command_stream",
            "run_in_sandbox",
            "exec",
            "execute_in_container",
        ],
    ),
    ("open terminal", &["open_pty"]),
    ("create sandbox", &["create", "create_container"]),
    ("start sandbox", &["start_container"]),
    ("stop sandbox", &["stop_container"]),
    ("pause sandbox", &["pause"]),
    ("resume sandbox", &["resume"]),
    (
        "delete sandbox",
        &["delete", "delete_named_sandbox", "delete_container"],
    ),
    ("connect to sandbox", &["connect", "connect_sandbox"]),
    (
        "set timeout",
        &["schedule_timeout", "set_timeout", "refresh"],
    ),
    (
        "write file",
        &[
            "put_file",
            "post_file",
            "write_file",
            "upload_file",
            "upload_file_from_url",
            "copy_to",
        ],
    ),
];

/// Words for an operation id.
pub(crate) fn verb(operation: &str) -> String {
    let name = ["enveloped_v1_", "enveloped_", "e2b_"]
        .iter()
        .find_map(|prefix| operation.strip_prefix(prefix))
        .unwrap_or(operation);
    let name = name.split("_by_").next().unwrap_or(name);
    let name = ["_v1", "_v2", "_v3"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    let known = VERBS.iter().find(|(_, names)| names.contains(&name));
    known.map_or_else(|| name.replace('_', " "), |(verb, _)| (*verb).to_owned())
}

/// Words for a request to a sandbox's agent that changes something; none for the others.
pub(crate) fn agent_verb(method: &Method, path: &str) -> Option<&'static str> {
    Some(match path {
        "/process.Process/Start" => "run command",
        "/process.Process/SendSignal" => "signal command",
        "/filesystem.Filesystem/Remove" => "remove file",
        "/filesystem.Filesystem/Move" => "rename file",
        "/filesystem.Filesystem/MakeDir" => "create directory",
        FILES if method == Method::POST => "write file",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_the_same_words_in_every_dialect() {
        for (operation, expected) in [
            ("run_command_by_run_cmd", "run command"),
            ("enveloped_v1_run_command", "run command"),
            ("exec", "run command"),
            ("schedule_timeout_by_timeout", "set timeout"),
            ("e2b_create_v1", "create sandbox"),
            ("e2b_connect_by_connect", "connect to sandbox"),
            ("delete_named_sandbox", "delete sandbox"),
            ("snapshot_sandbox", "snapshot sandbox"),
            ("create_key", "create key"),
        ] {
            assert_eq!(verb(operation), expected);
        }
    }
}
