//! `sandyard mcp`: MCP on standard input and output.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::Server;

/// A client of `sandyard mcp`.
struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Bridge {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self {
            input: child.stdin.take(),
            child,
            lines,
        }
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{message}").expect("write");
    }

    /// Every line is a message; nothing else is on standard output.
    fn receive(&mut self) -> Value {
        let line = self.lines.next().expect("a message").expect("text");
        serde_json::from_str(&line).expect("JSON")
    }

    fn call(&mut self, id: u64, name: &str, arguments: &Value, meta: &Value) {
        let params = json!({"name": name, "arguments": arguments, "_meta": meta});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn initialize(&mut self) -> Value {
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        let hello = self.receive();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        hello
    }

    /// Closes the input and returns standard error.
    fn end(mut self) -> String {
        drop(self.input.take());
        let output = self.child.wait_with_output().expect("wait");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

#[test]
fn a_client_uses_the_server_over_standard_streams() {
    let server = Server::start();
    let mut bridge = Bridge::start(server.command(&["mcp"]));
    assert_eq!(
        bridge.initialize()["result"]["serverInfo"]["name"],
        "sandyard"
    );
    bridge.call(1, "sandbox_create", &json!({}), &json!({}));
    let made = bridge.receive();
    let id = made["result"]["structuredContent"]["sandbox_id"].clone();
    assert!(id.is_string(), "{made}");
    let line = "echo begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo done";
    let command = json!({"sandbox_id": id, "command": line});
    bridge.call(2, "run_command", &command, &json!({"progressToken": 5}));
    let mut notices = 0;
    let answer = loop {
        let message = bridge.receive();
        if message["method"] != "notifications/progress" {
            break message;
        }
        assert_eq!(message["params"]["progressToken"], 5);
        notices += 1;
        if notices == 1 {
            // The command continues after the first progress notification.
            let name = id.as_str().expect("an id");
            server.out(&["exec", name, "--", "touch", "/tmp/go"]);
        }
    };
    assert!(notices >= 1);
    assert_eq!(
        answer["result"]["structuredContent"]["stdout"],
        "begun\ndone\n"
    );
    // A cancelled request gets no answer and does not delay the end.
    let command = json!({"sandbox_id": id, "command": "sleep 1000"});
    bridge.call(3, "run_command", &command, &json!({"progressToken": 6}));
    assert_eq!(bridge.receive()["params"]["progressToken"], 6);
    bridge.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}),
    );
    bridge.send(&json!({"jsonrpc": "2.0", "id": 4, "method": "ping"}));
    while bridge.receive()["id"] != 4 {}
    let input = bridge.input.as_mut().expect("open");
    writeln!(input, "no JSON").expect("write");
    assert_eq!(bridge.receive()["error"]["code"], -32700);
    // The last request is answered although the input ends.
    bridge.call(5, "sandbox_delete", &json!({"sandbox_id": id}), &json!({}));
    drop(bridge.input.take());
    assert_eq!(bridge.receive()["result"]["isError"], false);
    assert_eq!(bridge.end(), "");
}

#[test]
fn without_a_server_requests_get_an_error_with_a_hint() {
    let server = Server::start();
    let mut command = server.command(&["mcp"]);
    command.env("SANDYARD_URL", "http://127.0.0.1:9");
    let mut bridge = Bridge::start(command);
    let error = bridge.initialize()["error"]["message"].clone();
    assert!(
        error
            .as_str()
            .is_some_and(|text| text.contains("sandyard serve")),
        "{error}"
    );
    assert!(bridge.end().contains("no server at `http://127.0.0.1:9`"));
}

