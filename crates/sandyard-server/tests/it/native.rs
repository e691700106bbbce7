//! The native dialect over a provider in memory.

use sandyard_core::Scope;
use serde_json::{Value, json};

use crate::app::{Actor, At, TestApp};

use Actor::{Admin, Alice, Anonymous, Bob};

#[tokio::test]
async fn a_sandbox_is_made_and_seen_and_deleted() {
    let app = TestApp::new().await;
    let made = app
        .post(
            Alice,
            "/sandboxes/create",
            json!({"metadata": {"team": "a", "n": 1, "on": true}}),
        )
        .await
        .ok();
    let id = made["sandbox_id"].as_str().unwrap();
    assert_eq!(
        (&made["success"], &made["status"]),
        (&json!(true), &json!("running"))
    );
    assert_eq!(made["mcp_url"], format!("http://yard.test/p/{id}/6060/mcp"));
    assert_eq!(made["vscode_url"], format!("http://yard.test/p/{id}/9000/"));
    assert!(made["provider_sandbox_id"].is_string() && made["message"].is_string());

    let info = app.get(Alice, &format!("/sandboxes/{id}/info")).await.ok();
    let short = app.get(Alice, &format!("/sandboxes/{id}")).await.ok();
    assert_eq!(short["sandbox_id"], info["sandbox_id"]);
    assert_eq!(info["user_id"], "alice");
    assert_eq!(
        info["metadata"],
        json!({"team": "a", "n": "1", "on": "true"})
    );
    assert_eq!(info["limits"]["memory"], "2g");
    assert_eq!(info["created_at"], "2026-01-01T00:00:02.000Z");
    assert_eq!(info["expires_at"], "2026-01-01T01:00:02.000Z");

    let status = app
        .get(Alice, &format!("/sandboxes/status?sandbox_id={id}"))
        .await
        .ok();
    assert_eq!(status["status"], "running");
    let all = app.get(Alice, "/sandboxes/status").await.ok();
    assert_eq!(all["sandboxes"].as_array().unwrap().len(), 1);
    assert_eq!(
        app.get(Bob, "/sandboxes/status").await.ok()["sandboxes"],
        json!([])
    );

    app.ask(Alice, "DELETE", &format!("/sandboxes/{id}"), None)
        .await
        .ok();
    let status = app
        .get(Alice, &format!("/sandboxes/{id}/status"))
        .await
        .ok();
    assert_eq!(status["status"], "deleted");
    app.post(Alice, "/sandboxes/delete", json!({"sandbox_id": id}))
        .await
        .ok();
    let events = app
        .get(Alice, &format!("/sandboxes/{id}/events"))
        .await
        .ok();
    let kinds: Vec<_> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["kind"])
        .collect();
    assert!(kinds.contains(&&json!("deleted")), "{kinds:?}");
}

#[tokio::test]
async fn a_user_gets_its_own_sandbox_whatever_user_id_says_and_an_admin_the_one_it_names() {
    let app = TestApp::new().await;
    for (actor, owner) in [(Alice, "alice"), (Admin, "somebody")] {
        let made = app
            .post(actor, "/sandboxes/create", json!({"user_id": "somebody"}))
            .await
            .ok();
        let id = made["sandbox_id"].as_str().unwrap();
        let info = app.get(actor, &format!("/sandboxes/{id}/info")).await.ok();
        assert_eq!(info["user_id"], owner);
    }
}

#[tokio::test]
async fn all_names_of_the_template_are_understood() {
    let app = TestApp::new().await;
    for name in ["template", "template_id", "sandbox_template_id"] {
        app.post(Alice, "/sandboxes/create", json!({name: "base"}))
            .await
            .ok();
        let refused = app
            .post(Alice, "/sandboxes/create", json!({name: "no-such"}))
            .await;
        assert_eq!(refused.refused(404)["code"], "not_found");
    }
}

#[tokio::test]
async fn limits_are_taken_as_text_and_as_number() {
    let app = TestApp::new().await;
    for body in [
        json!({"memory_limit": "512m", "cpu_limit": "1.5"}),
        json!({"memory_limit": 512, "cpu_limit": 1.5}),
    ] {
        let made = app.post(Alice, "/sandboxes/create", body).await.ok();
        let id = made["sandbox_id"].as_str().unwrap();
        let info = app.get(Alice, &format!("/sandboxes/{id}/info")).await.ok();
        assert_eq!(info["limits"]["memory_bytes"], 512 << 20);
        assert_eq!(info["limits"]["cpu"], 1.5);
    }
}

