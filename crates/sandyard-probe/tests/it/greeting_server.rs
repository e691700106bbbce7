//! A greeting server on this host: here the neighbour is within reach.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Stdio};

use sandyard_probe::{GreetingServer, Neighbour, NetTarget, SecretFile, SocketTarget, Task};

use crate::probe::probe;

/// A running greeting server; ends when dropped.
pub(crate) struct RunningServer {
    child: Child,
    _folder: tempfile::TempDir,
}

impl RunningServer {
    /// Starts one and tells where it is.
    pub(crate) fn start() -> (Self, Neighbour) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = folder.path().join("file");
        let word = format!("neighbour-of-{}", std::process::id());
        let task = Task::GreetingServer(GreetingServer {
            port: 0,
            abstract_name: word.clone(),
            greeting: word.clone(),
            file: Some(file.clone()),
        });
        let mut child = probe()
            .arg(task.to_json())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the greeting server starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("it announces itself");
        let announced: serde_json::Value = serde_json::from_str(&line).expect("as JSON");
        let port = announced["port"]
            .as_u64()
            .and_then(|port| port.try_into().ok())
            .expect("its port");
        let neighbour = Neighbour {
            tcp: NetTarget {
                address: Ipv4Addr::LOCALHOST.into(),
                port,
                greeting: word.clone(),
            },
            abstract_socket: SocketTarget {
                name: word.clone(),
                greeting: word.clone(),
            },
            file: Some(SecretFile {
                path: file,
                marker: word,
                handle: None,
                device: 0,
            }),
        };
        (
            Self {
                child,
                _folder: folder,
            },
            neighbour,
        )
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
