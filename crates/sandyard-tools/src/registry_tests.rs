//! Some clients show a model nothing but the structured part of an answer, so what matters in the text must be there too.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::files::test_env::{TestEnv, write_program};
use crate::reply::Reply;

/// Calls tools and checks both parts of their answers.
struct Both {
    env: TestEnv,
    called: Mutex<BTreeSet<String>>,
}

impl Both {
    fn new() -> Self {
        Self {
            env: TestEnv::new(),
            called: Mutex::default(),
        }
    }

    /// These words are in both parts of an answer.
    async fn have(&self, tool: &str, arguments: Value, expected: &[&str]) {
        let reply = self.env.call(tool, arguments).await.unwrap();
        self.check(tool, &reply, expected);
    }

    fn check(&self, tool: &str, reply: &Reply, expected: &[&str]) {
        self.called.lock().unwrap().insert(tool.to_owned());
        let text = reply.all_text();
        let structured = strings(reply.structured().unwrap());
        for word in expected {
            assert!(text.contains(word), "{tool}: {word} is not in {text}");
            assert!(
                structured.contains(word),
                "{tool}: {word} is only in the text, not in {structured}"
            );
        }
    }

    /// Waits until a session shows this.
    async fn see(&self, session: &str, expected: &str) -> Reply {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let arguments = json!({"session_names": [session]});
            let reply = self.env.call("BashView", arguments).await.unwrap();
            if reply.all_text().contains(expected) {
                return reply;
            }
            assert!(Instant::now() < end, "{}", reply.all_text());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Every text in a value.
fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(values) => values.iter().map(strings).collect(),
        Value::Object(values) => values.values().map(strings).collect(),
        _ => String::new(),
    }
}

#[tokio::test]
async fn what_matters_in_the_text_is_in_the_structured_part() {
    let both = Both::new();
    shells(&both).await;
    files(&both).await;
    agents(&both).await;
    let todos = json!([{"id": "a", "content": "buy milk", "status": "pending"}]);
    both.have("TodoWrite", json!({"todos": todos}), &["buy milk"])
        .await;
    both.have("TodoRead", json!({}), &["buy milk"]).await;
    let sqlite = json!({"database_type": "sqlite"});
    both.have("get_database_connection", sqlite, &["sqlite:///"])
        .await;
    let template = "http://{port}.example/";
    both.env
        .tool_state
        .update_config(|told| told.port_url = Some(template.into()));
    for tool in ["register_port", "register_deployment"] {
        // Nobody is there who could take this port.
        let expected = ["http://1.example/", "no program listens"];
        both.have(tool, json!({"port": 1}), &expected).await;
    }
    // Every tool with a structured part must be called here.
    let called = both.called.lock().unwrap();
    for tool in Registry::new(Arc::default()).all() {
        let is_called = called.contains(tool.name());
        assert!(
            is_called || tool.definition.output_schema.is_none(),
            "{tool:?}"
        );
    }
}

async fn shells(both: &Both) {
    // Put together by the shell, so that the command does not have it.
    let print = "printf pay''load";
    let bash = |session: &str, command: String, waits: bool| json!({"session_name": session, "command": command, "wait_for_output": waits});
    let first = bash("main", format!("{print}; exit"), true);
    let expected = ["payload", "session main was created", "starts a new shell"];
    both.have("Bash", first, &expected).await;
    let asking = bash("asks", format!("{print}; read line"), false);
    let expected = ["session asks was created", "BashWriteToProcess"];
    both.have("Bash", asking, &expected).await;
    both.check("BashView", &both.see("asks", "payload").await, &["payload"]);
    both.have("BashList", json!({}), &["main", "asks", "read line"])
        .await;
    let typed = json!({"session_name": "asks", "input": "typed"});
    both.have("BashWriteToProcess", typed, &["payload"]).await;
    let sleeps = bash("sleeps", format!("{print}; sleep 1000"), false);
    both.have("Bash", sleeps, &["BashStop"]).await;
    both.see("sleeps", "payload").await;
    let stopped = json!({"session_name": "sleeps"});
    both.have("BashStop", stopped, &["payload", "stopped"])
        .await;
    let once = json!({"command": print});
    both.have("run_command", once, &["payload"]).await;
    let long = json!({"command": "sleep 1000", "timeout": 0.1});
    both.have("run_command", long, &["with Bash a command can run longer"])
        .await;
}

async fn files(both: &Both) {
    both.env.file("code.rs", "fn needle() {}\n");
    let found = ["code.rs", "fn needle() {}"];
    both.have("Grep", json!({"pattern": "needle"}), &found)
        .await;
    let code = json!({"pattern": "fn needle() {}", "language": "rust"});
    both.have("ASTGrep", code, &found).await;
    both.have("Glob", json!({"pattern": "*.rs"}), &["code.rs"])
        .await;
    both.have("LS", json!({}), &["code.rs"]).await;
    both.env.file("many.txt", "needle\n".repeat(1000));
    both.have("Grep", json!({"pattern": "needle"}), &["there are more"])
        .await;
    for number in 0..1001 {
        both.env.file(&format!("many/{number}.txt"), "");
    }
    let many = json!({"pattern": "many/*.txt"});
    both.have("Glob", many, &["newest of 1001"]).await;
    let many = json!({"path": "many"});
    both.have("LS", many, &["1000 of 1001"]).await;
}

async fn agents(both: &Both) {
    let bin = both.env.path(".local/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = r#"echo '{"type":"result","is_error":false,"result":"All done."}'"#;
    write_program(&bin.join("claude"), &format!("#!/bin/sh\n{script}\n"));
    let script =
        r#"echo '{"type":"item.completed","item":{"type":"agent_message","text":"All done."}}'"#;
    write_program(&bin.join("codex"), &format!("#!/bin/sh\n{script}\n"));
    for tool in ["claude_code", "codex"] {
        both.have(tool, json!({"prompt": "x"}), &["All done."])
            .await;
    }
}
