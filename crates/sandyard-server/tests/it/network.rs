//! What sandboxes may reach and what they tried to, over a provider in memory.

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;
use sandyard_core::network::{Denial, Flow, FlowVerdict, Protocol};
use sandyard_provider_fake::FakeProvider;
use sandyard_server::ServerSettings;
use serde_json::{Value, json};

use crate::app::{Actor, At, TestApp};

use Actor::{Admin, Alice, Bob};

async fn network(app: &TestApp, id: &str) -> Value {
    let reply = app.get(Alice, &format!("/sandboxes/{id}/network")).await;
    reply.ok()["network"].clone()
}

async fn create(app: &TestApp, body: Value) -> String {
    let made = app.post(Alice, "/sandboxes/create", body).await.ok();
    made["sandbox_id"].as_str().unwrap().to_owned()
}

/// The grant that the provider last received for a sandbox.
async fn granted(app: &TestApp, id: &str) -> sandyard_core::network::NetworkGrant {
    let info = app.get(Alice, &format!("/sandboxes/{id}/info")).await.ok();
    let instance = info["provider_sandbox_id"].as_str().unwrap();
    app.provider.grant(instance).expect("it was told")
}

#[tokio::test]
async fn a_sandbox_reaches_what_its_maker_says_and_headers_are_shown_without_values() {
    let app = TestApp::new().await;
    let open = create(&app, json!({})).await;
    let expected = json!({
        "allow_internet_access": true, "allow_out": [], "deny_out": [], "rules": {},
        "allow_public_traffic": null, "mask_request_host": null,
    });
    assert_eq!(network(&app, &open).await, expected);

    let rules = json!({"api.example.com": [{"transform": {"headers": {"X-Key": "s3cret"}}}]});
    let policy =
        json!({"allowOut": ["*.Example.com:443"], "denyOut": ["0.0.0.0/0"], "rules": rules});
    let id = create(&app, json!({"network": policy})).await;
    let policy_view = network(&app, &id).await;
    assert_eq!(policy_view["allow_out"], json!(["*.example.com:443"]));
    let headers = &policy_view["rules"]["api.example.com"][0]["transform"]["headers"];
    assert_eq!(headers, &json!({"X-Key": "***"}));
    let info = app.get(Alice, &format!("/sandboxes/{id}/info")).await;
    assert!(!info.text.contains("s3cret"), "{info:?}");
    assert_eq!(info.ok()["network"], policy_view);
    let listed = app.get(Alice, "/sandboxes").await.ok();
    let listed = listed["sandboxes"].as_array().unwrap();
    let one = listed.iter().find(|it| it["sandbox_id"] == id).unwrap();
    assert_eq!(one["network"], policy_view);

    // What is shown may be sent back, and values stay.
    let path = format!("/sandboxes/{id}/network");
    app.ask(Alice, "PUT", &path, Some(policy_view)).await.ok();
    let policy = granted(&app, &id).await.policy;
    let transform = policy
        .rules_for("api.example.com", 443, true)
        .next()
        .unwrap();
    assert_eq!(transform.headers["X-Key"], "s3cret");
}

#[tokio::test]
async fn a_word_beside_the_policy_closes_the_rest_of_the_internet() {
    let app = TestApp::new().await;
    for (body, expected) in [
        (json!({"allow_internet_access": false}), false),
        (json!({"allow_internet_access": true}), true),
        (
            json!({"allow_internet_access": false, "network": {"allow_out": ["pypi.org"]}}),
            false,
        ),
        (json!({"network": {"allow_internet_access": false}}), false),
        (
            json!({"network": null, "allow_internet_access": null}),
            true,
        ),
    ] {
        let id = create(&app, body.clone()).await;
        let policy_view = network(&app, &id).await;
        assert_eq!(policy_view["allow_internet_access"], expected, "{body}");
    }
    let both = json!({"allow_internet_access": true, "network": {"allowInternetAccess": false}});
    let refused = app.post(Alice, "/sandboxes/create", both).await;
    assert_eq!(refused.refused(400)["field"], "allow_internet_access");
}

#[tokio::test]
async fn a_closed_server_is_opened_only_by_those_who_say_so() {
    let settings = ServerSettings {
        allow_internet_access: false,
        ..ServerSettings::default()
    };
    let app = TestApp::with(FakeProvider::new(), settings).await;
    let id = create(&app, json!({"network": {"allow_out": ["pypi.org"]}})).await;
    assert_eq!(network(&app, &id).await["allow_internet_access"], false);
    let id = create(&app, json!({"allow_internet_access": true})).await;
    assert_eq!(network(&app, &id).await["allow_internet_access"], true);
}

