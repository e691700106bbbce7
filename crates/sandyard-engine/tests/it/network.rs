//! A sandbox's network: everything meant for elsewhere comes to the agent or is refused at once, and nothing is beside it.

use std::process::Command;

use sandyard_core::SandboxId;
use sandyard_engine::{Fault, FaultAction, FaultProcess, SandboxInfo};

use crate::test_env::{TestEnv, small};

/// More steps than a first process has.
const MOST_STEPS: u32 = 20;

const NO_REDIRECT: &str = "no redirect";
const NOT_RECORDED: &str = "are not recorded";

/// Says what comes of connecting, of sending a datagram and of a ping to nowhere near, in IPv4 and IPv6.
const PROBE: &str = r#"python3 - <<'END'
import socket, struct
def said(act):
    try:
        return act()
    except OSError as error:
        return type(error).__name__ if not isinstance(error, TimeoutError) else "silence"
def tcp(family, host):
    with socket.socket(family) as s:
        s.settimeout(60)
        s.connect((host, 80))
        return "connected"
def udp(family, host):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(60)
        s.connect((host, 123))
        s.send(b"?")
        return s.recv(100)
def ping(family, host):
    protocol, kind = (1, 8) if family == socket.AF_INET else (58, 128)
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as s:
        s.settimeout(60)
        s.connect((host, 0))
        s.send(struct.pack("!BBHHH", kind, 0, 0, 1, 1))
        s.recv(100)
        return "answered"
for family, host in (socket.AF_INET, "9.9.9.9"), (socket.AF_INET6, "2001:db8::1"):
    print(*(said(lambda: act(family, host)) for act in (tcp, udp, ping)))
END"#;

/// What [`PROBE`] says where all is as it should be.
const REFUSED: &str = "connected ConnectionRefusedError ConnectionRefusedError\nconnected ConnectionRefusedError ConnectionRefusedError";

async fn probe(env: &TestEnv, id: &SandboxId) -> String {
    env.out(id, PROBE).await
}

/// Checks the network of a sandbox that has every rule; for other users of the engine, too.
pub(crate) async fn assert_closed(env: &TestEnv, info: &SandboxInfo) {
    let id = &info.id;
    assert!(
        !info
            .limitations
            .iter()
            .any(|limitation| limitation.contains("redirect")),
        "{:?}",
        info.limitations
    );
    assert_eq!(probe(env, id).await, REFUSED);
    assert_eq!(
        env.out(id, "cat /etc/resolv.conf").await,
        "nameserver 198.18.0.1\noptions edns0 timeout:10 attempts:3"
    );
    let listening = env
        .out(id, "ss -Htln | awk '{print $4}' | grep -v :49983 | sort; ss -Huln | awk '{print $4}' | sort")
        .await;
    assert_eq!(
        listening,
        "127.0.0.1:49981\n[::1]:49981\n127.0.0.1:49982\n[::1]:49982"
    );
}

#[tokio::test]
async fn what_leaves_comes_to_the_agent_and_the_rest_is_refused_at_once() {
    let env = TestEnv::new().await;
    let info = env.create().await;
    assert_closed(&env, &info).await;
    let pid = info.init.expect("it runs").pid.to_string();
    let rules = Command::new("nsenter")
        .args(["-t", &pid, "-n", "nft", "list", "ruleset"])
        .output()
        .expect("run nft");
    let rules = String::from_utf8_lossy(&rules.stdout).into_owned();
    for rule in [
        "redirect to :49981",
        "udp dport 53 redirect to :49982",
        "limit rate over 5000/second burst 10000 packets drop",
        "reject with tcp reset",
        "notrack",
    ] {
        assert!(rules.contains(rule), "`{rule}` is not in {rules}");
    }
    // Stopped and started, it is the same.
    env.engine.stop(&info.id).await.expect("stop");
    let info = env.engine.start(&info.id).await.expect("start");
    assert_closed(&env, &info).await;
    env.finish().await;
}

#[tokio::test]
async fn connections_within_a_sandbox_work_and_cost_the_host_no_memory_of_them() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let talk = r#"python3 - <<'END'
import socket, threading, time
def remembered(wanted):
    # A packet on its way is remembered until it is there.
    end = time.monotonic() + 60
    while True:
        count = int(open("/proc/sys/net/netfilter/nf_conntrack_count").read())
        if count == wanted or time.monotonic() > end:
            return count
        time.sleep(0.01)
def talk(family, host):
    with socket.create_server((host, 0), family=family) as server:
        def serve():
            peer, _ = server.accept()
            peer.sendall(peer.recv(100).upper())
            peer.close()
        threading.Thread(target=serve).start()
        with socket.create_connection(server.getsockname()[:2], 60) as client:
            client.sendall(b"hello")
            return client.recv(100).decode()
def refused():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("9.9.9.9", 123))
        s.send(b"?")
print(talk(socket.AF_INET, "127.0.0.1"), talk(socket.AF_INET, "127.1.2.3"), talk(socket.AF_INET6, "::1"))
for i in range(100): refused()
print(remembered(0))
socket.create_connection(("9.9.9.9", 80), 60)
print(remembered(1))
END"#;
    assert_eq!(env.out(&id, talk).await, "HELLO HELLO HELLO\n0\n1");
    env.finish().await;
}

#[tokio::test]
async fn one_port_of_a_program_reaches_several_places() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let reuse = r#"python3 - <<'END'
import socket
kept = []
for host in "9.9.9.9", "8.8.8.8", "1.1.1.1":
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 5555))
    s.settimeout(60)
    s.connect((host, 80))
    kept.append(s)
