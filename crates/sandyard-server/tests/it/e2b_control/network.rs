//! What a sandbox may reach, and who may open its ports.

use sandyard_provider_fake::FakeProvider;
use sandyard_server::ServerSettings;
use serde_json::{Value, json};

use super::{ALICE, has, id};
use crate::app::TestApp;

#[tokio::test]
async fn the_network_is_what_was_asked_for_and_is_replaced_as_a_whole() {
    let app = TestApp::new().await;
    let network = json!({
        "allowOut": ["api.example.com", "8.8.8.8"], "denyOut": ["0.0.0.0/0"], "allowPublicTraffic": false,
        "maskRequestHost": "localhost:${PORT}", "unknown": 1, "dnsServers": ["1.1.1.1"], "egressProxy": null,
        "rules": {"api.example.com": [{"transform": {"headers": {"X-Key": "hush"}}}]},
    });
    let made = app.make(ALICE, json!({ "network": network })).await;
    has(&made, &["trafficAccessToken"]);
    let network = app.detail(id(&made)).await["network"].clone();
    assert_eq!(network["allowOut"], json!(["api.example.com", "8.8.8.8"]));
    assert_eq!(network["denyOut"], json!(["0.0.0.0/0"]));
    assert_eq!(network["allowPublicTraffic"], false);
    assert_eq!(network["maskRequestHost"], "localhost:${PORT}");
    assert_eq!(
        network["rules"]["api.example.com"][0]["transform"]["headers"],
        json!({"X-Key": "***"})
    );
    let path = format!("/sandboxes/{}/network", id(&made));
    let update = json!({"denyOut": ["10.0.0.0/8"], "allow_internet_access": false});
    app.e2b(ALICE, "PUT", &path, update).await.done(204);
    let detail = app.detail(id(&made)).await;
    let expected = json!({"denyOut": ["10.0.0.0/8"], "allowPublicTraffic": false, "maskRequestHost": "localhost:${PORT}"});
    assert_eq!(detail["network"], expected);
    assert_eq!(detail["allowInternetAccess"], false);
    app.e2b(ALICE, "PUT", &path, json!({})).await.done(204);
    assert_eq!(app.detail(id(&made)).await["allowInternetAccess"], true);
}

#[tokio::test]
async fn ports_are_private_where_the_operator_says_so() {
    let settings = ServerSettings {
        e2b_public_traffic: false,
        ..ServerSettings::default()
    };
    let app = TestApp::with(FakeProvider::new(), settings).await;
    let made = app.make(ALICE, json!({})).await;
    has(&made, &["trafficAccessToken"]);
    assert_eq!(
        app.detail(id(&made)).await["network"]["allowPublicTraffic"],
        false
    );
    let open = app
        .make(ALICE, json!({"network": {"allowPublicTraffic": true}}))
        .await;
    assert_eq!(open["trafficAccessToken"], Value::Null);
}
