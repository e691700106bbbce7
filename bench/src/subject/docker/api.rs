//! Docker over its HTTP API: what a program that drives Docker pays, without the start of a command line each time.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{CONTAINERS, DockerConfig, fewer_samples, tar};
use crate::memory;
use crate::report::Column;
use crate::subject::http::Connection;
use crate::subject::{Live, Restart, SdkOrder, SdkRun, Subject, parallel};

/// Talks to a daemon over one connection; work at once uses one connection each.
#[derive(Debug)]
pub(crate) struct DockerApi {
    config: DockerConfig,
    connection: RefCell<Connection>,
}

impl DockerApi {
    /// Connects to the daemon of `config`.
    pub(crate) fn connect(config: DockerConfig) -> Result<Self> {
        let connection = RefCell::new(Connection::open_unix(&config.socket)?);
        Ok(Self { config, connection })
    }

    /// Returns Docker's name and version.
    pub(crate) fn version(&self) -> Result<String> {
        let version = self.request("GET", "/version", None)?;
        Ok(format!(
            "docker {}",
            version["Version"].as_str().unwrap_or("?")
        ))
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        self.connection.borrow_mut().request(method, path, body)
    }

    /// Posts, and again as long as there is a conflict: on a busy host Docker learns only some time after it has answered
    /// an unpause that the container is not paused any more.
    fn request_in_time(&self, path: &str, body: Option<&Value>) -> Result<Value> {
        let give_up = Instant::now() + Duration::from_secs(10);
        loop {
            match self.request("POST", path, body) {
                Err(error)
                    if Instant::now() < give_up && error.to_string().contains(" gave 409") =>
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                answer => return answer,
            }
        }
    }

    fn create_with(&self, command: &[&str]) -> Result<String> {
        let limits = &self.config.limits;
        let body = json!({
            "Image": self.config.image,
            "Cmd": command,
            "AttachStdout": true,
            "HostConfig": {
                "NetworkMode": "none",
                "Memory": limits.memory_bytes,
                "NanoCpus": u64::from(limits.cpu_millis) * 1_000_000,
                "PidsLimit": limits.pids,
            },
        });
        let reply = self.request("POST", "/containers/create", Some(&body))?;
        reply["Id"]
            .as_str()
            .map(str::to_owned)
            .context("the response has no container ID")
    }

    fn start(&self, id: &str) -> Result<()> {
        self.request("POST", &format!("/containers/{id}/start"), None)
            .map(drop)
    }

    /// Runs `work` in `count` threads, each with a connection of its own.
    fn at_once<T: Send>(
        &self,
        count: usize,
        work: impl Fn(&Self, usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let config = &self.config;
        parallel::each(count, count, || Self::connect(config.clone()), work)
    }
}

impl Subject for DockerApi {
    fn column(&self) -> Column {
        Column::DockerApi
    }

    fn samples(&self, full: usize) -> usize {
        fewer_samples(full, 2)
    }

    fn one_shot(&self) -> Result<()> {
        let id = self.create_with(&["true"])?;
        self.start(&id)?;
        let exit = self.request("POST", &format!("/containers/{id}/wait"), None)?;
        ensure!(
            exit["StatusCode"] == 0,
            "`true` in a container returned {exit}"
        );
        self.delete(&id)
    }

    fn first_output(&self) -> Result<Duration> {
        let begin = Instant::now();
        let id = self.create_with(&["echo", "ok"])?;
        let attach = format!("/containers/{id}/attach?stream=1&stdout=1");
        let mut output = Connection::open_unix(&self.config.socket)?.upgrade(&attach, None)?;
        self.start(&id)?;
        output.read_first()?;
        let elapsed = begin.elapsed();
        self.delete(&id)?;
        Ok(elapsed)
    }

    fn burst_size(&self, full: usize) -> usize {
        full.min(CONTAINERS)
    }

    fn burst(&self, count: usize) -> Result<Duration> {
        crate::subject::burst_of(self, count)
    }

