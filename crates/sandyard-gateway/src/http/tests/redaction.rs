//! Secrets on the way back.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;

use super::env::{NAME, PLACEHOLDER, SECRET, TestEnv, collect_body, text};
use super::site::{Site, SiteBody, echo, full};

/// A body of no known length that comes in these pieces, and then trailers.
fn pieces(pieces: Vec<String>, trailers: Option<HeaderMap>) -> SiteBody {
    let pieces = pieces
        .into_iter()
        .map(|piece| Frame::data(Bytes::from(piece)));
    let frames = pieces.chain(trailers.map(Frame::trailers));
    StreamBody::new(stream::iter(
        frames.map(Ok::<_, Box<dyn std::error::Error + Send + Sync>>),
    ))
    .boxed()
}

#[tokio::test]
async fn an_echo_of_the_secret_comes_back_as_the_placeholder() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), echo).await;
    for is_two in [false, true] {
        let (mut program, _) = env.program(site.address, is_two).await;
        let bearer = format!("Bearer {PLACEHOLDER}");
        let answer = program.get("/", &[("authorization", &bearer)]).await;
        assert_eq!(
            site.last().header("authorization"),
            format!("Bearer {SECRET}")
        );
        assert_eq!(answer.headers()["echo-authorization"], bearer);
        assert!(
            text(&answer).contains(&format!("authorization: {bearer}\n")),
            "{}",
            text(&answer)
        );
        assert!(!format!("{answer:?}").contains(SECRET));
        if let Some(length) = answer.headers().get("content-length") {
            assert_eq!(length.to_str().unwrap(), answer.body().len().to_string());
        }
    }
}

/// Answers with the secret in the way that the path says. The request carries none: what a host remembers is hidden as well.
async fn show(request: Request<Incoming>) -> Response<SiteBody> {
    let filling = "x".repeat(100 * 1024);
    match request.uri().path() {
        "/pieces" => {
            let body: Vec<_> = format!("<{SECRET}> {SECRET}")
                .chars()
                .map(String::from)
                .collect();
            let mut trailers = HeaderMap::new();
            trailers.insert("x-trailer", format!("a {SECRET}").parse().unwrap());
            let response = Response::builder().header("trailer", "x-trailer");
            response.body(pieces(body, Some(trailers))).unwrap()
        }
        "/forms" => {
            let encoded = [
                SECRET.replace('/', "\\/"),
                SECRET.replace('/', "%2F").replace('+', "%2B"),
                SECRET.replace('/', "%2f").replace('+', "%2b"),
                STANDARD.encode(SECRET),
                URL_SAFE_NO_PAD.encode(SECRET),
            ];
            Response::new(full(encoded.join("\n")))
        }
        "/long" => Response::new(full(format!("{filling}{SECRET}{filling}"))),
        "/part" => {
            let response = Response::builder().status(206);
            let response = response.header("content-range", "bytes 10-40/999");
            response.body(full(format!("<{SECRET}>"))).unwrap()
        }
        "/unchanged" => Response::builder()
            .status(304)
            .header("etag", "\"1\"")
            .body(full(""))
            .unwrap(),
        "/nothing" => Response::builder().status(204).body(full("")).unwrap(),
        "/away" => {
            let location = format!("https://{NAME}/?token={SECRET}");
            Response::builder()
                .status(302)
                .header("location", location)
                .body(full(""))
                .unwrap()
        }
        "/coded" => {
            let response = Response::builder().header("content-encoding", "gzip");
            response.body(full("compressed")).unwrap()
        }
        _ => Response::builder()
            .header("content-length", "12345")
            .body(full(""))
            .unwrap(),
    }
}

#[tokio::test]
async fn a_secret_that_comes_in_pieces_or_in_other_forms_is_hidden() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), show).await;
    for is_two in [false, true] {
        let (mut program, _) = env.program(site.address, is_two).await;
        let request = super::env::get("/pieces", &[("te", "trailers")]);
        let answer = program.send(request).await.unwrap();
        let answer = answer.into_body().collect().await.unwrap();
        let trailers = answer.trailers().cloned().unwrap();
        assert_eq!(trailers["x-trailer"], format!("a {PLACEHOLDER}"));
        assert_eq!(answer.to_bytes(), format!("<{PLACEHOLDER}> {PLACEHOLDER}"));
        let answer = program.get("/forms", &[]).await;
        let encoded = [
            PLACEHOLDER,
            PLACEHOLDER,
            PLACEHOLDER,
            &STANDARD.encode(PLACEHOLDER),
            &URL_SAFE_NO_PAD.encode(PLACEHOLDER),
        ];
        assert_eq!(text(&answer), encoded.join("\n"));
        let answer = program.get("/away", &[]).await;
        assert_eq!(
            answer.headers()["location"],
            format!("https://{NAME}/?token={PLACEHOLDER}")
        );
    }
}

