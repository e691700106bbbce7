//! Our own engine, through its client library and the agent's.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process};
use sandyard_agent_client::wire::event::ProcessEvent;
use sandyard_agent_client::wire::process::{ProcessConfig, StartRequest};
use sandyard_agent_client::{RunOptions, StartOptions};
use sandyard_core::{SandboxId, SandboxState};
use sandyard_engine::{Engine, EngineConfig, PoolSpec, SandboxSpec};
use tokio::runtime::Runtime;

use super::{Live, Restart, Subject};
use crate::report::Column;

/// Number of concurrent requests for work on a whole crowd: enough to keep a few processors busy.
const WIDTH: usize = 32;

/// Asks an engine of its own data directory, from one thread, as a server's task would.
#[derive(Debug)]
pub(crate) struct OwnEngine {
    runtime: Runtime,
    config: EngineConfig,
    engine: RefCell<Engine>,
    spec: SandboxSpec,
}

impl OwnEngine {
    /// Starts a launcher, `sandyard launcher` of `program`, for `data_dir`.
    pub(crate) fn start(program: PathBuf, data_dir: PathBuf) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("failed to start a runtime")?;
        let launcher = vec![program.display().to_string(), "launcher".to_owned()];
        let config = EngineConfig {
            launcher: Some(launcher),
            ..EngineConfig::new(data_dir)
        };
        let engine = RefCell::new(runtime.block_on(Engine::connect(config.clone()))?);
        Ok(Self {
            runtime,
            config,
            engine,
            spec: SandboxSpec::default(),
        })
    }

    fn engine(&self) -> Engine {
        self.engine.borrow().clone()
    }

    async fn create_async(&self) -> Result<SandboxId> {
        Ok(self.engine().create(&self.spec).await?.id)
    }

    async fn exec_async(&self, id: &SandboxId) -> Result<()> {
        let agent = self.engine().agent(id);
        let output = agent.run(command("true"), &RunOptions::default()).await?;
        ensure!(
            output.exit.exit_code == 0,
            "`true` in a sandbox returned {:?}",
            output.exit
        );
        Ok(())
    }

    async fn delete_async(&self, id: &SandboxId) -> Result<()> {
        Ok(self.engine().delete(id).await?)
    }

    async fn first_output_async(&self, id: &SandboxId) -> Result<()> {
        let request = StartRequest {
            process: ProcessConfig {
                args: vec!["ok".to_owned()],
                ..command("echo")
            },
            stdin: Some(false),
            ..StartRequest::default()
        };
        let agent = self.engine().agent(id);
        let mut events = agent.start(&request, &StartOptions::default()).await?;
        while let Some(event) = events.next().await {
            if let ProcessEvent::Data(_) = event? {
                return Ok(());
            }
        }
        bail!("`echo` in a sandbox wrote nothing")
    }

    /// Kills the launcher with SIGKILL, like a crash.
    fn kill_launcher(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(self.launcher_pid()?).context("the launcher has no process id")?;
        kill_process(pid, signal).context("failed to kill the launcher")
    }

    fn launcher_pid(&self) -> Result<i32> {
        Ok(self.runtime.block_on(self.engine().hello())?.launcher_pid)
    }

    /// Connects as a client that has just started: connections of the old one are served by workers that outlive their
    /// launcher. A launcher that is being killed may still take a connection and drop it, so one refusal is not the end.
    fn connect_anew(&self) -> Result<Engine> {
        let give_up = Instant::now() + Duration::from_secs(10);
        loop {
            match self.runtime.block_on(Engine::connect(self.config.clone())) {
                Err(error) if Instant::now() < give_up => drop(error),
                result => return Ok(result?),
            }
        }
    }

    /// Deletes every sandbox, the pool's included, which a list leaves out and which may still be filling up.
    fn clear_up(&self) -> Result<()> {
        self.keep_ready(0)?;
        let folder = self.config.data_dir.join("sandboxes");
        let give_up = Instant::now() + Duration::from_secs(60);
        loop {
            let entries = std::fs::read_dir(&folder).context("failed to list sandboxes")?;
            let ids: Vec<String> = entries
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            if ids.is_empty() {
                return self.kill_launcher(Signal::TERM);
            }
            let deleted = self.delete_many(&ids);
            ensure!(Instant::now() < give_up, "sandboxes remain: {deleted:?}");
        }
    }
}

impl Drop for OwnEngine {
    /// Leaves nothing running, even if a row failed.
    fn drop(&mut self) {
        if let Err(error) = self.clear_up() {
            use std::io::Write as _;
            writeln!(std::io::stderr(), "failed to clear up sandboxes: {error:#}").ok();
        }
    }
}

impl Subject for OwnEngine {
    fn column(&self) -> Column {
        Column::Sandyard
    }

    /// Egress needs the server.
    fn is_in(&self, group: &str) -> bool {
        group != "egress"
    }

    fn samples(&self, full: usize) -> usize {
        full
    }

    fn one_shot(&self) -> Result<()> {
        self.runtime.block_on(async {
            let id = self.create_async().await?;
            self.exec_async(&id).await?;
            self.delete_async(&id).await
        })
    }

