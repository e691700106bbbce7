//! Services: the template's programs that start when the host first dials their port.
//!
//! ```text
//!  /etc/sandyard/services/PORT         executable; started when the host dials the port, nobody listens there and it does not run
//!  /etc/sandyard/services/PORT.user    its user; the default user without this file
//!  /var/log/sandyard-service-PORT.log  its output, and why it was not run
//! ```
//!
//! The dial then waits until the service listens, as it does for the start program. The next dial restarts a service that
//! has ended, unless it ends too often: then dials fail for a while with that reason. Programs inside do not start services;
//! they see a closed port.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::background::{Background, Plan};
use super::{Log, files};
use crate::config::StartFiles;
use crate::restart_limit::RestartLimit;
use crate::state::Agent;

/// The state of all services.
#[derive(Debug, Default)]
pub(crate) struct Services {
    files: OnceCell<StartFiles>,
    by_port: RefCell<BTreeMap<u16, Service>>,
}

#[derive(Debug, Default)]
struct Service {
    state: Background,
    restart_limit: RestartLimit,
}

impl Services {
    /// Sets the folder of the services.
    pub(crate) fn set_up(&self, files: &StartFiles) {
        let _ = self.files.set(files.clone());
    }

    /// Whether the service of a port may soon listen there.
    pub(crate) fn is_starting(&self, port: u16) -> bool {
        let by_port = self.by_port.borrow();
        by_port
            .get(&port)
            .is_some_and(|service| service.state.is_starting(port))
    }

    /// Whether the template has a service for a port.
    pub(crate) fn owns_port(&self, port: u16) -> bool {
        let files = self.files.get();
        let found =
            files.map(|files| files::find(&files.folder.join("services"), &port.to_string()));
        matches!(found, Some(Ok(Some(_))))
    }

    /// Starts the service of a port in the background, if there is one and it does not run. Fails with the reason when it has
    /// ended too often.
    pub(crate) fn start(&self, agent: &Rc<Agent>, port: u16) -> Result<(), String> {
        let Some(files) = self.files.get() else {
            return Ok(());
        };
        let is_active = |service: &Service| service.state.is_active();
        if self.by_port.borrow().get(&port).is_some_and(is_active) {
            return Ok(());
        }
        let tag = format!("service-{port}");
        let log = files.log(&tag);
        let mut found = match files::find(&files.folder.join("services"), &port.to_string()) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(problem) => {
                Log::open(log, None).note(&problem);
                return Ok(());
            }
        };
        self.prepare(port, &log)?;
        found.ports = vec![port];
        let plan = Plan {
            program: found,
            user: agent.settings.borrow().default_user.clone(),
            log,
            tag,
            variable: None,
        };
        let agent = agent.clone();
        tokio::task::spawn_local(async move {
            let state = Background::run(agent.clone(), plan).await;
            let ended = state.ended();
            agent.services.change(port, |service| service.state = state);
            ended.await;
            agent
                .services
                .change(port, |service| service.restart_limit.note_exit());
        });
        Ok(())
    }

    /// Notes that the service is about to run, unless it has ended too often.
    fn prepare(&self, port: u16, log: &Path) -> Result<(), String> {
        let what = format!("the service of port {port}");
        self.change(port, |service| {
            service.restart_limit.check(&what, Some(log))?;
            service.state = Background::Due { ports: vec![port] };
            Ok(())
        })
    }

    fn change<T>(&self, port: u16, change: impl FnOnce(&mut Service) -> T) -> T {
        change(self.by_port.borrow_mut().entry(port).or_default())
    }
}