#[tokio::test]
async fn malformed_requests_are_refused_with_the_field_named() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    let long = "x".repeat(5000);
    let cases: Vec<(&str, Value, u16, Value)> = vec![
        ("create", json!({"timeout": 0}), 422, json!("timeout")),
        ("create", json!({"timeout": 86_401}), 422, json!("timeout")),
        (
            "create",
            json!({"timeout": 31_536_001}),
            422,
            json!("timeout"),
        ),
        (
            "create",
            json!({"memory_limit": "lots"}),
            422,
            json!("memory_limit"),
        ),
        ("create", json!({"cpu_limit": -1}), 422, json!("cpu_limit")),
        ("create", json!({"env": {"A=B": ""}}), 422, json!("env")),
        (
            "create",
            json!({"metadata": {"": "x"}}),
            422,
            json!("metadata"),
        ),
        ("create", json!({"alias": "../x"}), 422, json!("alias")),
        ("create", json!({"user_id": 7}), 422, json!("user_id")),
        (
            "run-cmd",
            json!({"command": "true"}),
            422,
            json!("sandbox_id"),
        ),
        (
            "run-cmd",
            json!({"sandbox_id": id, "command": ""}),
            422,
            json!("command"),
        ),
        (
            "run-cmd",
            json!({"sandbox_id": id, "command": []}),
            422,
            json!("command"),
        ),
        (
            "run-cmd",
            json!({"sandbox_id": id, "command": "a\u{0}b"}),
            422,
            json!("command"),
        ),
        (
            "write-file",
            json!({"sandbox_id": id, "path": "a"}),
            400,
            json!("content"),
        ),
        (
            "write-file",
            json!({"sandbox_id": id, "content": "a"}),
            422,
            json!("path"),
        ),
        (
            "read-file",
            json!({"sandbox_id": id, "path": "a\u{0}"}),
            422,
            json!("path"),
        ),
        (
            "read-file",
            json!({"sandbox_id": id, "path": long}),
            422,
            json!("path"),
        ),
        (
            "timeout",
            json!({"sandbox_id": id, "timeout": 0}),
            422,
            json!("timeout"),
        ),
        (
            "timeout",
            json!({"sandbox_id": id}),
            422,
            json!("timeout_seconds"),
        ),
        (
            "expose-port",
            json!({"sandbox_id": id, "port": 65_536}),
            422,
            json!("port"),
        ),
    ];
    for (verb, body, status, field) in cases {
        let answer = app
            .post(Alice, &format!("/sandboxes/{verb}"), body.clone())
            .await;
        assert_eq!(answer.refused(status)["field"], field, "{verb} {body}");
        assert!(answer.json()["detail"].is_string());
    }
    for query in [
        "limit=0",
        "limit=x",
        "status=odd",
        "metadata.=1",
        "limit=1&limit=2",
    ] {
        app.get(Alice, &format!("/sandboxes?{query}"))
            .await
            .refused(422);
    }
}

#[tokio::test]
async fn unknown_sandboxes_are_not_found_in_every_spelling() {
    let app = TestApp::new().await;
    for name in [
        "nosuch",
        "29ef1923-20e4-4e41-9d76-1fffafbaaaeb",
        "%00",
        "..",
        "a%20b",
        "%ff",
    ] {
        let answer = app.get(Alice, &format!("/sandboxes/{name}/status")).await;
        assert_eq!(answer.refused(404)["code"], "sandbox_not_found", "{name}");
    }
    for name in ["", "a\u{0}", "é", "nosuch"] {
        let answer = app
            .post(Alice, "/sandboxes/connect", json!({"sandbox_id": name}))
            .await;
        assert_eq!(answer.refused(404)["code"], "sandbox_not_found", "{name:?}");
    }
}

#[tokio::test]
async fn a_time_out_is_set_by_both_names_of_route_and_field() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    for (route, field, seconds) in [
        ("timeout", "timeout", 60),
        ("schedule-timeout", "timeout_seconds", 90),
    ] {
        let body = json!({"sandbox_id": id, field: seconds, "action": "delete"});
        let reply = app
            .post(Alice, &format!("/sandboxes/{route}"), body)
            .await
            .ok();
        assert_eq!(reply["success"], true);
        let info = app.get(Alice, &format!("/sandboxes/{id}/info")).await.ok();
        assert_eq!(
            (&info["timeout"], &info["timeout_action"]),
            (&json!(seconds), &json!("delete"))
        );
        assert_eq!(info["expires_at"], reply["expires_at"]);
    }
}

