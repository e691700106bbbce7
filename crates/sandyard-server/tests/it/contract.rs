//! The contracts against sandboxes that are real.

use serde_json::{Value, json};

use crate::live::{Server, code, ok};

/// The least of a tool server: one answer as JSON, the other as an event.
const TOOL_SERVER: &str = r#"
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 6060, Listen => 9, ReuseAddr => 1) or die;
while (my $client = $server->accept) {
    my ($length, $session) = (0, 0);
    while (my $line = <$client>) {
        $length = $1 if $line =~ /^content-length: (\d+)/i;
        $session = 1 if $line =~ /^mcp-session-id: s1/i;
        last if $line =~ /^\r\n$/;
    }
    read $client, my $body, $length;
    my ($kind, $text) = ('application/json', '{"jsonrpc":"2.0","id":1,"result":{}}');
    if ($body =~ m{tools/list} && $session) {
        $kind = 'text/event-stream';
        $text = qq(data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"hammer"},{"name":"saw"}]}}\n\n);
    }
    print $client "HTTP/1.1 200 OK\r\nContent-Type: $kind\r\nMcp-Session-Id: s1\r\nContent-Length: " . length($text) . "\r\n\r\n$text";
    close $client;
}
"#;

async fn post(server: &Server, path: &str, body: Value) -> reqwest::Response {
    server
        .post(path)
        .json(&body)
        .send()
        .await
        .expect("an answer")
}

#[tokio::test]
async fn commands_answer_with_all_they_wrote() {
    let server = Server::start().await;
    let id = server.create().await;
    let body = json!({"sandbox_id": id, "command": "echo out; echo err >&2; exit 3"});
    let reply = ok(post(&server, "/sandboxes/run-cmd", body).await).await;
    assert_eq!(reply["output"], "out\nerr\n");
    assert_eq!(
        (&reply["stdout"], &reply["stderr"]),
        (&json!("out\n"), &json!("err\n"))
    );
    assert_eq!(
        (&reply["success"], &reply["exit_code"]),
        (&json!(true), &json!(3))
    );

    let body = json!({"sandbox_id": id, "command": ["printf", "%s", "$HOME"], "cwd": "/tmp"});
    assert_eq!(
        ok(post(&server, "/sandboxes/run-command/", body).await).await["output"],
        "$HOME"
    );

    let body = json!({"sandbox_id": id, "command": "sleep 1000 & sleep 1000", "timeout": 0.2});
    let refused = post(&server, "/sandboxes/run-command", body).await;
    assert_eq!(code(refused, 408).await, "timed_out");
    server.until(&id, "pgrep -c sleep", "0").await;

    let body = json!({"sandbox_id": id, "command": "true", "user": "nobody-of-that-name"});
    let refused = post(&server, "/sandboxes/run-command", body).await;
    assert_eq!(code(refused, 404).await, "not_found");

    let body = json!({"sandbox_id": id, "command": "sleep 1000", "background": true});
    let reply = ok(post(&server, "/sandboxes/run-command", body).await).await;
    assert!(reply["process_id"].as_u64().unwrap() > 1);
    assert_eq!(reply["exit_code"], Value::Null);
    assert_eq!(server.run(&id, "pgrep -c sleep").await.trim(), "1");
    server.finish().await;
}

#[tokio::test]
async fn files_are_written_and_read_as_text() {
    let server = Server::start().await;
    let id = server.create().await;
    for (field, path, content) in [
        ("path", "notes/a.txt", "grüße\n"),
        ("file_path", "/tmp/b.txt", ""),
        ("path", "../../../tmp/c.txt", "inside"),
    ] {
        let body = json!({"sandbox_id": id, field: path, "content": content});
        ok(post(&server, "/sandboxes/write-file", body).await).await;
        let body = json!({"sandbox_id": id, field: path});
        let reply = ok(post(&server, "/sandboxes/read-file", body).await).await;
        assert_eq!(reply["content"], content, "{path}");
    }
    assert_eq!(server.run(&id, "cat ~/notes/a.txt").await, "grüße\n");
    assert_eq!(
        server.run(&id, "cat /tmp/c.txt").await,
        "inside",
        "`..` stays inside"
    );
    server
        .run(
            &id,
            "printf '\\377' > /tmp/bytes; mkdir /tmp/folder; truncate -s 33M /tmp/large",
        )
        .await;
    for (path, status, word) in [
        ("/tmp/bytes", 422, "not_text"),
        ("/tmp/folder", 422, "invalid"),
        ("/tmp/nosuch", 404, "file_not_found"),
        ("/tmp/large", 413, "too_large"),
    ] {
        let body = json!({"sandbox_id": id, "path": path});
        let refused = post(&server, "/sandboxes/read-file", body).await;
        assert_eq!(code(refused, status).await, word, "{path}");
    }
    server.finish().await;
}

