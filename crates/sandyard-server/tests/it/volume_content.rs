//! Contents of volumes, over real ones.

use bytes::Bytes;
use futures_util::stream;
use reqwest::{Body, Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::live::{Server, ok};

/// A volume and who may open it.
struct TestVolume<'a> {
    server: &'a Server,
    id: String,
    token: String,
}

impl<'a> TestVolume<'a> {
    async fn new(server: &'a Server, name: &str) -> Self {
        let made = admin(server, Method::POST, "/e2b/volumes")
            .json(&json!({ "name": name }))
            .send()
            .await
            .expect("an answer");
        let made = body(made, 201).await;
        let text = |field: &str| made[field].as_str().expect("a text").to_owned();
        Self {
            server,
            id: text("volumeID"),
            token: text("token"),
        }
    }

    fn ask(&self, method: Method, part: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut url: reqwest::Url = self
            .server
            .url(&format!("/e2b/volumecontent/{}/{part}", self.id))
            .parse()
            .expect("a URL");
        url.query_pairs_mut().extend_pairs(query);
        self.server
            .client
            .request(method, url)
            .bearer_auth(&self.token)
    }

    async fn get(&self, part: &str, query: &[(&str, &str)], status: u16) -> Value {
        let answer = self.ask(Method::GET, part, query).send().await;
        body(answer.expect("an answer"), status).await
    }

    async fn put(&self, query: &[(&str, &str)], content: &str, status: u16) -> Value {
        let request = self.ask(Method::PUT, "file", query);
        let answer = request.body(content.to_owned()).send().await;
        body(answer.expect("an answer"), status).await
    }

    async fn read(&self, path: &str) -> String {
        let answer = self
            .ask(Method::GET, "file", &[("path", path)])
            .send()
            .await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer.text().await.expect("a text")
    }

    async fn names(&self, query: &[(&str, &str)]) -> Vec<String> {
        let listed = self.get("dir", query, 200).await;
        let entries = listed.as_array().expect("a list").iter();
        let mut paths: Vec<_> = entries
            .map(|entry| entry["path"].as_str().expect("a path").to_owned())
            .collect();
        paths.sort();
        paths
    }
}

fn admin(server: &Server, method: Method, path: &str) -> RequestBuilder {
    let request = server.client.request(method, server.url(path));
    request.header("x-api-key", key(server))
}

async fn body(answer: Response, status: u16) -> Value {
    let is = answer.status();
    let text = answer.text().await.expect("a body");
    assert_eq!(is, status, "{text}");
    match text.is_empty() {
        true => Value::Null,
        false => serde_json::from_str(&text).expect("JSON"),
    }
}

/// Names that somebody somewhere takes for something else.
const UNUSUAL_NAMES: [&str; 9] = [
    "sp ace",
    "new\nline",
    "ünï",
    "-rf",
    "--help",
    "$(touch x)",
    "*",
    "a+b&c=d?e#f%41",
    "~root",
];

#[tokio::test]
async fn files_of_any_name_are_written_read_and_removed() {
    let server = Server::start().await;
    let volume = TestVolume::new(&server, "odd").await;
    for name in UNUSUAL_NAMES {
        let path = format!("/{name}");
        let entry = volume.put(&[("path", &path)], name, 201).await;
        assert_eq!(
            (&entry["name"], &entry["path"]),
            (&json!(name), &json!(path))
        );
        assert_eq!(
            (&entry["type"], &entry["size"]),
            (&json!("file"), &json!(name.len()))
        );
        assert_eq!(
            (&entry["mode"], &entry["uid"]),
            (&json!(0o666), &json!(1000))
        );
        assert_eq!(volume.read(&path).await, name);
        let second = volume.get("path", &[("path", name)], 200).await;
        assert_eq!(second["ctime"], entry["ctime"]);
    }
    let mut expected: Vec<_> = UNUSUAL_NAMES
        .iter()
        .map(|name| format!("/{name}"))
        .collect();
    expected.sort();
    assert_eq!(volume.names(&[("path", "/")]).await, expected);
    for name in ["*", "-rf"] {
        let response = volume.ask(Method::DELETE, "path", &[("path", name)]).send();
        body(response.await.expect("an answer"), 204).await;
        volume.get("path", &[("path", name)], 404).await;
    }
    assert_eq!(
        volume.names(&[("path", "")]).await.len(),
        UNUSUAL_NAMES.len() - 2
    );
    for (path, status) in [("/none", 404), ("/", 400), ("..", 400)] {
        let refused = volume.ask(Method::DELETE, "path", &[("path", path)]).send();
        let refused = body(refused.await.expect("an answer"), status).await;
        assert_eq!(refused["code"], status);
    }
    server.finish().await;
}