#[tokio::test]
async fn pausing_and_resuming_may_be_repeated() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    for (verb, status) in [
        ("pause?reason=lunch", "paused"),
        ("pause", "paused"),
        ("resume", "running"),
        ("resume", "running"),
        ("stop", "paused"),
        ("resume", "running"),
    ] {
        let reply = app
            .ask(Alice, "POST", &format!("/sandboxes/{id}/{verb}"), None)
            .await
            .ok();
        assert_eq!(reply["status"], status, "{verb}");
    }
    app.ask(Alice, "POST", &format!("/sandboxes/{id}/pause"), None)
        .await
        .ok();
    let reply = app
        .post(Alice, "/sandboxes/connect", json!({"sandbox_id": id}))
        .await
        .ok();
    assert_eq!(reply["status"], "running");
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let app = TestApp::new().await;
    for n in 0..5 {
        app.clock.advance_ms(10);
        let body =
            json!({"metadata": {"n": n.to_string(), "all": "y"}, "alias": format!("box-{n}")});
        app.post(Alice, "/sandboxes/create", body).await.ok();
    }
    app.sandbox(Bob).await;
    let page = app
        .get(Alice, "/sandboxes?limit=2&metadata.all=y")
        .await
        .ok();
    let names = |page: &Value| -> Vec<String> {
        let list = page["sandboxes"].as_array().unwrap();
        list.iter()
            .map(|it| it["alias"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&page), ["box-4", "box-3"]);
    let next = page["next"].as_str().unwrap();
    let page = app
        .get(Alice, &format!("/sandboxes?limit=3&cursor={next}"))
        .await
        .ok();
    assert_eq!(names(&page), ["box-2", "box-1", "box-0"]);
    assert_eq!(page["next"], Value::Null);
    let one = app.get(Alice, "/sandboxes?metadata.n=3").await.ok();
    assert_eq!(names(&one), ["box-3"]);
    let all_users = app.get(Admin, "/sandboxes").await.ok();
    assert_eq!(all_users["sandboxes"].as_array().unwrap().len(), 6);
    let bobs = app.get(Admin, "/sandboxes?owner=bob").await.ok();
    assert_eq!(bobs["sandboxes"].as_array().unwrap().len(), 1);
    // An ordinary user's filter cannot reach into another's.
    let other = app.get(Alice, "/sandboxes?owner=bob").await.ok();
    assert!(names(&other).iter().all(|name| name.starts_with("box-")));
}

#[tokio::test]
async fn a_repeated_create_with_a_key_makes_one_sandbox() {
    let app = TestApp::new().await;
    let ask = async |body: Value| {
        let mut request = app.request(Alice, "POST", "/sandboxes/create", Some(body));
        request
            .headers_mut()
            .insert("idempotency-key", "once".parse().unwrap());
        app.send(crate::app::At::Network, request).await
    };
    let first = ask(json!({})).await.ok();
    let second = ask(json!({})).await.ok();
    assert_eq!(first["sandbox_id"], second["sandbox_id"]);
    ask(json!({"timeout": 5})).await.refused(409);
    assert_eq!(app.provider.instances().len(), 1);
}

#[tokio::test]
async fn snapshots_and_forks_and_diffs() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    let snapshot = app
        .post(
            Alice,
            &format!("/sandboxes/{id}/snapshot"),
            json!({"name": "kept"}),
        )
        .await;
    assert_eq!(snapshot.ok()["name"], "kept");
    let refused = app
        .post(
            Alice,
            &format!("/sandboxes/{id}/snapshot"),
            json!({"name": "../x"}),
        )
        .await;
    assert_eq!(refused.refused(422)["field"], "name");
    let fork = app
        .ask(Alice, "POST", &format!("/sandboxes/{id}/fork"), None)
        .await
        .ok();
    assert_ne!(fork["sandbox_id"], json!(id));
    assert_eq!(
        app.get(Alice, &format!("/sandboxes/{id}/diff")).await.ok()["truncated"],
        false
    );
    app.get(Alice, &format!("/sandboxes/{id}/metrics"))
        .await
        .ok();
    let path = format!("/sandboxes/{id}/metrics/history");
    let history = app.get(Alice, &path).await.ok();
    let points = history["points"].as_array().unwrap();
    assert!(points[0]["at_ms"].as_i64().unwrap() > 0, "{history}");
    let none = app.get(Alice, &format!("{path}?to_ms=1")).await.ok();
    assert_eq!(none["points"], json!([]));
    app.get(Alice, &format!("{path}?from_ms=x"))
        .await
        .refused(422);
    let templates = app.get(Alice, "/templates").await.ok();
    assert!(templates["templates"].as_array().unwrap().len() >= 2);
    app.ask(Admin, "DELETE", "/templates/kept", None).await.ok();
}

