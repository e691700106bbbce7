//! A tool server for tests, which describes itself: one line in, one line out.
//!
//! ```text
//! who          its process, as JSON
//! run PROGRAM  what a program prints, without line ends
//! panic        a panic in the connection's task, and `alive`, if it is
//! exit CODE    ends the process
//! anything     echoed
//! ```

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;

use rustix::io::IoSliceMut;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use serde_json::json;
use tokio::io::unix::AsyncFd;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, Interest,
};
use tokio::net::{TcpListener, UnixStream};

use crate::tools::ToolsStart;

/// Serves until the agent is gone.
pub fn run(start: ToolsStart) -> i32 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime.and_then(|runtime| runtime.block_on(serve(start))) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

async fn serve(mut start: ToolsStart) -> io::Result<()> {
    let listener = start
        .listener
        .take()
        .map(|listener| TcpListener::from_std(std::net::TcpListener::from(listener)));
    let channel = crate::ready::register(start.connections.try_clone()?, Interest::READABLE)?;
    let about = Arc::new(describe(&start, listener.is_some()));
    if let Some(listener) = listener.transpose()? {
        let about = about.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, about.clone()));
            }
        });
    }
    while let Some(stream) = next_connection(&channel).await? {
        tokio::spawn(converse(stream, about.clone()));
    }
    Ok(())
}

async fn next_connection(channel: &AsyncFd<OwnedFd>) -> io::Result<Option<UnixStream>> {
    loop {
        let mut ready = channel.readable().await?;
        match ready.try_io(|channel| receive(channel.get_ref())) {
            Ok(Ok(Some(fd))) => {
                let stream = StdStream::from(fd);
                stream.set_nonblocking(true)?;
                return UnixStream::from_std(stream).map(Some);
            }
            Ok(other) => return other.map(|_| None),
            Err(_would_block) => {}
        }
    }
}

fn receive(channel: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(channel, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut messages = ancillary.drain();
    Ok(messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    }))
}

async fn converse(stream: impl AsyncRead + AsyncWrite, about: Arc<String>) -> io::Result<()> {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Some(line) = lines.next_line().await? {
        let answer = answer(&line, &about).await;
        write.write_all(format!("{answer}\n").as_bytes()).await?;
    }
    Ok(())
}

async fn answer(line: &str, about: &str) -> String {
    match line.split_once(' ') {
        None if line == "who" => about.to_owned(),
        None if line == "panic" => {
            let task: tokio::task::JoinHandle<()> = tokio::spawn(async { panic!("as asked") });
            if task.await.is_err_and(|error| error.is_panic()) {
                "alive".to_owned()
            } else {
                "no panic".to_owned()
            }
        }
        Some(("exit", code)) =>
        {
            #[expect(clippy::exit, reason = "the test needs a tool server that ends")]
            std::process::exit(code.parse().unwrap_or(1))
        }
        Some(("run", program)) => {
            let child_exits = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child());
            let child = std::process::Command::new("/bin/sh")
                .args(["-c", program])
                .stdout(std::process::Stdio::piped())
                .spawn();
            let (Ok(mut child_exits), Ok(child)) = (child_exits, child) else {
                return "cannot run".to_owned();
            };
            // This fork must receive the signal, not the agent.
            child_exits.recv().await;
            child.wait_with_output().map_or_else(
                |error| error.to_string(),
                |output| String::from_utf8_lossy(&output.stdout).replace('\n', " "),
            )
        }
        _ => line.to_owned(),
    }
}

/// Everything that must be as it is for a command.
fn describe(start: &ToolsStart, has_listener: bool) -> String {
    let open = |fd: std::fs::DirEntry| {
        let target = std::fs::read_link(fd.path()).unwrap_or_default();
        format!("{} {}", fd.file_name().display(), target.display())
    };
    let fds =
        std::fs::read_dir("/proc/self/fd").map(|fds| fds.flatten().map(open).collect::<Vec<_>>());
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let pairs = start.env.iter();
    let given: std::collections::BTreeMap<_, _> = pairs
        .map(|(name, value)| (text(name), text(value)))
        .collect();
    let of_process: std::collections::BTreeMap<_, _> = std::env::vars_os()
        .map(|(name, value)| (text(&name), text(&value)))
        .collect();
    json!({
        "pid": std::process::id(),
        "status": std::fs::read_to_string("/proc/self/status").unwrap_or_default(),
        // The main thread may still be starting this one, with all signals blocked.
        "thread_status": std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default(),
        "cwd": std::env::current_dir().unwrap_or_default(),
        "fds": fds.unwrap_or_default(),
        "channel": start.connections.as_raw_fd(),
        "env": given,
        "process_env": of_process,
        "user": start.user,
        "home": start.home,
        "workspace": start.workspace,
        "port": start.port,
        "listener": has_listener,
        "token_hash": start.token_hash,
        "debug": format!("{start:?}"),
    })
    .to_string()
}
