//! What is sent about networks and secrets, and what is read.

use sandyard_client::{CreateSandbox, FlowFilter, NetworkPolicy, SecretRequest};
use serde_json::{Value, json};

use crate::script::{Act, Script};

const NETWORK: &str = r#"{"sandbox_id":"abc","lacks":["DNS queries are not filtered"],"network":{"allow_internet_access":false,"allow_out":["pypi.org"],
"deny_out":[],"rules":{"a.example":[{"transform":{"headers":{"X-Key":"***"}}}]},"allow_public_traffic":null,
"mask_request_host":null,"to_come":1}}"#;
const SECRET: &str = r#"{"name":"key","owner":"alice","hosts":["api.example.com"],"placeholder":"p","is_shared":false,
"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}"#;
const FLOW: &str = r#"{"seq":7,"sandbox_id":"abc","at":"2026-01-01T00:00:00.000Z","duration_ms":3,"protocol":"tcp",
"name":"example.com","address":null,"port":443,"verdict":"denied","code":"not_allowed","reason":"no","sent_bytes":0,
"received_bytes":0,"count":2}"#;
const SUMMARY: &str = r#"{"seq":8,"sandbox_id":"abc","at":"2026-01-01T00:00:00.000Z","duration_ms":0,"protocol":null,
"name":null,"address":null,"port":null,"verdict":"denied","code":null,"reason":"too many","sent_bytes":0,
"received_bytes":0,"count":900,"is_summary":true}"#;