    fn with_sdk(&self, order: SdkOrder, count: usize) -> Result<Option<SdkRun>> {
        let Some(sdk) = &self.config.sdk else {
            return Ok(None);
        };
        let variables = [
            (
                "DOCKER_HOST",
                format!("unix://{}", self.config.socket.display()),
            ),
            ("IMAGE", self.config.image.clone()),
        ];
        sdk.run("docker", order, count, &variables).map(Some)
    }

    fn live(&self) -> Option<&dyn Live> {
        Some(self)
    }
}

impl Live for DockerApi {
    fn create(&self) -> Result<String> {
        let id = self.create_with(&["sleep", "infinity"])?;
        self.start(&id)?;
        Ok(id)
    }

    fn exec(&self, id: &str) -> Result<()> {
        let body = json!({ "AttachStdout": true, "Cmd": ["true"] });
        let exec = self.request_in_time(&format!("/containers/{id}/exec"), Some(&body))?;
        let exec = exec["Id"].as_str().context("the response has no exec ID")?;
        let start = json!({ "Detach": false, "Tty": false });
        Connection::open_unix(&self.config.socket)?
            .upgrade(&format!("/exec/{exec}/start"), Some(&start))?
            .read_to_end()?;
        let state = self.request("GET", &format!("/exec/{exec}/json"), None)?;
        ensure!(
            state["ExitCode"] == 0,
            "`true` in a container returned {}",
            state["ExitCode"]
        );
        Ok(())
    }

    fn pause(&self, id: &str) -> Result<()> {
        self.request_in_time(&format!("/containers/{id}/pause"), None)
            .map(drop)
    }

    fn resume(&self, id: &str) -> Result<()> {
        self.request("POST", &format!("/containers/{id}/unpause"), None)
            .map(drop)
    }

    fn delete(&self, id: &str) -> Result<()> {
        self.request("DELETE", &format!("/containers/{id}?force=1"), None)
            .map(drop)
    }

    fn status(&self, id: &str) -> Result<()> {
        let state = self.request("GET", &format!("/containers/{id}/json"), None)?;
        ensure!(state["State"]["Running"] == true, "`{id}` does not run");
        Ok(())
    }

    fn keep_ready(&self, _count: usize) -> Result<usize> {
        Ok(0)
    }

    fn crowd_size(&self, full: usize) -> Option<usize> {
        Some(full.min(CONTAINERS))
    }

    fn create_many(&self, count: usize) -> Result<Vec<String>> {
        self.at_once(count, |docker, _| {
            let id = docker.create()?;
            docker.exec(&id)?;
            Ok(id)
        })
    }

    fn exec_all(&self, ids: &[String]) -> Result<usize> {
        let answers = self.at_once(ids.len(), |docker, index| {
            Ok(docker.exec(&ids[index]).is_ok())
        })?;
        Ok(answers.into_iter().filter(|answered| *answered).count())
    }

    fn delete_many(&self, ids: &[String]) -> Result<()> {
        self.at_once(ids.len(), |docker, index| docker.delete(&ids[index]))
            .map(drop)
    }

    fn processes(&self, id: &str) -> Result<Vec<u32>> {
        let state = self.request("GET", &format!("/containers/{id}/json"), None)?;
        let pid = state["State"]["Pid"]
            .as_u64()
            .context("Docker names no process of a container")?;
        // The parent is the shim, of which every container has one.
        Ok(vec![memory::parent_of(u32::try_from(pid)?)?])
    }

    fn managers(&self) -> Result<Vec<u32>> {
        let daemon = self.connection.borrow().other_side()?;
        let mut pids = memory::children_called(daemon, "containerd")?;
        pids.push(daemon);
        Ok(pids)
    }

    fn restart(&self, _ids: &[String]) -> Result<Option<Restart>> {
        Ok(None)
    }

    fn file_round_trip(&self, id: &str, bytes: usize) -> Result<Option<Duration>> {
        let (head, content) = (tar::head("data", bytes), vec![7; bytes]);
        let path = format!("/containers/{id}/archive?path=/");
        let mut connection = self.connection.borrow_mut();
        let start = Instant::now();
        connection.put(&path, &[&head, &content, &tar::padding(bytes)])?;
        let read = connection.get_length(&format!("{path}data"))?;
        ensure!(read >= bytes, "{read} of {bytes} bytes came back");
        Ok(Some(start.elapsed()))
    }
}