print(len(kept), *(s.getpeername()[0] for s in kept))
END"#;
    assert_eq!(env.out(&id, reuse).await, "3 9.9.9.9 8.8.8.8 1.1.1.1");
    env.finish().await;
}

#[tokio::test]
async fn programs_that_ask_for_configured_families_find_ipv4() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let ask = "python3 -c 'import socket; print(socket.getaddrinfo(\"localhost\", 80, socket.AF_INET, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)[0][4])'";
    assert_eq!(env.out(&id, ask).await, "('127.0.0.1', 80)");
    env.finish().await;
}

#[tokio::test]
async fn no_command_inherits_the_agents_sockets() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let held = env
        .out(
            &id,
            "ls -l /proc/self/fd | grep -c socket:; sleep 60 & ls -l /proc/$!/fd | grep -c socket:",
        )
        .await;
    assert_eq!(held, "0\n0");
    env.finish().await;
}

#[tokio::test]
async fn root_inside_can_take_the_raw_sockets_and_see_no_more_with_them() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    let take = r#"python3 - <<'END'
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
agent = os.pidfd_open(1)
def taken(fd):
    try:
        return socket.socket(fileno=libc.syscall(438, agent, fd, 0))
    except OSError:
        return None
def said(act):
    try:
        act()
        return "done"
    except OSError as error:
        return os.strerror(error.errno)
sockets = [taken(int(fd)) for fd in os.listdir("/proc/1/fd")]
for s in sockets:
    if s is not None and s.type == socket.SOCK_RAW:
        print(said(lambda: s.setsockopt(socket.SOL_SOCKET, 27, 0)))
END"#;
    let output = env.sh_as(&id, "root", take).await;
    assert_eq!(
        crate::test_env::text(&output.stdout),
        "Operation not permitted\nOperation not permitted",
        "without their filters: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    env.finish().await;
}

#[tokio::test]
async fn the_name_servers_file_is_no_change_of_the_sandboxs() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    assert_eq!(env.engine.diff(&id).await.expect("diff").changes, []);
    env.sh_as(&id, "root", "echo nameserver 9.9.9.9 > /etc/resolv.conf")
        .await;
    let changes = env.engine.diff(&id).await.expect("diff").changes;
    let changed: Vec<_> = changes.iter().map(|change| &change.path).collect();
    assert_eq!(
        changed,
        ["/etc/resolv.conf"]
            .map(std::path::Path::new)
            .iter()
            .collect::<Vec<_>>()
    );
    env.engine.stop(&id).await.expect("stop");
    env.engine.start(&id).await.expect("start");
    assert_eq!(
        env.out(&id, "cat /etc/resolv.conf").await,
        "nameserver 198.18.0.1\noptions edns0 timeout:10 attempts:3"
    );
    env.finish().await;
}

#[tokio::test]
async fn a_missing_kernel_feature_is_reported_and_the_sandbox_runs() {
    let env = TestEnv::new().await;
    let mut seen = Vec::new();
    for step in 1..MOST_STEPS {
        let info = create_lacking(&env, step).await;
        let is_limited_in = |word: &str| {
            info.limitations
                .iter()
                .any(|limitation| limitation.contains(word))
        };
        if is_limited_in(NO_REDIRECT) {
            seen.push(NO_REDIRECT);
            assert_proxied(&env, &info.id).await;
        } else if is_limited_in(NOT_RECORDED) {
            seen.push(NOT_RECORDED);
            assert_closed(&env, &info).await;
        }
        env.engine.delete(&info.id).await.expect("delete");
    }
    assert_eq!(seen, [NO_REDIRECT, NOT_RECORDED]);
    env.finish().await;
}

/// A sandbox on a kernel that cannot do a step, if that is one that it can do without.
async fn create_lacking(env: &TestEnv, step: u32) -> SandboxInfo {
    let fault = Fault {
        process: FaultProcess::Init,
        step,
        action: FaultAction::Skip,
    };
    let created = env.engine.create_with_fault(&small(), fault).await;
    created.expect("create")
}

/// A sandbox on a kernel without a redirect.
pub(crate) async fn create_proxied(env: &TestEnv) -> SandboxInfo {
    for step in 1..MOST_STEPS {
        let info = create_lacking(env, step).await;
        if info
            .limitations
            .iter()
            .any(|limitation| limitation.contains(NO_REDIRECT))
        {
            return info;
        }
        env.engine.delete(&info.id).await.expect("delete");
    }
    panic!("no step was the redirect");
}

/// Nothing is sent without the proxy, and nothing has to wait.
async fn assert_proxied(env: &TestEnv, id: &SandboxId) {
    assert_eq!(
        probe(env, id).await,
        "OSError OSError OSError\nOSError OSError OSError"
    );
    assert_eq!(
        env.out(id, "cat /etc/resolv.conf").await,
        "nameserver 127.0.0.53\noptions edns0 timeout:10 attempts:3"
    );
    let listening =
        "ss -Htln | awk '{print $4}' | grep -v :49983 | sort; ss -Huln | awk '{print $4}'";
    assert_eq!(
        env.out(id, listening).await,
        "127.0.0.1:49980\n127.0.0.53:53\n127.0.0.53:53"
    );
    assert_eq!(env.engine.diff(id).await.expect("diff").changes, []);
}
