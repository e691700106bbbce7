//! A small tool server of its own, for tests.

use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Speaks MCP over its input and output. `NOTES` names a file for what it has to say.
const PROGRAM: &str = r#"
import json, os, sys, threading
lock = threading.Lock()
def send(**message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()
def note(words):
    with open(os.environ["NOTES"], "a") as file:
        file.write(words + "\n")
note(f"started {os.getpid()}")
if os.environ.get("BROKEN"):
    sys.exit("this server is broken on purpose")
schema = {"type": "object", "properties": {"text": {"type": "string"}}}
tools = [{"name": name, "description": name, "inputSchema": schema} for name in ("echo", "slow", "die", "grow", "refuse", "about")]
tools[0]["annotations"] = {"readOnlyHint": True}
cancelled = {}
def slow(number, token):
    note("at work")
    for step in range(50):
        if token is not None:
            send(method="notifications/progress", params={"progressToken": token, "progress": step, "message": f"step {step}"})
    cancelled[number].wait(600)
    note("cancelled")
def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}
def call(number, params):
    name, given = params["name"], params.get("arguments") or {}
    if name == "echo":
        return text(given.get("text", ""), structuredContent={"text": given.get("text", "")})
    if name == "slow":
        cancelled[number] = threading.Event()
        token = (params.get("_meta") or {}).get("progressToken")
        threading.Thread(target=slow, args=(number, token), daemon=True).start()
        return None
    if name == "die":
        sys.stderr.write("dying on purpose\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "grow":
        tools.append({"name": "grown", "description": "new", "inputSchema": schema})
        send(method="notifications/tools/list_changed")
        return text("grown")
    if name == "refuse":
        return text("it cannot be done", isError=True)
    if name == "about":
        return text(json.dumps({"cwd": os.getcwd(), "value": os.environ.get("VALUE"), "path": bool(os.environ.get("PATH"))}))
for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        send(id=number, result={"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "small", "version": "1"}})
    elif method == "tools/list":
        send(id=number, result={"tools": tools})
    elif method == "tools/call":
        result = call(number, params)
        if result is not None:
            send(id=number, result=result)
    elif method == "notifications/cancelled":
        event = cancelled.get(params.get("requestId"))
        if event:
            event.set()
    elif number is not None:
        send(id=number, error={"code": -32601, "message": "no such method"})
note("input closed")
"#;

/// The configuration of such a server, which writes its notes to `notes` in the folder.
pub(crate) fn small_server(folder: &Path) -> Value {
    std::fs::write(folder.join("small.py"), PROGRAM).unwrap();
    json!({
        "command": "python3",
        "args": [folder.join("small.py")],
        "env": {"NOTES": folder.join("notes"), "VALUE": "given"},
    })
}

/// A server with one tool, `one`, that closes the connection of a client that sends the request `at`.
pub(crate) async fn leaving_server(at: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The client may close the connection as well.
            tokio::spawn(async move { answer_one(stream, at).await.ok() });
        }
    });
    url
}

async fn answer_one(stream: TcpStream, leaves_at: &str) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).await? > 2 {
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match asked["method"].as_str() {
        Some(method) if method == leaves_at => return Ok(()),
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "leaving", "version": "1"},
        }),
        Some("tools/list") => {
            json!({"tools": [{"name": "one", "inputSchema": {"type": "object"}}]})
        }
        _ => Value::Null,
    };
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string();
    let (status, answer) = match asked["method"].as_str() {
        // It has no stream of events.
        None => ("405 Method Not Allowed", ""),
        Some(_) if result.is_null() => ("202 Accepted", ""),
        Some(_) => ("200 OK", answer.as_str()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    );
    stream.write_all(head.as_bytes()).await
}

/// What it has noted.
pub(crate) fn notes(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("notes")).unwrap_or_default()
}

/// Waits for something to become true, a good while.
pub(crate) async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    for _ in 0..9000 {
        if is_true() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it never came to this: {what}");
}
