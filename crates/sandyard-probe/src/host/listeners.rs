//! Listeners that send a greeting to every client, each on a thread of its own until dropped.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::plan::{NetTarget, SocketTarget};

#[derive(Debug)]
pub(super) struct Listeners {
    pub(super) loopback_tcp: NetTarget,
    pub(super) loopback_udp: NetTarget,
    pub(super) lan_tcp: Option<NetTarget>,
    pub(super) abstract_socket: SocketTarget,
    pub(super) path_socket: SocketTarget,
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Listeners {
    pub(super) fn plant(word: &str, directory: &Path) -> io::Result<Self> {
        let greeting = |what: &str| format!("planted-{what}-{word}\n");
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let lan = lan_address().and_then(|address| TcpListener::bind((address, 0)).ok());
        let abstract_name = format!("sandyard-plant-{word}");
        let abstract_unix = UnixListener::bind_addr(
            &std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name)?,
        )?;
        let path = directory.join("socket");
        let path_unix = UnixListener::bind(&path)?;
        // Anyone may connect: the sandbox alone must keep a probe away.
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;

        let mut listeners = Self {
            loopback_tcp: target(tcp.local_addr()?, greeting("tcp")),
            loopback_udp: target(udp.local_addr()?, greeting("udp")),
            lan_tcp: lan
                .as_ref()
                .and_then(|lan| Some(target(lan.local_addr().ok()?, greeting("lan")))),
            abstract_socket: SocketTarget {
                name: abstract_name,
                greeting: greeting("abstract"),
            },
            path_socket: SocketTarget {
                name: path.to_string_lossy().into_owned(),
                greeting: greeting("path"),
            },
            done: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        tcp.set_nonblocking(true)?;
        abstract_unix.set_nonblocking(true)?;
        path_unix.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        listeners.greet(listeners.loopback_tcp.greeting.clone(), move || {
            tcp.accept().map(|(stream, _)| stream)
        })?;
        if let (Some(lan), Some(target)) = (lan, listeners.lan_tcp.clone()) {
            lan.set_nonblocking(true)?;
            listeners.greet(target.greeting, move || {
                lan.accept().map(|(stream, _)| stream)
            })?;
        }
        listeners.greet(listeners.abstract_socket.greeting.clone(), move || {
            abstract_unix.accept().map(|(stream, _)| stream)
        })?;
        listeners.greet(listeners.path_socket.greeting.clone(), move || {
            path_unix.accept().map(|(stream, _)| stream)
        })?;
        let greeting = listeners.loopback_udp.greeting.clone();
        listeners.until_done(move || {
            let mut datagram = [0; 64];
            udp.recv_from(&mut datagram)
                .and_then(|(_, from)| udp.send_to(greeting.as_bytes(), from))
                .is_ok()
        })?;
        Ok(listeners)
    }

    fn greet<S, F>(&mut self, greeting: String, accept: F) -> io::Result<()>
    where
        S: Write,
        F: Fn() -> io::Result<S> + Send + 'static,
    {
        self.until_done(move || {
            accept()
                .and_then(|mut visitor| visitor.write_all(greeting.as_bytes()))
                .is_ok()
        })
    }

    /// Calls `serve` again and again; when it had nothing to do, after a short rest.
    fn until_done(&mut self, serve: impl Fn() -> bool + Send + 'static) -> io::Result<()> {
        let done = Arc::clone(&self.done);
        let thread = std::thread::Builder::new()
            .name("plant".into())
            .spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    if !serve() {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
            })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn target(address: SocketAddr, greeting: String) -> NetTarget {
    NetTarget {
        address: address.ip(),
        port: address.port(),
        greeting,
    }
}

/// An IPv4 address of the host other than loopback, from the kernel's own table of local addresses.
fn lan_address() -> Option<IpAddr> {
    let table = std::fs::read_to_string("/proc/net/fib_trie").ok()?;
    let mut address: Option<Ipv4Addr> = None;
    for line in table.lines().map(str::trim) {
        if let Some(leaf) = line.strip_prefix("|-- ") {
            address = leaf.parse().ok();
        } else if line.starts_with("/32 host LOCAL")
            && address.is_some_and(|address| !address.is_loopback())
        {
            return address.map(IpAddr::from);
        }
    }
    None
}
