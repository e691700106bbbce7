//! Bodies of every size, both ways.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::env::{NAME, PLACEHOLDER, SECRET, Sender, TestEnv, collect_body, host, text};
use super::site::{Site, SiteBody, echo, full};

const MEBIBYTE: u64 = 1024 * 1024;
const LARGE: u64 = 64 * MEBIBYTE;

/// What may be between the two ends at once: buffers of four sockets, windows and pieces. A fraction of what is sent.
const MOST_BETWEEN: u64 = 24 * MEBIBYTE;

/// A body of `bytes` bytes without a declared length.
fn large(bytes: u64) -> SiteBody {
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    let count = bytes / piece.len() as u64;
    let frames = (0..count).map(move |_| {
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Frame::data(piece.clone()))
    });
    StreamBody::new(stream::iter(frames)).boxed()
}

async fn count(mut body: Incoming) -> u64 {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame
            .unwrap()
            .into_data()
            .map_or(0, |data| data.len() as u64);
    }
    bytes
}

#[tokio::test]
async fn large_bodies_go_through_in_both_directions_and_versions() {
    let env = TestEnv::new();
    let site = Site::start(
        Some(env.site_tls(NAME, &["h2", "http/1.1"])),
        |request| async {
            let sized = request.uri().path() == "/sized";
            let bytes = count(request.into_body()).await;
            let response = Response::builder().header("x-bytes", bytes);
            let response = match sized {
                true => response.header("content-length", LARGE),
                false => response,
            };
            response.body(large(LARGE)).unwrap()
        },
    )
    .await;
    for is_two in [false, true] {
        let (mut program, _) = env.program(site.address, is_two).await;
        for path in ["/sized", "/unsized"] {
            let request = Request::post(path).header("x-key", PLACEHOLDER);
            let answer = program
                .send(request.body(large(LARGE)).unwrap())
                .await
                .unwrap();
            assert_eq!(answer.headers()["x-bytes"], LARGE.to_string());
            assert_eq!(count(answer.into_body()).await, LARGE);
        }
    }
}

/// Counts what the gateway reads from the program.
struct Counting<S> {
    inner: S,
    read: Arc<AtomicU64>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counting<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        self.read
            .fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counting<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn what_a_slow_site_has_not_read_is_not_piled_up() {
    for is_two in [false, true] {
        let env = TestEnv::new();
        let read = Arc::new(AtomicU64::new(0));
        let limit = Arc::new(AtomicU64::new(0));
        let (ahead, seen) = (read.clone(), limit.clone());
        let handler = move |request: Request<Incoming>| {
            let (ahead, limit) = (ahead.clone(), seen.clone());
            async move {
                let mut body = request.into_body();
                let mut bytes = 0;
                while let Some(frame) = body.frame().await {
                    bytes += frame
                        .unwrap()
                        .into_data()
                        .map_or(0, |data| data.len() as u64);
                    // Slower than everybody else, who run on the same thread.
                    for _ in 0..20 {
                        tokio::task::yield_now().await;
                    }
                    limit.fetch_max(
                        ahead.load(Ordering::Relaxed).saturating_sub(bytes),
                        Ordering::Relaxed,
                    );
                }
                Response::new(full(bytes.to_string()))
            }
        };
        let tls = env.site_tls(NAME, &["h2", "http/1.1"]);
        let site = Site::start(Some(tls), handler).await;
        let (program, inside) = tokio::io::duplex(64 * 1024);
        let inside = Counting {
            inner: inside,
            read,
        };
        let _carried = env.carry(inside, site.address, host(), true, None).await;
        let protocol = if is_two { "h2" } else { "http/1.1" };
        let stream = env.hello(program, NAME, &[protocol]).await.unwrap();
        let mut program = Sender::new(stream, is_two).await;
        let request = Request::post("/")
            .header("x-key", PLACEHOLDER)
            .body(large(LARGE))
            .unwrap();
        let answer = collect_body(program.send(request).await.unwrap()).await;
        assert_eq!(text(&answer), LARGE.to_string());
        let limit = limit.load(Ordering::Relaxed);
        assert!(limit < MOST_BETWEEN, "{limit} bytes were under way at once");
    }
}

#[tokio::test]
async fn many_requests_at_once_do_not_mix() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2"])), echo).await;
    let (mut program, _) = env.program(site.address, true).await;
    // Before it has heard how many it may send, a program may send too many, and has to send some of them again.
    program.get("/", &[("x-key", PLACEHOLDER)]).await;
    let Sender::Http2(sender) = program else {
        unreachable!()
    };
    let mut open = tokio::task::JoinSet::new();
    for number in 0..500 {
        let mut program = Sender::Http2(sender.clone());
        open.spawn(async move {
            let path = format!("/{number}");
            let answer = program.get(&path, &[("x-key", PLACEHOLDER)]).await;
            assert!(
                text(&answer).starts_with(&format!("GET https://{NAME}{path}\n")),
                "{}",
                text(&answer)
            );
        });
    }
    while let Some(done) = open.join_next().await {
        done.unwrap();
    }
    assert!(
        site.seen()
            .iter()
            .all(|seen| seen.header("x-key") == SECRET)
    );
}

