//! `sandyard mcp`: MCP on standard input and output.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::Server;

/// An assistant's end of the pipes.
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

    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{message}").expect("write");
    }

    /// Every line is a message; nothing else is on standard output.
    fn hear(&mut self) -> Value {
        let line = self.lines.next().expect("a message").expect("text");
        serde_json::from_str(&line).expect("JSON")
    }

    fn call(&mut self, id: u64, name: &str, arguments: &Value, meta: &Value) {
        let params = json!({"name": name, "arguments": arguments, "_meta": meta});
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn begin(&mut self) -> Value {
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.say(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        let hello = self.hear();
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        hello
    }

    /// Ends it the way assistants do and returns what it told people.
    fn end(mut self) -> String {
        drop(self.input.take());
        let output = self.child.wait_with_output().expect("wait");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

#[test]
fn an_assistant_that_starts_programs_uses_the_server() {
    let server = Server::start();
    let mut bridge = Bridge::start(server.command(&["mcp"]));
    assert_eq!(bridge.begin()["result"]["serverInfo"]["name"], "sandyard");
    bridge.call(1, "sandbox_create", &json!({}), &json!({}));
    let made = bridge.hear();
    let id = made["result"]["structuredContent"]["sandbox_id"].clone();
    assert!(id.is_string(), "{made}");
    let line = "echo begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo done";
    let command = json!({"sandbox_id": id, "command": line});
    bridge.call(2, "run_command", &command, &json!({"progressToken": 5}));
    let mut notices = 0;
    let answer = loop {
        let message = bridge.hear();
        if message["method"] != "notifications/progress" {
            break message;
        }
        assert_eq!(message["params"]["progressToken"], 5);
        notices += 1;
        if notices == 1 {
            // It goes on when it has been told of.
            let name = id.as_str().expect("an id");
            server.out(&["exec", name, "--", "touch", "/tmp/go"]);
        }
    };
    assert!(notices >= 1);
    assert_eq!(
        answer["result"]["structuredContent"]["stdout"],
        "begun\ndone\n"
    );
    // What is cancelled is not answered, and does not hold up the end.
    let command = json!({"sandbox_id": id, "command": "sleep 1000"});
    bridge.call(3, "run_command", &command, &json!({"progressToken": 6}));
    assert_eq!(bridge.hear()["params"]["progressToken"], 6);
    bridge.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}),
    );
    bridge.say(&json!({"jsonrpc": "2.0", "id": 4, "method": "ping"}));
    while bridge.hear()["id"] != 4 {}
    let input = bridge.input.as_mut().expect("open");
    writeln!(input, "no JSON").expect("write");
    assert_eq!(bridge.hear()["error"]["code"], -32700);
    // A last question is answered although nothing follows.
    bridge.call(5, "sandbox_delete", &json!({"sandbox_id": id}), &json!({}));
    drop(bridge.input.take());
    assert_eq!(bridge.hear()["result"]["isError"], false);
    assert_eq!(bridge.end(), "");
}

#[test]
fn where_no_server_is_requests_are_told_what_to_do() {
    let server = Server::start();
    let mut command = server.command(&["mcp"]);
    command.env("SANDYARD_URL", "http://127.0.0.1:9");
    let mut bridge = Bridge::start(command);
    let error = bridge.begin()["error"]["message"].clone();
    assert!(
        error
            .as_str()
            .is_some_and(|text| text.contains("sandyard serve")),
        "{error}"
    );
    assert!(bridge.end().contains("no server at `http://127.0.0.1:9`"));
}

#[test]
fn settings_for_an_assistant_are_printed() {
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
    let data = server.yard().data().display().to_string();
    assert_eq!(entry["env"]["SANDYARD_DATA_DIR"], data);
    let words = [
        "mcp",
        "--sandbox",
        "web",
        "--port",
        "7070",
        "--ca-cert",
        "ca.pem",
    ];
    let config = server.json(&[&words[..], &["--print-config"]].concat());
    let entry = &config["mcpServers"]["sandyard"];
    assert_eq!(entry["args"], json!(words[..5]));
    let authority = entry["env"]["SANDYARD_CA_CERT"].as_str().expect("a path");
    assert!(
        authority.starts_with('/') && authority.ends_with("/ca.pem"),
        "{authority}"
    );
}

#[test]
fn a_restart_with_another_port_for_tools_holds_for_new_sandboxes() {
    let mut server = Server::start();
    let old = server.out(&["create", "--name", "old"]);
    let settings = server.yard().data().join("sandyard.toml");
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
        let hello = bridge.begin();
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
    let hello = bridge.begin();
    assert!(hello["result"]["serverInfo"].is_object(), "{hello}");
    // Known without `setup-mcp`, and still after a stop.
    let arguments = json!({"port": 8000});
    bridge.call(1, "register_port", &arguments, &json!({}));
    let told = bridge.hear().to_string();
    assert!(told.contains(&format!("/p/{id}/8000")), "{told}");
    bridge.end();
    assert_eq!(server.out(&["stop", "web"]), id, "its id, as others print");
    let mut bridge = Bridge::start(server.command(&["mcp", "--sandbox", "web"]));
    bridge.begin();
    bridge.call(1, "register_port", &arguments, &json!({}));
    let told = bridge.hear().to_string();
    assert!(told.contains(&format!("/p/{id}/8000")), "{told}");
    bridge.end();
    // An assistant that goes on meanwhile is not told that the tool server forgot it: it would never begin anew.
    let mut bridge = Bridge::start(server.command(&["mcp", "--sandbox", "web"]));
    bridge.begin();
    server.out(&["stop", "web"]);
    server.out(&["resume", "web"]);
    for call in 1..=2 {
        bridge.call(call, "register_port", &arguments, &json!({}));
        let told = bridge.hear();
        assert_eq!(told["id"], call, "{told}");
        assert!(
            told.to_string().contains(&format!("/p/{id}/8000")),
            "{told}"
        );
    }
    assert_eq!(bridge.end(), "");
    let mut command = server.command(&["mcp", "--sandbox", "nosuch"]);
    let output = command.output().expect("run");
    let said = super::said(&output);
    assert!(said.contains("`sandyard ls` lists yours"), "{said}");
}
