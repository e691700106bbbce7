//! Completion of names in shells.

use std::path::Path;
use std::process::Command;

use super::{Server, stderr_of};

/// What bash offers for the last word of a command line.
fn candidates(server: &Server, arguments: &[&str]) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_sandyard"));
    let script = r#"source <(sandyard completions bash)
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        _clap_complete_sandyard sandyard "${!#}" ""
        printf '%s\n' "${COMPREPLY[@]}""#;
    let settings = server.command(&[]);
    let variables = settings.get_envs();
    let folder = program.parent().expect("a folder").display();
    let output = Command::new("bash")
        .args(["--norc", "-c", script, "bash"])
        .args(arguments)
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", format!("{folder}:/usr/bin:/bin"))
        .output()
        .expect("run bash");
    assert_eq!(stderr_of(&output), "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn bash_completes_commands_sandboxes_and_templates() {
    let server = Server::start();
    let id = server.out(&["create"]);
    server.out(&["create", "--name", "web-one"]);
    server.out(&["snapshot", "web-one", "kept-one"]);
    let offered = |arguments: &[&str]| candidates(&server, arguments);
    assert_eq!(offered(&["sandyard", "snap"]).trim(), "snapshot");
    assert_eq!(offered(&["sandyard", "exec", "we"]).trim(), "web-one");
    assert_eq!(offered(&["sandyard", "rm", "web-one", &id[..4]]).trim(), id);
    assert!(offered(&["sandyard", "ports", "open", "we"]).contains("web-one"));
    assert!(offered(&["sandyard", "create", "--template", "kep"]).contains("kept-one"));
    assert!(offered(&["sandyard", "cp", "we"]).contains("web-one:"));
    assert_eq!(offered(&["sandyard", "volume", "rm", "we"]).trim(), "");
}