#[tokio::test]
async fn what_a_host_says_about_the_coding_does_not_keep_the_secret_from_being_hidden() {
    let env = TestEnv::new();
    let tls = env.site_tls(NAME, &["h2", "http/1.1"]);
    let site = Site::start(Some(tls), |request| async move {
        let coding = request.headers()["x-coding"].clone();
        let response = Response::builder().header("content-encoding", coding);
        response.body(full(format!("<{SECRET}>"))).unwrap()
    })
    .await;
    for is_two in [false, true] {
        let (mut program, _) = env.program(site.address, is_two).await;
        for coding in ["utf-8", "aws-chunked", "identity", "", "gzip"] {
            let answer = program.get("/", &[("x-coding", coding)]).await;
            assert_eq!(answer.headers()["content-encoding"], coding);
            assert_eq!(text(&answer), format!("<{PLACEHOLDER}>"));
        }
    }
}

#[tokio::test]
async fn lengths_stay_true() {
    let env = TestEnv::new();
    let site = Site::start(Some(env.site_tls(NAME, &["h2", "http/1.1"])), show).await;
    let fitted = format!("{PLACEHOLDER:*<width$}", width = SECRET.len());
    for is_two in [false, true] {
        let (mut program, _) = env.program(site.address, is_two).await;
        let answer = program.get("/long", &[]).await;
        let filling = "x".repeat(100 * 1024);
        assert!(
            text(&answer) == format!("{filling}{fitted}{filling}"),
            "{}",
            answer.body().len()
        );
        let answer = program.get("/part", &[]).await;
        assert_eq!(answer.status(), 206);
        assert_eq!(text(&answer), format!("<{fitted}>"));
        assert_eq!(answer.headers()["content-range"], "bytes 10-40/999");
        for (path, status) in [("/unchanged", 304), ("/nothing", 204)] {
            let answer = program.get(path, &[]).await;
            assert_eq!(answer.status(), status);
            assert!(answer.body().is_empty());
        }
        let mut request = super::env::get("/head", &[]);
        *request.method_mut() = Method::HEAD;
        let answer = collect_body(program.send(request).await.unwrap()).await;
        assert_eq!(answer.headers()["content-length"], "12345");
        let answer = program.get("/coded", &[]).await;
        assert_eq!(text(&answer), "compressed");
        assert_eq!(site.last().method, Method::GET);
    }
}

#[tokio::test]
async fn what_comes_bit_by_bit_is_passed_on_bit_by_bit() {
    let env = TestEnv::new();
    let (more, rest) = tokio::sync::mpsc::unbounded_channel::<&'static str>();
    let rest = std::sync::Mutex::new(Some(rest));
    let site = Site::start(Some(env.site_tls(NAME, &["http/1.1"])), move |_| {
        let rest = rest.lock().unwrap().take().unwrap();
        let frames = stream::unfold(rest, |mut rest| async {
            let piece = rest.recv().await?;
            let frame =
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Frame::data(Bytes::from(piece)));
            Some((frame, rest))
        });
        let body = StreamBody::new(std::pin::Pin::from(
            Box::new(frames) as Box<dyn futures_util::Stream<Item = _> + Send + Sync>
        ));
        async { Response::new(body.boxed()) }
    })
    .await;
    let (mut program, _) = env.program(site.address, false).await;
    let mut answer = program
        .send(super::env::get("/", &[("x-key", PLACEHOLDER)]))
        .await
        .unwrap();
    for event in ["data: one\n\n", "data: two\n\n", "data: three\n\n"] {
        more.send(event).unwrap();
        let piece = answer.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(piece, event);
    }
    drop(more);
    assert!(answer.frame().await.is_none());
}
