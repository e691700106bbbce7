//! What sandboxes tried to reach: events, log lines, and how many of them.

use std::net::IpAddr;

use sandyard_core::network::{Denial, Flow, FlowVerdict, Protocol};
use sandyard_core::{ErrorKind, SandboxId};
use sandyard_service::{Event, FlowFilter, LogSource, Sandbox};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::{TestEnv, alice, user};

fn flow(sandbox: &Sandbox, name: &str, verdict: FlowVerdict) -> Flow {
    let is_denied = verdict == FlowVerdict::Denied;
    Flow {
        sandbox_id: sandbox.id.clone(),
        owner: sandbox.owner.clone(),
        at_ms: 1_800_000_000_123,
        duration_ms: 7,
        protocol: Protocol::Tcp,
        name: Some(name.to_owned()),
        address: (!is_denied).then(|| IpAddr::from([203, 0, 113, 7])),
        port: Some(443),
        verdict,
        denial: is_denied.then(|| Denial::NotAllowed {
            target: format!("{name}:443"),
        }),
        failure: (verdict == FlowVerdict::Failed).then(|| "connection refused".to_owned()),
        sent_bytes: 10,
        received_bytes: 20,
        count: 1,
    }
}

/// The service's background tasks, until they are stopped.
struct Background {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Background {
    fn of(env: &TestEnv) -> Self {
        let (stop, stopped) = oneshot::channel();
        let service = env.service.clone();
        let task = tokio::spawn(async move {
            service.run(async { drop(stopped.await) }).await;
        });
        Self { stop, task }
    }

    async fn end(self) {
        self.stop.send(()).expect("it runs");
        self.task.await.expect("it ends well");
    }
}

async fn flow_events(env: &TestEnv, id: &SandboxId, verdict: Option<FlowVerdict>) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let filter = FlowFilter {
            verdict,
            after_seq: Some(events.iter().map(|event| event.seq).max().unwrap_or(0)),
            ..FlowFilter::default()
        };
        let page = env.service.flows(&alice(), id.as_str(), filter).await;
        let page = page.expect("the service answers");
        if page.is_empty() {
            return events;
        }
        events.extend(page);
    }
}

#[tokio::test]
async fn flows_become_events_and_denied_ones_log_lines() {
    let folder = tempfile::tempdir().unwrap();
    let env = TestEnv::with_logs(folder.path()).await;
    let sandbox = env.create().await;
    for (name, verdict) in [
        ("good.example", FlowVerdict::Allowed),
        ("evil.example", FlowVerdict::Denied),
        ("gone.example", FlowVerdict::Failed),
    ] {
        env.provider.push_flow(flow(&sandbox, name, verdict));
    }
    Background::of(&env).end().await;
    let all = flow_events(&env, &sandbox.id, None).await;
    let kinds: Vec<_> = all.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["flow", "flow_denied", "flow"]);
    let good = &all[0];
    assert_eq!(
        (good.actor.as_str(), good.owner.as_str()),
        ("sandbox", "alice")
    );
    assert_eq!(good.at_ms, 1_800_000_000_123);
    assert_eq!(good.data["name"], "good.example");
    assert_eq!(good.data["address"], "203.0.113.7");
    assert_eq!(good.data["verdict"], "allowed");
    assert_eq!(
        (&good.data["sent_bytes"], &good.data["count"]),
        (&10.into(), &1.into())
    );
    assert!(good.data.get("owner").is_none() && good.data.get("sandbox_id").is_none());
    let reason = "`evil.example:443` is not in what this sandbox may reach";
    assert_eq!(all[1].data["reason"], reason);
    assert_eq!(all[1].data["denial"]["code"], "not_allowed");
    for (verdict, name) in [
        (FlowVerdict::Allowed, "good.example"),
        (FlowVerdict::Denied, "evil.example"),
        (FlowVerdict::Failed, "gone.example"),
    ] {
        let some = flow_events(&env, &sandbox.id, Some(verdict)).await;
        assert_eq!((some.len(), &some[0].data["name"]), (1, &name.into()));
    }
    let lines = env.service.logs(&alice(), sandbox.id.as_str(), 100).await;
    let lines = lines.unwrap();
    let line = lines
        .entries
        .iter()
        .find(|line| line.source == LogSource::Gateway);
    let advice = format!(
        "network: {reason} (allow: sandyard network allow {} evil.example:443)",
        sandbox.id
    );
    assert_eq!(line.unwrap().text, advice);
    assert!(
        !lines
            .entries
            .iter()
            .any(|line| line.text.starts_with("flow"))
    );
}

