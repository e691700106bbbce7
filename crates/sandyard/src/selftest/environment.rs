//! The three sandboxes of the suite: a target to break out of, a neighbour that must stay isolated, and one to exhaust.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use sandyard_agent_client::{AgentClient, Output, ProcessStream, RunOptions, StartOptions};
use sandyard_core::Limits;
use sandyard_engine::{Engine, Lease, SandboxInfo, SandboxSpec};
use sandyard_probe::{GreetingServer, Neighbour, NetTarget, Plan, SecretFile, SocketTarget, Task};
use sandyard_wire::event::ProcessEvent;
use sandyard_wire::process::{ProcessConfig, StartRequest};
use serde::Deserialize;

/// Path of the probe in the sandboxes.
const PROBE: &str = "/tmp/sandyard-probe";

/// Maximum duration of a task.
const TASK_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a sandbox may take to recover after its resources were used up.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// A sandbox of the suite.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) info: SandboxInfo,
    pub(super) agent: AgentClient,
    // The engine deletes the sandbox if the self-test dies.
    _lease: Lease,
}

/// The sandboxes, and the plan for the probe.
#[derive(Debug)]
pub(super) struct TestEnv {
    pub(super) engine: Engine,
    pub(super) plan: Plan,
    /// The sandbox to break out of.
    pub(super) target: Sandbox,
    /// The sandbox that the target must not reach and that must always answer.
    pub(super) neighbour: Sandbox,
    /// The sandbox to exhaust, with low limits.
    pub(super) tight: Sandbox,
    _greeting_server: ProcessStream,
}

impl TestEnv {
    /// Creates the sandboxes and copies the probe into each.
    pub(super) async fn create(
        engine: &Engine,
        data_dir: &Path,
        plan: &Plan,
    ) -> anyhow::Result<Self> {
        let program = std::fs::read("/proc/self/exe").context("reading this program")?;
        let size = program.len() as u64;
        let program = bytes::Bytes::from(program);
        let tight = Limits {
            memory_bytes: 256 << 20,
            cpu_millis: 1000,
            pids: 128,
            disk_bytes: size + (192 << 20),
        };
        let target = Sandbox::create(engine, Limits::default(), &program).await?;
        let neighbour = Sandbox::create(engine, Limits::default(), &program).await?;
        let tight = Sandbox::create(engine, tight, &program).await?;
        let (greeting_server, reachable) = start_greeting_server(&neighbour, plan).await?;
        let plan = Plan {
            neighbour: Some(reachable),
            allowed_caps: Some(sandyard_confine::caps::kept_mask()),
            single_uid: !engine.hello().await?.mode.has_many_ids(),
            root_on_host: root_on_host(&target.info),
            host_folders: host_folders(data_dir),
            ..plan.clone()
        };
        Ok(Self {
            engine: engine.clone(),
            plan,
            target,
            neighbour,
            tight,
            _greeting_server: greeting_server,
        })
    }
}

/// Directories with data of sandboxes, on disk and in memory.
fn host_folders(data_dir: &Path) -> Vec<PathBuf> {
    let in_memory = std::fs::canonicalize(data_dir.join("run")).ok();
    [Some(data_dir.to_owned()), in_memory]
        .into_iter()
        .flatten()
        .collect()
}

/// The host's user ID of root in the sandbox: the owner of its first process.
fn root_on_host(info: &SandboxInfo) -> Option<u32> {
    let folder = std::fs::metadata(format!("/proc/{}", info.init?.pid)).ok()?;
    Some(std::os::unix::fs::MetadataExt::uid(&folder))
}

impl Sandbox {
    async fn create(
        engine: &Engine,
        limits: Limits,
        program: &bytes::Bytes,
    ) -> anyhow::Result<Self> {
        // With a token, the agent also listens in the sandbox, which gives the probe one more target.
        let token = Some(format!("token-{:x}", program.len()));
        let spec = SandboxSpec {
            limits,
            access_token: token,
            ..SandboxSpec::default()
        };
        let (info, lease) = engine
            .create_ephemeral(&spec)
            .await
            .context("creating a sandbox")?;
        let agent = engine.agent(&info.id);
        agent
            .as_user("root")
            .write_file(PROBE, program.clone())
            .await
            .context("copying the probe into the sandbox")?;
        let sandbox = Self {
            info,
            agent,
            _lease: lease,
        };
        sandbox
            .command("root", "/bin/chmod", &["755", PROBE])
            .await
            .context("making the probe executable")?;
        Ok(sandbox)
    }

