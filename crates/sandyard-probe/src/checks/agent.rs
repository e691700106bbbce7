//! The agent, which is process 1. Root inside may do with it what it likes, an ordinary user may not; and nobody can
//! end it except by ending the sandbox.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::check::{Check, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Processes,
    Severity::{High, Medium},
};
use crate::search::start_time;
use crate::sys::{self, sys};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Processes, High, "agent.trace", trace)
        .title("The user cannot trace the agent")
        .attempts("PTRACE_SEIZE of process 1")
        .expects("refused to the user; root inside may"),
    Check::new(Processes, High, "agent.memory", memory)
        .title("The user cannot read or write the agent")
        .attempts("open /proc/1/mem, environ, maps, root, cwd and fd")
        .expects("refused to the user; root inside may"),
    Check::new(Processes, Medium, "agent.signal", signal)
        .title("The agent survives every signal")
        .attempts("SIGKILL, SIGSTOP, SIGTERM, SIGSEGV to process 1")
        .expects("refused to the user, without effect from root"),
    Check::new(Processes, High, "agent.port", port)
        .title("The agent's port asks for a token")
        .attempts("GET /files, GET /envs and POST of a process without a token at 127.0.0.1:49983")
        .expects("refused"),
];

fn user_only(context: &Context, attempt: impl FnOnce() -> Outcome) -> Outcome {
    if context.is_root() || context.plan.single_uid {
        return Outcome::held("root inside is allowed to: the host does not trust the agent");
    }
    attempt()
}

fn trace(context: &Context) -> Outcome {
    user_only(context, || {
        sys::refused(sys!(libc::SYS_ptrace, libc::PTRACE_SEIZE, 1, 0, 0))
    })
}

fn memory(context: &Context) -> Outcome {
    user_only(context, || {
        let files = [
            "mem", "environ", "maps", "root/", "cwd/", "fd/0", "syscall", "stack",
        ];
        let opened: Vec<String> = files
            .iter()
            .map(|file| format!("/proc/1/{file}"))
            .filter(|file| sys::open(file, libc::O_RDONLY).map(sys::close).is_ok())
            .map(|file| format!("opened `{file}`"))
            .collect();
        Outcome::breached_by(&opened, "none could be opened")
    })
}

/// Only from a pid namespace of our own: on a host it would be the host's init.
fn signal(context: &Context) -> Outcome {
    if context
        .plan
        .process
        .as_ref()
        .is_none_or(|process| start_time(process.pid) == Some(process.start_time))
    {
        return Outcome::inconclusive("the probe may not be in a pid namespace of its own");
    }
    let before = start_time(1);
    let mut answers = Vec::new();
    for signal in [
        libc::SIGKILL,
        libc::SIGSTOP,
        libc::SIGTERM,
        libc::SIGSEGV,
        libc::SIGHUP,
    ] {
        match sys!(libc::SYS_kill, 1, signal) {
            Ok(_) if !(context.is_root() || context.plan.single_uid) => {
                return Outcome::breached(format_args!("the user sent signal {signal}"));
            }
            Ok(_) => answers.push("sent".to_owned()),
            Err(errno) => answers.push(errno.to_string()),
        }
    }
    // Were it gone, so were we: the kernel ends a pid namespace with its first process.
    let state = std::fs::read_to_string("/proc/1/stat").unwrap_or_default();
    let stopped = state
        .rsplit_once(')')
        .is_some_and(|(_, fields)| fields.trim_start().starts_with(['T', 't', 'Z']));
    answers.dedup();
    match start_time(1) {
        now if now == before && !stopped => {
            Outcome::held(format_args!("{}; it is still running", answers.join(", ")))
        }
        _ => Outcome::breached("process 1 has changed"),
    }
}

fn port(_: &Context) -> Outcome {
    let requests = [
        "GET /files?path=/etc/shadow&username=root HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_owned(),
        "GET /envs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_owned(),
        post("/process.Process/List", "{}"),
        post("/init", "{}"),
    ];
    let mut answered = Vec::new();
    let mut accepted = Vec::new();
    for request in requests {
        let what = request.split(" HTTP").next().unwrap_or_default().to_owned();
        match ask(&request) {
            Err(error) => return Outcome::held(format_args!("nothing listens: {error}")),
            Ok(status) if (200..300).contains(&status) => {
                accepted.push(format!("{what} gave {status}"))
            }
            Ok(status) => answered.push(status.to_string()),
        }
    }
    Outcome::breached_by(&accepted, format_args!("status {}", answered.join(", ")))
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnect-Protocol-Version: 1\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// The status of the answer; 0 for none.
fn ask(request: &str) -> std::io::Result<u16> {
    let limit = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], 49983)), limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = [0_u8; 64];
    let count = stream.read(&mut answer).unwrap_or(0);
    let line = String::from_utf8_lossy(&answer[..count]).into_owned();
    Ok(line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0))
}
