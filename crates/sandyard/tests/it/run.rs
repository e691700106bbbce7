//! `sandyard run`.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::test_env::TestEnv;

#[test]
fn output_and_exit_code_are_those_of_the_command() {
    let env = TestEnv::new();
    let output = env.sandyard(&["run", "--", "bash", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "err\n");
    env.wait_until_empty();
}

#[test]
fn arguments_variables_directory_and_user_are_applied() {
    let env = TestEnv::new();
    let printed = env.out(&[
        "run",
        "-e",
        "A=one two",
        "-w",
        "/tmp",
        "--",
        "bash",
        "-c",
        "echo \"$A|$0|$(pwd)|$HOME\"",
        "x y",
    ]);
    assert_eq!(printed, "one two|x y|/tmp|/home/user");
    assert_eq!(env.out(&["run", "-u", "root", "--", "id", "-u"]), "0");
}

#[test]
fn standard_input_is_forwarded_only_with_interactive() {
    let env = TestEnv::new();
    let mut child = env
        .command(&["run", "-i", "--", "wc", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start");
    // More than any pipe or buffer on the way holds.
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(&vec![b'x'; 3 << 20])
        .expect("write");
    let output = child.wait_with_output().expect("wait");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        (3 << 20).to_string()
    );
    let mut child = env
        .command(&["run", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start");
    let _ = child
        .stdin
        .as_mut()
        .expect("a pipe")
        .write_all(b"not for it");
    let output = child.wait_with_output().expect("wait");
    assert_eq!(output.stdout, b"");
}

#[test]
fn failures_have_their_own_exit_codes() {
    let env = TestEnv::new();
    let code = |arguments: &[&str]| env.sandyard(arguments).status.code();
    assert_eq!(
        code(&["run", "--timeout", "0.5", "--", "sleep", "100"]),
        Some(124)
    );
    assert_eq!(code(&["run", "--", "no-such-command"]), Some(127));
    assert_eq!(
        code(&["run", "--cwd", "/no/such/folder", "--", "true"]),
        Some(127)
    );
    assert_eq!(
        code(&["run", "--template", "no-such-template", "--", "true"]),
        Some(125)
    );
    assert_eq!(code(&["run", "--memory", "1k", "--", "true"]), Some(125));
    assert_eq!(code(&["run", "--memory", "lots", "--", "true"]), Some(2));
    assert_eq!(
        code(&["run", "--", "bash", "-c", "kill -TERM $$"]),
        Some(143)
    );
    assert_eq!(
        code(&["run", "--", "bash", "-c", "kill -KILL $$"]),
        Some(137)
    );
}

#[test]
fn an_error_has_a_hint() {
    let env = TestEnv::new();
    let output = env.sandyard(&["run", "--template", "none", "--", "true"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("error: no template `none`")
            && stderr.contains("hint: list templates with `sandyard template ls`"),
        "{stderr}"
    );
}

#[test]
fn tty_gives_the_command_a_terminal() {
    let env = TestEnv::new();
    let data = env.path().join("data");
    let line = format!(
        "{} --data-dir {} run -it -- bash -c 'tty; stty size'",
        env!("CARGO_BIN_EXE_sandyard"),
        data.display()
    );
    let output = std::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .expect("run script");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("/dev/pts/"), "{text}");
    assert!(output.status.success());
}

#[test]
fn a_killed_run_leaves_no_sandbox() {
    let env = TestEnv::new();
    let mut child = env
        .command(&["run", "--", "bash", "-c", "echo up; sleep 1000"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("start");
    let mut up = [0; 3];
    child
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_exact(&mut up)
        .expect("it is up");
    assert_ne!(env.out(&["ls", "--local", "--json"]), "[]");
    child.kill().expect("kill");
    child.wait().expect("reap");
    env.wait_until_empty();
}

#[test]
fn limits_come_from_the_settings_within_their_maxima() {
    let env = TestEnv::new();
    let data = env.path().join("data");
    std::fs::create_dir(&data).expect("make");
    let settings = r#"{"default_limits": {"disk": "32m"}, "max_limits": {"memory": "1g"}}"#;
    std::fs::write(data.join("settings.json"), settings).expect("write");
    let refused = env.sandyard(&["run", "--memory", "2g", "--", "true"]);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        stderr.contains("`memory_limit` must be between 16 MiB and 1 GiB (got 2 GiB)"),
        "{stderr}"
    );
    let listing = env
        .command(&["run", "--", "sleep", "100"])
        .spawn()
        .and_then(|mut child| {
            let give_up = std::time::Instant::now() + std::time::Duration::from_secs(120);
            let mut listing = String::from("[]");
            while listing == "[]" && std::time::Instant::now() < give_up {
                listing = env.out(&["ls", "--local", "--json"]);
            }
            child.kill()?;
            child.wait()?;
            Ok(listing)
        });
    assert!(
        listing
            .expect("a sandbox")
            .contains(&format!("\"disk_bytes\": {}", 32 << 20))
    );
}

#[test]
fn wrong_settings_are_reported() {
    let env = TestEnv::new();
    let data = env.path().join("data");
    std::fs::create_dir(&data).expect("make");
    std::fs::write(data.join("settings.json"), "{\"max_limts\": {}}").expect("write");
    let refused = env.sandyard(&["run", "--", "true"]);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        stderr.contains("settings.json") && stderr.contains("max_limts"),
        "{stderr}"
    );
    assert_eq!(refused.status.code(), Some(125));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let env = TestEnv::new();
    let line = format!(
        "{} --data-dir {} run -- yes | head -n 1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_sandyard"),
        env.path().join("data").display()
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &line])
        .output()
        .expect("run bash");
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(141), b"y\n".as_slice()),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    env.wait_until_empty();
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let env = TestEnv::new();
    let closed = env.path().join("closed");
    std::fs::create_dir(&closed).expect("make");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o500);
    std::fs::set_permissions(&closed, mode).expect("close");
    let mut command = match rustix::process::geteuid().is_root() {
        // Root may write everywhere, unless it lacks a capability.
        true => {
            let mut command = std::process::Command::new("setpriv");
            command.args([
                "--bounding-set=-dac_override,-dac_read_search",
                env!("CARGO_BIN_EXE_sandyard"),
            ]);
            command
        }
        false => std::process::Command::new(env!("CARGO_BIN_EXE_sandyard")),
    };
    let output = command
        .arg("--data-dir")
        .arg(closed.join("data"))
        .args(["run", "--", "true"])
        .stdin(Stdio::null())
        .output()
        .expect("run the program");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("cannot write to the data directory"),
        "{stderr}"
    );
}

#[test]
fn lack_of_memory_is_reported() {
    let env = TestEnv::new();
    let script = "x = bytearray(10**9)";
    let output = env.sandyard(&["run", "--memory", "64m", "--", "python3", "-c", script]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if stderr.contains("no limit on") {
        return;
    }
    assert_eq!(output.status.code(), Some(137), "{stderr}");
    assert!(stderr.contains("ran out of memory (64 MiB)"), "{stderr}");
}
