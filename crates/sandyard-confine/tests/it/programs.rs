//! Real programs under filter, capabilities and limits, as a sandbox's commands run.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use sandyard_confine::seccomp::Filter;
use sandyard_confine::{caps, rlimits};

/// Runs a program confined.
#[track_caller]
fn confined(program: &str, arguments: &[&str]) -> Output {
    let filter = Filter::compile();
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/");
    // SAFETY: the closure makes system calls and, unless one fails, allocates nothing.
    unsafe {
        command.pre_exec(move || {
            rlimits::apply(rlimits::Accounting::Alone).map_err(std::io::Error::other)?;
            filter.install().map_err(std::io::Error::other)?;
            caps::confine().map_err(std::io::Error::other)
        })
    };
    // `./test` installs all of them.
    command
        .output()
        .unwrap_or_else(|error| panic!("`{program}` does not start: {error}"))
}

/// Asserts what a program prints.
#[track_caller]
fn prints(program: &str, arguments: &[&str], expected: &str) {
    let output = confined(program, arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains(expected),
        "{program}: {}\n{text}\n{problems}",
        output.status
    );
}

#[test]
fn shell_with_pipes_and_background_jobs_runs() {
    prints(
        "bash",
        &["-c", "(sleep 0 & echo a | cat; wait; echo $((6*7)))"],
        "42",
    );
}

#[test]
fn python_with_threads_and_processes_runs() {
    let code = "import threading, subprocess, multiprocessing as m, ssl, socket, asyncio\n\
        t = threading.Thread(target=print); t.start(); t.join()\n\
        p = m.Process(target=print); p.start(); p.join(); assert p.exitcode == 0\n\
        s = socket.create_server(('127.0.0.1', 0)); s.close()\n\
        asyncio.run(asyncio.sleep(0))\n\
        print(subprocess.check_output(['echo', '42']).decode())";
    prints("python3", &["-c", code], "42");
}

#[test]
fn node_with_workers_runs() {
    let code = "const {Worker} = require('worker_threads'); \
        new Worker('console.log(6*7)', {eval: true}); require('fs').readdir('/', () => {})";
    prints("node", &["-e", code], "42");
}

#[test]
fn git_makes_a_repository() {
    let dir = std::env::temp_dir().join(format!("sandyard-confine-git-{}", std::process::id()));
    let script = "git init -q \"$0\" && cd \"$0\" && echo x > f && git add f \
        && git -c user.name=a -c user.email=a@b commit -qm 42 && git log --oneline";
    prints("sh", &["-c", script, dir.to_str().unwrap()], "42");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn strace_traces_inside() {
    prints(
        "strace",
        &["-f", "-o", "/dev/stdout", "echo", "hello"],
        "execve(",
    );
}

#[test]
fn gdb_runs_a_program_inside() {
    prints(
        "gdb",
        &["-nx", "-batch", "-ex", "run", "--args", "echo", "hello"],
        "hello",
    );
}

#[test]
fn compiler_runs() {
    prints("rustc", &["--version", "--verbose"], "host:");
    prints("cc", &["-E", "-dM", "-x", "c", "/dev/null"], "__linux__");
}

#[test]
fn package_manager_runs() {
    prints("apt-get", &["--version"], "apt");
    prints("dpkg-deb", &["--version"], "dpkg-deb");
}

#[test]
fn root_inside_changes_to_another_user() {
    let code =
        "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534); print(os.getuid())";
    prints("python3", &["-c", code], "65534");
}

#[test]
fn namespace_tools_fail_politely() {
    let output = confined("unshare", &["--user", "--map-root-user", "echo", "escaped"]);
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("not permitted"),
        "{output:?}"
    );
}