#[tokio::test]
async fn malformed_policies_are_refused_with_the_entry_named() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    for (policy, field) in [
        (json!([]), "network"),
        (json!("all"), "network"),
        (json!({"allow_out": "pypi.org"}), "allow_out"),
        (
            json!({"allow_out": ["pypi.org", "http://x/"]}),
            "allow_out[1]",
        ),
        (json!({"denyOut": ["10.0.0.0/99"]}), "deny_out[0]"),
        (json!({"allow_out": [7]}), "allow_out[0]"),
        (json!({"alow_out": []}), "alow_out"),
        (
            json!({"allow_internet_access": "no"}),
            "allow_internet_access",
        ),
    ] {
        let body = json!({"network": policy});
        let answer = app.post(Alice, "/sandboxes/create", body).await;
        let prefixed = match field {
            "network" => field.to_owned(),
            field => format!("network.{field}"),
        };
        let refused = answer.refused(400);
        assert_eq!(refused["field"], prefixed.as_str(), "{policy}");
        assert_eq!(refused["code"], "bad_request");
        let path = format!("/sandboxes/{id}/network");
        let answer = app.ask(Alice, "PUT", &path, Some(policy.clone())).await;
        assert_eq!(answer.refused(400)["field"], field, "{policy}");
    }
    for (targets, status, field) in [
        (json!([]), 400, "targets"),
        (json!(["pypi.org", "a b"]), 400, "targets[1]"),
        (json!("pypi.org"), 422, "targets"),
    ] {
        for verb in ["allow", "deny"] {
            let path = format!("/sandboxes/{id}/network/{verb}");
            let answer = app.post(Alice, &path, json!({ "targets": targets })).await;
            assert_eq!(answer.refused(status)["field"], field, "{targets}");
        }
    }
    let unchanged = network(&app, &id).await;
    assert_eq!(unchanged["allow_out"], json!([]));
}

#[tokio::test]
async fn targets_are_opened_and_closed_one_by_one() {
    let app = TestApp::new().await;
    let id = create(&app, json!({"allow_internet_access": false})).await;
    let allow = format!("/sandboxes/{id}/network/allow");
    let deny = format!("/sandboxes/{id}/network/deny");
    let targets = json!({"targets": ["pypi.org", "*.example.com:443"]});
    let reply = app.post(Alice, &allow, targets.clone()).await.ok();
    assert_eq!(reply["sandbox_id"], id.as_str());
    assert_eq!(reply["network"]["allow_out"], targets["targets"]);
    assert_eq!(reply["network"]["allow_internet_access"], false);
    let targets = json!({"targets": ["pypi.org"]});
    let reply = app.post(Alice, &deny, targets).await.ok();
    assert_eq!(reply["network"]["allow_out"], json!(["*.example.com:443"]));
    assert_eq!(reply["network"]["deny_out"], json!(["pypi.org"]));
    assert_eq!(reply["network"], network(&app, &id).await);
    assert_eq!(granted(&app, &id).await.policy.deny_out.len(), 1);
    // Replacing leaves nothing of it.
    let path = format!("/sandboxes/{id}/network");
    let reply = app.ask(Alice, "PUT", &path, Some(json!({}))).await.ok();
    assert_eq!(reply["network"]["deny_out"], json!([]));
    assert_eq!(reply["network"]["allow_internet_access"], true);
}

#[tokio::test]
async fn limitations_of_the_provider_are_returned() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    app.provider
        .set_unenforced(vec!["host names are not filtered".to_owned()]);
    let path = format!("/sandboxes/{id}/network");
    let policy = json!({"allow_internet_access": false});
    let reply = app.ask(Alice, "PUT", &path, Some(policy)).await.ok();
    let limitations = json!(["host names are not filtered"]);
    assert_eq!(reply["limitations"], limitations);
    assert_eq!(reply["lacks"], limitations, "the old name is still sent");
}

