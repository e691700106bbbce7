//! The contracts against sandboxes that are real.

use serde_json::{Value, json};

use crate::live::{Server, code, ok};

/// The least of a tool server: one answer as JSON, the other as an event. If `/tmp/with-routes` is there it has
/// routes for settings, too.
const TOOL_SERVER: &str = r#"#!/usr/bin/perl
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 6060, Listen => 9, ReuseAddr => 1) or die;
while (my $client = $server->accept) {
    my ($length, $session, $path, $farewell) = (0, 0, '', 0);
    while (my $line = <$client>) {
        $path = $1 if $line =~ m{^POST (\S+)};
        $farewell = 1 if $line =~ m{^DELETE /mcp };
        $length = $1 if $line =~ /^content-length: (\d+)/i;
        $session = 1 if $line =~ /^mcp-session-id: s1/i;
        last if $line =~ /^\r\n$/;
    }
    if ($farewell && $session) {
        open my $file, '>>', '/tmp/farewells';
        print $file "s1 ";
        close $file;
    }
    # Somebody who only looked whether it listens.
    next unless $path;
    read $client, my $body, $length;
    my ($kind, $text) = ('application/json', '{"jsonrpc":"2.0","id":1,"result":{}}');
    if ($body =~ m{tools/list} && $session) {
        $kind = 'text/event-stream';
        $text = qq(data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"hammer"},{"name":"saw"}]}}\n\n);
    }
    my $status = '200 OK';
    if ($path ne '/mcp' && !-e '/tmp/with-routes') {
        $status = '404 Not Found';
    } elsif ($path ne '/mcp') {
        open my $file, '>>', '/tmp/settings';
        print $file "$path $body\n";
        close $file;
        $text = '{"servers":{"a":{"status":"ok","tools":["mcp_a_x"]},"b":{"status":"failed","error":"no such program"}}}';
    }
    print $client "HTTP/1.1 $status\r\nContent-Type: $kind\r\nMcp-Session-Id: s1\r\nContent-Length: " . length($text) . "\r\n\r\n$text";
    close $client;
}
"#;

/// What makes that one the sandbox's tool server: a service as templates have them.
fn install(id: &str) -> Value {
    let service = "/etc/sandyard/services/6060";
    let command = format!(
        "mkdir -p /etc/sandyard/services && cat > {service} <<'END'\n{TOOL_SERVER}END\nchmod 755 {service}"
    );
    json!({"sandbox_id": id, "command": command, "user": "root"})
}

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
    // The start is reported before the shell has become the command.
    server.until(&id, "pgrep -c sleep", "1").await;
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
    let installed = ok(post(&server, "/sandboxes/run-command", install(&id)).await).await;
    assert_eq!(installed["exit_code"], 0, "{installed}");
    let body = json!({
        "sandbox_id": id, "mcp_config": {"mcpServers": {}}, "credential": {"key": "k"}, "timeout": 120,
    });
    let reply = ok(post(&server, "/sandboxes/setup-mcp", body).await).await;
    assert_eq!(reply["tools"], json!(["hammer", "saw"]));
    assert!(
        reply["mcp_url"]
            .as_str()
            .unwrap()
            .ends_with(&format!("/p/{id}/6060/mcp"))
    );
    let files = server
        .run(&id, "cat ~/.sandyard/mcp.json ~/.sandyard/credential.json")
        .await;
    assert_eq!(files, r#"{"mcpServers":{}}{"key":"k"}"#);
    server.finish().await;
}

