//! Our own server: a real `sandyard serve` with default settings, over persistent HTTP/1.1 connections.

mod api;
mod process;

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use self::api::Api;
use self::process::{Process, Setup};
use super::sdk::{self, Sdk};
use super::site::{self, Download, Site};
use super::{Live, Restart, SdkOrder, SdkRun, Subject, parallel};
use crate::memory;
use crate::report::Column;

/// Number of connections for work on a whole crowd: enough to keep a few processors busy.
const WIDTH: usize = 32;

/// A connection idle for longer may have been closed by the server.
const STALE: Duration = Duration::from_secs(5);

/// Time limit for the pool to fill up.
const POOL_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether the server keeps sandboxes ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    /// The default number of ready sandboxes.
    Default,
    /// No ready sandboxes.
    Empty,
    /// No ready sandboxes, and sandboxes have no egress.
    EmptyNoGateway,
}

impl Pool {
    fn folder(self) -> &'static str {
        match self {
            Self::Default => "server",
            Self::Empty => "bare",
            Self::EmptyNoGateway => "shut",
        }
    }

    fn options(self) -> Vec<String> {
        match self {
            Self::Default => Vec::new(),
            Self::Empty | Self::EmptyNoGateway => vec!["--ready".to_owned(), "0".to_owned()],
        }
    }

    /// Settings without effect on speed: the site that sandboxes download from.
    fn settings(self, site: &Site) -> Vec<(&'static str, String)> {
        match self {
            Self::Default | Self::Empty => site.settings().into(),
            Self::EmptyNoGateway => vec![("SANDYARD_GATEWAY_ENABLED", "false".to_owned())],
        }
    }
}

/// A server of its own data directory.
#[derive(Debug)]
pub(crate) struct Server {
    pool: Pool,
    data_dir: PathBuf,
    site: Site,
    process: RefCell<Process>,
    connection: RefCell<(Api, Instant)>,
    last_number: Cell<usize>,
    sdk: Option<Sdk>,
}

impl Server {
    /// Starts `program` with its data below `folder`.
    pub(crate) fn start(
        program: PathBuf,
        folder: &Path,
        pool: Pool,
        sdk: Option<Sdk>,
    ) -> Result<Self> {
        let data_dir = folder.join(pool.folder());
        let site = Site::start()?;
        let setup = Setup {
            options: pool.options(),
            settings: pool.settings(&site),
        };
        let process = Process::start(program, data_dir.clone(), setup)?;
        let connection = (Api::open(process.address)?, Instant::now());
        Ok(Self {
            pool,
            data_dir,
            site,
            process: RefCell::new(process),
            connection: RefCell::new(connection),
            last_number: Cell::new(0),
            sdk,
        })
    }

    /// Removes what servers with data below `folder` left.
    pub(crate) fn clear_up(program: &Path, folder: &Path) -> Result<()> {
        [Pool::Default, Pool::Empty, Pool::EmptyNoGateway]
            .into_iter()
            .try_for_each(|pool| process::clear_up(program, &folder.join(pool.folder())))
    }

    /// Asks over the kept connection.
    fn ask<T>(&self, request: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        let mut connection = self.connection.borrow_mut();
        if connection.1.elapsed() > STALE {
            connection.0 = self.open()?;
        }
        let answer = request(&connection.0);
        connection.1 = Instant::now();
        answer
    }

    fn open(&self) -> Result<Api> {
        Api::open(self.process.borrow().address)
    }

    /// Asks for each of `0..count` in `width` threads with a connection each.
    fn at_once<T: Send>(
        &self,
        count: usize,
        width: usize,
        request: impl Fn(&Api, usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let address = self.process.borrow().address;
        parallel::each(count, width, || Api::open(address), request)
    }

    fn next_number(&self) -> usize {
        self.last_number.set(self.last_number.get() + 1);
        self.last_number.get()
    }

    /// Counts the finished sandboxes of the pool.
    fn ready_count(&self) -> usize {
        let marks = std::fs::read_dir(self.data_dir.join("spares"));
        marks
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|mark| std::fs::read_to_string(mark.path()).ok())
            .filter(|key| !key.is_empty() && key != "unfinished")
            .count()
    }
}

impl Subject for Server {
    fn column(&self) -> Column {
        match self.pool {
            Pool::Default => Column::Sandyard,
            Pool::Empty => Column::SandyardNoPool,
            Pool::EmptyNoGateway => Column::SandyardNoGateway,
        }
    }

    /// Without a pool only creates differ; without a gateway only creates are compared with the same server that has
    /// one.
    fn is_in(&self, group: &str) -> bool {
        match self.pool {
            Pool::Default => true,
            Pool::Empty => matches!(group, "start" | "output" | "burst" | "egress" | "sdk"),
            Pool::EmptyNoGateway => group == "egress",
        }
    }

    fn samples(&self, full: usize) -> usize {
        full
    }

    fn one_shot(&self) -> Result<()> {
        let id = self.create()?;
        self.exec(&id)?;
        self.delete(&id)
    }