#[tokio::test]
async fn a_secret_is_kept_used_and_never_shown() {
    let app = TestApp::new().await;
    let body =
        json!({"value": "s3cret", "hosts": ["api.example.com", "http://registry.internal:5000"]});
    let secret = app
        .ask(Alice, "PUT", "/secrets/github", Some(body.clone()))
        .await;
    assert!(!secret.text.contains("s3cret"), "{secret:?}");
    let secret = secret.ok();
    assert_eq!(secret["hosts"], body["hosts"]);
    assert_eq!(
        (&secret["owner"], &secret["is_shared"]),
        (&json!("alice"), &json!(false))
    );
    let placeholder = secret["placeholder"].as_str().unwrap();
    let listed = app.get(Alice, "/secrets").await;
    assert!(!listed.text.contains("s3cret"), "{listed:?}");
    assert_eq!(listed.ok()["secrets"], json!([secret]));

    let id = create(&app, json!({"secrets": {"GITHUB_TOKEN": "github"}})).await;
    let info = app.get(Alice, &format!("/sandboxes/{id}/info")).await.ok();
    assert_eq!(info["secrets"], json!({"GITHUB_TOKEN": "github"}));
    let instance = info["provider_sandbox_id"].as_str().unwrap();
    let spec = app.provider.spec_of(instance).unwrap();
    assert_eq!(spec.env["GITHUB_TOKEN"], placeholder);

    // A new value reaches sandboxes that are there already.
    let body = json!({"value": "n3w", "hosts": ["api.example.com"]});
    app.ask(Alice, "PUT", "/secrets/github", Some(body))
        .await
        .ok();
    let grant = granted(&app, &id).await;
    assert_eq!(grant.secrets[0].value.expose(), "n3w");
    assert_eq!(grant.secrets[0].placeholder, placeholder);

    app.ask(Alice, "DELETE", "/secrets/github", None).await.ok();
    let second = app.ask(Alice, "DELETE", "/secrets/github", None).await;
    assert_eq!(second.refused(404)["code"], "not_found");
    assert!(granted(&app, &id).await.secrets.is_empty());
}

#[tokio::test]
async fn a_secret_is_its_owners_unless_an_admin_shares_it() {
    let app = TestApp::new().await;
    let body = |is_shared: bool| {
        Some(json!({"value": "s3cret", "hosts": ["api.example.com"], "is_shared": is_shared}))
    };
    app.ask(Alice, "PUT", "/secrets/key", body(false))
        .await
        .ok();
    assert_eq!(app.get(Bob, "/secrets").await.ok()["secrets"], json!([]));
    let refused = app.ask(Bob, "DELETE", "/secrets/key", None).await;
    assert_eq!(refused.refused(404)["code"], "not_found");
    let uses = json!({"secrets": {"KEY": "key"}});
    let refused = app.post(Bob, "/sandboxes/create", uses.clone()).await;
    assert_eq!(refused.refused(422)["field"], "secrets");
    app.ask(Alice, "PUT", "/secrets/key", body(true))
        .await
        .refused(403);

    app.ask(Admin, "PUT", "/secrets/everybodys", body(true))
        .await
        .ok();
    let names = app.get(Bob, "/secrets").await.ok();
    assert_eq!(names["secrets"][0]["name"], "everybodys");
    let uses = json!({"secrets": {"KEY": "everybodys"}});
    app.post(Bob, "/sandboxes/create", uses).await.ok();
    app.ask(Bob, "DELETE", "/secrets/everybodys", None)
        .await
        .refused(404);
}

#[tokio::test]
async fn malformed_secrets_are_refused_without_repeating_them() {
    let app = TestApp::new().await;
    let hosts = json!(["api.example.com"]);
    for (name, body, status, field) in [
        ("a", json!({"hosts": hosts}), 422, "value"),
        ("a", json!({"value": "", "hosts": hosts}), 422, "value"),
        (
            "a",
            json!({"value": "s3cret\n", "hosts": hosts}),
            422,
            "value",
        ),
        ("a", json!({"value": "s3cret"}), 422, "hosts"),
        ("a", json!({"value": "s3cret", "hosts": []}), 400, "hosts"),
        (
            "a",
            json!({"value": "s3cret", "hosts": ["*"]}),
            400,
            "hosts[0]",
        ),
        (
            "a",
            json!({"value": "s3cret", "hosts": ["a.example", "https://b/c"]}),
            400,
            "hosts[1]",
        ),
        (
            "a",
            json!({"value": "s3cret", "hosts": hosts, "placeholder": "short"}),
            422,
            "placeholder",
        ),
        (
            "a.b",
            json!({"value": "s3cret", "hosts": hosts}),
            422,
            "name",
        ),
    ] {
        let path = format!("/secrets/{name}");
        let answer = app.ask(Alice, "PUT", &path, Some(body.clone())).await;
        assert!(!answer.text.contains("s3cret"), "{answer:?}");
        assert_eq!(answer.refused(status)["field"], field, "{body}");
    }
    for secrets in [
        json!({"A": ""}),
        json!({"A=B": "x"}),
        json!({"A": "nosuch"}),
    ] {
        let body = json!({ "secrets": secrets });
        let answer = app.post(Alice, "/sandboxes/create", body).await;
        assert_eq!(answer.refused(422)["field"], "secrets", "{secrets}");
    }
}