#[tokio::test]
async fn a_tool_server_is_given_its_settings_and_says_what_became_of_them() {
    let server = Server::start().await;
    let id = server.create().await;
    let installed = ok(post(&server, "/sandboxes/run-command", install(&id)).await).await;
    assert_eq!(installed["exit_code"], 0, "{installed}");
    server.run(&id, "touch /tmp/with-routes").await;
    let body = json!({
        "sandbox_id": id, "credential": {"user_api_key": "k"}, "tool_server_url": "http://tools.example", "timeout": 120,
        "mcp_config": {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}},
    });
    let reply = ok(post(&server, "/sandboxes/setup-mcp", body).await).await;
    assert_eq!(reply["tools"], json!(["hammer", "saw"]));
    let servers = json!({"a": {"status": "ok", "tools": ["mcp_a_x"]}, "b": {"status": "failed", "tools": [], "error": "no such program"}});
    assert_eq!(reply["servers"], servers);
    assert!(
        reply["message"].as_str().unwrap().contains("failed: b"),
        "{reply}"
    );
    let given = server
        .run(&id, "cat /tmp/settings; ls ~/.sandyard 2>&1 || true")
        .await;
    let lines: Vec<_> = given.lines().collect();
    assert!(
        lines[0].starts_with("/port-url ") && lines[0].ends_with(r#"/{port}/"}"#),
        "{given}"
    );
    assert_eq!(lines[1], r#"/credential {"user_api_key":"k"}"#);
    assert_eq!(
        lines[2],
        r#"/tool-server-url {"tool_server_url":"http://tools.example"}"#
    );
    assert!(
        lines[3].starts_with(r#"/custom-mcp {"mcpServers":{"#),
        "{given}"
    );
    assert!(lines[4].contains("No such file"), "{given}");
    // The same server through the control plane's own tools.
    let ask = async |name: &str, arguments: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        ok(post(&server, "/mcp", body).await).await["result"].clone()
    };
    let listed = ask("sandbox_tools", json!({"sandbox_id": id})).await;
    assert_eq!(listed["structuredContent"]["tools"][1]["name"], "saw");
    let called = ask(
        "sandbox_call_tool",
        json!({"sandbox_id": id, "tool": "hammer"}),
    )
    .await;
    assert_eq!(called["isError"], true, "{called}");
    // Each of the three conversations ended its session.
    server.until(&id, "cat /tmp/farewells", "s1 s1 s1").await;
    // The first message of a direct conversation also sends the settings; later messages do not.
    server.run(&id, "rm /tmp/settings").await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    ok(post(&server, &format!("/p/{id}/6060/mcp"), hello).await).await;
    let given = server.run(&id, "cat /tmp/settings").await;
    assert!(
        given.starts_with("/port-url ") && given.contains(&format!("/p/{id}/{{port}}/")),
        "{given}"
    );
    assert_eq!(given.lines().count(), 1, "{given}");
    server.finish().await;
}

#[tokio::test]
async fn tool_server_and_editor_open_only_with_permission() {
    use sandyard_config::settings::AuthMode;
    let server = Server::with(|settings| settings.auth.mode = AuthMode::Required).await;
    let admin = std::fs::read_to_string(server.data().join("admin.key")).unwrap();
    let (admin, host) = (admin.trim(), server.authority());
    let send = async |path: &str, body: Value| {
        ok(server
            .post(path)
            .bearer_auth(admin)
            .json(&body)
            .send()
            .await
            .unwrap())
        .await
    };
    // As E2B's clients make it: everybody may open its ports.
    let made = send(
        "/sandboxes/create",
        json!({"network": {"allow_public_traffic": true}}),
    )
    .await;
    let id = made["sandbox_id"].as_str().unwrap();
    let installed = send("/sandboxes/run-command", install(id)).await;
    assert_eq!(installed["exit_code"], 0, "{installed}");
    let body = json!({"sandbox_id": id, "timeout": 120});
    send("/sandboxes/setup-mcp", body).await;
    let question = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let port = host.rsplit(':').next().unwrap();
    for (base, name) in [
        (format!("http://{host}/p/{id}/6060"), host.clone()),
        (
            format!("http://{host}"),
            format!("6060-{id}.localhost:{port}"),
        ),
    ] {
        let ask = |query: &str| {
            let request = server
                .client
                .post(format!("{base}/mcp{query}"))
                .header("host", &name);
            request.header("mcp-session-id", "s1").json(&question)
        };
        assert_eq!(ask("").send().await.unwrap().status(), 401, "{name}");
        assert_eq!(
            ask("").bearer_auth("wrong").send().await.unwrap().status(),
            401,
            "{name}"
        );
        let reply = ask("").bearer_auth(admin).send().await.unwrap();
        assert_eq!(reply.headers()["mcp-session-id"], "s1");
        assert!(reply.text().await.unwrap().contains("hammer"));
        let signed = send(
            "/sandboxes/expose-port",
            json!({"sandbox_id": id, "port": 6060}),
        )
        .await;
        let signed = signed["signed_url"].as_str().unwrap().to_owned();
        let query = signed.find('?').unwrap();
        assert!(signed[..query].ends_with("/mcp"), "{signed}");
        for _ in 0..2 {
            assert_eq!(
                ask(&signed[query..]).send().await.unwrap().status(),
                200,
                "{name}"
            );
        }
    }
    let refused = server
        .post(&format!("/sandboxes/{id}/ports/6060"))
        .bearer_auth(admin)
        .json(&json!({"public": true}));
    assert_eq!(refused.send().await.unwrap().status(), 422);
    // VS Code is not in this template; below a path it could not work in any case.
    let editor = |html: bool| {
        let accept = if html {
            "text/html"
        } else {
            "application/json"
        };
        server
            .get("/")
            .header("host", format!("9000-{id}.localhost:{port}"))
            .header("accept", accept)
    };
    assert_eq!(editor(false).send().await.unwrap().status(), 401);
    let answer = editor(false).bearer_auth(admin).send().await.unwrap();
    assert_eq!(code(answer, 404).await, "not_found");
    let page = editor(true).bearer_auth(admin).send().await.unwrap();
    assert_eq!(page.status(), 404);
    assert!(
        page.text()
            .await
            .unwrap()
            .contains("templates/agent/build --import")
    );
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let url = format!("http://{host}/p/{id}/9000/a?b=c");
    let sent = client
        .get(url)
        .header("accept", "text/html")
        .send()
        .await
        .unwrap();
    assert_eq!(sent.status(), 307);
    assert_eq!(
        sent.headers()["location"],
        format!("http://9000-{id}.localhost:{port}/a?b=c").as_str()
    );
    // A browser elsewhere would be sent to its own host.
    let answer = client
        .get(format!("http://{host}/p/{id}/9000/a?b=c"))
        .header("accept", "text/html")
        .header("host", "yard.example")
        .send()
        .await
        .unwrap();
    assert!(!answer.status().is_redirection(), "{answer:?}");
    assert!(!answer.headers().contains_key("location"), "{answer:?}");
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
