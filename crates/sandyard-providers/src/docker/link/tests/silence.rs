//! A link that does not answer: its container may be paused, or the way there gone.

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
    opened: mpsc::UnboundedSender<DuplexStream>,
    is_paused: AtomicBool,
}

#[async_trait]
impl OpenLink for Opener {
    async fn open(&self, _: &str) -> io::Result<BoxedStream> {
        if self.is_paused.load(Ordering::Relaxed) {
            return Err(io::Error::other("the container is paused"));
        }
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        self.opened.send(theirs).map_err(io::Error::other)?;
        Ok(Box::new(ours))
    }

    async fn init_request(&self, _: &str) -> io::Result<InitRequest> {
        Ok(InitRequest::default())
    }
}

/// The container's end: an agent that takes whatever it is told, and a link that never answers.
async fn play(stream: DuplexStream) -> (Mux, Inbound) {
    let (mux, mut inbound) = Mux::start(stream, Side::Container);
    loop {
        let mut carried = inbound.next().await.expect("a connection");
        let kind = carried.read_u8().await.expect("its kind");
        let mut head = [0; 4];
        if kind == StreamKind::Ping.byte() {
            // Kept open, and not heard.
            std::mem::forget(carried);
            continue;
        }
        carried.read_exact(&mut head).await.expect("a request");
        assert_eq!(&head, b"POST");
        let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
        carried.write_all(answer).await.expect("answer");
        carried.shutdown().await.expect("end");
        // Whoever asked has read it when this is gone.
        let _ = carried.read_to_end(&mut Vec::new()).await;
        return (mux, inbound);
    }
}

#[tokio::test(start_paused = true)]
async fn another_is_tried_and_the_old_one_stays_until_there_is_a_better_one() {
    let (sender, mut opened) = mpsc::unbounded_channel();
    let opener = Arc::new(Opener {
        opened: sender,
        is_paused: AtomicBool::new(false),
    });
    let links = Links::new(opener.clone());
    let way = links.way("one");
    let (dialled, first) = tokio::join!(way.dial(), async {
        play(opened.recv().await.expect("opened")).await
    });
    let _held = dialled.expect("a connection");
    // It is still the one that is used, a while later.
    tokio::time::sleep(Duration::from_secs(5)).await;
    way.dial().await.expect("over the same");
    tokio::time::sleep(Duration::from_secs(60)).await;
    opener.is_paused.store(true, Ordering::Relaxed);
    let error = way.dial().await.err().expect("paused");
    assert_eq!(error.to_string(), "the container is paused");
    assert!(!first.0.has_ended());
    opener.is_paused.store(false, Ordering::Relaxed);
    let (dialled, _second) = tokio::join!(way.dial(), async {
        play(opened.recv().await.expect("opened")).await
    });
    dialled.expect("over another");
    first.0.ended().await;
}