#[tokio::test]
async fn the_audit_tells_who_changed_what_and_no_values() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    let secret = json!({"value": "s3cret", "hosts": ["api.example.com"]});
    app.ask(Alice, "PUT", "/secrets/key", Some(secret))
        .await
        .ok();
    let rules = json!({"a.example": [{"transform": {"headers": {"X-Key": "s3cret"}}}]});
    let path = format!("/sandboxes/{id}/network");
    app.ask(Alice, "PUT", &path, Some(json!({ "rules": rules })))
        .await
        .ok();
    app.app.flush_audit().await;
    let audit = app.get(Admin, "/audit").await;
    assert!(!audit.text.contains("s3cret"));
    let entries = audit.ok()["entries"].clone();
    let has = |action: &str, target: &str| {
        let entries = entries.as_array().unwrap().iter();
        entries
            .filter(|it| it["action"] == action && it["target"] == target)
            .count()
            == 1
    };
    assert!(
        has("put secret", "key") && has("set network", &id),
        "{entries}"
    );
    let events = app.get(Alice, &format!("/sandboxes/{id}/events")).await;
    assert!(events.text.contains("network_changed") && !events.text.contains("s3cret"));
}

#[tokio::test]
async fn the_enveloped_dialect_has_networks_and_flows_too() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    for prefix in ["/agent/sandboxes/sandboxes", "/api/v1/agent/sandboxes"] {
        let path = format!("{prefix}/{id}/network");
        let policy = json!({"allow_internet_access": false});
        let reply = app.ask(Alice, "PUT", &path, Some(policy)).await.ok();
        assert_eq!(reply["data"]["network"]["allow_internet_access"], false);
        let flows = app.get(Alice, &format!("{prefix}/{id}/flows")).await.ok();
        assert_eq!(flows["data"]["flows"], json!([]));
        let policy = json!({"allow_out": ["a b"]});
        let refused = app
            .ask(Alice, "PUT", &path, Some(policy))
            .await
            .refused(400);
        assert_eq!(refused["error"], "bad_request");
        assert!(refused["msg"].as_str().unwrap().contains("allow_out[0]"));
    }
}

/// A flow of a sandbox of Alice's.
fn flow(id: &str, name: &str, verdict: FlowVerdict) -> Flow {
    let target = name.to_owned();
    Flow {
        sandbox_id: id.parse().unwrap(),
        owner: "alice".to_owned(),
        at_ms: 1_767_225_600_000,
        duration_ms: 12,
        protocol: Protocol::Tcp,
        name: Some(name.to_owned()),
        address: Some("192.0.2.1".parse().unwrap()),
        port: Some(443),
        verdict,
        denial: (verdict == FlowVerdict::Denied).then_some(Denial::NotAllowed { target }),
        failure: (verdict == FlowVerdict::Failed).then(|| "nobody answers".to_owned()),
        sent_bytes: 100,
        received_bytes: 2000,
        count: 1,
    }
}

/// Waits until a sandbox has `count` flows.
async fn flows(app: &TestApp, id: &str, count: usize) -> Vec<Value> {
    loop {
        let reply = app.get(Alice, &format!("/sandboxes/{id}/flows")).await.ok();
        let flows = reply["flows"].as_array().unwrap().clone();
        if flows.len() >= count {
            return flows;
        }
        tokio::task::yield_now().await;
    }
}

/// Takes flows over, as a server does beside its requests.
fn run(app: &TestApp) -> tokio::task::JoinHandle<()> {
    let service = app.app.service().clone();
    tokio::spawn(async move { service.run(std::future::pending()).await })
}

