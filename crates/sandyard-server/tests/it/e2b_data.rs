//! The data plane of E2B's clients against real sandboxes: the agent, ports, signed links, and what is said when there is
//! nothing to talk to.

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder, Response};
use sandyard_agent_client::wire::signature::{Operation, SignedUrl, sign};
use serde_json::{Value, json};

use crate::live::{Server, TIMEOUT};

const AGENT: u16 = 49983;

/// A server in a sandbox that tells what it was asked, with all headers.
const ECHO: &str = r#"
import http.server, json
class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        text = json.dumps({'path': self.path, 'headers': {k.lower(): v for k, v in self.headers.items()}}).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 3000), Echo).serve_forever()
"#;

/// A sandbox of an E2B client.
pub(crate) struct Sandbox<'a> {
    pub(crate) server: &'a Server,
    pub(crate) id: String,
    pub(crate) token: String,
    pub(crate) traffic: Option<String>,
}

impl<'a> Sandbox<'a> {
    pub(crate) async fn create(server: &'a Server, options: Value) -> Self {
        let mut body = json!({"templateID": "base", "timeout": 300});
        for (name, value) in options.as_object().unwrap() {
            body[name] = value.clone();
        }
        let made = control(server, Method::POST, "/e2b/v2/sandboxes").json(&body);
        let made = json_of(made.send().await.unwrap(), 201).await;
        let text = |name: &str| made[name].as_str().map(str::to_owned);
        Self {
            server,
            id: text("sandboxID").unwrap(),
            token: text("envdAccessToken").unwrap(),
            traffic: text("trafficAccessToken"),
        }
    }

    /// A request for a port, named by headers.
    pub(crate) fn port(&self, method: Method, path: &str, port: u16) -> RequestBuilder {
        let url = self.server.url(&format!("/e2b{path}"));
        let request = self.server.client.request(method, url);
        request
            .header("e2b-sandbox-id", &self.id)
            .header("e2b-sandbox-port", port.to_string())
    }

    /// The same, named by the host.
    fn host(&self, method: Method, path: &str, port: u16) -> RequestBuilder {
        let request = self.server.client.request(method, self.server.url(path));
        request.header("host", format!("{port}-{}.localhost", self.id))
    }

    /// A request to the agent, with its token.
    pub(crate) fn agent(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.port(method, path, AGENT);
        request.header("x-access-token", &self.token)
    }

