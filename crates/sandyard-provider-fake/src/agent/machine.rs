//! The files, processes and state of one instance.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use sandyard_core::{Clock, Limits, SandboxState};
use sandyard_wire::host::{Activity, InitRequest};
use sandyard_wire::http::Metrics;
use tokio::sync::watch;

use super::account::Account;
use super::disk::Disk;
use super::disk::tree::Stamp;
use super::process::Registry;
use super::rules::Rules;
use super::watch::Watchers;

/// Settings of an instance that its agent needs.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) env: BTreeMap<String, String>,
    pub(super) access_token: String,
    pub(super) default_user: String,
    pub(super) default_workdir: Option<String>,
    pub(super) hostname: String,
}

/// One instance.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(super) disk: Disk,
    pub(super) processes: Registry,
    pub(super) watchers: Watchers,
    pub(super) rules: Arc<Rules>,
    pub(super) clock: Clock,
    limits: Limits,
    settings: Mutex<Settings>,
    state: watch::Sender<SandboxState>,
    requests: AtomicU64,
}

impl Machine {
    pub(super) fn new(
        disk: Disk,
        rules: Arc<Rules>,
        clock: Clock,
        limits: Limits,
        settings: Settings,
    ) -> Self {
        Self {
            disk,
            processes: Registry::default(),
            watchers: Watchers::default(),
            rules,
            clock,
            limits,
            settings: Mutex::new(settings),
            state: watch::Sender::new(SandboxState::Running),
            requests: AtomicU64::new(0),
        }
    }

    /// Changes the state; processes are killed when the instance is no longer live.
    pub(crate) fn become_state(&self, state: SandboxState) {
        self.state.send_replace(state);
        if !state.is_live() {
            self.processes.kill_all();
        }
    }

    /// The differences to its template.
    pub(crate) fn difference(&self) -> Vec<sandyard_provider::Change> {
        self.disk.difference()
    }

    /// Bytes on its disk.
    pub(crate) fn disk_used(&self) -> u64 {
        self.disk.used()
    }

    /// Waits while the instance is paused; fails when it is stopped.
    pub(super) async fn wait_while_paused(&self) -> io::Result<()> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| *state != SandboxState::Paused).await;
        match settled.map(|state| *state) {
            Ok(SandboxState::Running) => Ok(()),
            _ => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }

    /// Returns when the instance is no longer live.
    pub(super) async fn ended(&self) {
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| !state.is_live()).await;
    }

    pub(super) fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock()
    }

    /// The user and the time of a write.
    pub(super) fn stamp(&self, account: &Account) -> Stamp {
        Stamp {
            owner: account.name.to_owned(),
            now_ms: self.clock.now_ms(),
        }
    }

    pub(super) fn init(&self, request: InitRequest) {
        let mut settings = self.settings();
        if let Some(env) = request.env_vars {
            settings.env = env;
        }
        if let Some(token) = request.access_token {
            settings.access_token = token;
        }
        if let Some(user) = request.default_user.filter(|user| !user.is_empty()) {
            settings.default_user = user;
        }
        if let Some(workdir) = request.default_workdir {
            settings.default_workdir = Some(workdir).filter(|path| path.starts_with('/'));
        }
        if let Some(hostname) = request.hostname {
            settings.hostname = hostname;
        }
    }

    pub(super) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// The activity of the instance: processes and requests.
    pub(super) fn activity(&self) -> Activity {
        let processes = self.processes.running();
        Activity {
            processes: u32::try_from(processes).unwrap_or(u32::MAX),
            requests: self.requests.load(Ordering::Relaxed),
            initialised: true,
            ..Activity::default()
        }
    }

    pub(super) fn metrics(&self) -> Metrics {
        Metrics {
            ts: self.clock.now_ms() / 1000,
            cpu_count: self.limits.cpu_millis.div_ceil(1000),
            cpu_used_pct: 1.0,
            mem_total: self.limits.memory_bytes,
            mem_used: 1 << 20,
            mem_cache: 0,
            disk_used: self.disk.used(),
            disk_total: self.limits.disk_bytes,
        }
    }
}
