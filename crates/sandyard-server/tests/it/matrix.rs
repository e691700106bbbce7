//! Every route × everybody, generated from the route table: a route without a sample here fails the test.

use axum::body::Body;
use axum::http::Request;
use sandyard_core::{Role, Scope};
use sandyard_server::Access;
use sandyard_server::router::{RouteEntry, table};
use serde_json::{Value, json};

use crate::app::{Actor, At, PASSWORD, TestApp};

/// A request that makes sense for a route.
struct Sample {
    query: String,
    body: SampleBody,
    /// Whether it is about the sandbox in the path or body.
    is_about_sandbox: bool,
}

enum SampleBody {
    None,
    Json(Value),
    /// Content type and text.
    Raw(&'static str, String),
}

fn plain() -> Sample {
    Sample {
        query: String::new(),
        body: SampleBody::None,
        is_about_sandbox: false,
    }
}

fn about_sandbox() -> Sample {
    Sample {
        is_about_sandbox: true,
        ..plain()
    }
}

fn json_about_sandbox(body: Value) -> Sample {
    Sample {
        body: SampleBody::Json(body),
        ..about_sandbox()
    }
}

fn json_plain(body: Value) -> Sample {
    Sample {
        body: SampleBody::Json(body),
        ..plain()
    }
}

fn with_query(query: &str, sample: Sample) -> Sample {
    Sample {
        query: query.to_owned(),
        ..sample
    }
}

/// The sample of an operation; `id` is the sandbox it is about.
fn sample(operation: &str, id: &str) -> Option<Sample> {
    let multipart = format!(
        "--b\r\ncontent-disposition: form-data; name=\"sandbox_id\"\r\n\r\n{id}\r\n--b\r\n\
         content-disposition: form-data; name=\"file_path\"\r\n\r\na.txt\r\n--b\r\n\
         content-disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--b--\r\n"
    );
    Some(match operation {
        "create_sandbox" => json_plain(json!({"user_id": "alice"})),
        "connect_sandbox" | "delete_named_sandbox" => json_about_sandbox(json!({"sandbox_id": id})),
        "run_command" | "run_command_stream" => {
            json_about_sandbox(json!({"sandbox_id": id, "command": "true"}))
        }
        "run_in_sandbox" => json_about_sandbox(json!({"command": "true"})),
        "write_file" => json_about_sandbox(json!({"sandbox_id": id, "path": "a", "content": ""})),
        "read_file" => json_about_sandbox(json!({"sandbox_id": id, "file_path": "a"})),
        "create_directory" => with_query(
            &format!("sandbox_id={id}&directory_path=a"),
            about_sandbox(),
        ),
        "download_file" | "download_file_stream" => {
            json_about_sandbox(json!({"sandbox_id": id, "file_path": "a"}))
        }
        "upload_file" => Sample {
            body: SampleBody::Raw("multipart/form-data; boundary=b", multipart),
            ..about_sandbox()
        },
        "upload_file_from_url" => json_about_sandbox(
            json!({"sandbox_id": id, "file_path": "a", "url": "http://127.0.0.1:9/"}),
        ),
        "download_to_presigned_url" => json_about_sandbox(
            json!({"sandbox_id": id, "file_path": "a", "presigned_url": "http://127.0.0.1:9/"}),
        ),
        "get_file" | "put_file" | "post_file" | "remove_file" | "list_files" | "stat_file"
        | "copy_to" | "copy_from" => with_query("path=a", about_sandbox()),
        "make_folder" => Sample {
            body: SampleBody::Json(json!({"path": "a"})),
            ..with_query("path=a", about_sandbox())
        },
        "rename_file" => json_about_sandbox(json!({"from": "a", "to": "b"})),
        "expose_port" => json_about_sandbox(json!({"sandbox_id": id, "port": 3000})),
        "set_port_access" => json_about_sandbox(json!({"public": true})),
        "schedule_timeout" => json_about_sandbox(json!({"sandbox_id": id, "timeout": 60})),
        "update_sandbox" => json_about_sandbox(json!({"name": "renamed", "metadata": {"a": "b"}})),
        "setup_mcp" => json_about_sandbox(json!({"sandbox_id": id})),
        "get_status" => with_query(&format!("sandbox_id={id}"), about_sandbox()),
        "set_network" => json_about_sandbox(json!({"allow_internet_access": false})),
        "allow_network" | "deny_network" => json_about_sandbox(json!({"targets": ["pypi.org"]})),
        "create_volume" => json_plain(json!({"name": "data"})),
        "put_secret" => json_plain(json!({"value": "s3cret", "hosts": ["api.example.com"]})),
        "snapshot_sandbox" => json_about_sandbox(json!({"name": "kept"})),
        "get_port"
        | "get_sandbox_status"
        | "get_sandbox"
        | "get_sandbox_urls"
        | "list_events"
        | "get_sandbox_metrics"
        | "get_sandbox_metrics_history"
        | "get_network"
        | "list_flows"
        | "pause_sandbox"
        | "resume_sandbox"
        | "stop_sandbox"
        | "delete_sandbox"
        | "fork_sandbox"
        | "diff_sandbox"
        | "read_logs"
        | "list_processes"
        | "kill_process"
        | "get_container"
        | "start_container"
        | "stop_container"
        | "delete_container" => about_sandbox(),
        // Nothing can be upgraded without a socket; `contract` tries these two on one.
        "exec" | "open_pty" | "attach_process" => plain(),
        "execute_in_container" => json_about_sandbox(json!({"command": ["true"]})),
        "create_container" => json_plain(json!({"project_name": "p"})),
        "login" => with_query(&format!("username=alice&password={PASSWORD}"), plain()),
        "login_enveloped" => json_plain(json!({"username": "alice", "password": PASSWORD})),
        "refresh_login" => json_plain(json!({"refresh_token": "x"})),
        "create_user" => json_plain(json!({"name": "dave"})),
        "change_user" => json_plain(json!({"disabled": false})),
        "create_key" => json_plain(json!({"name": "k"})),
        "list_sandboxes"
        | "list_all_events"
        | "list_secrets"
        | "delete_secret"
        | "list_volumes"
        | "get_volume"
        | "delete_volume"
        | "list_templates"
        | "delete_template"
        | "import_template"
        | "list_nodes"
        | "list_dead_timers"
        | "revive_timer"
        | "list_unknown_instances"
        | "delete_unknown_instance"
        | "list_containers"
        | "clean_up_containers"
        | "logout"
        | "get_me"
        | "list_keys"
        | "revoke_key"
        | "list_users"
        | "get_user"
        | "delete_user"
        | "list_audit"
        | "get_health"
        | "get_info"
        | "get_metrics"
        | "get_openapi"
        | "/docs"
        | "/mcp" => plain(),
        "e2b_create" | "e2b_create_v1" => json_plain(json!({"templateID": "base"})),
        "e2b_set_timeout" => json_about_sandbox(json!({"timeout": 60})),
        "e2b_set_network" => json_about_sandbox(json!({"allow_internet_access": false})),
        "e2b_metrics_of_many" => with_query(&format!("sandbox_ids={id}"), plain()),
        "e2b_connect" | "e2b_resume" | "e2b_pause" | "e2b_get" | "e2b_delete" | "e2b_refresh"
        | "e2b_metrics" | "e2b_logs" | "e2b_logs_v1" | "e2b_snapshot" | "e2b_fork" => {
            about_sandbox()
        }
        "e2b_publish_template" => json_plain(json!({"public": true})),
        "e2b_health"
        | "e2b_list"
        | "e2b_list_v1"
        | "e2b_list_snapshots"
        | "e2b_list_templates"
        | "e2b_list_templates_v2"
        | "e2b_get_template"
        | "e2b_find_template"
        | "e2b_delete_template"
        | "e2b_build_template"
        | "e2b_list_secrets"
        | "e2b_create_secret"
        | "e2b_get_secret"
        | "e2b_update_secret"
        | "e2b_delete_secret" => plain(),
        "e2b_create_volume" => json_plain(json!({"name": "data"})),
        "e2b_list_volumes" | "e2b_get_volume" | "e2b_delete_volume" => plain(),
        "e2b_change_volume_path" => with_query("path=a", json_plain(json!({"mode": 0o600}))),
        "e2b_list_volume_dir"
        | "e2b_make_volume_dir"
        | "e2b_get_volume_path"
        | "e2b_remove_volume_path"
        | "e2b_read_volume_file"
        | "e2b_write_volume_file" => with_query("path=a", plain()),
        other if other.contains("/internal/") => plain(),
        _ => return None,
    })
}

/// The operation of the native dialect that a route is made of.
fn native_operation(operation: &str) -> &str {
    let operation = operation
        .strip_prefix("enveloped_v1_")
        .or(operation.strip_prefix("enveloped_"))
        .unwrap_or(operation);
    operation.split("_by_").next().unwrap()
}

fn request(app: &TestApp, actor: Actor, entry: &RouteEntry, id: &str) -> (Request<Body>, Sample) {
    let operation = native_operation(&entry.operation);
    let sample = sample(operation, id).unwrap_or_else(|| {
        panic!(
            "the matrix has no sample for {} {}",
            entry.method, entry.path
        )
    });
    let path = entry
        .path
        .replace("{id}", id)
        .replace("{port}", "3000")
        .replace("{pid}", "4000000")
        .replace("{name}", "carol")
        .replace("{verb}", "inspect")
        .replace("{location}", "here");
    let method = match entry.method.as_str() {
        "ANY" if entry.path.contains("/internal/") => "POST",
        "ANY" => "GET",
        method => method,
    };
    let mut builder = Request::builder()
        .method(method)
        .uri(format!("{path}?{}", sample.query))
        .header("host", "yard.test");
    if let Some(key) = app.key(actor) {
        builder = builder.header("x-api-key", key);
    }
    let request = match &sample.body {
        SampleBody::None => builder.body(Body::empty()),
        SampleBody::Json(body) => builder
            .header("content-type", "application/json")
            .body(Body::from(body.to_string())),
        SampleBody::Raw(kind, text) => builder
            .header("content-type", *kind)
            .body(Body::from(text.clone())),
    };
    (request.unwrap(), sample)
}

/// What one may see, as status and code.
#[derive(Debug, PartialEq)]
enum Seen {
    Unauthenticated,
    Forbidden,
    NoSandbox,
    Through,
}

async fn try_route(app: &TestApp, actor: Actor, entry: &RouteEntry, id: &str) -> Seen {
    let (request, _) = request(app, actor, entry, id);
    let response = app.send_head(At::Network, request).await;
    let status = response.status().as_u16();
    let is_json = response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let mut code = String::new();
    if is_json && status >= 400 {
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        // The enveloped dialect has its own place for the word.
        let word = body["error"].as_str().or(body["code"].as_str());
        code = word.unwrap_or_default().to_owned();
        // E2B's dialect has the status there, and says it in words.
        let message = body["message"].as_str().unwrap_or_default();
        if message.starts_with("no sandbox ") {
            code = "sandbox_not_found".to_owned();
        }
    }
    match (status, code.as_str()) {
        (401, _) => Seen::Unauthenticated,
        (403, _) => Seen::Forbidden,
        (404, "sandbox_not_found") => Seen::NoSandbox,
        (500.., _) if status == 500 => panic!("{} {} as {actor:?}: 500", entry.method, entry.path),
        _ => Seen::Through,
    }
}

#[tokio::test]
async fn every_route_checks_the_permission_of_every_caller() {
    let app = TestApp::new().await;
    let routes = table();
    assert!(routes.len() > 100, "the table is not empty");
    for entry in &routes {
        check(&app, entry).await;
    }
}

async fn check(app: &TestApp, entry: &RouteEntry) {
    let operation = native_operation(&entry.operation);
    let is_about_sandbox = sample(operation, "x").is_some_and(|sample| sample.is_about_sandbox);
    for actor in [
        Actor::Anonymous,
        Actor::WrongKey,
        Actor::Expired,
        Actor::Bob,
        Actor::Alice,
        Actor::Admin,
    ] {
        // Each one finds the world as it was.
        let id = app.sandbox(Actor::Alice).await;
        app.app
            .auth()
            .create_user("carol", None, Role::User, None)
            .await
            .ok();
        let seen = try_route(app, actor, entry, &id).await;
        let expected = expected(entry, actor, is_about_sandbox);
        assert_eq!(
            seen, expected,
            "{} {} as {actor:?}",
            entry.method, entry.path
        );
        app.post(Actor::Admin, "/sandboxes/delete", json!({"sandbox_id": id}))
            .await;
        for name in ["carol", "dave"] {
            app.app.auth().delete_user(name).await.ok();
        }
    }
}

fn makes_key(entry: &RouteEntry) -> bool {
    native_operation(&entry.operation) == "create_key"
}

fn expected(entry: &RouteEntry, actor: Actor, is_about_sandbox: bool) -> Seen {
    let is_known = matches!(actor, Actor::Alice | Actor::Bob | Actor::Admin);
    match entry.access {
        // The one that is sent is no refresh token.
        Access::Public if entry.operation == "refresh_login" => Seen::Unauthenticated,
        Access::Public => Seen::Through,
        Access::Node => Seen::Unauthenticated,
        _ if !is_known => Seen::Unauthenticated,
        Access::Scope(Scope::Admin) | Access::Admin(_) if actor != Actor::Admin => Seen::Forbidden,
        // They ask with keys, and only an admin's makes another.
        _ if makes_key(entry) && actor != Actor::Admin => Seen::Forbidden,
        _ if is_about_sandbox && actor == Actor::Bob => Seen::NoSandbox,
        _ => Seen::Through,
    }
}

#[tokio::test]
async fn an_open_listener_opens_sandboxes_and_nothing_else() {
    let app = TestApp::new().await;
    for entry in &table() {
        let id = app.sandbox(Actor::Alice).await;
        let (mut request, _) = request(&app, Actor::Anonymous, entry, &id);
        request
            .headers_mut()
            .insert("host", "localhost:8100".parse().unwrap());
        let status = app.send_head(At::Loopback, request).await.status().as_u16();
        let is_refused = matches!(status, 401 | 403);
        let is_closed = entry.is_strict && entry.access != Access::Public
            || entry.access == Access::Node
            || entry.operation == "refresh_login";
        assert_eq!(
            is_refused, is_closed,
            "{} {}: {status}",
            entry.method, entry.path
        );
        app.post(Actor::Admin, "/sandboxes/delete", json!({"sandbox_id": id}))
            .await;
    }
}

#[tokio::test]
async fn a_key_without_the_scope_is_refused() {
    let app = TestApp::new().await;
    let key = app
        .app
        .auth()
        .create_key("alice", "look", &[Scope::Read], None)
        .await
        .unwrap();
    for entry in &table() {
        let id = app.sandbox(Actor::Alice).await;
        let (mut request, _) = request(&app, Actor::Anonymous, entry, &id);
        request
            .headers_mut()
            .insert("x-api-key", key.secret.parse().unwrap());
        let status = app.send_head(At::Network, request).await.status().as_u16();
        let is_beyond = matches!(entry.access, Access::Scope(scope) | Access::Volume(scope) if scope != Scope::Read)
            || matches!(entry.access, Access::Admin(_))
            || makes_key(entry);
        assert_eq!(
            status == 403,
            is_beyond,
            "{} {}: {status}",
            entry.method,
            entry.path
        );
        app.post(Actor::Admin, "/sandboxes/delete", json!({"sandbox_id": id}))
            .await;
    }
}