    /// Runs a task of the probe and parses its answer.
    pub(super) async fn task<T: for<'de> Deserialize<'de>>(
        &self,
        user: &str,
        task: &Task,
    ) -> anyhow::Result<T> {
        let output = self
            .command(user, PROBE, &["probe", "--plan", &task.to_json()])
            .await?;
        serde_json::from_slice(&output.stdout).with_context(|| describe(&output))
    }

    /// Runs a command that must succeed.
    pub(super) async fn command(
        &self,
        user: &str,
        program: &str,
        arguments: &[&str],
    ) -> anyhow::Result<Output> {
        let options = RunOptions {
            timeout: TASK_TIMEOUT,
            user: Some(user.to_owned()),
            ..RunOptions::default()
        };
        let output = self
            .agent
            .run(process(program, arguments), &options)
            .await?;
        if !output.exit.exited || output.exit.exit_code != 0 {
            bail!(describe(&output));
        }
        Ok(output)
    }

    /// Returns whether the agent answers and can run a command.
    pub(super) async fn answers(&self) -> bool {
        self.command("root", "/bin/true", &[]).await.is_ok()
    }

    /// Returns whether the sandbox answers again after an attack. Reaping a thousand dead processes takes a while.
    pub(super) async fn recovers(&self) -> bool {
        let end = Instant::now() + RECOVERY_TIMEOUT;
        while !self.answers().await {
            if Instant::now() > end {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        true
    }
}

fn describe(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr)
        .chars()
        .take(500)
        .collect::<String>();
    format!(
        "the command in the sandbox ended with {}: {}",
        output.exit.status,
        errors.escape_debug()
    )
}

fn process(program: &str, arguments: &[&str]) -> ProcessConfig {
    ProcessConfig {
        cmd: program.to_owned(),
        args: arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect(),
        cwd: Some("/".to_owned()),
        ..ProcessConfig::default()
    }
}

/// Starts listeners in the neighbour and returns their addresses.
async fn start_greeting_server(
    neighbour: &Sandbox,
    plan: &Plan,
) -> anyhow::Result<(ProcessStream, Neighbour)> {
    let marker = plan.footprint.clone().unwrap_or_default();
    let greeting = format!("neighbour-{marker}");
    let abstract_name = format!("neighbour-{marker}");
    let file = std::path::PathBuf::from(format!("/tmp/neighbour-{marker}"));
    let task = Task::GreetingServer(GreetingServer {
        port: 0,
        abstract_name: abstract_name.clone(),
        greeting: greeting.clone(),
        file: Some(file.clone()),
    });
    let request = StartRequest {
        process: process(PROBE, &["probe", "--plan", &task.to_json()]),
        stdin: Some(false),
        ..StartRequest::default()
    };
    let options = StartOptions {
        timeout: None,
        user: Some("root".to_owned()),
        retain_as: None,
    };
    let mut stream = neighbour
        .agent
        .start(&request, &options)
        .await
        .context("starting the neighbour's listeners")?;
    let port = port(&mut stream).await?;
    let reachable = Neighbour {
        tcp: NetTarget {
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            port,
            greeting: greeting.clone(),
        },
        abstract_socket: SocketTarget {
            name: abstract_name,
            greeting: greeting.clone(),
        },
        file: Some(SecretFile {
            path: file,
            marker: greeting,
            handle: None,
            device: 0,
        }),
    };
    Ok((stream, reachable))
}

/// Reads the port that the greeting server prints.
async fn port(stream: &mut ProcessStream) -> anyhow::Result<u16> {
    #[derive(Deserialize)]
    struct Announcement {
        port: u16,
    }
    let mut line = Vec::new();
    while let Some(event) = stream.next().await {
        match event? {
            ProcessEvent::Data(data) => line.extend_from_slice(data.bytes()),
            ProcessEvent::End(end) => bail!("the neighbour's listeners ended: {}", end.status),
            _ => {}
        }
        if line.contains(&b'\n') {
            let announcement: Announcement =
                serde_json::from_slice(&line).context("reading the neighbour's port")?;
            return Ok(announcement.port);
        }
    }
    bail!("the neighbour's listeners did not announce a port")
}