#[tokio::test]
async fn folders_are_made_and_everything_belongs_to_somebody() {
    let server = Server::start().await;
    let volume = TestVolume::new(&server, "folders").await;
    let make = async |query: &[(&str, &str)], status: u16| {
        let answer = volume.ask(Method::POST, "dir", query).send().await;
        body(answer.expect("an answer"), status).await
    };
    make(&[("path", "/a/b/c")], 404).await;
    let all = [
        ("path", "/a/b/c"),
        ("force", "true"),
        ("mode", "448"),
        ("uid", "7"),
        ("gid", "8"),
    ];
    let made = make(&all, 201).await;
    let whose = |entry: &Value| [&entry["mode"], &entry["uid"], &entry["gid"]].map(Value::clone);
    assert_eq!(whose(&made), [json!(0o700), json!(7), json!(8)]);
    let above = volume.get("path", &[("path", "/a/b")], 200).await;
    assert_eq!(whose(&above), [json!(0o777), json!(7), json!(8)]);
    // One that is there stays as it is.
    let second = make(&[("path", "/a/b/c"), ("force", "true")], 201).await;
    assert_eq!(whose(&second), whose(&made));
    make(&[("path", "/a/b/c")], 409).await;
    make(&[("path", "/a"), ("mode", "4096")], 400).await;

    volume.put(&[("path", "/x/y/f")], "1", 404).await;
    volume
        .put(&[("path", "/x/y/f"), ("force", "true")], "1", 201)
        .await;
    let owned = [("path", "/x/y/f"), ("uid", "5"), ("mode", "384")];
    let entry = volume.put(&owned, "22", 201).await;
    assert_eq!(whose(&entry), [json!(0o600), json!(5), json!(1000)]);
    let entry = volume.put(&[("path", "/x/y/f")], "333", 201).await;
    assert_eq!(whose(&entry), [json!(0o600), json!(5), json!(1000)]);
    let change = volume.ask(Method::PATCH, "path", &[("path", "/x/y/f")]);
    let changed = change.json(&json!({"gid": 9, "mode": 0o755})).send().await;
    let changed = body(changed.expect("an answer"), 200).await;
    assert_eq!(whose(&changed), [json!(0o755), json!(5), json!(9)]);
    let change = volume.ask(Method::PATCH, "path", &[("path", "/none")]);
    let refused = change.json(&json!({"mode": 1})).send().await;
    body(refused.expect("an answer"), 404).await;

    assert_eq!(volume.names(&[("path", "/")]).await, ["/a", "/x"]);
    let deep = volume.names(&[("path", "/x"), ("depth", "2")]).await;
    assert_eq!(deep, ["/x/y", "/x/y/f"]);
    volume.get("dir", &[("path", "/x/y/f")], 400).await;
    volume.get("dir", &[("path", "/none")], 404).await;
    volume
        .get("dir", &[("path", "/"), ("depth", "101")], 400)
        .await;
    volume.get("file", &[("path", "/x")], 400).await;
    volume.get("file", &[("path", "/none")], 404).await;
    volume.put(&[("path", "/x")], "", 400).await;
    volume.put(&[("path", "/x/y/f/g")], "", 400).await;
    server.finish().await;
}