    fn first_output(&self) -> Result<Duration> {
        self.runtime.block_on(async {
            let start = Instant::now();
            let id = self.create_async().await?;
            self.first_output_async(&id).await?;
            let elapsed = start.elapsed();
            self.delete_async(&id).await?;
            Ok(elapsed)
        })
    }

    fn burst_size(&self, full: usize) -> usize {
        full
    }

    fn burst(&self, count: usize) -> Result<Duration> {
        super::burst_of(self, count)
    }

    fn live(&self) -> Option<&dyn Live> {
        Some(self)
    }
}

impl Live for OwnEngine {
    fn create(&self) -> Result<String> {
        Ok(self.runtime.block_on(self.create_async())?.to_string())
    }

    fn exec(&self, id: &str) -> Result<()> {
        self.runtime.block_on(self.exec_async(&id.parse()?))
    }

    fn pause(&self, id: &str) -> Result<()> {
        self.runtime.block_on(self.engine().pause(&id.parse()?))?;
        Ok(())
    }

    fn resume(&self, id: &str) -> Result<()> {
        self.runtime.block_on(self.engine().resume(&id.parse()?))?;
        Ok(())
    }

    fn delete(&self, id: &str) -> Result<()> {
        self.runtime.block_on(self.delete_async(&id.parse()?))
    }

    fn status(&self, id: &str) -> Result<()> {
        let info = self.runtime.block_on(self.engine().inspect(&id.parse()?))?;
        ensure!(
            info.state == SandboxState::Running,
            "`{id}` is {:?}",
            info.state
        );
        Ok(())
    }

    fn keep_ready(&self, count: usize) -> Result<usize> {
        let kind = PoolSpec {
            template: self.spec.template.clone(),
            limits: self.spec.limits.clone(),
            count,
        };
        let pool = if count > 0 { vec![kind] } else { Vec::new() };
        self.runtime.block_on(self.engine().set_pool(pool))?;
        Ok(count)
    }

    fn crowd_size(&self, full: usize) -> Option<usize> {
        Some(full)
    }

    fn create_many(&self, count: usize) -> Result<Vec<String>> {
        self.runtime
            .block_on(try_join_all((0..count).map(|_| async {
                let id = self.create_async().await?;
                self.exec_async(&id).await?;
                Ok(id.to_string())
            })))
    }

    fn exec_all(&self, ids: &[String]) -> Result<usize> {
        let ids = parse(ids)?;
        let answers = stream::iter(&ids)
            .map(|id| self.exec_async(id))
            .buffer_unordered(WIDTH);
        Ok(self.runtime.block_on(
            answers
                .filter(|answer| std::future::ready(answer.is_ok()))
                .count(),
        ))
    }

    fn delete_many(&self, ids: &[String]) -> Result<()> {
        let ids = parse(ids)?;
        let deletes = stream::iter(&ids)
            .map(|id| self.delete_async(id))
            .buffer_unordered(WIDTH);
        let results: Vec<Result<()>> = self.runtime.block_on(deletes.collect());
        results.into_iter().collect()
    }

    fn processes(&self, id: &str) -> Result<Vec<u32>> {
        let info = self.runtime.block_on(self.engine().inspect(&id.parse()?))?;
        let init = info.init.context("a live sandbox has no first process")?;
        Ok(vec![u32::try_from(init.pid)?])
    }

    fn managers(&self) -> Result<Vec<u32>> {
        Ok(vec![u32::try_from(self.launcher_pid()?)?])
    }

    fn restart(&self, ids: &[String]) -> Result<Option<Restart>> {
        let start = Instant::now();
        self.kill_launcher(Signal::KILL)?;
        self.engine.replace(self.connect_anew()?);
        let back = start.elapsed();
        let listed = self.runtime.block_on(self.engine().list())?;
        ensure!(
            listed.len() >= ids.len(),
            "{} of {} sandboxes are listed after a restart",
            listed.len(),
            ids.len()
        );
        super::all_answer(self, &super::some_of(ids))?;
        let some_ran = start.elapsed();
        super::all_answer(self, ids)?;
        Ok(Some(Restart {
            back,
            some_ran,
            all_ran: start.elapsed(),
        }))
    }

    fn file_round_trip(&self, id: &str, bytes: usize) -> Result<Option<Duration>> {
        const PATH: &str = "/home/user/data";
        let agent = self.engine().agent(&id.parse()?);
        let content = vec![7; bytes];
        self.runtime.block_on(async {
            let start = Instant::now();
            agent.write_file(PATH, content).await?;
            let (mut file, mut read) = (agent.read_file(PATH).await?, 0);
            while let Some(piece) = file.next().await {
                read += piece?.len();
            }
            ensure!(read == bytes, "{read} of {bytes} bytes came back");
            Ok(Some(start.elapsed()))
        })
    }
}

fn command(name: &str) -> ProcessConfig {
    ProcessConfig {
        cmd: name.to_owned(),
        ..ProcessConfig::default()
    }
}

fn parse(ids: &[String]) -> Result<Vec<SandboxId>> {
    ids.iter().map(|id| Ok(id.parse()?)).collect()
}