#[tokio::test]
async fn folders_are_made_by_query_and_by_json() {
    let server = Server::start().await;
    let id = server.create().await;
    let query = format!("/sandboxes/create-directory?sandbox_id={id}&directory_path=made/deep");
    ok(server.post(&query).send().await.unwrap()).await;
    assert_eq!(
        code(server.post(&query).send().await.unwrap(), 409).await,
        "conflict"
    );
    ok(server
        .post(&format!("{query}&exist_ok=true"))
        .send()
        .await
        .unwrap())
    .await;
    let body = json!({"sandbox_id": id, "directory_path": "/tmp/json"});
    ok(post(&server, "/sandboxes/create-directory", body).await).await;
    assert_eq!(
        server.run(&id, "stat -c %F ~/made/deep /tmp/json").await,
        "directory\ndirectory\n"
    );
    server.run(&id, "touch /tmp/file").await;
    let body = json!({"sandbox_id": id, "directory_path": "/tmp/file", "exist_ok": true});
    let refused = post(&server, "/sandboxes/create-directory", body).await;
    assert_eq!(code(refused, 409).await, "conflict", "a file is no folder");
    server.finish().await;
}

#[tokio::test]
async fn commands_of_the_docker_dialect_run_in_the_workspace() {
    let server = Server::start().await;
    let body = json!({"project_name": "test", "memory_limit": "256m", "cpu_limit": "1.0"});
    let made = ok(post(&server, "/api/sandboxes/", body).await).await;
    let id = made["sandbox_id"].as_str().unwrap().to_owned();
    let execute = async |id: &str, command: Value| {
        let path = format!("/api/sandboxes/{id}/execute");
        ok(post(&server, &path, json!({"command": command})).await).await
    };
    let reply = execute(
        &id,
        json!(["sh", "-c", "pwd; touch mine; echo no >&2; exit 2"]),
    )
    .await;
    assert_eq!(
        reply,
        json!({"exit_code": 2, "stdout": "/workspace\n", "stderr": "no\n"})
    );
    // In one that was made in another dialect too.
    let other = server.create().await;
    assert_eq!(
        execute(&other, json!(["pwd"])).await["stdout"],
        "/workspace\n"
    );
    assert_eq!(
        execute(&other, json!(["touch", "mine"])).await["exit_code"],
        0
    );
    ok(server
        .post(&format!("/api/sandboxes/{id}/stop"))
        .send()
        .await
        .unwrap())
    .await;
    let path = format!("/api/sandboxes/{id}/execute");
    let refused = post(&server, &path, json!({"command": ["true"]})).await;
    assert_eq!(code(refused, 400).await, "bad_request");
    ok(server
        .post(&format!("/api/sandboxes/{id}/start"))
        .send()
        .await
        .unwrap())
    .await;
    assert_eq!(execute(&id, json!(["ls"])).await["stdout"], "mine\n");
    server.finish().await;
}

#[tokio::test]
async fn a_tool_server_is_found_when_there_is_one_and_missed_when_not() {
    let server = Server::start().await;
    let id = server.create().await;
    let refused = post(&server, "/sandboxes/setup-mcp", json!({"sandbox_id": id})).await;
    assert_eq!(code(refused, 409).await, "conflict");
    let body = json!({"sandbox_id": id, "path": "tools.pl", "content": TOOL_SERVER});
    ok(post(&server, "/sandboxes/write-file", body).await).await;
    let body = json!({"sandbox_id": id, "command": "perl tools.pl", "background": true});
    ok(post(&server, "/sandboxes/run-command", body).await).await;
    let body =
        json!({"sandbox_id": id, "mcp_config": {"mcpServers": {}}, "credential": {"key": "k"}});
    let reply = ok(post(&server, "/sandboxes/setup-mcp", body).await).await;
    assert_eq!(reply["tools"], json!(["hammer", "saw"]));
    assert!(
        reply["mcp_url"]
            .as_str()
            .unwrap()
            .ends_with(&format!("/p/{id}/6060/"))
    );
    let kept = server
        .run(&id, "cat ~/.sandyard/mcp.json ~/.sandyard/credential.json")
        .await;
    assert_eq!(kept, r#"{"mcpServers":{}}{"key":"k"}"#);
    server.finish().await;
}

#[tokio::test]
async fn streams_of_another_users_sandbox_are_not_found_before_they_open() {
    let server = Server::start().await;
    let id = server.create().await;
    let admin = std::fs::read_to_string(server.data().join("admin.key")).unwrap();
    let make = async |path: &str, body: Value| {
        let request = server.post(path).header("x-api-key", admin.trim());
        ok(request.json(&body).send().await.unwrap()).await
    };
    make("/users", json!({"name": "bob"})).await;
    let key = make("/keys", json!({"name": "k", "user": "bob"})).await;
    let key = key["key"].as_str().unwrap();
    for verb in ["exec", "pty"] {
        for (credential, status, word) in [
            (key, 404, "sandbox_not_found"),
            (
                "e2b_0000000000000000000000000000000000000000",
                401,
                "unauthenticated",
            ),
        ] {
            let request = server
                .get(&format!("/sandboxes/{id}/{verb}"))
                .header("x-api-key", credential)
                .header("connection", "upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-version", "13")
                .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
            let refused = request.send().await.unwrap();
            assert_eq!(code(refused, status).await, word, "{verb}");
        }
    }
    server.finish().await;
}