#[tokio::test]
async fn contents_are_those_of_the_sandboxes_that_have_the_volume() {
    let server = Server::start().await;
    let volume = TestVolume::new(&server, "shared").await;
    volume.put(&[("path", "/from-outside")], "out", 201).await;
    let request = json!({"volumes": {"/mnt/v": "shared"}, "memory_limit": "256m"});
    let made = server
        .post("/sandboxes/create")
        .header("x-api-key", key(&server))
        .json(&request);
    let made = ok(made.send().await.expect("an answer")).await;
    let sandbox = made["sandbox_id"].as_str().expect("an id").to_owned();
    let script = "cat /mnt/v/from-outside; echo in > /mnt/v/from-inside; cd /mnt/v; ln -s /etc/passwd link; \
                  ln -s loop loop; ln -s gone dangling; mkfifo fifo; mkdir -p d/e; ln -s d folder";
    assert_eq!(server.run(&sandbox, script).await, "out");
    assert_eq!(volume.read("/from-inside").await, "in\n");
    let link = volume.get("path", &[("path", "/link")], 200).await;
    assert_eq!(
        (&link["type"], &link["target"]),
        (&json!("symlink"), &json!("/etc/passwd"))
    );
    let fifo = volume.get("path", &[("path", "/fifo")], 200).await;
    assert_eq!(fifo["type"], "unknown");
    for (path, status) in [("/loop", 400), ("/dangling", 404), ("/fifo", 400)] {
        volume.get("file", &[("path", path)], status).await;
    }
    assert_eq!(volume.names(&[("path", "/folder")]).await, ["/folder/e"]);
    let refusal = admin(
        &server,
        Method::DELETE,
        &format!("/e2b/volumes/{}", volume.id),
    );
    let refusal = body(refusal.send().await.expect("an answer"), 409).await;
    assert!(
        refusal["message"]
            .as_str()
            .expect("words")
            .contains(&sandbox)
    );
    let response = admin(&server, Method::DELETE, &format!("/sandboxes/{sandbox}"));
    ok(response.send().await.expect("an answer")).await;
    assert_eq!(volume.read("/from-inside").await, "in\n");
    let response = admin(
        &server,
        Method::DELETE,
        &format!("/e2b/volumes/{}", volume.id),
    );
    body(response.send().await.expect("an answer"), 204).await;
    volume.get("dir", &[("path", "/")], 404).await;
    let entries = std::fs::read_dir(server.data().join("volumes"));
    assert!(entries.is_ok_and(|mut entries| entries.next().is_none()));
    server.finish().await;
}