#[tokio::test]
async fn ports_become_public_on_request() {
    let app = TestApp::new().await;
    let id = app.sandbox(Alice).await;
    let path = format!("/sandboxes/{id}/ports/3000");
    let port = app.get(Alice, &path).await.ok();
    assert_eq!(
        (&port["public"], &port["port"]),
        (&json!(false), &json!(3000))
    );
    assert_eq!(port["url"], format!("http://yard.test/p/{id}/3000/"));
    assert!(
        port["signed_url"]
            .as_str()
            .unwrap()
            .contains("/3000/?sandyard_token=")
    );
    assert_eq!(
        app.post(Alice, &path, json!({"public": true})).await.ok()["public"],
        true
    );
    let info = app.get(Alice, &format!("/sandboxes/{id}/info")).await.ok();
    assert_eq!(info["public_ports"], json!([3000]));
    // To look is not to open.
    for (scopes, method) in [(&[Scope::Read], "GET"), (&[Scope::Manage], "POST")] {
        let key = app.app.auth().create_key("alice", "k", scopes, None).await;
        let body = (method == "POST").then(|| json!({"public": false}));
        let mut request = app.request(Anonymous, method, &path, body);
        let key = key.unwrap().secret.parse().unwrap();
        request.headers_mut().insert("x-api-key", key);
        let port = app.send(At::Network, request).await.ok();
        assert!(port["url"].is_string() && port.get("signed_url").is_none());
    }
    for port in ["0", "65536", "x"] {
        app.get(Alice, &format!("/sandboxes/{id}/ports/{port}"))
            .await
            .refused(422);
    }
}

#[tokio::test]
async fn ports_that_can_do_everything_are_never_everybodys() {
    let settings = sandyard_server::ServerSettings {
        mcp_port: 7070,
        ..sandyard_server::ServerSettings::default()
    };
    let app = TestApp::with(sandyard_provider_fake::FakeProvider::new(), settings).await;
    let id = app.sandbox(Alice).await;
    // A tool server that was started before the setting was changed is where it was.
    for port in [6060, 7070, 9000] {
        let path = format!("/sandboxes/{id}/ports/{port}");
        app.post(Alice, &path, json!({"public": true}))
            .await
            .refused(422);
    }
}

#[tokio::test]
async fn a_domain_gives_every_port_a_host_of_its_own() {
    let settings = sandyard_server::ServerSettings {
        domain: "box.example".to_owned(),
        public_url: Some("https://yard.example:8443".to_owned()),
        ..sandyard_server::ServerSettings::default()
    };
    let app = TestApp::with(sandyard_provider_fake::FakeProvider::new(), settings).await;
    let id = app.sandbox(Alice).await;
    let urls = app.get(Alice, &format!("/sandboxes/{id}/urls")).await.ok();
    assert_eq!(
        urls["mcp_url"],
        format!("https://6060-{id}.box.example:8443/mcp")
    );
    let port = app
        .get(Alice, &format!("/sandboxes/{id}/ports/80"))
        .await
        .ok();
    let signed = port["signed_url"].as_str().unwrap();
    assert!(
        signed.starts_with(&format!(
            "https://80-{id}.box.example:8443/?sandyard_token="
        )),
        "{signed}"
    );
}

#[tokio::test]
async fn a_preview_does_not_reveal_whether_a_sandbox_exists() {
    let app = TestApp::new().await;
    let body = json!({"alias": "web"});
    let made = app.post(Alice, "/sandboxes/create", body).await.ok();
    let id = made["sandbox_id"].as_str().unwrap();
    let unknown = "0".repeat(20);
    let visit = async |actor, name: &str, query: &str| {
        let answer = app.get(actor, &format!("/p/{name}/3000/{query}")).await;
        (answer.status.as_u16(), answer.text.replace(name, "-"))
    };
    for query in ["", "?sandyard_token=1.x"] {
        for actor in [Anonymous, Bob] {
            let private = visit(actor, id, query).await;
            assert!([401, 403].contains(&private.0), "{private:?}");
            // An alias is not an address: any user can choose it.
            for name in [unknown.as_str(), "web"] {
                assert_eq!(visit(actor, name, query).await, private, "{name}");
            }
        }
    }
    assert_eq!(visit(Admin, &unknown, "").await.0, 404);
    assert_eq!(visit(Admin, "web", "").await.0, 404);
    app.ask(Alice, "DELETE", &format!("/sandboxes/{id}"), None)
        .await
        .ok();
    assert_eq!(visit(Alice, id, "").await.0, 404);
    assert_eq!(visit(Bob, id, "").await.0, 401);
}

