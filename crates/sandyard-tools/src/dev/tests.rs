use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::listens;
use crate::files::test_env::TestEnv;

const FRAMEWORKS: [&str; 5] = [
    "static",
    "python-http",
    "node-http",
    "react-vite",
    "fastapi",
];

#[tokio::test]
async fn a_project_is_made_once_and_only_where_nothing_is() {
    let env = TestEnv::new();
    for framework in FRAMEWORKS {
        let args = json!({"project_name": framework, "framework": framework});
        let text = env.text("fullstack_project_init", args.clone()).await;
        assert!(text.contains("start it there with"), "{text}");
        for line in text.lines().filter_map(|line| line.strip_prefix("  ")) {
            let content = env.content(&format!("{framework}/{line}"));
            assert!(!content.contains("PROJECT_NAME"), "{line}");
            if line.ends_with(".json") {
                serde_json::from_str::<Value>(&content).unwrap();
            }
        }
        assert!(
            env.problem("fullstack_project_init", args)
                .await
                .contains("not empty")
        );
    }
    let unknown = json!({"project_name": "x", "framework": "cobol"});
    let problem = env.problem("fullstack_project_init", unknown).await;
    assert!(
        FRAMEWORKS.iter().all(|name| problem.contains(name)),
        "{problem}"
    );
    for name in ["", "..", "a/b", ".x", "-x", "a b"] {
        let args = json!({"project_name": name, "framework": "static"});
        assert!(
            env.problem("fullstack_project_init", args)
                .await
                .contains("project_name"),
            "{name:?}"
        );
    }
}

#[tokio::test]
async fn the_project_of_pythons_library_works_and_its_port_is_found() {
    let env = TestEnv::new();
    let args = json!({"project_name": "site", "framework": "python-http"});
    env.text("fullstack_project_init", args).await;
    let problem = env.problem("register_port", json!({"port": 3000})).await;
    assert!(problem.contains("expose-port"), "{problem}");
    env.tool_state
        .update_config(|told| told.port_url = Some("https://{port}-abc.example.com/".into()));
    // Another program of this host may take the port first, and one that another test starts has a copy of our socket for a
    // moment.
    let mut attempts = 0;
    let (free, mut server) = loop {
        attempts += 1;
        assert!(attempts < 20, "the server does not start");
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let text = env.text("register_port", json!({"port": free})).await;
        if !text.contains("no program listens") {
            continue;
        }
        let mut server = Command::new("python3")
            .arg("server.py")
            .current_dir(env.path("site"))
            .env("PORT", free.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut has_ended = false;
        for _ in 0..9000 {
            has_ended = server.try_wait().unwrap().is_some();
            if has_ended || listens(free).await {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        if !has_ended {
            break (free, server);
        }
    };
    let reply = env.call("register_deployment", json!({"port": free})).await;
    let page = reqwest_text(&format!("http://127.0.0.1:{free}/api/hello")).await;
    server.kill().unwrap();
    server.wait().unwrap();
    let reply = reply.unwrap();
    let url = format!("https://{free}-abc.example.com/");
    assert_eq!(
        reply.structured(),
        Some(&json!({"port": free, "url": url, "is_listening": true}))
    );
    assert_eq!(page, r#"{"message": "hello"}"#);
}

async fn reqwest_text(url: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (host, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let request = format!("GET /{path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn git(env: &TestEnv, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(env.path("p"))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn checkpoints_are_commits_whatever_the_repository_wants() {
    let env = TestEnv::new();
    env.file("p/a.txt", "one");
    let save = |message: &str| json!({"project_directory": "p", "commit_message": message});
    let first = env
        .text("save_checkpoint", save("-m first\n\n$(touch x)"))
        .await;
    let id = git(&env, &["rev-parse", "HEAD"]);
    assert_eq!(first, format!("saved as {id}"));
    assert!(git(&env, &["log", "-1", "--format=%B"]).starts_with("-m first"));
    assert!(
        env.text("save_checkpoint", save("again"))
            .await
            .contains("nothing to save")
    );
    env.file("p/.git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    let hook = env.path("p/.git/hooks/pre-commit");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    git(&env, &["config", "commit.gpgsign", "true"]);
    git(&env, &["config", "user.name", ""]);
    env.file("p/.gitignore", "large\n");
    env.file("p/large", "not saved");
    std::fs::remove_file(env.path("p/a.txt")).unwrap();
    env.text("save_checkpoint", save("second")).await;
    assert_eq!(git(&env, &["ls-files"]), ".gitignore");
    assert_ne!(git(&env, &["rev-parse", "HEAD"]), id);
    assert!(
        env.problem("save_checkpoint", save(" "))
            .await
            .contains("commit_message")
    );
    let out = json!({"project_directory": "/etc", "commit_message": "x"});
    assert!(
        env.problem("save_checkpoint", out)
            .await
            .contains("outside")
    );
}

#[tokio::test]
async fn databases_are_found_or_it_is_said_how_to_get_one() {
    let env = TestEnv::new();
    let reply = env
        .call(
            "get_database_connection",
            json!({"database_type": "sqlite"}),
        )
        .await
        .unwrap();
    let string = reply.structured().unwrap()["connection_string"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        string,
        format!("sqlite:///{}", env.path("database.sqlite3").display())
    );
    let problem = env
        .problem(
            "get_database_connection",
            json!({"database_type": "oracle"}),
        )
        .await;
    assert!(
        problem.contains("sqlite, postgres, mysql, redis"),
        "{problem}"
    );
    // None of these runs where tests run, or one does: both are answers.
    for kind in ["postgres", "mysql", "redis"] {
        match env
            .call("get_database_connection", json!({"database_type": kind}))
            .await
        {
            Ok(reply) => assert_eq!(reply.structured().unwrap()["database_type"], kind),
            Err(problem) => assert!(problem.to_string().contains("install it"), "{problem}"),
        }
    }
}
