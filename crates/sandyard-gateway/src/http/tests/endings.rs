//! How connections end.

use http_body_util::BodyExt;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::env::{NAME, PLACEHOLDER, SECRET, TestEnv, get, host};
use super::site::{Site, echo, full};
use crate::http::{HttpFailure, encodings};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";

/// A site that answers the first request with this and hangs up.
async fn abrupt(env: &TestEnv, answer: Vec<u8>) -> Site {
    let tls = env.site_tls(NAME, &["http/1.1"]);
    Site::raw(move |stream| {
        let (tls, answer) = (tls.clone(), answer.clone());
        async move {
            let mut stream = tls.accept(stream).await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(&answer).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn a_site_that_hangs_up_in_the_middle_of_a_body_is_not_covered_up() {
    let env = TestEnv::new();
    // One body that is read whole first, and one that is not.
    let long = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n";
    // What may be part of a secret is not passed on then, and as much if it is not.
    let forms = encodings::of(SECRET, PLACEHOLDER);
    let tail = forms.iter().map(|(form, _)| form.len()).max().unwrap() - 1;
    let limit = &SECRET[..SECRET.len() - 1];
    let tails = [".".repeat(tail), format!("{limit:.>tail$}")];
    let heads = [HEAD, long, chunked].into_iter();
    for (head, tail) in heads.flat_map(|head| tails.iter().map(move |tail| (head, tail))) {
        let site = abrupt(&env, [head, b"partial", tail.as_bytes()].concat()).await;
        let (mut program, carried) = env.program(site.address, false).await;
        let mut answer = program
            .send(get("/", &[("x-key", PLACEHOLDER)]))
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        let first = answer.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "partial");
        assert!(answer.frame().await.unwrap().is_err());
        let failure = carried.await.unwrap().unwrap_err().to_string();
        assert!(
            failure.contains(NAME) && failure.contains("closed the connection before"),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn a_site_that_hangs_up_without_an_answer_gives_none() {
    let env = TestEnv::new();
    let site = abrupt(&env, Vec::new()).await;
    let (mut program, carried) = env.program(site.address, false).await;
    // The program may try again, as it would have done: it is not told a lie.
    assert!(program.send(get("/", &[])).await.is_err());
    let failure = carried.await.unwrap().unwrap_err();
    assert!(matches!(failure, HttpFailure::Failed(_)), "{failure:?}");
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_said_to_be_none() {
    let env = TestEnv::new();
    let site = abrupt(&env, b"220 mail.example ESMTP\r\n".to_vec()).await;
    let (mut program, carried) = env.program(site.address, false).await;
    let answer = program.get("/", &[]).await;
    assert_eq!(answer.status(), 502);
    assert!(carried.await.unwrap().is_err());
}

#[tokio::test]
async fn the_reason_phrase_is_redacted_as_well() {
    let env = TestEnv::new();
    let response = format!("HTTP/1.1 401 Bad {SECRET}\r\nContent-Length: 0\r\n\r\n");
    let site = abrupt(&env, response.into_bytes()).await;
    let (mut program, _) = env.program(site.address, false).await;
    let answer = program.get("/", &[("x-key", PLACEHOLDER)]).await;
    assert_eq!(answer.status(), 401);
    assert!(
        answer
            .extensions()
            .get::<hyper::ext::ReasonPhrase>()
            .is_none()
    );
}

#[tokio::test]
async fn when_one_side_ends_so_does_the_other() {
    let env = TestEnv::new();
    let tls = env.site_tls(NAME, &["http/1.1"]);
    let (ended, end) = oneshot::channel();
    let ended = std::sync::Mutex::new(Some(ended));
    let site = Site::raw(move |stream| {
        let (tls, ended) = (tls.clone(), ended.lock().unwrap().take());
        async move {
            let mut stream = tls.accept(stream).await.unwrap();
            match ended {
                // The first connection waits for the program to leave.
                Some(ended) => {
                    assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
                    ended.send(()).unwrap();
                }
                None => stream.shutdown().await.unwrap(),
            }
        }
    })
    .await;
    let (stream, carried) = env.open(site.address, host(), true).await;
    let program = env.hello(stream, NAME, &["http/1.1"]).await.unwrap();
    drop(program);
    end.await.unwrap();
    carried.await.unwrap().unwrap();

    let (stream, carried) = env.open(site.address, host(), true).await;
    let mut program = env.hello(stream, NAME, &["http/1.1"]).await.unwrap();
    assert_eq!(program.read(&mut [0; 16]).await.unwrap_or(0), 0);
    carried.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_program_that_gives_up_waiting_is_gone_for_the_site() {
    for is_two in [false, true] {
        let env = TestEnv::new();
        let (dropped, closed) = oneshot::channel::<()>();
        let (got, reached) = oneshot::channel::<()>();
        let held = std::sync::Mutex::new(Some((dropped, got)));
        let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), move |_| {
            let (dropped, got) = held.lock().unwrap().take().unwrap();
            got.send(()).unwrap();
            async move {
                // Dropped with the request, when the gateway takes it back.
                let _dropped = dropped;
                std::future::pending().await
            }
        })
        .await;
        let (mut program, _carried) = env.program(site.address, is_two).await;
        let request = tokio::spawn(async move { program.send(get("/", &[])).await.map(drop) });
        reached.await.unwrap();
        request.abort();
        assert!(closed.await.is_err());
    }
}

#[tokio::test]
async fn nothing_goes_on_when_the_gateway_lets_go() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    for is_two in [false, true] {
        let (mut program, carried) = env.program(site.address, is_two).await;
        assert_eq!(program.get("/", &[]).await.status(), 200);
        carried.abort();
        assert!(carried.await.unwrap_err().is_cancelled());
        assert!(program.send(get("/", &[])).await.is_err());
    }
}

#[tokio::test]
async fn a_site_that_takes_no_more_requests_still_answers_those_it_has() {
    let env = TestEnv::new();
    let tls = env.site_tls(NAME, &["h2"]);
    let site = Site::raw(move |stream| {
        let tls = tls.clone();
        async move {
            let stream = TokioIo::new(tls.accept(stream).await.unwrap());
            let (got, is_got) = oneshot::channel();
            let (leave, is_left) = oneshot::channel::<()>();
            let held = std::sync::Mutex::new(Some((got, is_left)));
            let service = service_fn(move |_| {
                let (got, is_left) = held.lock().unwrap().take().expect("one request alone");
                got.send(()).unwrap();
                async move {
                    is_left.await.unwrap();
                    Ok::<_, std::convert::Infallible>(http::Response::new(full("last words")))
                }
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let mut connection = std::pin::pin!(builder.serve_connection(stream, service));
            tokio::select! {
                _ = connection.as_mut() => unreachable!("the request is not answered yet"),
                got = is_got => got.unwrap(),
            }
            connection.as_mut().graceful_shutdown();
            leave.send(()).unwrap();
            connection.await.unwrap();
        }
    })
    .await;
    let (mut program, carried) = env.program(site.address, true).await;
    let answer = program.get("/", &[]).await;
    assert_eq!(answer.body(), "last words");
    carried.await.unwrap().unwrap();
    assert!(program.send(get("/", &[])).await.is_err());
}
