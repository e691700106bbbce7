//! Two servers with one store and an engine each.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use serde_json::json;

use crate::live::{Server, ok};

/// A free port: below those that connections get, and no other test's for as long as its mark is there.
fn free_port() -> (u16, UnixListener) {
    for port in 12_000..20_000_u16 {
        let name = format!("sandyard-test-port-{port}");
        let name = SocketAddr::from_abstract_name(name).expect("a name");
        let mark = UnixListener::bind_addr(&name);
        let is_free = || std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
        if let Some(mark) = mark.ok().filter(|_| is_free()) {
            return (port, mark);
        }
    }
    panic!("no port is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_used_through_whichever_node_is_asked() {
    let shared = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", shared.path().join("shared.db").display());
    let start = async || {
        let (port, mark) = free_port();
        let flags = [
            ("database.url", database.clone()),
            ("node.url", format!("http://127.0.0.1:{port}")),
        ];
        let server = Server::with_flags(&flags, |settings| settings.server.ports = vec![port]);
        (server.await, mark)
    };
    let (home, _home_mark) = start().await;
    let (other, _other_mark) = start().await;
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