/// Reads a head over a raw connection.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn a_body_is_not_asked_for_before_the_site_wants_it() {
    let env = TestEnv::new();
    let tls = env.site_tls(NAME, &["http/1.1"]);
    let site = Site::raw(move |stream| {
        let tls = tls.clone();
        async move {
            let mut stream = tls.accept(stream).await.unwrap();
            let head = read_head(&mut stream).await;
            assert!(head.contains("Expect: 100-continue\r\n"), "{head}");
            if head.starts_with("PUT /wanted ") {
                stream
                    .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                    .await
                    .unwrap();
                let mut body = [0; 4];
                stream.read_exact(&mut body).await.unwrap();
                assert_eq!(&body, b"body");
                stream
                    .write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
                    .await
                    .unwrap();
            } else {
                let refusal = b"HTTP/1.1 417 No\r\nContent-Length: 3\r\n\r\nno\n";
                stream.write_all(refusal).await.unwrap();
            }
            // It stays open until the gateway leaves.
            assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
        }
    })
    .await;
    for (path, is_wanted) in [("/wanted", true), ("/unwanted", false)] {
        let (stream, carried) = env.open(site.address, host(), true).await;
        let mut stream = env.hello(stream, NAME, &["http/1.1"]).await.unwrap();
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = read_head(&mut stream).await;
        if is_wanted {
            assert_eq!(answer, "HTTP/1.1 100 Continue\r\n\r\n");
            stream.write_all(b"body").await.unwrap();
            let answer = read_head(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        } else {
            assert!(answer.starts_with("HTTP/1.1 417 No\r\n"), "{answer}");
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            assert_eq!(rest, b"no\n");
        }
        drop(stream);
        carried.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn trailers_of_requests_and_responses_are_passed_on() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2"])), |request| async {
        let got = request.into_body().collect().await.unwrap();
        let trailers = got.trailers().cloned().unwrap();
        let frames = [Frame::data(got.to_bytes()), Frame::trailers(trailers)];
        let frames = frames.map(Ok::<_, Box<dyn std::error::Error + Send + Sync>>);
        Response::new(StreamBody::new(stream::iter(frames)).boxed())
    })
    .await;
    let (mut program, _) = env.program(site.address, true).await;
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let frames = [
        Frame::data(Bytes::from("message")),
        Frame::trailers(trailers),
    ];
    let frames = frames.map(Ok::<_, Box<dyn std::error::Error + Send + Sync>>);
    let body = StreamBody::new(stream::iter(frames)).boxed();
    let request = Request::post("/service/method")
        .header("te", "trailers")
        .body(body)
        .unwrap();
    let got = program
        .send(request)
        .await
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    assert_eq!(got.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(got.to_bytes(), "message");
    assert_eq!(site.last().header("te"), "trailers");
}
