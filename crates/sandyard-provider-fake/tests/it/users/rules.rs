//! Rules: scripted answers to commands.

use sandyard_agent_client::wire::process::{ProcessSelector, Signal, StartRequest};
use sandyard_agent_client::{AgentClient, StartOptions};
use sandyard_provider_fake::{FakeConfig, FakeProvider, Rule, RulesError};

use super::{agent, bash, fake, run_line};

async fn with_rules(name: &str, text: &str) -> Result<AgentClient, RulesError> {
    let path = std::env::temp_dir().join(format!("sandyard-{}-{name}.json", std::process::id()));
    std::fs::write(&path, text).expect("a file");
    let config = FakeConfig {
        rules: Some(path.clone()),
        seed: None,
    };
    let fake = FakeProvider::for_users(&config);
    std::fs::remove_file(&path).expect("it was there");
    Ok(agent(&fake?).await.1)
}

#[tokio::test]
async fn rules_precede_the_commands_of_the_fake() {
    let rules = r#"[
        {"command": "^npm test$", "stdout": "2 passed\n", "stderr": "slow\n", "exit_code": 3, "files": {"out/report": "fine"}},
        {"command": "^echo special$", "stdout": "by rule\n"}
    ]"#;
    let agent = with_rules("first", rules).await.expect("good rules");
    let fails = ("2 passed\n".to_owned(), "slow\n".to_owned(), 3);
    assert_eq!(run_line(&agent, "npm test").await, fails);
    assert_eq!(
        agent.read_to_vec("out/report", 100).await.expect("written"),
        b"fine"
    );
    assert_eq!(run_line(&agent, "echo special").await.0, "by rule\n");
    assert_eq!(run_line(&agent, "echo other").await.0, "other\n");
    let (out, _, code) = run_line(&agent, "cd /tmp && npm test > log || cat log").await;
    assert_eq!((out.as_str(), code), ("2 passed\n", 0));
    assert_eq!(
        agent
            .read_to_vec("/tmp/out/report", 100)
            .await
            .expect("written"),
        b"fine"
    );
    let (_, stderr, code) = run_line(&agent, "npm install").await;
    assert_eq!(code, 127);
    assert!(
        stderr.contains("no rule for `npm install`: add one to /"),
        "{stderr}"
    );
}

#[tokio::test]
async fn a_test_adds_answers_while_instances_run() {
    let fake = fake();
    let (_, agent) = agent(&fake).await;
    assert_eq!(run_line(&agent, "npm test").await.2, 127);
    for stdout in ["1 failed\n", "2 passed\n"] {
        let rule = Rule {
            command: "^npm test$".to_owned(),
            stdout: stdout.to_owned(),
            ..Rule::default()
        };
        fake.add_rule(rule).expect("a valid rule");
        let (out, _, code) = run_line(&agent, "npm test").await;
        assert_eq!((out.as_str(), code), (stdout, 0));
    }
    let invalid = Rule {
        command: "(".to_owned(),
        ..Rule::default()
    };
    fake.add_rule(invalid)
        .expect_err("not a regular expression");
}

#[tokio::test]
async fn a_command_that_keeps_running_ends_when_it_is_killed() {
    let rules = r#"[{"command": "^serve", "stdout": "ready\n", "keeps_running": true}]"#;
    let agent = with_rules("running", rules).await.expect("good rules");
    let request = StartRequest {
        process: bash("serve 8080"),
        ..StartRequest::default()
    };
    let mut stream = agent
        .start(&request, &StartOptions::default())
        .await
        .expect("starts");
    stream.next().await.expect("an event").expect("fine");
    assert_eq!(agent.list().await.expect("list").len(), 1);
    let process = ProcessSelector::Pid(stream.pid());
    agent.signal(process, Signal::KILL).await.expect("kill");
    assert_eq!(stream.wait().await.expect("ends").shell_code(), 137);
}

#[tokio::test]
async fn bad_rules_are_refused_with_their_reason() {
    for (name, text) in [("a", "not JSON"), ("b", r#"[{"command": "("}]"#)] {
        let error = with_rules(name, text).await.expect_err("bad rules");
        assert!(matches!(error, RulesError::Parse { .. }), "{error}");
    }
}
