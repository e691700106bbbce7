//! Services: programs of the template's that are started when the host first asks for their port.
//!
//! ```text
//!  /etc/sandyard/services/PORT         executable; run when the host dials the port, nobody listens there and it does not run
//!  /etc/sandyard/services/PORT.user    who runs it; the default user without this file
//!  /var/log/sandyard-service-PORT.log  what it says, and why it was not run
//! ```
//!
//! The dial then waits until somebody listens, as it does for the start program. One that has ended is run again by the
//! next dial, unless it keeps ending: then dials fail for a while and say so. Nothing is started for programs inside, which
//! see a closed port until then.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::background::{Background, Plan};
use super::{Log, files};
use crate::config::StartFiles;
use crate::deaths::Deaths;
use crate::state::Agent;

/// The services as the agent knows them.
#[derive(Debug, Default)]
pub(crate) struct Services {
    files: OnceCell<StartFiles>,
    by_port: RefCell<BTreeMap<u16, Service>>,
}

#[derive(Debug, Default)]
struct Service {
    state: Background,
    deaths: Deaths,
}

impl Services {
    /// Says where to look for them.
    pub(crate) fn set_up(&self, files: &StartFiles) {
        let _ = self.files.set(files.clone());
    }

    /// Whether the service of a port may soon listen there.
    pub(crate) fn is_coming_up(&self, port: u16) -> bool {
        let by_port = self.by_port.borrow();
        by_port
            .get(&port)
            .is_some_and(|service| service.state.is_coming_up(port))
    }

    /// Whether the template has a service for a port.
    pub(crate) fn is_for(&self, port: u16) -> bool {
        let files = self.files.get();
        let found =
            files.map(|files| files::find(&files.folder.join("services"), &port.to_string()));
        matches!(found, Some(Ok(Some(_))))
    }

    /// Lets the service of a port be run in the background, if there is one and it does not run already. Fails with the
    /// reason when it has ended too often.
    pub(crate) fn begin(&self, agent: &Rc<Agent>, port: u16) -> Result<(), String> {
        let Some(files) = self.files.get() else {
            return Ok(());
        };
        let is_there = |service: &Service| service.state.is_there();
        if self.by_port.borrow().get(&port).is_some_and(is_there) {
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
            found,
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
            agent.services.change(port, |service| service.deaths.note());
        });
        Ok(())
    }

    /// Notes that it is about to run, unless it has ended too often.
    fn prepare(&self, port: u16, log: &Path) -> Result<(), String> {
        let what = format!("the service of port {port}");
        self.change(port, |service| {
            service.deaths.check(&what, Some(log))?;
            service.state = Background::Due { ports: vec![port] };
            Ok(())
        })
    }

    fn change<T>(&self, port: u16, change: impl FnOnce(&mut Service) -> T) -> T {
        change(self.by_port.borrow_mut().entry(port).or_default())
    }
}
