//! Two servers with one store and an engine each.

use serde_json::json;

use crate::live::{Server, ok};

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("an address").port()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_used_through_whichever_node_is_asked() {
    let shared = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", shared.path().join("shared.db").display());
    let start = async || {
        let port = free_port();
        let flags = [
            ("database.url", database.clone()),
            ("node.url", format!("http://127.0.0.1:{port}")),
        ];
        Server::with_flags(&flags, |settings| settings.server.ports = vec![port]).await
    };
    let home = start().await;
    let other = start().await;
    let id = home.create().await;

    // Everything the other node does with it goes through the first one.
    assert_eq!(
        other.run(&id, "echo from afar > /tmp/x; cat /tmp/x").await,
        "from afar\n"
    );
    let path = format!("/sandboxes/{id}/files?path=/tmp/x");
    let text = other.get(&path).send().await.unwrap().text().await.unwrap();
    assert_eq!(text, "from afar\n");
    ok(other
        .post(&format!("/sandboxes/{id}/pause"))
        .send()
        .await
        .unwrap())
    .await;
    let status = ok(home
        .get(&format!("/sandboxes/{id}/status"))
        .send()
        .await
        .unwrap())
    .await;
    assert_eq!(status["status"], "paused");
    assert_eq!(home.run(&id, "cat /tmp/x").await, "from afar\n");

    // The way between nodes is for nodes alone.
    let health = ok(home.get("/health").send().await.unwrap()).await;
    let refused = home
        .post("/at/embedded/internal/provider/list")
        .bearer_auth("not-a-node")
        .json(&json!({}))
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status().as_u16(), 401, "{health}");
    ok(other
        .post("/sandboxes/delete")
        .json(&json!({"sandbox_id": id}))
        .send()
        .await
        .unwrap())
    .await;
    other.finish().await;
    home.finish().await;
}