#[tokio::test]
async fn pages_go_on_after_a_number_and_others_see_nothing() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    for number in 0..5 {
        let name = format!("n{number}.example");
        env.provider
            .push_flow(flow(&sandbox, &name, FlowVerdict::Allowed));
    }
    Background::of(&env).end().await;
    let name = sandbox.id.as_str();
    let page = async |after_seq: Option<i64>| {
        let filter = FlowFilter {
            after_seq,
            verdict: None,
            limit: 2,
        };
        let flows = env.service.flows(&alice(), name, filter).await.unwrap();
        let names: Vec<_> = flows
            .iter()
            .map(|event| event.data["name"].clone())
            .collect();
        (names, flows[0].seq)
    };
    let (newest, seq) = page(None).await;
    assert_eq!(newest, ["n3.example", "n4.example"]);
    assert_eq!(page(Some(seq - 3)).await.0, ["n1.example", "n2.example"]);
    let others = env
        .service
        .flows(&user("bob"), name, FlowFilter::default())
        .await;
    assert_eq!(others.unwrap_err().kind, ErrorKind::SandboxNotFound);
}

#[tokio::test]
async fn followers_of_events_are_notified_at_once() {
    let env = TestEnv::new().await;
    let sandbox = env.create().await;
    let background = Background::of(&env);
    let following = async {
        while flow_events(&env, &sandbox.id, None).await.is_empty() {
            env.service.wait_for_events().await;
        }
    };
    let pushing = async {
        tokio::task::yield_now().await;
        env.provider
            .push_flow(flow(&sandbox, "a.example", FlowVerdict::Allowed));
    };
    let both = async { tokio::join!(following, pushing) };
    tokio::time::timeout(std::time::Duration::from_secs(120), both)
        .await
        .unwrap();
    background.end().await;
}

#[tokio::test]
async fn a_flood_is_counted_and_does_not_drown_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let env = TestEnv::with_logs(folder.path()).await;
    let (loud, quiet) = (env.create().await, env.create().await);
    for number in 0..4000 {
        let verdict = match number % 2 {
            0 => FlowVerdict::Denied,
            _ => FlowVerdict::Allowed,
        };
        env.provider.push_flow(flow(&loud, "evil.example", verdict));
    }
    env.provider
        .push_flow(flow(&quiet, "good.example", FlowVerdict::Allowed));
    Background::of(&env).end().await;
    assert_eq!(flow_events(&env, &quiet.id, None).await.len(), 1);
    let flows = flow_events(&env, &loud.id, None).await;
    assert!((2000..=2004).contains(&flows.len()), "{}", flows.len());
    let count = |event: &Event| event.data["count"].as_u64().unwrap();
    assert_eq!(
        flows.iter().map(count).sum::<u64>(),
        4000,
        "none is forgotten"
    );
    let sent = |event: &Event| event.data["sent_bytes"].as_u64().unwrap();
    assert_eq!(flows.iter().map(sent).sum::<u64>(), 40_000);
    let denied = flow_events(&env, &loud.id, Some(FlowVerdict::Denied)).await;
    assert_eq!(denied.iter().map(count).sum::<u64>(), 2000);
    let lines = env
        .service
        .logs(&alice(), loud.id.as_str(), 1000)
        .await
        .unwrap();
    let is_gateway = |line: &&sandyard_service::LogEntry| line.source == LogSource::Gateway;
    let gateway = lines.entries.iter().filter(is_gateway).count();
    assert!((100..=1002).contains(&gateway), "{gateway}");
    assert!(
        lines
            .entries
            .iter()
            .any(|line| line.text.ends_with("more attempts were denied"))
    );
}
