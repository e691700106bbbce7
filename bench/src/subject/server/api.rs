//! The server's routes as the rows need them, over one connection.

use std::cell::RefCell;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use crate::subject::http::Connection;

/// Number of users that own the sandboxes, because each may have a hundred by default.
const USERS: usize = 16;

/// The most sandboxes the server lists at once.
const PAGE: usize = 1000;

/// One connection to the server.
#[derive(Debug)]
pub(super) struct Api {
    connection: RefCell<Connection>,
}

impl Api {
    /// Connects.
    pub(super) fn open(address: SocketAddr) -> Result<Self> {
        let connection = RefCell::new(Connection::open_tcp(address)?);
        Ok(Self { connection })
    }

    /// Asks whether the server is up.
    pub(super) fn health(&self) -> Result<()> {
        let health = self.get("/health")?;
        ensure!(
            health["status"] == "healthy",
            "the server is not healthy: {health}"
        );
        Ok(())
    }

    /// Makes a sandbox for one of the users and gives its id.
    pub(super) fn create(&self, number: usize) -> Result<String> {
        let body = json!({ "user_id": format!("bench-{}", number % USERS) });
        let reply = self.post("/sandboxes/create", &body)?;
        ensure!(
            reply["status"] == "running",
            "a new sandbox does not run: {reply}"
        );
        let id = reply["sandbox_id"].as_str();
        id.map(str::to_owned)
            .context("the response has no sandbox ID")
    }

    /// Runs a program without a shell, like the other subjects, and returns its output.
    pub(super) fn run<T: Serialize + std::fmt::Debug>(
        &self,
        id: &str,
        argv: &[T],
    ) -> Result<String> {
        let body = json!({ "sandbox_id": id, "command": argv });
        let reply = self.post("/sandboxes/run-command", &body)?;
        ensure!(
            reply["exit_code"] == 0,
            "{argv:?} in a sandbox returned {reply}"
        );
        Ok(reply["stdout"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns the status of a sandbox.
    pub(super) fn status(&self, id: &str) -> Result<String> {
        let reply = self.get(&format!("/sandboxes/{id}/status"))?;
        let status = reply["status"].as_str();
        status
            .map(str::to_owned)
            .with_context(|| format!("no status in {reply}"))
    }

    /// Pauses the sandbox.
    pub(super) fn pause(&self, id: &str) -> Result<()> {
        let path = format!("/sandboxes/{id}/pause");
        self.post(&path, &json!({})).map(drop)
    }

    /// Resumes the sandbox.
    pub(super) fn resume(&self, id: &str) -> Result<()> {
        let path = format!("/sandboxes/{id}/resume");
        self.post(&path, &json!({})).map(drop)
    }

    /// Deletes a sandbox.
    pub(super) fn delete(&self, id: &str) -> Result<()> {
        let mut connection = self.connection.borrow_mut();
        connection
            .request("DELETE", &format!("/sandboxes/{id}"), None)
            .map(drop)
    }

    /// Counts the sandboxes that are listed as running, page after page.
    pub(super) fn count_running(&self) -> Result<usize> {
        let first = format!("/sandboxes?status=running&limit={PAGE}");
        let (mut path, mut count) = (first.clone(), 0);
        for _ in 0..100 {
            let page = self.get(&path)?;
            count += page["sandboxes"]
                .as_array()
                .context("the server listed nothing")?
                .len();
            match page["next"].as_str() {
                Some(next) => path = format!("{first}&cursor={next}"),
                None => return Ok(count),
            }
        }
        bail!("the server's list has no end")
    }

    /// Writes a file and reads it back.
    pub(super) fn file_round_trip(&self, id: &str, content: &[u8]) -> Result<()> {
        let path = format!("/sandboxes/{id}/files?path=/home/user/data");
        let mut connection = self.connection.borrow_mut();
        connection.put(&path, &[content])?;
        let read = connection.get_length(&path)?;
        let bytes = content.len();
        ensure!(read == bytes, "{read} of {bytes} bytes came back");
        Ok(())
    }

    /// Initializes a session with a sandbox's tool server, writes a small file with it, and returns the session ID.
    pub(super) fn first_tool_call(&self, id: &str) -> Result<String> {
        let path = tools_path(id);
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
        }});
        let mut connection = self.connection.borrow_mut();
        let (session, _) = connection.send_message(&path, None, &hello)?;
        let session = session.context("the tool server began no session")?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        connection.send_message(&path, Some(&session), &ready)?;
        let arguments = json!({"file_path": "bench.txt", "content": "a small file\n"});
        let (_, answer) =
            connection.send_message(&path, Some(&session), &call("Write", &arguments))?;
        ensure!(
            answer["result"]["isError"] != true,
            "Write returned {answer}"
        );
        ensure!(answer["result"].is_object(), "Write returned {answer}");
        Ok(session)
    }

    /// Reads that file with a tool.
    pub(super) fn read_by_tool(&self, id: &str, session: &str) -> Result<()> {
        let question = call("Read", &json!({"file_path": "bench.txt"}));
        let mut connection = self.connection.borrow_mut();
        let (_, answer) = connection.send_message(&tools_path(id), Some(session), &question)?;
        ensure!(
            answer.to_string().contains("a small file"),
            "Read returned {answer}"
        );
        Ok(())
    }

    fn get(&self, path: &str) -> Result<Value> {
        self.connection.borrow_mut().request("GET", path, None)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.connection
            .borrow_mut()
            .request("POST", path, Some(body))
    }
}

fn tools_path(id: &str) -> String {
    format!("/p/{id}/6060/mcp")
}

fn call(tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
}
