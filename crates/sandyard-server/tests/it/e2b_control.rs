//! The control plane of the E2B dialect: status codes, shapes, pages, filters, ids, errors.

mod copies;
mod failures;
mod lifecycle;
mod lists;
mod network;

use sandyard_auth::UserChange;
use serde_json::Value;

use crate::app::{Actor, Answer, TestApp};

const ALICE: Actor = Actor::Alice;

impl TestApp {
    async fn e2b(&self, actor: Actor, method: &str, path: &str, body: Value) -> Answer {
        let body = Some(body).filter(|body| !body.is_null());
        self.ask(actor, method, &format!("/e2b{path}"), body).await
    }

    /// Makes a sandbox; its view.
    async fn make(&self, actor: Actor, mut body: Value) -> Value {
        if body.get("templateID").is_none() {
            body["templateID"] = "base".into();
        }
        self.e2b(actor, "POST", "/v2/sandboxes", body)
            .await
            .done(201)
    }

    /// Sets the number of sandboxes that Alice may have.
    async fn allow(&self, count: i64) {
        let change = UserChange {
            max_sandboxes: Some(Some(count)),
            ..UserChange::default()
        };
        self.app.auth().update_user("alice", &change).await.unwrap();
    }

    async fn detail(&self, id: &str) -> Value {
        let path = format!("/sandboxes/{id}");
        self.e2b(ALICE, "GET", &path, Value::Null).await.done(200)
    }

    async fn ids(&self, query: &str) -> Vec<String> {
        let path = format!("/v2/sandboxes?{query}");
        let listed = self.e2b(ALICE, "GET", &path, Value::Null).await.done(200);
        ids(&listed)
    }
}

impl Answer {
    #[track_caller]
    fn done(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        match self.text.is_empty() {
            true => Value::Null,
            false => self.json(),
        }
    }

    /// A failure has exactly two fields, and the first is the status.
    #[track_caller]
    fn failed(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        let body = self.json();
        assert_eq!(body["code"], status, "{body}");
        assert_eq!(body.as_object().unwrap().len(), 2, "{body}");
        body["message"].as_str().unwrap().to_owned()
    }
}

fn ids(list: &Value) -> Vec<String> {
    let id = |view: &Value| view["sandboxID"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(id).collect()
}

fn id(view: &Value) -> &str {
    view["sandboxID"].as_str().unwrap()
}

#[track_caller]
fn has(view: &Value, fields: &[&str]) {
    for field in fields {
        assert!(
            view.get(field).is_some_and(|it| !it.is_null()),
            "{field}: {view}"
        );
    }
}

fn life_s(detail: &Value) -> i64 {
    let time =
        |field: &str| -> jiff::Timestamp { detail[field].as_str().unwrap().parse().unwrap() };
    (time("endAt") - time("startedAt"))
        .total(jiff::Unit::Second)
        .unwrap() as i64
}