/// A sandbox that has the volume of that name at `/mnt/v`.
async fn sandbox_with(server: &Server, volume: &str) -> String {
    let request = json!({"volumes": {"/mnt/v": volume}, "memory_limit": "256m"});
    let made = server
        .post("/sandboxes/create")
        .header("x-api-key", key(server))
        .json(&request);
    let made = ok(made.send().await.expect("an answer")).await;
    made["sandbox_id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn links_out_of_a_volume_lead_nowhere() {
    let server = Server::start().await;
    let volume = TestVolume::new(&server, "links").await;
    let sandbox = sandbox_with(&server, "links").await;
    let script = "cd /mnt/v; ln -s /usr/bin/find tool; ln -s /usr folder; ln -s ../etc up; ln -s gone dangling; \
                  mkdir real root; ln -s real near; ln -s near/deeper far";
    server.run(&sandbox, script).await;
    for path in ["/tool", "/folder/bin/find", "/up/passwd"] {
        volume.get("file", &[("path", path)], 400).await;
        let refused = volume.put(&[("path", path)], "#!/bin/sh", 400).await;
        let message = refused["message"].as_str().expect("words");
        assert!(message.contains("leads out of the volume"), "{message}");
        let change = volume.ask(Method::PATCH, "path", &[("path", path)]);
        let refused = change.json(&json!({"mode": 0})).send().await;
        body(refused.expect("an answer"), 400).await;
    }
    volume.get("path", &[("path", "/folder/bin")], 400).await;
    let make = [("path", "/folder/new/er"), ("force", "true")];
    for path in ["/folder", "/up"] {
        volume.get("dir", &[("path", path)], 400).await;
    }
    volume.put(&make, "", 400).await;
    let refused = volume.ask(Method::POST, "dir", &make).send().await;
    body(refused.expect("an answer"), 400).await;
    let refused = volume.ask(Method::DELETE, "path", &[("path", "/folder/bin")]);
    body(refused.send().await.expect("an answer"), 400).await;
    // The links themselves are the volume's, and so is what others lead to.
    let link = volume.get("path", &[("path", "/tool")], 200).await;
    assert_eq!(link["target"], "/usr/bin/find");
    let response = volume.ask(Method::DELETE, "path", &[("path", "/tool")]);
    body(response.send().await.expect("an answer"), 204).await;
    volume.put(&[("path", "/near/file")], "1", 201).await;
    let far = [("path", "/far/file"), ("force", "true")];
    assert_eq!(volume.put(&far, "2", 201).await["path"], "/far/file");
    assert_eq!(volume.read("/real/file").await, "1");
    assert_eq!(volume.read("/real/deeper/file").await, "2");
    let paths = volume.names(&[("path", "/near"), ("depth", "2")]).await;
    assert_eq!(paths, ["/near/deeper", "/near/deeper/file", "/near/file"]);
    volume.put(&[("path", "/dangling")], "3", 201).await;
    assert_eq!(volume.read("/gone").await, "3");
    // Paths in messages are the client's.
    let refused = volume.get("file", &[("path", "/root")], 400).await;
    assert_eq!(refused["message"], "path '/root' is a directory");
    server.finish().await;
}

#[tokio::test]
async fn a_folder_with_too_many_entries_is_not_listed() {
    let server = Server::start().await;
    let volume = TestVolume::new(&server, "many").await;
    let sandbox = sandbox_with(&server, "many").await;
    let script = "mkdir /mnt/v/d /mnt/v/e; cd /mnt/v/d; seq 10000 | xargs touch; touch ../e/f";
    server.run(&sandbox, script).await;
    assert_eq!(volume.names(&[("path", "/d")]).await.len(), 10_000);
    let deep = [("path", "/"), ("depth", "2")];
    let refused = volume.get("dir", &deep, 400).await;
    let message = refused["message"].as_str().expect("words");
    assert!(message.contains("too many entries"), "{message}");
    assert!(message.contains("sandbox"), "{message}");
    assert_eq!(volume.names(&[("path", "/e")]).await, ["/e/f"]);
    assert_eq!(volume.names(&[("path", "/")]).await, ["/d", "/e"]);
    server.finish().await;
}

fn key(server: &Server) -> String {
    let key = std::fs::read_to_string(server.data().join("admin.key"));
    key.expect("a key").trim().to_owned()
}

#[tokio::test]
async fn an_overwrite_that_fails_leaves_what_was_there() {
    let server = Server::start().await;
    let volume = TestVolume::new(&server, "kept").await;
    volume
        .put(&[("path", "/a"), ("mode", "416")], "old", 201)
        .await;
    let pieces = stream::iter([
        Ok(Bytes::from("new")),
        Err(std::io::Error::other("the client is gone")),
    ]);
    let request = volume.ask(Method::PUT, "file", &[("path", "/a")]);
    let cut = request.body(Body::wrap_stream(pieces)).send().await;
    assert!(cut.is_err(), "{cut:?}");
    assert_eq!(volume.read("/a").await, "old");
    let whole = volume.put(&[("path", "/a")], "new", 201).await;
    assert_eq!(whole["mode"].as_u64().map(|mode| mode & 0o777), Some(0o640));
    assert_eq!(volume.read("/a").await, "new");
    server.finish().await;
}
