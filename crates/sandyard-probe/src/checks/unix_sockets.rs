//! Unix sockets of the host and of other sandboxes.

use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use crate::check::{Check, OnHost, Outcome};
use crate::context::Context;
use crate::finding::{
    Group::Ipc,
    Severity::{Critical, Medium},
};
use crate::plan::SocketTarget;
use crate::search::contains;
use crate::sys::Errno;

const NO_ANSWER: &str = "no process listens";

pub(super) const CHECKS: &[Check] = &[
    Check::new(Ipc, Critical, "ipc.abstract", host_abstract)
.title("Abstract sockets of the host cannot be reached")
.attempts("connect to the planted abstract socket")
.expects(NO_ANSWER)
    .on_host(OnHost::Breaches),
    Check::new(Ipc, Critical, "ipc.path", host_path)
.title("Sockets in the host's files cannot be reached")
.attempts("connect to the planted socket by its path, and through /proc/1/root")
.expects(NO_ANSWER)
    .on_host(OnHost::Breaches),
    Check::new(Ipc, Critical, "ipc.neighbour", neighbour)
.title("Abstract sockets of another sandbox cannot be reached")
.attempts("connect to the abstract socket that another sandbox listens on")
.expects(NO_ANSWER)
    .on_host(OnHost::Breaches),
    Check::new(Ipc, Medium, "ipc.list", list_sockets)
.title("Sockets of the host are not listed")
.attempts("look for the planted names in /proc/net/unix")
.expects("not there")
    .on_host(OnHost::Breaches),
    Check::new(Ipc, Critical, "ipc.control", control)
.title("Control sockets of the host are not there")
.attempts("connect to the usual sockets of Docker, containerd, systemd, D-Bus, and our own launcher")
.expects(NO_ANSWER),
];

fn connect(name: &str) -> std::io::Result<UnixStream> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)
}

fn judge(stream: std::io::Result<UnixStream>, target: &SocketTarget) -> Outcome {
    let read = stream.and_then(|mut stream| {
        // A host that is very busy takes its time.
        stream.set_read_timeout(Some(Duration::from_secs(6)))?;
        let mut bytes = vec![0; 256];
        let count = stream.read(&mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    });
    match read {
        Ok(bytes) if contains(&bytes, &target.greeting) => {
            Outcome::breached("it sent its greeting")
        }
        Ok(_) => Outcome::held("another socket of that name"),
        Err(error) => Outcome::held(Errno::from(error)),
    }
}

fn host_abstract(context: &Context) -> Outcome {
    match &context.plan.abstract_socket {
        None => Outcome::inconclusive("no socket was planted"),
        Some(target) => judge(connect(&target.name), target),
    }
}

fn host_path(context: &Context) -> Outcome {
    match &context.plan.path_socket {
        None => Outcome::inconclusive("no socket was planted"),
        Some(target) => {
            let stream = UnixStream::connect(&target.name);
            judge(
                stream.or_else(|_| UnixStream::connect(format!("/proc/1/root{}", target.name))),
                target,
            )
        }
    }
}

fn neighbour(context: &Context) -> Outcome {
    match &context.plan.neighbour {
        None => Outcome::inconclusive("no neighbour"),
        Some(neighbour) => judge(
            connect(&neighbour.abstract_socket.name),
            &neighbour.abstract_socket,
        ),
    }
}

fn list_sockets(context: &Context) -> Outcome {
    let (Some(one), Some(other)) = (&context.plan.abstract_socket, &context.plan.path_socket)
    else {
        return Outcome::inconclusive("no socket was planted");
    };
    let table = match std::fs::read("/proc/net/unix") {
        Ok(table) => table,
        Err(error) => return Outcome::held(Errno::from(error)),
    };
    let names = [&one.name, &other.name].into_iter().chain(
        context
            .plan
            .neighbour
            .as_ref()
            .map(|them| &them.abstract_socket.name),
    );
    let found: Vec<String> = names
        .filter(|name| contains(&table, name))
        .map(|name| format!("`{name}`"))
        .collect();
    Outcome::breached_by(&found, "none listed")
}

fn control(_: &Context) -> Outcome {
    const SOCKETS: [&str; 11] = [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/run/crio/crio.sock",
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
        "/run/systemd/journal/socket",
        "/run/udev/control",
        "/var/lib/sandyard/launcher.sock",
        "/tmp/.X11-unix/X0",
    ];
    let reached: Vec<String> = SOCKETS
        .iter()
        .filter(|path| UnixStream::connect(path).is_ok())
        .map(|path| format!("`{path}`"))
        .collect();
    Outcome::breached_by(&reached, "none of them")
}
