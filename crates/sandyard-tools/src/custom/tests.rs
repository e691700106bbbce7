use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::testing::{leaving_server, notes, small_server, until};
use super::{Report, Servers, read};
use crate::call::{Call, Progress};
use crate::options::{Endpoints, Options, TokenHash};
use crate::reply::Answer;
use crate::tool_state::ToolState;

/// Servers, and the folder they work in.
struct TestEnv {
    folder: TempDir,
    servers: Arc<Servers>,
}

impl TestEnv {
    /// Without any.
    fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            servers: Arc::default(),
        }
    }

    /// With the small one, started.
    async fn with_small() -> Self {
        let env = Self::empty();
        let reports = env.configure(json!({"small": env.small()})).await;
        assert_eq!(reports["small"].status, "ok", "{reports:?}");
        env
    }

    /// The configuration of the small server.
    fn small(&self) -> Value {
        small_server(self.folder.path())
    }

    async fn configure(&self, all: Value) -> BTreeMap<String, Report> {
        let configs = read(&json!({ "mcpServers": all })).unwrap();
        self.servers.replace(configs, self.folder.path()).await
    }

    async fn call(&self, name: &str, arguments: Value) -> Answer {
        self.call_as(name, arguments, Call::quiet()).await
    }

    async fn call_as(&self, name: &str, arguments: Value, call: Call) -> Answer {
        let tool_state = Arc::new(ToolState::new(self.options()));
        let arguments: JsonObject = serde_json::from_value(arguments).unwrap();
        let tool = self
            .servers
            .find(name)
            .unwrap_or_else(|| panic!("there is no {name}"));
        tool.call(tool_state, arguments, call).await
    }

    fn options(&self) -> Options {
        Options {
            workspace: self.folder.path().to_owned(),
            more_roots: Vec::new(),
            home: self.folder.path().to_owned(),
            token: None,
            port: 6060,
        }
    }

    /// What the small one has noted.
    fn notes(&self) -> String {
        notes(self.folder.path())
    }

    /// The small ones that were started, oldest first.
    fn pids(&self) -> Vec<String> {
        let started = |line: &str| Some(line.strip_prefix("started ")?.to_owned());
        self.notes().lines().filter_map(started).collect()
    }

    /// A tool server of our own that wants the token `right`; its address without a path.
    fn our_own(&self) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let options = Options {
            token: Some(TokenHash::of("right")),
            ..self.options()
        };
        let endpoints = Endpoints {
            listeners: vec![listener],
            connections: None,
        };
        tokio::spawn(crate::serve(options, endpoints));
        url
    }
}

fn text(answer: Answer) -> String {
    let result = answer.unwrap().into_result();
    result.content[0].as_text().unwrap().text.clone()
}

fn is_running(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

#[tokio::test]
async fn a_server_is_started_called_and_ended() {
    let env = TestEnv::empty();
    let config = env.small();
    let reports = env.configure(json!({"small": config})).await;
    assert_eq!(reports["small"].status, "ok", "{reports:?}");
    assert_eq!(reports["small"].tools[0], "mcp_small_echo");
    let echo = env.servers.find("mcp_small_echo").unwrap();
    let hints = echo.definition.annotations.as_ref().unwrap();
    assert_eq!(hints.read_only_hint, Some(true));
    let answer = env.call("mcp_small_echo", json!({"text": "hello"})).await;
    assert_eq!(
        answer.as_ref().unwrap().structured(),
        Some(&json!({"text": "hello"}))
    );
    assert_eq!(text(answer), "hello");
    let about = text(env.call("mcp_small_about", json!({})).await);
    let about: Value = serde_json::from_str(&about).unwrap();
    let real = env.folder.path().canonicalize().unwrap();
    assert_eq!(about, json!({"cwd": real, "value": "given", "path": true}));
    let refused = env.call("mcp_small_refuse", json!({})).await.unwrap();
    assert!(refused.is_error());
    // The same configuration keeps the server; a changed one starts another; without one it ends.
    env.configure(json!({"small": config})).await;
    assert_eq!(env.pids().len(), 1);
    let mut other = config.clone();
    other["env"]["VALUE"] = "other".into();
    env.configure(json!({"small": other})).await;
    let pids = env.pids();
    assert_eq!(pids.len(), 2);
    assert!(
        env.notes().contains("input closed"),
        "it was not let end by itself"
    );
    until("the old one ends", || !is_running(&pids[0])).await;
    env.configure(json!({})).await;
    until("all end", || !is_running(&pids[1])).await;
    assert!(env.servers.tools().is_empty());
}

// On two threads, where what is handled beside each other may come in any order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_comes_through_in_order_and_so_does_cancellation() {
    let env = TestEnv::with_small().await;
    let messages = Arc::<Mutex<Vec<String>>>::default();
    let (writer, quiet) = (messages.clone(), Call::quiet());
    let progress = Progress::new(Arc::new(move |_, text| {
        writer.lock().unwrap().push(text);
        Box::pin(async {})
    }));
    let cancelled = quiet.cancelled.clone();
    let watched = Call { progress, ..quiet };
    let work = env.call_as("mcp_small_slow", json!({}), watched);
    let stop = async {
        until("all steps are told", || {
            messages.lock().unwrap().len() == 50
        })
        .await;
        cancelled.cancel();
    };
    let (answer, ()) = tokio::join!(work, stop);
    assert!(answer.unwrap_err().to_string().contains("cancelled"));
    let expected: Vec<_> = (0..50).map(|step| format!("step {step}")).collect();
    assert_eq!(*messages.lock().unwrap(), expected);
    until("the server hears of it", || {
        env.notes().contains("cancelled")
    })
    .await;
}