    fn first_output(&self) -> Result<Duration> {
        let number = self.next_number();
        let (id, elapsed) = self.ask(|api| {
            let start = Instant::now();
            let id = api.create(number)?;
            let output = api.run(&id, &["echo", "ok"])?;
            let elapsed = start.elapsed();
            ensure!(output == "ok\n", "`echo ok` wrote {output:?}");
            Ok((id, elapsed))
        })?;
        self.delete(&id)?;
        Ok(elapsed)
    }

    fn burst_size(&self, full: usize) -> usize {
        full
    }

    fn burst(&self, count: usize) -> Result<Duration> {
        super::burst_of(self, count)
    }

    fn with_sdk(&self, order: SdkOrder, count: usize) -> Result<Option<SdkRun>> {
        let Some(sdk) = &self.sdk else {
            return Ok(None);
        };
        // The dialect listens next to the server.
        let address = self.process.borrow().address;
        let url = format!("http://{}:{}", address.ip(), address.port() + 1);
        let variables = [
            ("E2B_API_KEY", sdk::admin_key(&self.data_dir)?),
            ("E2B_API_URL", url.clone()),
            ("E2B_SANDBOX_URL", url),
        ];
        sdk.run("e2b", order, count, &variables).map(Some)
    }

    fn live(&self) -> Option<&dyn Live> {
        Some(self)
    }
}

impl Live for Server {
    fn create(&self) -> Result<String> {
        let number = self.next_number();
        self.ask(|api| api.create(number))
    }

    fn exec(&self, id: &str) -> Result<()> {
        self.ask(|api| api.run(id, &["true"])).map(drop)
    }

    fn pause(&self, id: &str) -> Result<()> {
        self.ask(|api| api.pause(id))
    }

    fn resume(&self, id: &str) -> Result<()> {
        self.ask(|api| api.resume(id))
    }

    /// Any request to a paused sandbox wakes it.
    fn wake(&self, id: &str) -> Result<()> {
        self.exec(id)
    }

    fn status(&self, id: &str) -> Result<()> {
        let status = self.ask(|api| api.status(id))?;
        ensure!(status == "running", "`{id}` is {status}");
        Ok(())
    }

    fn delete(&self, id: &str) -> Result<()> {
        self.ask(|api| api.delete(id))
    }

    fn keep_ready(&self, count: usize) -> Result<usize> {
        // The default; see `sandbox.ready`.
        const READY: usize = 8;
        if self.pool != Pool::Default || count == 0 {
            return Ok(0);
        }
        let give_up = Instant::now() + POOL_TIMEOUT;
        while self.ready_count() < READY {
            ensure!(Instant::now() < give_up, "the pool does not fill up");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(READY)
    }

    fn crowd_size(&self, full: usize) -> Option<usize> {
        Some(full)
    }

    fn create_many(&self, count: usize) -> Result<Vec<String>> {
        self.at_once(count, count, |api, index| {
            let id = api.create(index)?;
            api.run(&id, &["true"])?;
            Ok(id)
        })
    }

    fn exec_all(&self, ids: &[String]) -> Result<usize> {
        let answers = self.at_once(ids.len(), WIDTH, |api, index| {
            Ok(api.run(&ids[index], &["true"]).is_ok())
        })?;
        Ok(answers.into_iter().filter(|answered| *answered).count())
    }

    fn delete_many(&self, ids: &[String]) -> Result<()> {
        self.at_once(ids.len(), WIDTH, |api, index| api.delete(&ids[index]))
            .map(drop)
    }

    /// What a sandbox costs is the engine's figure; the server adds what [`Live::managers`] use.
    fn processes(&self, _id: &str) -> Result<Vec<u32>> {
        Ok(Vec::new())
    }

    fn managers(&self) -> Result<Vec<u32>> {
        Ok(vec![self.process.borrow().pid()])
    }

    fn restart(&self, ids: &[String]) -> Result<Option<Restart>> {
        let start = Instant::now();
        self.process.borrow_mut().crash_and_restart()?;
        let back = start.elapsed();
        self.connection.replace((self.open()?, Instant::now()));
        let listed = self.ask(Api::count_running)?;
        ensure!(
            listed >= ids.len(),
            "{listed} of {} sandboxes are listed as running after a restart",
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
        let content = vec![7; bytes];
        let start = Instant::now();
        self.ask(|api| api.file_round_trip(id, &content))?;
        Ok(Some(start.elapsed()))
    }

    fn download(&self, id: &str, bytes: usize) -> Result<Option<[Download; 2]>> {
        if self.pool == Pool::EmptyNoGateway {
            return Ok(None);
        }
        let argv = self.site.download_by_name(bytes);
        let printed = self.ask(|api| api.run(id, &argv))?;
        let through_gateway = site::read_download(&printed, bytes)?;
        Ok(Some([through_gateway, self.site.download_directly(bytes)?]))
    }

    fn has_tools(&self) -> bool {
        true
    }

    fn first_tool_call(&self, id: &str) -> Result<String> {
        self.ask(|api| api.first_tool_call(id))
    }

    fn read_by_tool(&self, id: &str, session: &str) -> Result<()> {
        self.ask(|api| api.read_by_tool(id, session))
    }

    fn tools_memory(&self, _id: &str) -> Result<u64> {
        memory::pss_of_called("sandyard-tools")
    }
}