    /// Starts a command; its frames are the answer's body.
    async fn start(&self, command: &str) -> Response {
        let message = json!({"process": {"cmd": "/bin/bash", "args": ["-c", command]}}).to_string();
        let mut body = vec![0];
        body.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        body.extend(message.as_bytes());
        let request = self
            .agent(Method::POST, "/process.Process/Start")
            .header("content-type", "application/connect+json")
            .header("connect-protocol-version", "1")
            .body(body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// Runs a program that listens on port 3000, and waits until it does.
    async fn listen(&self, program: &str) {
        let upload = self.agent(Method::POST, "/files?path=/tmp/program.py");
        let upload = upload
            .header("content-type", "application/octet-stream")
            .body(program.to_owned());
        json_of(upload.send().await.unwrap(), 200).await;
        let mut started = self.start("exec python3 /tmp/program.py").await;
        tokio::spawn(async move { while let Ok(Some(_)) = started.chunk().await {} });
        let give_up = Instant::now() + TIMEOUT;
        let mut last = 0;
        while last != 200 {
            assert!(Instant::now() < give_up, "the program listens");
            let reply = self.port(Method::GET, "/", 3000);
            let reply = match &self.traffic {
                Some(token) => reply.header("e2b-traffic-access-token", token),
                None => reply,
            };
            last = reply.send().await.unwrap().status().as_u16();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn change(&self, method: Method, path: &str, body: Value) -> u16 {
        let path = format!("/e2b/sandboxes/{}{path}", self.id);
        let request = control(self.server, method, &path).json(&body);
        request.send().await.unwrap().status().as_u16()
    }

    fn not_found(&self) -> Value {
        json!({"sandboxId": self.id, "message": "The sandbox was not found", "code": 502})
    }
}

/// A request to the control plane.
pub(crate) fn control(server: &Server, method: Method, path: &str) -> RequestBuilder {
    let key = std::fs::read_to_string(server.data().join("admin.key")).unwrap();
    let request = server.client.request(method, server.url(path));
    request.header("x-api-key", key.trim())
}

/// The JSON of an answer with this status.
pub(crate) async fn json_of(response: Response, status: u16) -> Value {
    let found = response.status().as_u16();
    let text = response.text().await.unwrap();
    assert_eq!(found, status, "{text}");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

/// Reads an answer's body until it holds a text.
async fn read_until(response: &mut Response, expected: &str) {
    let mut seen = Vec::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        seen.extend_from_slice(&chunk);
        if String::from_utf8_lossy(&seen).contains(expected) {
            return;
        }
    }
    panic!("it ended with {}", String::from_utf8_lossy(&seen));
}

/// Waits until an answer's body has broken off.
async fn broken(mut response: Response) {
    let end = async { while let Ok(Some(_)) = response.chunk().await {} };
    tokio::time::timeout(TIMEOUT, end).await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_requires_its_token_and_files_are_read_and_written() {
    let server = Server::start().await;
    let sandbox = Sandbox::create(&server, json!({})).await;
    let health = sandbox.port(Method::GET, "/health", AGENT);
    assert_eq!(health.send().await.unwrap().status(), 204);
    let list = |request: RequestBuilder| {
        let request = request.header("content-type", "application/json");
        request.body("{}").send()
    };
    let path = "/process.Process/List";
    let listed = list(sandbox.agent(Method::POST, path)).await.unwrap();
    json_of(listed, 200).await;
    let by_host = sandbox.host(Method::POST, path, AGENT);
    let by_host = by_host.header("x-access-token", &sandbox.token);
    json_of(list(by_host).await.unwrap(), 200).await;
    for (token, count) in [(None, 0), (Some("x"), 1), (Some(sandbox.token.as_str()), 2)] {
        let mut request = sandbox.port(Method::POST, path, AGENT);
        for token in std::iter::repeat_n(token.unwrap_or_default(), count) {
            request = request.header("x-access-token", token);
        }
        if count == 2 {
            // Of two tokens the first counts, in the agent too.
            json_of(list(request).await.unwrap(), 200).await;
        } else {
            let refused = json_of(list(request).await.unwrap(), 401).await;
            assert_eq!(refused["code"], 401);
        }
    }

    let text = "0123456789".repeat(100_000);
    let upload = sandbox.agent(Method::POST, "/files?path=/home/user/a/b.txt");
    let upload = upload.header("content-type", "application/octet-stream");
    let made = json_of(upload.body(text.clone()).send().await.unwrap(), 200).await;
    assert_eq!(made[0]["path"], "/home/user/a/b.txt");
    let download = || sandbox.agent(Method::GET, "/files?path=a/b.txt");
    assert_eq!(download().send().await.unwrap().text().await.unwrap(), text);
    let part = download()
        .header("range", "bytes=5-7")
        .send()
        .await
        .unwrap();
    assert_eq!(part.status(), 206);
    assert_eq!(part.text().await.unwrap(), "567");
    let packed = download()
        .header("accept-encoding", "gzip")
        .send()
        .await
        .unwrap();
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    assert!(packed.bytes().await.unwrap().len() < text.len() / 10);
    let missing = sandbox
        .agent(Method::GET, "/files?path=/none")
        .send()
        .await
        .unwrap();
    assert_eq!(
        json_of(missing, 404).await,
        json!({"code": 404, "message": "path '/none' does not exist"})
    );
    let preflight = sandbox
        .port(Method::OPTIONS, path, AGENT)
        .send()
        .await
        .unwrap();
    assert_eq!(preflight.status(), 204);
    assert_eq!(preflight.headers()["access-control-allow-origin"], "*");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_passed_on_as_they_come_and_end_with_their_sandbox() {
    let server = Server::start().await;
    let sandbox = Sandbox::create(&server, json!({})).await;
    let mut stream = sandbox
        .start("echo one; while [ ! -e /tmp/go ]; do sleep 0.02; done; printf two; exec sleep 1000")
        .await;
    read_until(&mut stream, "b25lCg==").await;
    // The rest comes only after this: nothing was held back.
    let upload = sandbox.agent(Method::POST, "/files?path=/tmp/go");
    let upload = upload.header("content-type", "application/octet-stream");
    json_of(upload.body("x").send().await.unwrap(), 200).await;
    read_until(&mut stream, "dHdv").await;
    assert_eq!(sandbox.change(Method::DELETE, "", json!({})).await, 204);
    broken(stream).await;
    for request in [
        sandbox.port(Method::GET, "/health", AGENT),
        sandbox.host(Method::GET, "/health", AGENT),
        sandbox.port(Method::GET, "/", 3000),
        sandbox.host(Method::GET, "/", 3000),
        sandbox.host(Method::POST, "/execute", 49999),
    ] {
        let response = json_of(request.send().await.unwrap(), 502).await;
        assert_eq!(response, sandbox.not_found());
    }
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_sandbox_is_not_found_and_its_streams_end() {
    let server = Server::start().await;
    let sandbox = Sandbox::create(&server, json!({})).await;
    let mut stream = sandbox.start("echo one; exec sleep 1000").await;
    read_until(&mut stream, "b25lCg==").await;
    assert_eq!(sandbox.change(Method::POST, "/pause", json!({})).await, 204);
    broken(stream).await;
    for request in [
        sandbox.agent(Method::GET, "/health"),
        sandbox.agent(Method::GET, "/envs"),
        sandbox.port(Method::GET, "/", 3000),
    ] {
        let response = json_of(request.send().await.unwrap(), 502).await;
        assert_eq!(response, sandbox.not_found());
    }
    let path = format!("/e2b/v2/sandboxes/{}/connect", sandbox.id);
    let connect = control(&server, Method::POST, &path).json(&json!({"timeout": 300}));
    json_of(connect.send().await.unwrap(), 201).await;
    let health = sandbox.agent(Method::GET, "/health").send().await.unwrap();
    assert_eq!(health.status(), 204);
    // One whose memory was not kept rests as well.
    assert_eq!(
        sandbox
            .change(Method::POST, "/pause", json!({"memory": false}))
            .await,
        204
    );
    let response = sandbox.agent(Method::GET, "/envs").send().await.unwrap();
    assert_eq!(json_of(response, 502).await, sandbox.not_found());
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auto_resuming_sandbox_is_resumed_only_with_credentials() {
    let server = Server::start().await;
    let options = json!({"autoPause": true, "autoResume": {"enabled": true},
        "network": {"allowPublicTraffic": false}});
    let sandbox = Sandbox::create(&server, options).await;
    sandbox.listen(ECHO).await;
    let pause = async || assert_eq!(sandbox.change(Method::POST, "/pause", json!({})).await, 204);
    pause().await;
    for request in [
        sandbox.port(Method::GET, "/health", AGENT),
        sandbox.port(Method::GET, "/envs", AGENT),
        sandbox.port(Method::GET, "/files?path=a&signature=v1_x", AGENT),
    ] {
        let response = json_of(request.send().await.unwrap(), 502).await;
        assert_eq!(response, sandbox.not_found());
    }
    let closed = sandbox.port(Method::GET, "/", 3000).send().await.unwrap();
    json_of(closed, 403).await;
    let woken = sandbox.agent(Method::GET, "/envs").send().await.unwrap();
    json_of(woken, 200).await;
    pause().await;
    let by_port = sandbox.port(Method::GET, "/", 3000);
    let by_port = by_port.header(
        "e2b-traffic-access-token",
        sandbox.traffic.as_ref().unwrap(),
    );
    json_of(by_port.send().await.unwrap(), 200).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_everybodys_or_need_the_sandboxs_token_and_see_nothing_of_ours() {
    let server = Server::start().await;
    let open = Sandbox::create(
        &server,
        json!({"network": {"maskRequestHost": "localhost:${PORT}"}}),
    )
    .await;
    open.listen(ECHO).await;
    let key = std::fs::read_to_string(server.data().join("admin.key")).unwrap();
    for request in [
        open.port(Method::GET, "/p/x/80/a?b=c", 3000),
        open.host(Method::GET, "/p/x/80/a?b=c", 3000),
    ] {
        let request = request
            .header("x-access-token", &open.token)
            .header("x-api-key", key.trim())
            .header("authorization", "Basic YTpi")
            .header("e2b-traffic-access-token", "made up")
            .header("origin", "https://another.example")
            .header("sec-fetch-site", "cross-site");
        let seen = json_of(request.send().await.unwrap(), 200).await;
        assert_eq!(seen["path"], "/p/x/80/a?b=c");
        let headers = seen["headers"].as_object().unwrap();
        assert_eq!(headers["host"], "localhost:3000");
        assert_eq!(headers["authorization"], "Basic YTpi");
        for name in [
            "x-access-token",
            "x-api-key",
            "e2b-traffic-access-token",
            "e2b-sandbox-id",
            "e2b-sandbox-port",
        ] {
            assert!(!headers.contains_key(name), "{headers:?}");
        }
    }
    // What is another's own stays.
    let own = open
        .port(Method::GET, "/", 3000)
        .header("x-access-token", "the app's");
    let seen = json_of(own.send().await.unwrap(), 200).await;
    assert_eq!(seen["headers"]["x-access-token"], "the app's");
    for request in [
        open.port(Method::GET, "/", 3001),
        open.host(Method::GET, "/", 3001),
    ] {
        let closed = json_of(request.send().await.unwrap(), 502).await;
        let message = "The sandbox is running but port is not open";
        assert_eq!(
            closed,
            json!({"sandboxId": open.id, "message": message, "port": 3001, "code": 502})
        );
    }
    let page = open
        .host(Method::GET, "/", 3001)
        .header("accept", "text/html");
    assert!(
        page.send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
            .contains("Nothing is listening")
    );

    let closed = Sandbox::create(&server, json!({"network": {"allowPublicTraffic": false}})).await;
    closed.listen(ECHO).await;
    let token = closed.traffic.clone().unwrap();
    // The right one may begin with either character.
    let first = if token.starts_with('_') { "-" } else { "_" };
    let wrong = format!("{first}{}", &token[1..]);
    for (token, words) in [
        (
            None,
            "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing",
        ),
        (
            Some(wrong),
            "Sandbox is secured with traffic access token. Provided token is invalid.",
        ),
        (
            Some(closed.token.clone()),
            "Sandbox is secured with traffic access token. Provided token is invalid.",
        ),
    ] {
        for mut request in [
            closed.port(Method::GET, "/", 3000),
            closed.host(Method::GET, "/", 3000),
        ] {
            if let Some(token) = &token {
                request = request.header("e2b-traffic-access-token", token);
            }
            let refused = json_of(request.send().await.unwrap(), 403).await;
            assert_eq!(
                refused,
                json!({"sandboxId": closed.id, "message": words, "code": 403})
            );
        }
    }
    for request in [
        closed.port(Method::GET, "/", 3000),
        closed.host(Method::GET, "/", 3000),
    ] {
        let request = request.header("e2b-traffic-access-token", &token);
        let seen = json_of(request.send().await.unwrap(), 200).await;
        assert!(!seen.to_string().contains(&token), "{seen}");
    }
    let owner = closed
        .host(Method::GET, "/", 3000)
        .header("x-api-key", key.trim());
    json_of(owner.send().await.unwrap(), 200).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_is_enough_to_find_a_file() {
    let server = Server::start().await;
    let first = Sandbox::create(&server, json!({})).await;
    let second = Sandbox::create(&server, json!({})).await;
    for (sandbox, text) in [(&first, "first"), (&second, "second")] {
        let upload = sandbox.agent(Method::POST, "/files?path=/tmp/a");
        let upload = upload.header("content-type", "application/octet-stream");
        json_of(upload.body(text).send().await.unwrap(), 200).await;
    }
    let link = |sandbox: &Sandbox<'_>, operation, expiration: Option<i64>| {
        let url = SignedUrl {
            path: "/tmp/a",
            operation,
            user: "root",
            expiration,
        };
        let end = expiration.map_or(String::new(), |end| format!("&signature_expiration={end}"));
        let signature = sign(&url, &sandbox.token)
            .replace('+', "%2B")
            .replace('/', "%2F");
        server.url(&format!(
            "/e2b/files?path=/tmp/a&username=root&signature={signature}{end}"
        ))
    };
    let get = async |url: String| server.client.get(url).send().await.unwrap();
    for (sandbox, text) in [(&first, "first"), (&second, "second")] {
        for expiration in [None, Some(4_000_000_000)] {
            let found = get(link(sandbox, Operation::Read, expiration)).await;
            assert_eq!(found.text().await.unwrap(), text);
        }
    }
    let late = json_of(get(link(&first, Operation::Read, Some(1))).await, 401).await;
    assert_eq!(
        late,
        json!({"code": 401, "message": "signature is already expired"})
    );
    let other = json_of(get(link(&first, Operation::Write, None)).await, 401).await;
    assert_eq!(other, json!({"code": 401, "message": "invalid signature"}));
    // One that is new is found at once.
    let third = Sandbox::create(&server, json!({})).await;
    let write = server.client.post(link(&third, Operation::Write, None));
    let write = write
        .header("content-type", "application/octet-stream")
        .body("third");
    json_of(write.send().await.unwrap(), 200).await;
    let found = get(link(&third, Operation::Read, None)).await;
    assert_eq!(found.text().await.unwrap(), "third");
    assert_eq!(third.change(Method::DELETE, "", json!({})).await, 204);
    let response = json_of(get(link(&third, Operation::Read, None)).await, 502).await;
    assert_eq!(response, third.not_found());
    // Who guesses is slowed down.
    let mut statuses = Vec::new();
    for number in 0..10 {
        let guess = format!("v1_{number:043}");
        let url = server.url(&format!("/e2b/files?path=/tmp/a&signature={guess}"));
        // Enough parallel requests to exceed the limit, however slow each is.
        let requests = (0..400).map(|_| server.client.get(&url).send());
        for answer in futures_util::future::join_all(requests).await {
            statuses.push(answer.unwrap().status().as_u16());
        }
        if statuses.contains(&429) {
            break;
        }
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    assert!(statuses.iter().all(|status| [401, 429].contains(status)));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_waits_for_no_stream_and_takes_no_sandbox_along() {
    // Longer than this test waits.
    let mut server = Server::with(|settings| settings.server.shutdown_grace = TIMEOUT * 10).await;
    let stream = {
        let sandbox = Sandbox::create(&server, json!({})).await;
        let mut stream = sandbox.start("echo one >&2; exec yes").await;
        read_until(&mut stream, "b25lCg==").await;
        stream
    };
    let reading = tokio::spawn(broken(stream));
    server.stop().await;
    reading.await.unwrap();
    server.finish().await;
}