#[tokio::test]
async fn a_server_that_dies_is_started_again() {
    let env = TestEnv::with_small().await;
    let died = env.call("mcp_small_die", json!({})).await.unwrap_err();
    assert!(died.to_string().contains("ended during the call"), "{died}");
    // A call at once waits for the next one.
    let answer = env.call("mcp_small_echo", json!({"text": "again"})).await;
    assert_eq!(text(answer), "again");
    assert_eq!(env.pids().len(), 2);
}

#[tokio::test]
async fn new_tools_are_shown_when_the_server_says_so() {
    let env = TestEnv::with_small().await;
    assert!(env.servers.find("mcp_small_grown").is_none());
    env.call("mcp_small_grow", json!({})).await.unwrap();
    until("the new tool is shown", || {
        env.servers.find("mcp_small_grown").is_some()
    })
    .await;
}

#[tokio::test]
async fn a_start_that_fails_says_why_and_the_others_start() {
    let env = TestEnv::empty();
    let good = env.small();
    let mut broken = good.clone();
    broken["env"]["BROKEN"] = "yes".into();
    let all = json!({
        "good": good,
        "broken": broken,
        "missing": {"command": "no-such-program-at-all"},
        "nobody": {"url": "http://127.0.0.1:1/mcp?key=hidden"},
        "nobody_older": {"url": "http://127.0.0.1:1/sse?key=hidden"},
    });
    let reports = env.configure(all).await;
    assert_eq!(reports["good"].status, "ok", "{reports:?}");
    let why = |name: &str| reports[name].error.clone().unwrap();
    for (name, words) in [
        ("broken", "broken on purpose"),
        ("missing", "no-such-program-at-all"),
        ("nobody", "sending request"),
        ("nobody_older", "refused"),
    ] {
        assert!(why(name).contains(words), "{name}: {}", why(name));
    }
    assert!(!format!("{reports:?}").contains("hidden"), "{reports:?}");
    assert_eq!(env.servers.tools().len(), reports["good"].tools.len());
}

#[tokio::test]
async fn keys_in_an_address_are_not_shown_when_the_server_exits() {
    let env = TestEnv::empty();
    let at = |url: String| json!({"url": format!("{url}/mcp?key=hidden")});
    let all = json!({
        "early": at(leaving_server("tools/list").await),
        "late": at(leaving_server("tools/call").await),
    });
    let reports = env.configure(all).await;
    assert_eq!(reports["late"].status, "ok", "{reports:?}");
    let why = reports["early"].error.clone().unwrap();
    assert!(why.contains("cannot be listed"), "{why}");
    assert!(!why.contains("hidden"), "{why}");
    // However often it is called: while it is there, and while it is begun again.
    for _ in 0..3 {
        let answer = env.call("mcp_late_one", json!({})).await;
        let problem = answer.unwrap_err().to_string();
        assert!(problem.contains("`late`"), "{problem}");
        assert!(!problem.contains("hidden"), "{problem}");
    }
}

#[tokio::test]
async fn a_server_at_an_address_is_called_with_its_headers_by_either_transport() {
    for path in ["mcp", "sse"] {
        let env = TestEnv::empty();
        let url = format!("{}/{path}", env.our_own());
        let at = |token: &str| {
            let key = format!("Bearer {token}");
            json!({"url": url, "headers": {"Authorization": key}})
        };
        let all = json!({"good": at("right"), "bad": at("wrong")});
        let reports = env.configure(all).await;
        assert_eq!(reports["good"].status, "ok", "{reports:?}");
        assert_eq!(reports["bad"].status, "failed");
        assert!(!format!("{reports:?}").contains("wrong"), "{reports:?}");
        let todo = json!({"todos": [{"id": "a", "content": "there", "status": "pending"}]});
        env.call("mcp_good_TodoWrite", todo).await.unwrap();
        let answer = env.call("mcp_good_TodoRead", json!({})).await;
        assert_eq!(text(answer), "[ ] a: there");
    }
}