#[tokio::test]
async fn flows_are_listed_by_verdict() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    let running = run(&app);
    let verdicts = [
        FlowVerdict::Allowed,
        FlowVerdict::Denied,
        FlowVerdict::Failed,
        FlowVerdict::Denied,
    ];
    for (at, verdict) in verdicts.into_iter().enumerate() {
        app.provider
            .push_flow(flow(&id, &format!("n{at}.example"), verdict));
    }
    let all = flows(&app, &id, 4).await;
    let names: Vec<_> = all.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["n0.example", "n1.example", "n2.example", "n3.example"]
    );
    let mut first = all[0].clone();
    first.as_object_mut().unwrap().remove("seq");
    let expected = json!({
        "sandbox_id": id, "at": "2026-01-01T00:00:00.000Z", "duration_ms": 12, "protocol": "tcp",
        "name": "n0.example", "address": "192.0.2.1", "port": 443, "verdict": "allowed", "code": null, "reason": null,
        "sent_bytes": 100, "received_bytes": 2000, "count": 1, "is_summary": false,
    });
    assert_eq!(first, expected);
    assert_eq!(
        (&all[1]["verdict"], &all[1]["code"]),
        (&json!("denied"), &json!("not_allowed"))
    );
    assert!(all[1]["reason"].as_str().unwrap().contains("n1.example"));
    assert_eq!(all[2]["reason"], "nobody answers");

    let listed = async |query: &str| {
        let reply = app
            .get(Alice, &format!("/sandboxes/{id}/flows?{query}"))
            .await
            .ok();
        let flows = reply["flows"].as_array().unwrap().clone();
        flows
            .iter()
            .map(|it| it["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("verdict=denied").await, ["n1.example", "n3.example"]);
    assert_eq!(listed("verdict=denied&limit=1").await, ["n3.example"]);
    assert_eq!(listed("verdict=failed").await, ["n2.example"]);
    let after = format!("after={}&limit=2", all[0]["seq"]);
    assert_eq!(listed(&after).await, ["n1.example", "n2.example"]);
    for query in ["verdict=odd", "limit=0", "after=x"] {
        let path = format!("/sandboxes/{id}/flows?{query}");
        app.get(Alice, &path).await.refused(422);
    }
    let refused = app.get(Bob, &format!("/sandboxes/{id}/flows")).await;
    assert_eq!(refused.refused(404)["code"], "sandbox_not_found");
    running.abort();
}

/// Server-sent events of one answer.
struct Events {
    body: BodyDataStream,
    text: String,
}

impl Events {
    async fn open(app: &TestApp, path: &str) -> Self {
        let request = app.request(Alice, "GET", path, None);
        let response = app.send_head(At::Network, request).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let body: Body = response.into_body();
        Self {
            body: body.into_data_stream(),
            text: String::new(),
        }
    }

    /// Id, name and data of the next one.
    async fn next(&mut self) -> (String, String, Value) {
        loop {
            if let Some((event, rest)) = self.text.clone().split_once("\n\n") {
                self.text = rest.to_owned();
                let field = |name: &str| {
                    let mut lines = event.lines();
                    let found = lines.find_map(|line| line.strip_prefix(&format!("{name}: ")));
                    found.map(str::to_owned)
                };
                if let (Some(id), Some(name), Some(data)) =
                    (field("id"), field("event"), field("data"))
                {
                    return (id, name, serde_json::from_str(&data).unwrap());
                }
                continue;
            }
            let piece = self.body.next().await.unwrap().unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

#[tokio::test]
async fn flows_are_followed_as_they_happen_alone_and_among_events() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    let running = run(&app);
    app.provider
        .push_flow(flow(&id, "old.example", FlowVerdict::Denied));
    flows(&app, &id, 1).await;
    let path = format!("/sandboxes/{id}/flows?follow=true");
    let mut all = Events::open(&app, &path).await;
    let mut denied = Events::open(&app, &format!("{path}&verdict=denied")).await;
    let mut failed = Events::open(&app, &format!("{path}&verdict=failed")).await;
    let path = format!("/sandboxes/{id}/events?follow=true&limit=1");
    let mut events = Events::open(&app, &path).await;
    for stream in [&mut all, &mut denied] {
        let (_, name, flow) = stream.next().await;
        assert_eq!(
            (name.as_str(), &flow["name"]),
            ("flow_denied", &json!("old.example"))
        );
    }
    assert_eq!(events.next().await.1, "flow_denied");
    for (name, verdict) in [
        ("one.example", FlowVerdict::Allowed),
        ("two.example", FlowVerdict::Denied),
        ("three.example", FlowVerdict::Failed),
    ] {
        app.provider.push_flow(flow(&id, name, verdict));
    }
    let (seq, name, flow) = all.next().await;
    assert_eq!(
        (name.as_str(), &flow["name"]),
        ("flow", &json!("one.example"))
    );
    assert_eq!(seq, flow["seq"].to_string());
    assert_eq!(denied.next().await.2["name"], "two.example");
    assert_eq!(failed.next().await.2["name"], "three.example");
    let (_, kind, event) = events.next().await;
    assert_eq!((kind.as_str(), &event["kind"]), ("flow", &json!("flow")));
    assert_eq!(event["data"]["name"], "one.example");
    running.abort();
}
