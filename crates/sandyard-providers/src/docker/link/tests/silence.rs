//! A link that does not answer: its container may be paused, or the connection broken.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sandyard_agent_client::BoxedStream;
use sandyard_agent_client::wire::host::InitRequest;
use sandyard_link::{Inbound, Mux, Side, StreamKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use crate::docker::link::{Links, OpenLink};

struct Opener {
    opened_count: mpsc::UnboundedSender<DuplexStream>,
    is_paused: AtomicBool,
}

#[async_trait]
impl OpenLink for Opener {
    async fn open(&self, _: &str) -> io::Result<BoxedStream> {
        if self.is_paused.load(Ordering::Relaxed) {
            return Err(io::Error::other("the container is paused"));
        }
        let (own, foreign) = tokio::io::duplex(1 << 16);
        self.opened_count.send(foreign).map_err(io::Error::other)?;
        Ok(Box::new(own))
    }

    async fn init_request(&self, _: &str) -> io::Result<InitRequest> {
        Ok(InitRequest::default())
    }
}

/// The container's end: an agent that accepts any request, and a link that never answers pings.
async fn play(stream: DuplexStream) -> (Mux, Inbound) {
    let (mux, mut inbound) = Mux::start(stream, Side::Container);
    loop {
        let mut incoming = inbound.next().await.expect("a connection");
        let kind = incoming.read_u8().await.expect("its kind");
        let mut head = [0; 4];
        if kind == StreamKind::Ping.byte() {
            // Stays open without an answer.
            std::mem::forget(incoming);
            continue;
        }
        incoming.read_exact(&mut head).await.expect("a request");
        assert_eq!(&head, b"POST");
        let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
        incoming.write_all(answer).await.expect("answer");
        incoming.shutdown().await.expect("end");
        // The client has read the answer when the stream ends.
        let _ = incoming.read_to_end(&mut Vec::new()).await;
        return (mux, inbound);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_link_is_replaced_only_by_a_working_one() {
    let (sender, mut opened_count) = mpsc::unbounded_channel();
    let opener = Arc::new(Opener {
        opened_count: sender,
        is_paused: AtomicBool::new(false),
    });
    let links = Links::new(opener.clone());
    let dialler = links.dialler("one");
    let (dialled, first) = tokio::join!(dialler.dial(), async {
        play(opened_count.recv().await.expect("opened")).await
    });
    let _held = dialled.expect("a connection");
    // A while later, the same link is still in use.
    tokio::time::sleep(Duration::from_secs(5)).await;
    dialler.dial().await.expect("over the same");
    tokio::time::sleep(Duration::from_secs(60)).await;
    opener.is_paused.store(true, Ordering::Relaxed);
    let error = dialler.dial().await.err().expect("paused");
    assert_eq!(error.to_string(), "the container is paused");
    assert!(!first.0.has_ended());
    opener.is_paused.store(false, Ordering::Relaxed);
    let (dialled, _second) = tokio::join!(dialler.dial(), async {
        play(opened_count.recv().await.expect("opened")).await
    });
    dialled.expect("over another");
    first.0.ended().await;
}