/// First line and JSON body of a request.
fn parts(request: &str) -> (String, Value) {
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
    let first = head.lines().next().expect("a line").to_owned();
    (first, serde_json::from_str(body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn policy_keeps_unknown_fields_when_sent_back() {
    let acts = vec![Act::json("200 OK", NETWORK); 4];
    let server = Script::play(acts).await;
    let found = server.client.network("a b").await.unwrap();
    assert_eq!(found.network.allow_internet_access, Some(false));
    assert_eq!(found.network.allow_out, ["pypi.org"]);
    assert_eq!(
        found.limitations(),
        ["DNS queries are not filtered"],
        "the old name is read"
    );
    server
        .client
        .set_network("abc", &found.network)
        .await
        .unwrap();
    let targets = ["*.example.com".to_owned()];
    server.client.allow_network("abc", &targets).await.unwrap();
    server.client.deny_network("abc", &targets).await.unwrap();
    let requests: Vec<_> = server.requests().iter().map(|it| parts(it)).collect();
    let firsts: Vec<&str> = requests.iter().map(|(first, _)| first.as_str()).collect();
    assert_eq!(
        firsts,
        [
            "GET /sandboxes/a%20b/network HTTP/1.1",
            "PUT /sandboxes/abc/network HTTP/1.1",
            "POST /sandboxes/abc/network/allow HTTP/1.1",
            "POST /sandboxes/abc/network/deny HTTP/1.1",
        ]
    );
    let sent = &requests[1].1;
    assert_eq!(sent["to_come"], 1, "what we do not know is passed on");
    assert_eq!(sent["allow_internet_access"], false);
    assert_eq!(requests[2].1, json!({"targets": ["*.example.com"]}));
}

#[tokio::test]
async fn create_sends_the_requested_network_policy() {
    let made = r#"{"sandbox_id":"abc","status":"running"}"#;
    let server = Script::play(vec![Act::json("200 OK", made); 2]).await;
    let nothing = CreateSandbox::default();
    server.client.create(&nothing).await.unwrap();
    let something = CreateSandbox {
        network: Some(NetworkPolicy {
            deny_out: vec!["*:25".to_owned()],
            ..NetworkPolicy::default()
        }),
        secrets: [("TOKEN".to_owned(), "key".to_owned())].into(),
        ..CreateSandbox::default()
    };
    server.client.create(&something).await.unwrap();
    let bodies: Vec<Value> = server.requests().iter().map(|it| parts(it).1).collect();
    assert_eq!(bodies[0], json!({}));
    assert_eq!(bodies[1]["secrets"], json!({"TOKEN": "key"}));
    let network = bodies[1]["network"].as_object().unwrap();
    assert_eq!(network["deny_out"], json!(["*:25"]));
    assert!(
        !network.contains_key("allow_internet_access"),
        "what was not said is up to the server"
    );
}

#[tokio::test]
async fn flows_are_listed_and_followed() {
    let listed = format!(r#"{{"flows":[{FLOW},{SUMMARY}]}}"#);
    let followed = format!(
        "retry: 1\n\nid: 7\nevent: flow_denied\ndata: {}\n\n",
        FLOW.replace('\n', "")
    );
    let not_found = Act::json("404 Not Found", "{}");
    let acts = vec![
        Act::json("200 OK", &listed),
        Act::events(&followed),
        not_found,
    ];
    let server = Script::play(acts).await;
    let filter = FlowFilter {
        verdict: Some("denied".to_owned()),
        after_seq: Some(3),
        limit: Some(10),
    };
    let flows = server.client.flows("abc", &filter).await.unwrap();
    assert_eq!((flows[0].seq, flows[0].count), (7, 2));
    assert_eq!(flows[0].code.as_deref(), Some("not_allowed"));
    assert_eq!(flows[0].protocol.as_deref(), Some("tcp"));
    assert_eq!((&flows[1].protocol, flows[1].count), (&None, 900));
    assert!(flows[1].is_summary && !flows[0].is_summary);
    let mut follow = server.client.follow_flows("abc", &filter).await.unwrap();
    assert_eq!(follow.next().await.unwrap().unwrap(), flows[0]);
    assert!(follow.next().await.unwrap().is_none());
    let requests = server.requests();
    let query = "verdict=denied&after=3&limit=10";
    assert!(requests[0].starts_with(&format!("GET /sandboxes/abc/flows?{query} ")));
    assert!(requests[1].starts_with(&format!("GET /sandboxes/abc/flows?{query}&follow=true ")));
    assert!(requests[2].contains("last-event-id: 7"));
}

#[tokio::test]
async fn secrets_are_stored_listed_and_deleted_without_values() {
    let acts = vec![
        Act::json("200 OK", SECRET),
        Act::json("200 OK", &format!(r#"{{"secrets":[{SECRET}]}}"#)),
        Act::json("200 OK", r#"{"success":true,"message":"gone"}"#),
        Act::json(
            "404 Not Found",
            r#"{"detail":"no secret","code":"not_found"}"#,
        ),
    ];
    let server = Script::play(acts).await;
    let request = SecretRequest {
        value: "s3cret".to_owned(),
        hosts: vec!["api.example.com".to_owned()],
        placeholder: None,
        is_shared: false,
    };
    assert!(!format!("{request:?}").contains("s3cret"));
    let stored = server.client.put_secret("key", &request).await.unwrap();
    assert_eq!(stored.hosts, ["api.example.com"]);
    assert_eq!(server.client.secrets().await.unwrap(), [stored]);
    server.client.delete_secret("key").await.unwrap();
    let error = server.client.delete_secret("key").await.unwrap_err();
    assert_eq!(error.code(), Some("not_found"));
    let (first, body) = parts(&server.requests()[0]);
    assert_eq!(first, "PUT /secrets/key HTTP/1.1");
    assert_eq!(
        body,
        json!({"value": "s3cret", "hosts": ["api.example.com"], "is_shared": false})
    );
}

#[test]
fn debug_output_hides_header_values() {
    let policy: NetworkPolicy = serde_json::from_value(json!({
        "rules": {"a.example": [{"transform": {"headers": {"X-Key": "s3cret"}}}]}
    }))
    .unwrap();
    let printed = format!("{policy:?}");
    assert!(
        printed.contains("X-Key") && !printed.contains("s3cret"),
        "{printed}"
    );
}