#[tokio::test]
async fn an_alias_of_several_owners_is_ambiguous_to_admins_only() {
    let app = TestApp::new().await;
    let body = json!({"alias": "web"});
    let made = app
        .post(Alice, "/sandboxes/create", body.clone())
        .await
        .ok();
    let id = made["sandbox_id"].as_str().unwrap();
    app.get(Admin, "/sandboxes/web/info").await.ok();
    app.post(Bob, "/sandboxes/create", body).await.ok();
    let refused = app.get(Admin, "/sandboxes/web/info").await.refused(409);
    assert_eq!(refused["code"], "conflict");
    app.get(Admin, &format!("/sandboxes/{id}/info")).await.ok();
    app.get(Alice, "/sandboxes/web/info").await.ok();
}

#[tokio::test]
async fn an_alias_is_changed_and_removed() {
    let app = TestApp::new().await;
    let create = async |name: &str| {
        let body = json!({ "name": name });
        let made = app.post(Alice, "/sandboxes/create", body).await.ok();
        made["sandbox_id"].as_str().unwrap().to_owned()
    };
    let (id, _) = (create("old").await, create("taken").await);
    let change = async |name: &str, body: Value| {
        let path = format!("/sandboxes/{name}");
        app.ask(Alice, "PATCH", &path, Some(body)).await
    };
    let both = json!({"name": "new", "metadata": {"a": "b"}});
    assert_eq!(change("old", both).await.ok()["sandbox_id"], id);
    let info = app.get(Alice, "/sandboxes/new").await.ok();
    assert_eq!(
        (&info["alias"], &info["metadata"]),
        (&json!("new"), &json!({"a": "b"}))
    );
    app.get(Alice, "/sandboxes/old").await.refused(404);
    let taken = change("new", json!({"alias": "taken"})).await.refused(409);
    assert_eq!(taken["field"], "alias");
    // Its own name is not another's.
    change("new", json!({"alias": "new"})).await.ok();
    change("new", json!({"alias": "Not a name"}))
        .await
        .refused(422);
    change("new", json!({"metadata": {"a": null}})).await.ok();
    change("new", json!({"alias": null})).await.ok();
    app.get(Alice, "/sandboxes/new").await.refused(404);
    let info = app.get(Alice, &format!("/sandboxes/{id}")).await.ok();
    assert_eq!(
        (&info["alias"], &info["metadata"]),
        (&json!(null), &json!({}))
    );
}

#[tokio::test]
async fn events_of_all_sandboxes_are_those_that_the_caller_may_see() {
    let app = TestApp::new().await;
    let mut ids = Vec::new();
    for actor in [Alice, Bob, Alice] {
        let made = app.post(actor, "/sandboxes/create", json!({})).await.ok();
        ids.push(made["sandbox_id"].clone());
    }
    let created = async |actor, query: &str| {
        let path = format!("/events?limit=1000{query}");
        let events = app.get(actor, &path).await.ok()["events"].clone();
        let events = events.as_array().unwrap().clone();
        let created = events.iter().filter(|event| event["kind"] == "created");
        created
            .map(|event| event["sandbox_id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(created(Alice, "").await, [ids[0].clone(), ids[2].clone()]);
    assert_eq!(created(Bob, "").await, [ids[1].clone()]);
    assert_eq!(created(Admin, "").await, ids);
    let newest = app.get(Admin, "/events?limit=1").await.ok();
    let seq = newest["events"][0]["seq"].as_i64().unwrap();
    assert!(created(Admin, &format!("&after={seq}")).await.is_empty());
    app.get(Anonymous, "/events").await.refused(401);
}

#[tokio::test]
async fn a_timeout_out_of_range_is_refused_in_units_of_people() {
    let app = TestApp::new().await;
    let body = json!({"timeout": "3d"});
    let refused = app
        .post(Alice, "/sandboxes/create", body)
        .await
        .refused(422);
    let expected = "`timeout` must be between 1s and 24h (got 3d)";
    assert_eq!(refused["detail"], expected);
}