#[test]
fn the_client_configuration_is_printed() {
    let server = Server::start();
    let config = server.json(&["mcp", "--print-config"]);
    let entry = &config["mcpServers"]["sandyard"];
    assert!(
        entry["command"]
            .as_str()
            .is_some_and(|path| path.ends_with("sandyard"))
    );
    assert_eq!(entry["args"], json!(["mcp"]));
    assert_eq!(entry["env"]["SANDYARD_URL"], server.url());
    assert!(!config.to_string().contains(&server.admin_key()));
    let data = server.env().data().display().to_string();
    assert_eq!(entry["env"]["SANDYARD_DATA_DIR"], data);
    let arguments = [
        "mcp",
        "--sandbox",
        "web",
        "--port",
        "7070",
        "--ca-cert",
        "ca.pem",
    ];
    let config = server.json(&[&arguments[..], &["--print-config"]].concat());
    let entry = &config["mcpServers"]["sandyard"];
    assert_eq!(entry["args"], json!(arguments[..5]));
    let authority = entry["env"]["SANDYARD_CA_CERT"].as_str().expect("a path");
    assert!(
        authority.starts_with('/') && authority.ends_with("/ca.pem"),
        "{authority}"
    );
}

#[test]
fn a_new_tools_port_applies_to_new_sandboxes() {
    let mut server = Server::start();
    let old = server.out(&["create", "--name", "old"]);
    let settings = server.env().data().join("sandyard.toml");
    std::fs::write(settings, "[sandbox]\nmcp_port = 7070\n").expect("write");
    server.restart();
    server.out(&["create", "--name", "new"]);
    let info = server.json(&["info", "new", "--json"]);
    let url = info["mcp_url"].as_str().expect("an address");
    assert!(url.ends_with("/7070/mcp"), "{url}");
    for (name, port, is_there) in [
        ("new", "7070", true),
        ("new", "6060", false),
        ("old", "6060", true),
    ] {
        let mut bridge = Bridge::start(server.command(&["mcp", "--sandbox", name, "--port", port]));
        let hello = bridge.initialize();
        assert_eq!(
            hello["result"]["serverInfo"].is_object(),
            is_there,
            "{name} {port}: {hello}"
        );
        bridge.end();
    }
    assert_eq!(server.json(&["info", &old, "--json"])["status"], "running");
}

#[test]
fn the_tools_of_a_sandbox_are_reached_by_its_name() {
    let server = Server::start();
    let id = server.out(&["create", "--name", "web"]);
    let info = server.json(&["info", "web", "--json"]);
    let url = info["mcp_url"].as_str().expect("an address");
    assert!(url.ends_with(&format!("/p/{id}/6060/mcp")), "{url}");
    let mut bridge = Bridge::start(server.command(&["mcp", "--sandbox", "web"]));
    let hello = bridge.initialize();
    assert!(hello["result"]["serverInfo"].is_object(), "{hello}");
    // Known without `setup-mcp`, and still after a stop.
    let arguments = json!({"port": 8000});
    bridge.call(1, "register_port", &arguments, &json!({}));
    let answer = bridge.receive().to_string();
    assert!(answer.contains(&format!("/p/{id}/8000")), "{answer}");
    bridge.end();
    assert_eq!(server.out(&["stop", "web"]), id, "its id, as others print");
    let mut bridge = Bridge::start(server.command(&["mcp", "--sandbox", "web"]));
    bridge.initialize();
    bridge.call(1, "register_port", &arguments, &json!({}));
    let answer = bridge.receive().to_string();
    assert!(answer.contains(&format!("/p/{id}/8000")), "{answer}");
    bridge.end();
    // A client that stays connected must not notice that the tool server lost its session.
    let mut bridge = Bridge::start(server.command(&["mcp", "--sandbox", "web"]));
    bridge.initialize();
    server.out(&["stop", "web"]);
    server.out(&["resume", "web"]);
    for call in 1..=2 {
        bridge.call(call, "register_port", &arguments, &json!({}));
        let answer = bridge.receive();
        assert_eq!(answer["id"], call, "{answer}");
        assert!(
            answer.to_string().contains(&format!("/p/{id}/8000")),
            "{answer}"
        );
    }
    assert_eq!(bridge.end(), "");
    let mut command = server.command(&["mcp", "--sandbox", "nosuch"]);
    let output = command.output().expect("run");
    let stderr = super::stderr_of(&output);
    assert!(
        stderr.contains("`sandyard ls` lists your sandboxes"),
        "{stderr}"
    );
}
